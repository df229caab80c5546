"""Lowering of what kernels on several GPUs know of themselves; the rest of `tlx.ranks` is written in the language."""

from __future__ import annotations

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.tlx.signals import Reached
from tlx_xdsl.dialects.tt import MemSemantic
from tlx_xdsl.language.core import int32, int64

from ..calls import Call, lowers
from ..values import Constexpr, Value
from .atomics import ordering_of, timeout_of
from .memory import pointer_of


@lowers("tlx._symmetric")
def _symmetric(call: Call) -> Value:
    if (found := call.visitor.unit.symmetric) is None:
        call.fail(None, "the function has no symmetric tensor among its arguments, such as 'x' of tlx.rank(x)")
    return found


@lowers("tlx._wait_signal")
def _wait_signal(call: Call) -> None:
    pointer, element = pointer_of(call)
    if pointer.shape or element not in (int32, int64):
        call.fail("pointer", f"'pad' must point to counters of int32 or int64, found {pointer.describe()}")
    value, limit = call.scalar("value", element), timeout_of(call, "limit_ns")
    reached = call.choice("compare", {">=": Reached.GE, "==": Reached.EQ})
    sem, scope = ordering_of(call, MemSemantic.ACQUIRE, MemSemantic.ACQUIRE, MemSemantic.RELAXED)
    call.emit(tlx.WaitSignalOp, pointer, value, limit, reached=reached, sem=sem, scope=scope)


@lowers("tlx._has_tasks")
def _has_tasks(call: Call) -> Value:
    return Constexpr(call.visitor.unit.has_tasks)


@lowers("tlx._leave")
def _leave(call: Call) -> None:
    call.emit(tlx.LeaveOp)
