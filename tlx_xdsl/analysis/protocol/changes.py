"""Loads that give different numbers at different times, since the kernel itself writes what they read; and loops that
wait for that.

Arrays that come as different arguments are taken to be different memory. A pointer that is no argument, nor made of
one, may point to any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Kind, Space, accesses_of, global_access, is_set, space_of

from .demand import Demands


@dataclass
class Changes:
    """Writes of a kernel to global memory."""

    function: tt.FuncOp
    demands: Demands

    @cached_property
    def writes(self) -> list[tuple[Operation, frozenset[SSAValue | None]]]:
        """The operations that do, and the arrays that they may write to."""
        return [
            (op, arrays_of(access.value, self.demands.sources))
            for op in self.function.walk()
            for access in accesses_of(op) or ()
            if access.space is Space.GLOBAL and access.kind & (Kind.WRITE | Kind.ATOMIC)
        ]

    def of(self, load: tt.LoadOp) -> Operation | None:
        """An operation that may write what a load reads."""
        read = arrays_of(load.ptr, self.demands.sources)
        return next((op for op, to in self.writes if None in read | to or not read.isdisjoint(to)), None)

    def load(self) -> tuple[Operation, Operation] | None:
        """The first load that the synchronisation depends on and that may change, and what may change it."""
        loads = (op for op in self.function.walk() if isinstance(op, tt.LoadOp) and _decides(op, self.demands))
        return next(((load, op) for load in loads if (op := self.of(load)) is not None), None)

    def waits(self) -> list[tuple[Operation, Operation]]:
        """The loops that may wait for what others write, each with the access to that."""
        loops = (op for op in self.function.walk() if isinstance(op, scf.WhileOp))
        return [(op, access) for op in loops if (access := next(filter(self._may_change, op.walk()), None)) is not None]

    def _may_change(self, op: Operation) -> bool:
        if isinstance(op, tt.LoadOp):
            return is_set(op, "isVolatile") or self.of(op) is not None
        return global_access(op, Kind.ATOMIC) is not None and not op.name.startswith("ttng.")


def _decides(op: Operation, demands: Demands) -> bool:
    """Return whether the synchronisation depends on what an operation gives, or on a loop or branch that it is in."""
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
