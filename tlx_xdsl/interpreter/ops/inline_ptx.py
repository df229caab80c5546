"""Barriers and fences that are written in PTX or as `nvvm` operations.

Triton's own barriers have small numbers; what counts here is only who meets whom.
"""

from __future__ import annotations

import re
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, ttg
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.ops.barriers import named_arrive, named_sync
from tlx_xdsl.interpreter.ops.cluster_barrier import cluster_arrive, cluster_wait, tell_initialised
from tlx_xdsl.interpreter.ops.special import block_threads
from tlx_xdsl.interpreter.registry import Run, effect, step
from tlx_xdsl.interpreter.task import Coroutine, Task

_STATEMENT = re.compile(r"\s*(?P<name>[a-z][\w.:]*)\s*(?P<operands>[^;{}]*);?")
_OPERAND = re.compile(r"\$(\d+)|%?(-?\d+)")
_BARRIERS = {
    "bar.sync": True,
    "barrier.sync": True,
    "barrier.cta.sync": True,
    "barrier.sync.aligned": True,
    "bar.arrive": False,
    "barrier.arrive": False,
    "barrier.cta.arrive": False,
    "barrier.arrive.aligned": False,
}
"""Whether an instruction waits for the others."""


@step(nvvm.InlinePtxOp)
def inline_ptx(op: nvvm.InlinePtxOp) -> Run:
    """One barrier or fence (PTX ISA, "bar", "barrier.cluster", "membar", "fence").

    Raises Fault for other instructions, when it runs.
    """
    return _statement(op, op.ptx_code.data, has_predicate=op.predicate is not None)


@step(ttg.InlineAsmOp)
def inline_asm(op: ttg.InlineAsmOp) -> Run:
    """The same; what computes with the elements that a thread holds is a fault, when it runs."""
    return _statement(op, op.asm_string.data, has_predicate=False)


def _statement(op: Operation, code: str, *, has_predicate: bool) -> Run:
    found = _STATEMENT.fullmatch(code.strip())
    name = found["name"] if found else ""
    operands = [part.strip() for part in found["operands"].split(",") if part.strip()] if found else []

    def number(text: str, values: tuple[Any, ...]) -> int:
        match = _OPERAND.fullmatch(text)
        if match is None:
            raise fault_at(op, f"the interpreter can't read the PTX operand '{text}'")
        return int(values[int(match[1])]) if match[1] else int(match[2])

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        if has_predicate and not values[-1]:
            return
        if name in _BARRIERS and 1 <= len(operands) <= 2:
            barrier = number(operands[0], values)
            threads = number(operands[1], values) if len(operands) == 2 else block_threads(task)
            if _BARRIERS[name]:
                yield from named_sync(task, op, barrier, threads)
            else:
                named_arrive(task, op, barrier, threads)
        elif name.startswith("barrier.cluster.arrive"):
            cluster_arrive(task, op, relaxed=".relaxed" in name)
        elif name.startswith("barrier.cluster.wait"):
            yield from cluster_wait(task, op)
        elif name.startswith("fence.mbarrier_init"):
            tell_initialised(task)
        elif name.startswith("fence.proxy.async"):
            task.fence()
        elif not name.startswith(("fence.", "membar.")):
            raise fault_at(op, f"the interpreter can't run the PTX '{code}'")

    return run


@effect(nvvm.FenceProxyOp)
def fence_proxy(_op: nvvm.FenceProxyOp) -> Run:
    """What the task knows becomes visible to the async proxy."""

    def run(task: Task) -> None:
        task.fence()

    return run


@step(nvvm.BarrierOp)
def barrier(op: nvvm.BarrierOp) -> Run:
    """Without a number of threads the task meets only itself, as Triton lowers it."""
    has_id, has_threads = op.barrier_id is not None, op.number_of_threads is not None

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        if has_threads:
            yield from named_sync(task, op, int(values[0]) if has_id else 0, int(values[-1]))

    return run


@step(nvvm.BarrierArriveOp)
def barrier_arrive(op: nvvm.BarrierArriveOp) -> Run:
    """Arrive with all threads of the task."""
    has_id = op.barrier_id is not None

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        named_arrive(task, op, int(values[0]) if has_id else 0, int(values[-1]))

    return run
