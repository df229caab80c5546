"""Arrivals that give slots of rings back: after the wait that ends the last product which reads the slot.

Before, the consumer has loaded a slot to registers and arrives at once. After, products read the slot in place. So
the arrival moves after the first wait that leaves none of these products in flight. Where a loop carries them in
flight, that is in the next turn: there the consumer gives back the slot of the turn before, and after the loop that
of the last turn. With one slot there is none for the next turn meanwhile, and the wait lets nothing be in flight.
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.ttg import memdesc_type

from ...rewriting import constant_integer, insert_before
from .numbers import number
from .products_in_flight import in_block, products_between
from .ring_links import HELD_OVER, RingLinks
from .trip_counts import is_known_to_run
from .turn_counts import Turns, turns_of

Reads: TypeAlias = dict[ttg.LocalLoadOp, list[ttng.WarpGroupDotOp]]
"""The products that read a buffer in place, by the load that they did without."""


def move_releases(region: Region, reads: Reads, rings: RingLinks) -> None:
    """Move the arrivals of a region."""
    for arrival in [op for op in region.walk() if isinstance(op, ttng.ArriveBarrierOp)]:
        _move(arrival, reads, rings)


def _move(arrival: ttng.ArriveBarrierOp, reads: Reads, rings: RingLinks) -> None:
    block = arrival.parent
    assert block is not None
    order = {op: number for number, op in enumerate(block.ops)}
    ring = rings.ring_of(arrival.alloc)
    readers: list[ttng.WarpGroupDotOp] = []
    for load, products in reads.items():
        # An arrival that belongs to no known ring may give back all that was read before.
        if ring is not None and rings.ring_of(load.src) not in (ring, None):
            continue
        # Such a slot is given back in the next turn, and its products end in this one.
        if HELD_OVER in load.attributes and load.parent is block:
            continue
        if _lies_in(load, block) and order[in_block(load, block)] < order[arrival]:
            readers += products
    if not readers:
        return
    # A branch may not be taken, and a loop may not turn: what they wait for does not end products around them.
    nested = [in_block(product, block) for product in readers if product.parent is not block]
    place = _after_waits(max(nested, key=order.__getitem__)) if nested else None
    direct = [product for product in readers if product.parent is block]
    if direct:
        last = max(direct, key=order.__getitem__)
        end = _completion(last, last.next_op, None, block, 0) if last.is_async.value.data else last
        if end is None:
            _release_in_next_turn(arrival, last, block, rings, place)
            return
        place = _later(_after_waits(end), place)
    assert place is not None, "there are readers"
    _place_after(arrival, place, order)


def _later(one: Operation, other: Operation | None) -> Operation:
    return one if other is None or other.is_before_in_block(one) else other


def _lies_in(op: Operation, block: Block) -> bool:
    parent: Operation | None = op
    while parent is not None and parent.parent is not block:
        parent = parent.parent_op()
    return parent is not None


def _after_waits(op: Operation) -> Operation:
    """Return the last one of the waits and arrivals that follow an operation directly."""
    following = op.next_op
    while isinstance(following, ttng.WarpGroupDotWaitOp | ttng.ArriveBarrierOp | ttg.MemDescIndexOp):
        if not isinstance(following, ttg.MemDescIndexOp):
            op = following
        following = following.next_op
    return op


def _place_after(arrival: ttng.ArriveBarrierOp, place: Operation, order: dict[Operation, int]) -> None:
    """Move an arrival and the view of its barrier after an operation, unless it is there already."""
    if place in order and order[place] < order[arrival]:
        return
    view = arrival.alloc.owner
    arrival.detach()
    Rewriter.insert_op(arrival, InsertPoint.after(place))
    if isinstance(view, ttg.MemDescIndexOp) and arrival.alloc.uses.get_length() == 1:
        view.detach()
        Rewriter.insert_op(view, InsertPoint.before(arrival))


def _completion(
    product: Operation, start: Operation | None, end: Operation | None, block: Block, since: int
) -> Operation | None:
    """Return the first wait from `start` to `end` that leaves no product in flight that is as old as this one.

    `since` is the number of products that were issued after it and before `start`. A product that is not asynchronous
    leaves none in flight.
    """
    op = start
    while op is not end and op is not None:
        if isinstance(op, ttng.WarpGroupDotWaitOp) and op.pendings.value.data <= since:
            return op
        if isinstance(op, ttng.WarpGroupDotOp) and not op.is_async.value.data:
            return op
        since += products_between(op.prev_op, op.next_op, block)
        op = op.next_op
    return None


def _release_in_next_turn(
    arrival: ttng.ArriveBarrierOp,
    product: ttng.WarpGroupDotOp,
    block: Block,
    rings: RingLinks,
    earliest: Operation | None,
) -> None:
    """Give back in each turn the slot of the turn before, and the last one after the loop."""
    loop = block.parent_op()
    assert isinstance(loop, scf.ForOp), "only loops carry results in flight"
    turns = turns_of_slots(arrival, loop)
    if turns is None:
        _end_in_this_turn(arrival, block, earliest)
        return
    since = products_between(product, None, block)
    wait = _completion(product, block.first_op, None, block, since)
    assert wait is not None, "a wait follows the last product of the body"
    depth, count = turns
    ring = rings.ring_of(arrival.alloc)
    place = _after_waits(wait).next_op
    assert place is not None, "a block ends in an operation"
    is_later = insert_before(place, CmpiOp("sgt", loop.body.block.args[0], loop.lb))
    arrive_at_slot_before(arrival, count.value, depth, is_later.result, place)
    if _is_used_after(loop, ring, rings):
        after = loop.next_op
        while isinstance(after, ttng.WarpGroupDotWaitOp):
            after = after.next_op
        assert after is not None, "a block ends in an operation"
        total = count.after_loop(after)
        has_run = None if is_known_to_run(loop) else insert_before(after, CmpiOp("sgt", loop.ub, loop.lb)).result
        arrive_at_slot_before(arrival, total, depth, has_run, after)
    view = arrival.alloc.owner
    Rewriter.erase_op(arrival)
    if isinstance(view, Operation) and not view.results[0].uses.get_length():
        Rewriter.erase_op(view)


def _is_used_after(loop: scf.ForOp, ring: SSAValue | None, rings: RingLinks) -> bool:
    """Return whether the task takes slots of a ring after a loop: then the producer may wait for the last ones."""
    if ring is None:
        return True
    op: Operation | None = loop
    while op is not None and not isinstance(op, ttg.WarpSpecializePartitionsOp):
        following = op.next_op
        while following is not None:
            waits = [each for each in following.walk() if isinstance(each, ttng.WaitBarrierOp)]
            if any(rings.ring_of(each.alloc) == ring for each in waits):
                return True
            following = following.next_op
        op = op.parent_op()
        if isinstance(op, scf.ForOp | scf.WhileOp):
            return True
    return False


def turns_of_slots(arrival: ttng.ArriveBarrierOp, loop: scf.ForOp) -> tuple[int, Turns] | None:
    """Return the slots of a ring, and the count of turns that chooses one; None where neither is known, or one slot."""
    view = arrival.alloc.owner
    if not isinstance(view, ttg.MemDescIndexOp) or arrival.pred is not None or arrival.parent is not loop.body.block:
        return None
    depth = memdesc_type(view.src.type).shape[0]
    stage = view.index.owner
    if depth < 2 or not isinstance(stage, arith.RemSIOp) or constant_integer(stage.rhs) != depth:
        return None
    turns = turns_of(stage.lhs, loop)
    return None if turns is None else (depth, turns)


def arrive_at_slot_before(
    model: ttng.ArriveBarrierOp, count: SSAValue, depth: int, pred: SSAValue | None, place: Operation, back: int = 1
) -> None:
    """Insert the arrival at the slot `back` turns before the one that `count` chooses."""
    view = model.alloc.owner
    assert isinstance(view, ttg.MemDescIndexOp)
    shifted = insert_before(place, arith.AddiOp(count, number(place, depth - back)))
    stage = insert_before(place, arith.RemSIOp(shifted.result, number(place, depth)))
    barrier = insert_before(
        place, ttg.MemDescIndexOp(operands=[view.src, stage.result], result_types=[view.result.type])
    )
    made = ttng.ArriveBarrierOp(operands=[barrier.result, pred], properties=dict(model.properties))
    insert_before(place, made, located_at=model)


def _end_in_this_turn(arrival: ttng.ArriveBarrierOp, block: Block, earliest: Operation | None) -> None:
    """Let the wait at the end of the body leave nothing in flight, and arrive after it."""
    waits = [op for op in block.ops if isinstance(op, ttng.WarpGroupDotWaitOp)]
    last = waits[-1]
    last.pendings = IntegerAttr(0, i32)
    _place_after(arrival, _later(_after_waits(last), earliest), {})
