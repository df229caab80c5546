"""`tlx run FILE.py:KERNEL` or `tlx run FILE.mlir[:FUNCTION]`: run a kernel on the CPU, on arrays made up here."""

from __future__ import annotations

import argparse
from typing import Any

from tlx_xdsl.interpreter.limits import MAX_OPERATIONS, MAX_SECONDS, MAX_TURNS, POLICIES
from tlx_xdsl.runtime.simulate.options import TENSOR_CORE_ORDERS, UNLAUNCHABLE, UNWRITTEN
from tlx_xdsl.tools.launch_line.kernel_options import VALUES, add_launch_arguments

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
    parser.add_argument("--stage", default="frontend", help="frontend (default), aliased, ttgir, a pass, or ptx")
    parser.add_argument(
        "--profile", action="store_true", help="with --stage ptx: what lines take: instructions, memory, waits"
    )
    parser.add_argument(
        "--compare", action=argparse.BooleanOptionalAction,
        help="with --stage ptx: run the TTGIR in the interpreter, too, and compare (the default)",
    )  # fmt: skip
    parser.add_argument("--schedule", choices=POLICIES, default=POLICIES[0], help="who goes on when several can")
    parser.add_argument("--seed", type=int, default=0, help="of the schedule and of random numbers (0)")
    parser.add_argument(
        "--order", metavar="STEP:WHO,...", help="who goes on where that makes a difference, as tlx check reports it"
    )
    parser.add_argument(
        "--unwritten", choices=UNWRITTEN, default=UNWRITTEN[0], help="reads of uninitialized memory (error)"
    )
    parser.add_argument(
        "--unlaunchable",
        choices=UNLAUNCHABLE,
        default=UNLAUNCHABLE[0],
        help="what the target would refuse to launch (warn)",
    )
    parser.add_argument(
        "--tensor-core-order", choices=TENSOR_CORE_ORDERS, default=TENSOR_CORE_ORDERS[0],
        help="what orders the tcgen05 operations of a task: PTX's promises (ptx, the default), or their issue",
    )  # fmt: skip
    parser.add_argument(
        "--global-order", action=argparse.BooleanOptionalAction,
        help="check programs' accesses to global memory against each other (where there are atomics or while loops)",
    )  # fmt: skip
    parser.add_argument(
        "--descending", action="store_true", help="start programs with the last one: no order of programs is promised"
    )  # fmt: skip
    parser.add_argument(
        "--overlapping", action="store_true", help="run programs side by side, by turns at atomic operations"
    )
    parser.add_argument("--watch", action="store_true", help="run again whenever the file changes, until Ctrl-C")
    parser.add_argument("--jobs", type=int, help="processes (all cores, where that is worth it)")
    parser.add_argument("--trace", metavar="FILE.json", help="write a trace for chrome://tracing or ui.perfetto.dev")
    parser.add_argument("--max-turns", type=int, default=MAX_TURNS, help=f"turns that a cluster may take ({MAX_TURNS})")
    parser.add_argument(
        "--max-operations", type=int, default=MAX_OPERATIONS, help=f"the same, in loops ({MAX_OPERATIONS})"
    )
    parser.add_argument(
        "--max-seconds",
        type=float,
        default=MAX_SECONDS,
        help=f"the same, in seconds of a processor ({MAX_SECONDS:g})",
    )


def run(args: argparse.Namespace) -> None:
    """Carry the command out; raises as `run_kernel.run` does."""
    from tlx_xdsl.tools.commands.run_kernel import run

    if not args.watch:
        run(args)
        return
    from tlx_xdsl.tools.watch import watched

    watched(args.kernel.partition(":")[0], lambda: run(args))
