"""Control flow: what it carries has one place, which every way through it writes.

A loop writes the place of its result in each turn; each branch of an `scf.if` writes that of its results. Where a
tensor was not made there, it is copied before control goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import arith
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.destinations import destinations

from ..liveness import TensorUse
from ..state import Buffer, Place, State, bufferize, bufferize_block, is_tensor, memory_of, others, tensors


def hand_on(state: State, end: Operation, places: dict[int, Place]) -> None:
    """Put the operands with those numbers in their places, before the end of a block."""
    pairs = [
        (source, target)
        for number, target in places.items()
        if (source := state.place_if_written(end.operands[number])) is not None
    ]
    state.copy_at_once(pairs, end)
    state.emptied.append(end)


def _expect(state: State, end: Operation, places: dict[int, Place]) -> None:
    """Let what makes the operands of the end of a block know their places."""
    for number, place in places.items():
        state.ends[TensorUse(end, number)] = place


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


def _without_tensors(state: State, op: Operation, *blocks: Block) -> None:
    """Later, make the operation again without the tensors that it carries."""
    state.emptied.append(op)

    def rebuild() -> None:
        for block in blocks:
            for argument in [each for each in block.args if is_tensor(each)]:
                block.erase_arg(argument)
        kept = others(op.results)
        if len(kept) == len(op.results):
            return
        regions = [op.detach_region(region) for region in list(op.regions)]
        made = type(op).create(
            operands=op.operands,
            result_types=[value.type for value in kept],
            properties=op.properties,
            attributes=op.attributes,
            regions=regions,
        )
        state.add(op, made)
        for old, new in zip(kept, made.results, strict=True):
            old.replace_all_uses_with(new)
        assert op.parent is not None
        op.parent.erase_op(op)

    state.finish.append(rebuild)


@bufferize.register(scf.YieldOp)
@bufferize.register(scf.ConditionOp)
def handed_on_later(op: Operation, state: State) -> None:
    """The end of a block, which is done with the operation around it."""


@bufferize.register
def for_loop(op: scf.ForOp, state: State) -> None:
    """Keep what is carried in the place of its initial value, unless that is needed after."""
    block = op.body.block
    carried = tensors(op.results)
    places: dict[int, Place] = {}
    taken: set[Buffer] = set()
    for each in destinations(op):
        place = places[each.result] = state.choose(op, each, taken)
        taken.add(place.buffer)
    for number, _ in carried:
        state.put(block.args[1 + number], places[number])
    end = _last(block)
    _expect(state, end, places)
    bufferize_block(block, state)
    hand_on(state, end, places)
    for number, result in carried:
        state.put(result, places[number])
    _without_tensors(state, op, block)


@bufferize.register
def if_else(op: scf.IfOp, state: State) -> None:
    """Results are in the place of what a branch overwrites, else where they are needed, else in new memory."""
    blocks = [region.block for region in op.regions if region.blocks]
    places: dict[int, Place] = {}
    taken: set[Buffer] = set()
    for number, result in tensors(op.results):
        place = places[number] = _place_of_result(op, number, result, [_last(block) for block in blocks], state, taken)
        taken.add(place.buffer)
    for block in blocks:
        mark = state.mark()
        _expect(state, _last(block), places)
        bufferize_block(block, state)
        hand_on(state, _last(block), places)
        state.back_to(mark)
    for number, result in tensors(op.results):
        state.put(result, places[number])
    _without_tensors(state, op)


def _place_of_result(
    op: Operation, number: int, result: SSAValue, ends: Sequence[Operation], state: State, taken: set[Buffer]
) -> Place:
    found = [state.place_if_written(_beginning(end.operands[number], op, state)) for end in ends]
    candidates = [*found, state.final_place(result)]
    type_ = memory_of(result.type)
    for place in candidates:
        if place is None or place.buffer in taken or place.memref.type != type_:
            continue
        # Whether something inside of a branch may write there is asked when it is reached.
        if state.may_overwrite(place, op, ignore_inside=True):
            return place
    return state.allocate(result.type, op, result.name_hint)


def _beginning(value: SSAValue, op: Operation, state: State) -> SSAValue:
    """The tensor from outside of `op` in whose place a tensor may be that is made inside."""
    while state.liveness.is_inside(value, op):
        owner = value.owner
        if isinstance(owner, Block):
            break
        number = next((each for each, result in enumerate(owner.results) if result is value), None)
        following = next((each.operand for each in destinations(owner) if each.result == number), None)
        if following is None:
            break
        value = owner.operands[following]
    return value


@bufferize.register
def while_loop(op: scf.WhileOp, state: State) -> None:
    """Give what iterations carry, and what the condition hands on, places of their own or one for both."""
    before, after = op.before_region.block, op.after_region.block
    condition, end = _last(before), _last(after)
    starts = {number: _carried_place(op, number, value, state) for number, value in tensors(op.operands)}
    for number, place in starts.items():
        state.put(before.args[number], place)
    results: dict[int, Place] = {}
    taken: set[Buffer] = set()
    for number, value in tensors(condition.operands):
        first = _beginning(value, op, state)
        shared = next((starts[each] for each in starts if before.args[each] is first), None)
        if shared is None or shared.buffer in taken:
            shared = state.allocate(value.type, op)
        taken.add(shared.buffer)
        results[number] = shared
    _expect(state, condition, results)
    bufferize_block(before, state)
    hand_on(state, condition, results)
    for number, place in results.items():
        state.put(after.args[number - 1], place)
    _expect(state, end, starts)
    bufferize_block(after, state)
    hand_on(state, end, starts)
    for number, place in results.items():
        state.put(op.results[number - 1], place)
    _without_tensors(state, op, before, after)


def _carried_place(op: Operation, number: int, value: SSAValue, state: State) -> Place:
    """The place of what a loop begins with, which it may overwrite."""
    found = state.place_if_written(value)
    if found is not None and found.buffer.is_writable and found.memref.type == memory_of(value.type):
        held = found.buffer.holds
        others_end = not any(
            state.liveness.is_live_after(each, op, ignored=[number] if each is value else ()) for each in held
        )
        if others_end:
            return found
    place = state.allocate(value.type, op, value.name_hint)
    if found is not None:
        state.copy(found.memref, place.memref, op)
    return place


@bufferize.register
def select(op: arith.SelectOp, state: State) -> None:
    """Copy the chosen operand."""
    if as_tensor(op.result.type) is None:
        return
    sources = [state.place(value, op) for value in (op.true_value, op.false_value)]
    place = state.allocate(op.result.type, op, op.result.name_hint)
    branch(state, op, op.condition, [copier(state, [(source, place)]) for source in sources])
    state.put(op.result, place)
    state.remove(op)


Fill: TypeAlias = Callable[[Operation], None]
"""Emits what a branch does before the end of its block."""


def copier(state: State, pairs: Sequence[tuple[Place, Place]]) -> Fill:
    """Return what copies from places to others."""
    return lambda anchor: state.copy_at_once(pairs, anchor)


def branch(state: State, anchor: Operation, condition: SSAValue, ways: Sequence[Fill]) -> None:
    """Do one of two things before an operation."""
    blocks: list[Block] = []
    for fill in ways:
        end = scf.YieldOp()
        end.location = anchor.location
        blocks.append(Block([end]))
        fill(end)
    state.add(anchor, scf.IfOp(condition, [], [blocks[0]], [blocks[1]]))
