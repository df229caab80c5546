"""`tlx ttl compile|run|check FILE.py:KERNEL`: kernels for Tenstorrent's cores, as C++ or run here."""

from __future__ import annotations

import argparse
from typing import Any

from tlx_xdsl.interpreter.limits import POLICIES

_EPILOG = """\
values of tensors:
  randn[64,96]   randn:bf16[64,96]   also rand, zeros, ones, nan, arange:fp32, full(0.5), randint(0,10):fp32
  a.npy   a.npy:bf16                 a file of numpy's
  4   0.5                            a number, which is a part of the kernel that is compiled
What the kernel's annotations describe, as in a: ttl.tensor((64, 96)), may be left out: it is filled by randn.

examples:
  tlx ttl compile examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96] -o build
  tlx ttl run examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96] --check out=a+b
  tlx ttl check examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96]
"""

ACTIONS = ("compile", "run", "check")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument(
        "action", choices=ACTIONS, help="write the C++ of a kernel, run it here, or check it in many schedules"
    )
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="the name may be left out where there is one kernel")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--arg", **repeated, metavar="NAME=VALUE", help="value of a tensor, see below")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers and of the schedule (0)")
    parser.add_argument(
        "--profile", default="0.81", metavar="RELEASE", help="TT-Metalium release: 0.81 (the default) or 2025-12"
    )
    parser.add_argument("--no-block-calls", action="store_true", help="call the functions of single tiles only")
    parser.add_argument("--no-schedule", action="store_true", help="leave transfers in the order of the source")
    parser.add_argument("--capacity", type=int, metavar="TILES", help="destination registers (those of the hardware)")
    parser.add_argument("--fpu", choices=("auto", "always", "never"), default="auto", help="matrix unit for + - *")
    compiling = parser.add_argument_group("compile")
    compiling.add_argument("-o", "--output", metavar="DIR", help="folder for the files (build); - prints the C++")
    compiling.add_argument("--print-after-all", action="store_true", help="write the module after each pass, too")
    compiling.add_argument("--no-lines", action="store_true", help="leave out #line directives")
    running = parser.add_argument_group("run and check")
    running.add_argument("--machine", default="ttkernel", help="what runs it: ttkernel (the default), tensors or cpp")
    running.add_argument("--schedule", choices=POLICIES, default=POLICIES[0], help="who goes on when several can")
    running.add_argument("--check", **repeated, metavar="NAME=EXPR", help="what a tensor must hold after the run")
    running.add_argument("--tolerance", type=float, help="largest error for --check, relative to the largest value")
    running.add_argument("--save", **repeated, metavar="NAME=FILE.npy", help="write a tensor to a file at the end")


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `ttl_kernels.run` does."""
    from .kernels import run

    run(args)
