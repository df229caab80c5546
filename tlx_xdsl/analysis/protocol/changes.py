"""Loads that give different numbers at different times, since the kernel itself writes what they read.

Arrays that come as different arguments are taken to be different memory. A pointer that is no argument, nor made of
one, may point to any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Kind, Space, accesses_of, space_of

from .demand import Demands


def changed_load(function: tt.FuncOp, demands: Demands) -> tuple[Operation, Operation] | None:
    """The first load that the synchronisation depends on, and an operation that may write the memory which it reads."""
    loads = [op for op in function.walk() if isinstance(op, tt.LoadOp) and _decides(op, demands)]
    if not loads:
        return None
    written = [
        (op, arrays_of(access.value, demands.sources))
        for op in function.walk()
        for access in accesses_of(op) or ()
        if access.space is Space.GLOBAL and access.kind & (Kind.WRITE | Kind.ATOMIC)
    ]  # fmt: skip
    for load in loads:
        read = arrays_of(load.ptr, demands.sources)
        for op, arrays in written:
            if None in read | arrays or not read.isdisjoint(arrays):
                return load, op
    return None


def _decides(op: Operation, demands: Demands) -> bool:
    """Whether the synchronisation depends on what an operation gives, or on a loop or branch that it is in."""
    if any(result in demands for result in op.results):
        return True
    parent = op.parent_op()
    return parent is not None and _decides(parent, demands)


def arrays_of(pointer: SSAValue, sources: Mapping[SSAValue, list[SSAValue]]) -> frozenset[SSAValue | None]:
    """The arguments that a pointer or descriptor may point into; None among them is any memory."""
    seen = {pointer}
    todo, found = [pointer], set[SSAValue | None]()
    while todo:
        value = todo.pop()
        before = sources.get(value) or list(_made_of(value))
        if not before:
            is_argument = isinstance(value.owner, Block) and isinstance(value.owner.parent_op(), tt.FuncOp)
            found.add(value if is_argument else None)
        todo += [each for each in before if each not in seen]
        seen.update(before)
    return frozenset(found)


def _made_of(value: SSAValue) -> Iterator[SSAValue]:
    """The pointers that an operation makes another one of, but for those that it loads it from."""
    accesses = accesses_of(value.owner) if isinstance(value.owner, Operation) else None
    if accesses is not None and not any(Kind.READ in access.kind for access in accesses):
        assert isinstance(value.owner, Operation)
        yield from (each for each in value.owner.operands if space_of(each.type) is Space.GLOBAL)
