"""The arguments of `tlx gate`, which asks of final code whether it is right."""

from __future__ import annotations

import argparse

from ..launch_line.kernel_options import VALUES, add_kernel_arguments
from .faces import Face

FORMATS = ("json", "page", "text")
"""What `tlx_xdsl.gate.report` writes."""

_EPILOG = f"""\
KERNELS are FILE.py:KERNEL; FILE.py, for the kernels that its TLX_GATE names, or a script without one, whose launches
are recorded; or a folder of such files. TLX_GATE is a dictionary from kernels to the options of their launches:

  TLX_GATE = {{"scale": "--grid 4 --arg x=randn:fp16[1024] --set BLOCK=128,256"}}

{VALUES}
Configurations are those of the kernel's autotuner and all combinations of --set. The exit status is 1 where something
was found, or nothing could be run.

example:
  tlx gate kernels.py:scale --grid 4 --arg x=randn:fp16[1024] --set BLOCK=128,256 --triton 3.6.0,3.7.1,installed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernels", nargs="+", metavar="KERNELS", help="FILE.py:KERNEL, FILE.py or a folder")
    add_launch_line(parser)
    parser.add_argument(
        "--triton", default="installed", metavar="VERSION,...",
        help="Tritons that compile: versions, which pip fetches once, and installed (the default)",
    )  # fmt: skip
    parser.add_argument(
        "--triton-path", action="append", default=[], metavar="VERSION=FOLDER",
        help="the folder of a version that is there already, as `pip install --target` fills it",
    )  # fmt: skip
    parser.add_argument(
        "--ptxas", default="", metavar="PATH,...",
        help="assemblers whose cubins are compared with the PTX (each Triton's own, where that miscompiles products)",
    )  # fmt: skip
    parser.add_argument("--sass", action="store_true", help="compare cubins with their PTX in any case")
    parser.add_argument("--sample", type=int, metavar="N", help="so many configurations of each kernel, drawn")
    parser.add_argument("--with-mends", action="store_true", help="compile plain kernels, too, as tlx_xdsl does")
    parser.add_argument("--seconds", type=float, default=10.0, help="time of each run of the PTX (10)")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="processes (one for each core)")
    parser.add_argument(
        "--results", metavar="FILE.jsonl", help="file of verdicts: those that it has are not made again, new ones added"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the report (standard output)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no bar on standard error")


def add_launch_line(parser: argparse.ArgumentParser) -> None:
    """Declare what says a launch and its configurations, on a command line or in TLX_GATE."""
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs along each axis; expressions over the arguments")
    parser.add_argument(
        "--set", dest="choices", action="append", default=[], metavar="NAME=VALUE,VALUE",
        help="values to choose from: of a compile-time argument, of num_warps, num_stages, num_ctas or maxnreg, or of "
        "a name in --arg: a size, or a type as in randn:TYPE[64]",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of random numbers, and of --sample (0)")
    add_kernel_arguments(parser)


GATE = Face(add_arguments, "gate_kernels", "run_gate")
