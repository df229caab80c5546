"""Accesses to global memory when groups of warps share the rows: which are once, and which may not be split.

What a group does not have a part of, it computes as the others do, and loads as they do. A store of such a value is
done by the first group alone. An atomic access, a print, or a wait for other programs would come once from each
group, so these are refused.

The order between the accesses of two groups is open. The accesses through one pointer argument keep their order where
none is a store, or where the groups access places that are apart (`group_places.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import regions, tt
from tlx_xdsl.dialects.base import Kind, effects_of, global_access, is_pointer, scalar_type
from tlx_xdsl.dialects.tt import DescriptorType

from ..refusal import refusal_at
from .cuts import Cuts
from .group_places import GroupPlaces

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
    places = GroupPlaces(function, cuts)
    for root, ops in by_root.items():
        _check_order(root, ops, cuts, places)


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


def _check_order(root: SSAValue, ops: Sequence[Operation], cuts: Cuts, places: GroupPlaces) -> None:
    """Check the accesses through one pointer."""
    stores = [op for op in ops if global_access(op, Kind.WRITE) is not None]
    parts = [op for op in ops if op in cuts.tied]
    if not stores or (len(stores) == len(ops) and not parts) or _are_sums(ops):
        return
    if len(parts) == len(ops) and places.are_apart(ops):
        return
    name = f"'{root.name_hint}'" if root.name_hint else "one pointer"
    other = next((op for op in ops if op is not stores[0]), stores[0])
    raise refusal_at(
        other, f"through {name}, groups of warps would access what another one stores, in an order that is not fixed"
    )


def _are_sums(ops: Sequence[Operation]) -> bool:
    """True for atomic operations of one kind that come to the same in any order, and whose results nothing uses."""
    kinds = {op.atomic_rmw_op if isinstance(op, tt.AtomicRMWOp) and not op.result.first_use else None for op in ops}
    return len(kinds) == 1 and kinds.isdisjoint({None, tt.RMWOp.XCHG.attr})
