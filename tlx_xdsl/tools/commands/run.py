"""`tlx run FILE.py:KERNEL` or `tlx run FILE.mlir[:FUNCTION]`: run a kernel on the CPU, on arrays made up here."""

from __future__ import annotations

import argparse
from typing import Any

from ..launch_line.kernel_options import VALUES, add_launch_arguments, add_run_arguments

_EPILOG = f"""\
{VALUES}
example:
  tlx run examples/hopper_gemm_ws.py:matmul --grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' \\
      --arg a_desc=randn[512,512] --arg b_desc=randn[512,512] --arg c_desc=nan[512,512] \\
      --arg M=512 --arg N=512 --arg K=512 --check c_desc=a_desc@b_desc
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir[:FUNCTION]")
    add_launch_arguments(parser)
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--save", **repeated, metavar="NAME=FILE.npy", help="write an array to a file at the end")
    parser.add_argument(
        "--check",
        **repeated,
        metavar="NAME=EXPR",
        help="what an array must hold, over the arrays from before the run: sqrt exp max mean sum softmax where ...",
    )
    parser.add_argument("--tolerance", type=float, help="largest error for --check, relative to the largest value")
    parser.add_argument(
        "--compare", action=argparse.BooleanOptionalAction,
        help="with --stage ptx: run the TTGIR in the interpreter, too, and compare (the default)",
    )  # fmt: skip
    add_run_arguments(parser)
    parser.add_argument("--watch", action="store_true", help="run again whenever the file changes, until Ctrl-C")


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `run_kernel.run` does."""
    from .run_kernel import run

    if not args.watch:
        run(args)
        return
    from ..watch import watched

    watched(args.kernel.partition(":")[0], lambda: run(args))
