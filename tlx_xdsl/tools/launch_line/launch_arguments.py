"""The arguments of command lines that say a launch."""

from __future__ import annotations

import argparse
from typing import Any

from tlx_xdsl.tools.launch_line.kernel_options import add_fusion_argument

VALUES = """\
values of arguments:
  5   2.5   True   None   5:i64          a number, also with its type
  randn:fp16[512,512]                    an array; also rand, zeros, ones, nan, arange, full(0.5), randint(0,10)
  empty:fp16[512,512]                    an array that nothing has written: to read it is a fault
  a.npy   a.npy:bf16                     a file of numpy's
  desc(randn:fp16[512,512], [64,64])     a tensor descriptor with its block
  (randn[64], 3)                         a tuple
  randn:fp16[M,2*K]   M*K                over the names that --size gives
Types and blocks that the file's TLX_COMPILE states may be left out: --arg a_desc=randn[512,512].
"""
"""How values are written on a command line."""

SIZE_HELP = "a number that --arg, --constexpr and --grid may name; a parameter of that name has this value"


def add_launch_arguments(parser: argparse.ArgumentParser, size_help: str = SIZE_HELP) -> None:
    """Declare what says a launch: grid, values, sizes, and options of the kernel."""
    parser.add_argument(
        "--grid", required=True, metavar="X,Y,Z", help="programs along each axis; expressions over arguments and sizes"
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--arg", **repeated, metavar="NAME=VALUE", help="value of an argument, see below")
    parser.add_argument("--constexpr", **repeated, metavar="NAME=VALUE", help="value of a compile-time argument")
    parser.add_argument("--size", **repeated, metavar="NAME=VALUE", help=size_help)
    parser.add_argument("--num-warps", type=int, help="warps outside of warp-specialised tasks (4)")
    parser.add_argument("--num-ctas", type=int, help="CTAs that share one tile (1)")
    parser.add_argument("--cluster", metavar="X,Y,Z", help="thread blocks of a cluster (1,1,1)")
    parser.add_argument("--target", metavar="SM", help="GPU that the kernel is written for (sm_90a)")
    add_fusion_argument(parser)
