"""Lines that could let a blocked thread go on: they push, pop, or change what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.interpreter.faults import location_of

from .threads import Thread, state_of
from .translate import integer

_ANSWERS = {
    "ttkernel.cb_wait_front": ("pushed", ("ttkernel.cb_push_back",)),
    "ttkernel.cb_reserve_back": ("popped", ("ttkernel.cb_pop_front",)),
}
_CHANGES = ("ttkernel.noc_semaphore_set", "ttkernel.noc_semaphore_inc")


def suppliers(functions: Sequence[FuncOp], threads: Sequence[Thread], blocked: Thread) -> list[str]:
    """A line for each operation that could let a thread go on, with what the threads that have it do now."""
    assert blocked.step is not None
    op = blocked.step.op
    key = origin(op.operands[0]) if op.operands else None
    if key is None:
        return []
    lines: list[str] = []
    verb, names = _ANSWERS.get(op.name, ("changed", ()))
    for function in functions:
        for each in function.walk():
            answers = each.name in names if names else each.name.startswith(_CHANGES)
            if answers and key in (origin(value) for value in each.operands):
                name = function.sym_name.data
                states = sorted(
                    {state_of(thread) for thread in threads if thread.name == name and thread is not blocked}
                )
                lines.append(
                    f"it can be {verb} at {location_of(each)} by '{name}', which {' or '.join(states) or 'waits'}"
                )
    return lines or [f"no line {'changes' if verb == 'changed' else verb.replace('ed', 'es').replace('pp', 'p')} it"]


def origin(value: SSAValue) -> tuple[str, int] | None:
    """The circular buffer or the semaphore that a value comes from, by its number."""
    for op in _slice(value):
        if op.name in ("ttkernel.get_compile_time_arg_val", "ttkernel.get_semaphore"):
            return op.name, integer(op, "index")
    return None


def _slice(value: SSAValue) -> Iterator[Operation]:
    owner = value.owner
    if isinstance(owner, Operation):
        yield owner
        for operand in owner.operands:
            yield from _slice(operand)
