"""The two stages of a loop's turn: what leads to the products that others wait for, and those others.

The early stage holds the products that depend on no other one of their turn, and the work that follows them. The late
stage holds the products that depend on them, with the blocks from rings that they read. A loop can be rotated where
nothing of the early products depends on a late one of the turn before.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import Kind
from tlx_xdsl.dialects.ttg import MemDescType

from .dot_operands import why_no_wgmma
from .ring_links import RingLinks
from .turn_graph import TurnGraph, accesses_global


@dataclass(frozen=True)
class Stages:
    """The operations of a body by stage, in order; what depends on the number of the turn alone may be in both."""

    first: list[Operation]
    """The early products and what they are computed from."""
    late: list[Operation]
    """The late products, and what they read from rings."""
    between: list[Operation]
    """Work of the early stage that depends on no late product of the turn before."""
    tail: list[Operation]
    """What depends on the late products in their turn."""
    last: list[Operation]
    """All other work, of the early stage."""
    late_arguments: frozenset[int]
    """Numbers of the carried values that the late stage computes."""
    crossing: list[SSAValue]
    """Values of the early stage that the late stage takes."""
    held_over: frozenset[Operation]
    """Loads of the early stage from slots that the late stage gives back."""


def stages_of(loop: scf.ForOp, rings: RingLinks) -> Stages | None:
    """Return the stages of a loop that can be rotated, or None."""
    graph = TurnGraph(loop, rings)
    products = [op for op in graph.ops if isinstance(op, tt.DotOp) and why_no_wgmma(op) is None]
    late_products = [op for op in products if graph.cone([op]) & (set(products) - {op})]
    early_products = [op for op in products if op not in late_products]
    if not late_products or not all(graph.is_movable(op) for op in graph.ops):
        return None
    end = graph.body.last_op
    assert end is not None
    late, first = graph.followers(late_products), graph.cone(early_products)
    late_arguments = frozenset(number for number, value in enumerate(end.operands) if value.owner in late)
    passed_on = {value.index - 1 for value in end.operands if isinstance(value, BlockArgument)}
    if (
        first & late
        or passed_on & late_arguments
        or any(late_arguments.intersection(graph.carried(op)) for op in first)
    ):
        return None
    return _deal(graph, first, late, late_arguments)


def _deal(
    graph: TurnGraph, first: set[Operation], late: set[Operation], late_arguments: frozenset[int]
) -> Stages | None:
    """Deal all operations to the stages; None where the order of effects would change."""
    from_rings, by_turn = graph.from_rings(), graph.by_turn()
    again = graph.inputs_within(late, from_rings - late)
    late = late | again
    held_over: set[Operation] = set()
    for unit in graph.units:
        if again.intersection(unit.loads):
            late |= set(unit.arrivals)
            alone = all(load in again and _is_idle(graph, load, late, first) for load in unit.loads)
            if alone:
                late |= set(unit.waits)
            elif unit.depth < 2:
                # The task would hold one slot while it waits for the next.
                return None
            else:
                held_over |= set(unit.loads)
    late |= graph.inputs_within(late, by_turn)
    only_late = _only(graph, late, again | by_turn, first)
    for unit in graph.units:
        if first.intersection(unit.loads):
            first = first | graph.cone(op for op in unit.ops if op not in only_late)
    rest = [op for op in graph.ops if op not in first and op not in only_late]
    after = graph.followers(op for op in graph.ops if late_arguments.intersection(graph.carried(op)))
    if not _keeps_order(graph, first, late, rest, after):
        return None
    crossing = _crossing(graph, late)
    if any(isinstance(value.type, MemDescType) for value in crossing):
        return None
    products = [op for op in late if isinstance(op, tt.DotOp)]
    tail = graph.followers(products) - graph.cone(products)
    converted = [op for op in rest if op not in after and _is_conversion(graph, op, late)]
    return Stages(
        [op for op in graph.ops if op in first],
        [op for op in graph.ops if op in late and op not in tail],
        [op for op in rest if op not in after and op not in converted],
        [op for op in graph.ops if op in late and op in tail],
        # The registers of an operand are written when the product that reads the old ones has ended.
        [*(op for op in rest if op in after), *converted],
        late_arguments,
        crossing,
        frozenset(held_over),
    )


def _is_idle(graph: TurnGraph, op: Operation, late: set[Operation], first: set[Operation]) -> bool:
    """Return whether nothing of the early stage uses a block from a ring."""
    return op not in first and all(
        user in late and (isinstance(user, tt.DotOp) or _is_idle(graph, user, late, first)) for user in graph.users(op)
    )


def _only(graph: TurnGraph, late: set[Operation], shared: set[Operation], first: set[Operation]) -> set[Operation]:
    """Return the operations of the late stage that the early one does without."""
    only = late - shared
    for op in reversed(graph.ops):
        if op in late & shared and op not in first and graph.users(op) <= only:
            only.add(op)
    return only


def _keeps_order(
    graph: TurnGraph, first: set[Operation], late: set[Operation], rest: list[Operation], after: set[Operation]
) -> bool:
    """Return whether stores stay in order among each other, and with loads of what may be the same memory."""
    writes, both = Kind.WRITE, Kind.READ | Kind.WRITE
    moved = [op for op in rest if op in after]
    others = [op for op in graph.ops if op not in late]
    if accesses_global(late, writes):
        return not accesses_global(others, both)
    quiet = [op for op in rest if op not in after]
    return not (accesses_global(moved, writes) and accesses_global(quiet, both)) and not (
        accesses_global(quiet, writes) and accesses_global([*moved, *first, *late], both)
    )


def _crossing(graph: TurnGraph, late: set[Operation]) -> list[SSAValue]:
    found: dict[SSAValue, None] = {}
    for op in graph.ops:
        for value in graph.inputs(op) if op in late else ():
            is_carried = isinstance(value, BlockArgument) and value.block is graph.body and value.index > 0
            owner = value.owner
            if is_carried or (isinstance(owner, Operation) and owner.parent is graph.body and owner not in late):
                found.setdefault(value)
    return list(found)


def _is_conversion(graph: TurnGraph, op: Operation, late: set[Operation]) -> bool:
    """Return whether an operation does nothing but convert a block for the late stage."""
    return (
        len(op.operands) == 1
        and is_side_effect_free(op)
        and not op.regions
        and isinstance(op.results[0].type, TensorType)
        and graph.users(op) <= late
    )
