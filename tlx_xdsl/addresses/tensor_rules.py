"""What `tt` does to the shapes of tensors of integers and pointers, to pointers, and where program ids come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.addresses.arith_rules import integers
from tlx_xdsl.addresses.arithmetic import Arithmetic, name_of
from tlx_xdsl.addresses.forms import Atom, Form, Lane, NumPrograms, Pid, Unknown
from tlx_xdsl.addresses.rules import rule
from tlx_xdsl.addresses.values import Descriptor, Integer, Pointer, State
from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, scalar_type
from tlx_xdsl.dialects.tt.types import PointerType
from tlx_xdsl.layouts.encodings import Ints


def shape_of(value: SSAValue) -> Ints:
    """The dimensions of a tensor; none of a scalar."""
    tensor = as_tensor(value.type)
    return () if tensor is None else tuple(tensor.get_shape())


def pointee_bytes(value: SSAValue) -> int:
    """Bytes of what a pointer, or a tensor of pointers, points to; an i1 takes a byte."""
    pointer = scalar_type(value.type)
    assert isinstance(pointer, PointerType)
    return -(-element_bits(pointer.pointee) // 8)


@rule(tt.GetProgramIdOp)
def _program_id(known: Arithmetic, op: tt.GetProgramIdOp, _: Sequence[State]) -> State:
    return known.atom(Pid(op.axis.value.data), 32)


@rule(tt.GetNumProgramsOp)
def _num_programs(known: Arithmetic, op: tt.GetNumProgramsOp, _: Sequence[State]) -> State:
    atom = NumPrograms(op.axis.value.data)
    number = known.bounds.of(atom).number
    return known.atom(atom, 32) if number is None else known.number(number, 32)


@rule(tt.MakeRangeOp)
def _make_range(known: Arithmetic, op: tt.MakeRangeOp, _: Sequence[State]) -> State:
    start, end = op.start.value.data, op.end.value.data
    form = _lane(0, end - start) + start
    return Integer(form, known.bounds.of_form(form), True, 32)


def _lane(dim: int, extent: int) -> Form:
    return Form({}) if extent == 1 else Form.of(Lane(dim, extent))


# --- shapes -------------------------------------------------------------------------------------------------------


def _moved(known: Arithmetic, result: SSAValue, state: State, place: Callable[[Lane], Form]) -> State | None:
    """The tensor `result`, whose elements are those of a tensor, each at another position: `place` of each lane.

    What is not known of the elements becomes another unknown: the element at a position is another one.
    """

    def replaced(atom: Atom) -> Form | None:
        match atom:
            case Lane():
                return place(atom)
            case Unknown(on_lanes=True):
                moved = replace(atom, through=(*atom.through, result))
                known.bounds.known[moved] = known.bounds.of(atom)
                return Form.of(moved)
            case _:
                return None

    def moved(form: Form) -> Form:
        return form.substitute(replaced, known.simplifier.call)

    match state:
        case Integer():
            # Guards are about the positions of the operand, too.
            guards = tuple(replace(guard, left=moved(guard.left), right=moved(guard.right)) for guard in state.guards)
            return replace(state, form=moved(state.form), guards=guards)
        case Pointer():
            return replace(state, offset=moved(state.offset))
        case _:
            return None


@rule(tt.SplatOp)
def _splat(_: Arithmetic, op: tt.SplatOp, states: Sequence[State]) -> State | None:
    (state,) = states
    return state if isinstance(state, Integer | Pointer) else None


@rule(ttg.ConvertLayoutOp, tlx.RequireLayoutOp, tlx.ReleaseLayoutOp)
def _same(_: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    return states[0]


@rule(tt.UnsplatOp)
def _unsplat(known: Arithmetic, op: tt.UnsplatOp, states: Sequence[State]) -> State | None:
    return _moved(known, op.results[0], states[0], lambda lane: Form({}))


@rule(tt.ExpandDimsOp)
def _expand_dims(known: Arithmetic, op: tt.ExpandDimsOp, states: Sequence[State]) -> State | None:
    axis = op.axis.value.data
    return _moved(
        known, op.result, states[0], lambda lane: _lane(lane.dim + 1 if lane.dim >= axis else lane.dim, lane.extent)
    )


@rule(tt.BroadcastOp)
def _broadcast(known: Arithmetic, op: tt.BroadcastOp, states: Sequence[State]) -> State | None:
    # A dimension that grows has no lane: it had one element.
    return _moved(known, op.result, states[0], lambda lane: _lane(lane.dim, lane.extent))


@rule(tt.TransOp)
def _trans(known: Arithmetic, op: tt.TransOp, states: Sequence[State]) -> State | None:
    order = [int(dim) for dim in op.order.get_values()]
    return _moved(known, op.result, states[0], lambda lane: _lane(order.index(lane.dim), lane.extent))


@rule(tt.ReshapeOp)
def _reshape(known: Arithmetic, op: tt.ReshapeOp, states: Sequence[State]) -> State | None:
    before, after = shape_of(op.src), shape_of(op.result)
    if op.allow_reorder is not None:
        return None
    position = Form({})
    for dim, extent in enumerate(after):
        position = position * extent + _lane(dim, extent)

    def place(lane: Lane) -> Form:
        behind = 1
        for extent in before[lane.dim + 1 :]:
            behind *= extent
        call = known.simplifier.call
        whole = call("floordiv", (position, Form.constant(behind)))
        return call("mod", (whole, Form.constant(lane.extent)))

    return _moved(known, op.result, states[0], place)


# --- pointers and descriptors -------------------------------------------------------------------------------------


@rule(tt.AddPtrOp)
def _add_pointer(known: Arithmetic, op: tt.AddPtrOp, states: Sequence[State]) -> State | None:
    pointer, offset = states
    if not isinstance(pointer, Pointer) or not isinstance(offset, Integer):
        return None
    if pointer.base is None:
        return pointer
    # Addresses are numbers modulo 2^64: an offset of 64 bits may have wrapped.
    if offset.bits < 64:
        exact = known.whole(offset)
        if exact is None:
            reason = f"the offset '{name_of(op.offset)}' may wrap around in {offset.bits} bits"
            return Pointer(None, Form({}), reason=reason)
        offset = exact
    form = pointer.offset + offset.form * pointee_bytes(op.ptr)
    conditions = pointer.conditions.join(offset.conditions)
    if known.is_too_large(form) or conditions.too_many:
        return Pointer(None, Form({}), reason="the expression of the address is too large")
    return Pointer(pointer.base, form, conditions)


@rule(tt.BitcastOp)
def _bitcast(_: Arithmetic, op: tt.BitcastOp, states: Sequence[State]) -> State | None:
    (state,) = states
    if isinstance(state, Integer):
        return state if scalar_type(op.src.type) == scalar_type(op.result.type) else None
    return state if isinstance(state, Pointer) else None


@rule(tt.MakeTensorDescOp)
def _descriptor(known: Arithmetic, op: tt.MakeTensorDescOp, states: Sequence[State]) -> State | None:
    pointer, *numbers = states
    operands = integers(numbers)
    if not isinstance(pointer, Pointer) or operands is None:
        return None
    rank = len(op.shape)
    exact = [known.natural(each) for each in operands]
    conditions = pointer.conditions
    for each in exact:
        if each is None:
            return None
        conditions = conditions.join(each.conditions)
    forms = [each.form for each in exact if each is not None]
    return Descriptor(
        pointer.base, pointer.offset, tuple(forms[:rank]), tuple(forms[rank:]), tuple(op.result.type.shape),
        pointee_bytes(op.base), conditions, pointer.reason,
    )  # fmt: skip
