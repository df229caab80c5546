"""Accesses to global memory when groups of warps share the rows: which are once, and which may not be split.

What a group does not have a part of, it computes as the others do, and loads as they do. A store of such a value is
done by the first group alone. An atomic access, a print, or a wait for other programs would come once from each
group, so these are refused.

The order between the accesses of two groups is open. The accesses through one pointer argument keep their order where
none is a store, or where each group accesses the same places by all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import regions, tt
from tlx_xdsl.dialects.base import Kind, effects_of, global_access, is_pointer, scalar_type
from tlx_xdsl.dialects.tt import DescriptorType

from ..refusal import refusal_at
from ..same_values import is_same
from .cuts import Cuts

STORES = (tt.StoreOp, tt.DescriptorStoreOp)


def whole_stores(function: tt.FuncOp, cuts: Cuts) -> list[Operation]:
    """Return the stores of values that all groups have whole."""
    return [op for op in function.walk() if isinstance(op, STORES) and op not in cuts.tied]


def check_accesses(function: tt.FuncOp, cuts: Cuts) -> None:
    """Check that groups can do their parts of the accesses in any order.

    Raises WarpSpecializeRefusal, located at the access, where they can't.
    """
    for op in function.body.walk():
        if op not in cuts.tied:
            _check_whole(op)
    incoming = regions.incoming([edge for op in function.walk() for edge in regions.edges(op) or ()])
    by_root: dict[SSAValue, list[Operation]] = {}
    for op in function.body.walk():
        if (access := global_access(op)) is not None:
            for root in _roots(access.value, incoming):
                by_root.setdefault(root, []).append(op)
    for root, ops in by_root.items():
        _check_order(root, ops, cuts)


def _check_whole(op: Operation) -> None:
    """Check an operation that each group does."""
    effects = effects_of(op)
    if isinstance(op, (*STORES, tt.AssertOp)):
        return
    if effects.accesses is None:
        raise refusal_at(op, f"'{op.name}' may do anything, and each group of warps would do it")
    if effects.sync or any(access.kind & (Kind.WRITE | Kind.ATOMIC) for access in effects.accesses):
        raise refusal_at(op, f"each group of warps would do this '{op.name}', which must be done once")


def _roots(pointer: SSAValue, incoming: Mapping[SSAValue, Sequence[SSAValue]]) -> set[SSAValue]:
    """Return the pointers that a pointer or a descriptor is computed from: arguments, and those from memory."""
    roots: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    stack = [pointer]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in incoming:
            stack.extend(incoming[value])
            continue
        op = value.owner
        sources = () if isinstance(op, Block) or not is_side_effect_free(op) else op.operands
        pointers = [each for each in sources if _is_address(each)]
        stack.extend(pointers)
        if not pointers:
            roots.add(value)
    return roots


def _is_address(value: SSAValue) -> bool:
    return isinstance(value.type, DescriptorType) or is_pointer(scalar_type(value.type))


def _check_order(root: SSAValue, ops: Sequence[Operation], cuts: Cuts) -> None:
    """Check the accesses through one pointer."""
    stores = [op for op in ops if global_access(op, Kind.WRITE) is not None]
    if not stores:
        return
    first, others = stores[0], [op for op in ops if op is not stores[0]]
    are_parts = {op in cuts.tied for op in ops}
    if len(are_parts) == 1 and (len(stores) == len(ops) or all(_same_place(first, op) for op in others)):
        return
    name = f"'{root.name_hint}'" if root.name_hint else "one pointer"
    other = next(op for op in others if not _same_place(first, op) or (op in cuts.tied) != (first in cuts.tied))
    raise refusal_at(
        other, f"through {name}, groups of warps would access what another one stores, in an order that is not fixed"
    )


def _same_place(first: Operation, second: Operation) -> bool:
    """Say whether two accesses of a thread go to the same addresses."""
    (a, mine), (b, others) = _address(first), _address(second)
    return len(mine) == len(others) and all(
        is_same(left, right) for left, right in zip((a, *mine), (b, *others), strict=True)
    )


def _address(op: Operation) -> tuple[SSAValue, Sequence[SSAValue]]:
    """Return the pointer or the descriptor of an access, and the indices of a block."""
    access = global_access(op)
    assert access is not None
    return access.value, tuple(getattr(op, "indices", ()))
