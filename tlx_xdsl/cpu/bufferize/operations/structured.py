"""Operations of `linalg`: the same on memory, without results."""

from __future__ import annotations

from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.destinations import destinations

from ..state import Buffer, Place, State, bufferize, is_tensor


@bufferize.register(LinalgStructuredOperation)
@bufferize.register(linalg.BroadcastOp)
@bufferize.register(linalg.TransposeOp)
def structured(op: Operation, state: State) -> None:
    """Outputs are places; a body that takes elements of tensors from outside loads them."""
    for inner in state.liveness.taken_inside.get(op, ()):
        _take_from_outside(op, inner, state)
    targets = destinations(op)
    if not targets:
        return
    written = {each.operand for each in targets}
    # What is read has its place before anything is overwritten.
    places = {
        number: state.place(value, op)
        for number, value in enumerate(op.operands)
        if is_tensor(value) and number not in written
    }
    taken: set[Buffer] = set()
    for each in targets:
        place = places[each.operand] = state.choose(op, each, taken)
        taken.add(place.buffer)
    _on_memory(op, places, state)
    for each in targets:
        state.put(op.results[each.result], places[each.operand])


def _take_from_outside(op: Operation, inner: Operation, state: State) -> None:
    unwritten = [value for value in inner.operands if is_tensor(value) and state.place_if_written(value) is None]
    for value in unwritten:
        state.put(value, state.allocate(value.type, op))
    bufferize(inner, state)
    for value in unwritten:
        state.forget(value)


def _on_memory(op: Operation, places: dict[int, Place], state: State) -> None:
    """The operation before itself, with those places as operands and no results."""
    operands: list[SSAValue] = [
        places[number].memref if number in places else value for number, value in enumerate(op.operands)
    ]
    region = op.detach_region(op.regions[0])
    made = type(op).create(operands=operands, properties=op.properties, attributes=op.attributes, regions=[region])
    state.add(op, made)
    state.remove(op)
