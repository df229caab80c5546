"""Whether the threads of a kernel, and the registers that it asks for them, fit a multiprocessor."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.base.operation import module_integer
from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.errors import OverBudgetError
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.text.diagnostics import error_at

MOST_THREADS = 1024
"""Threads of a CTA. Source: CUDA C++ Programming Guide, "Compute Capabilities"."""

REGISTERS = 64 * 1024
"""32-bit registers of a multiprocessor, all of which one CTA can have. Source: the same."""

_STEP = 8
"""Registers are given to threads in multiples of this."""


def check_launch(module: ModuleOp) -> None:
    """Refuse a kernel whose tasks are more threads, or want more registers, than a CTA can have.

    Each task counts with the warps that it names: stock Triton fills them up to groups of four, so that a kernel that
    passes may still be refused. A bound on the registers counts beside tasks only: ptxas lowers that of any other
    kernel.

    Raises OverBudgetError, located at the tasks.
    """
    default = module_integer(module, "ttg.num-warps")
    bound = module_integer(module, "ttg.maxnreg")
    if default is None:
        return
    for op in module.walk():
        if not isinstance(op, WarpSpecializeOp):
            continue
        threads = (default + sum(op.num_warps)) * WARP_SIZE
        tasks = f"{default} warps of num_warps and {' + '.join(map(str, op.num_warps))} of tasks"
        if threads > MOST_THREADS:
            message = f"the kernel needs {threads:,} threads ({tasks}), a CTA has at most {MOST_THREADS:,}"
            raise OverBudgetError.of(error_at(op, message), "threads", threads, MOST_THREADS)
        if bound is not None and threads * bound > REGISTERS:
            most = REGISTERS // threads // _STEP * _STEP
            message = (
                f"the kernel needs {threads * bound:,} registers ({threads} threads of maxnreg = {bound}: {tasks}), "
                f"an SM has {REGISTERS:,}: maxnreg can be at most {most}"
            )
            raise OverBudgetError.of(error_at(op, message), "registers", threads * bound, REGISTERS)
