"""`tlx addresses FILE.py:KERNEL` or `tlx addresses FILE.mlir[:FUNCTION]`: where each program touches memory."""

from __future__ import annotations

import argparse
from typing import Any

from ..launch_line.kernel_options import add_kernel_arguments

_EPILOG = """\
Without --grid, what is said holds for every launch that keeps the conditions that are named. With it, the addresses of
all programs are computed: which of them write the same bytes, which leave an array, and what is not written.

example:
  tlx addresses examples/ampere_gemm_pipelined.py:matmul --grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' \\
      --arg M=512 --arg N=512 --arg K=256 --arg stride_a=256 --arg stride_b=512 --arg stride_c=512 \\
      --shape a_ptr=M,K --shape b_ptr=K,N --shape c_ptr=M,N --svg coverage.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir[:FUNCTION], .ttir or .ttgir"
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs along each axis; expressions over the arguments")
    parser.add_argument(
        "--shape",
        **repeated,
        metavar="NAME=SIZES",
        help="sizes of the array that a pointer or descriptor addresses: 1024,512; an array of --arg says them, too",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--svg", metavar="FILE", help="write a picture: which program touches which block")
    parser.add_argument(
        "--wave", type=int, metavar="N", help="in the picture, one colour for each N programs, which run at a time"
    )
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `addresses_launch.run` does."""
    from .addresses_launch import run

    run(args)
