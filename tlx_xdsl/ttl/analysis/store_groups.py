"""Stores whose values can be computed together, so that what they have in common is computed once."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ..dialects import ttl
from .block_values import computes, needs_buffer


def store_groups(thread: ttl.ComputeThreadOp) -> Iterator[list[ttl.StoreOp]]:
    """The stores of a thread in groups; all of a group can be done at the last one."""
    group: list[ttl.StoreOp] = []
    for op in thread.walk():
        if isinstance(op, ttl.StoreOp):
            if group and not _belongs(op, group):
                yield group
                group = []
            group.append(op)
    if group:
        yield group


def _belongs(store: ttl.StoreOp, group: list[ttl.StoreOp]) -> bool:
    """Return whether a store writes blocks like those of a group, shares an operation with it, and can wait for it."""
    if any(each.accumulate is not None or _is_root(each.value) for each in (store, *group)):
        return False
    if store.parent is not group[0].parent or store.value.type != group[0].value.type:
        return False
    if not all(_may_be_passed(op) for op in _between(group[0], store)):
        return False
    return bool(_fused(store.value) & set[Operation]().union(*(_fused(each.value) for each in group)))


def _is_root(value: SSAValue) -> bool:
    op = computes(value)
    return op is not None and issubclass(op.TILE, ttl.TileAccumulatingOp)


def _may_be_passed(op: Operation) -> bool:
    """Return whether a store may come after `op` instead of before: nothing is given away, no other thread waits."""
    return isinstance(op, ttl.AcquireOp | ttl.StoreOp) or is_side_effect_free(op)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


def _fused(value: SSAValue) -> set[Operation]:
    """The operations that are computed together with `value`."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        op = computes(each)
        if op is not None and op not in found and not needs_buffer(each):
            found.add(op)
            pending += op.operands
    return found
