"""`tlx lint FILE.py[:KERNEL]`: all that is wrong with kernels and can be found without a binary and without a run."""

from __future__ import annotations

import argparse

from ..launch_line.kernel_options import add_kernel_arguments
from .check import FORMATS

_EPILOG = """\
Types and constants are those of the file's TLX_COMPILE; of one kernel they may be given here, too. With --grid and the
arguments (--arg), accesses out of bounds and programs that write the same bytes are looked for as well.
The exit status is 1 where there is an error.

examples:
  tlx lint kernels.py
  tlx lint kernels.py:softmax --grid 4 --arg x=empty:fp32[4,256] --arg n=256 --format github
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", metavar="FILE", help="FILE.py, for all kernels in it, or FILE.py:KERNEL")
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs of a launch; expressions over arguments and sizes")
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")
    parser.set_defaults(shape=[])
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns and raises as `lint_kernels.run` does."""
    from .lint_kernels import run

    return run(args)
