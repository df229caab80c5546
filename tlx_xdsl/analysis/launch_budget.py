"""The check that the threads of a kernel, and the registers that it asks for them, fit a multiprocessor."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects.base import module_integer
from tlx_xdsl.dialects.tt import FuncOp
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
    """Refuse a kernel that is more threads, or whose tasks want more registers, than a CTA can have.

    Each task counts with the warps that it names: stock Triton fills them up to groups of four, so that a kernel that
    passes may still be refused. A bound on the registers counts beside tasks only: ptxas lowers that of any other
    kernel.

    Raises OverBudgetError, located at the tasks or else at the kernel.
    """
    default = module_integer(module, "ttg.num-warps")
    if default is None:
        return
    for op in module.walk():
        if isinstance(op, FuncOp):
            _check_threads(op, default, ())
        elif isinstance(op, WarpSpecializeOp):
            _check_threads(op, default, op.num_warps)
            _check_registers(op, (default + sum(op.num_warps)) * WARP_SIZE, module_integer(module, "ttg.maxnreg"))


def _check_threads(op: Operation, default: int, tasks: Sequence[int]) -> None:
    threads = (default + sum(tasks)) * WARP_SIZE
    if threads > MOST_THREADS:
        parts = f" ({default} warps of num_warps, {' + '.join(map(str, tasks))} of its tasks)" if tasks else ""
        message = f"the kernel needs {threads:,} threads{parts}, a CTA has at most {MOST_THREADS:,}"
        raise OverBudgetError.of(error_at(op, message), "threads", threads, MOST_THREADS)


def _check_registers(op: Operation, threads: int, bound: int | None) -> None:
    if bound is not None and threads * bound > REGISTERS:
        most = REGISTERS // threads // _STEP * _STEP
        message = (
            f"the kernel needs {threads * bound:,} registers ({threads} threads, those of its tasks included, of "
            f"maxnreg = {bound}), an SM has {REGISTERS:,}: maxnreg can be at most {most}"
        )
        raise OverBudgetError.of(error_at(op, message), "registers", threads * bound, REGISTERS)
