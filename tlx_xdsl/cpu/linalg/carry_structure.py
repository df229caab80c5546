"""`linalg-carry-structure`: offsets and masks that control flow carries go as scalars, where scalars say all of them.

A tensor of offsets that is linear in the position on every way, and a mask that is a box, are made of their base and
strides, or of their bounds, after the branch or in the loop. What is opaque on one of the ways stays a tensor.

Before:
```mlir
%r = scf.if %c -> (tensor<64xi64>) {
  scf.yield %positions : tensor<64xi64>
} else {
  %n = arith.addi %positions, %splat_n : tensor<64xi64>
  scf.yield %n : tensor<64xi64>
}
```
After:
```mlir
%b = scf.if %c -> (i64) {
  scf.yield %c0 : i64
} else {
  scf.yield %n : i64
}
%s = tt.splat %b : i64 -> tensor<64xi64>
%r = arith.addi %s, %positions : tensor<64xi64>
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IntegerType, ModuleOp, i1, i32, i64
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.transfer import shape_of
from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.uses import UseKind, Uses
from tlx_xdsl.analysis.structure.values import ONE, ZERO, Linear, Mask, State, computed
from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of

from .access_plan import Claims
from .blocks import positions, splat, spread
from .emitter import Emitter
from .scalars import Scalars, conjunction
from .slots import (
    Slot,
    add_neighbour,
    drop_inputs,
    drop_operands,
    first_after,
    is_integer_tensor,
    set_operand,
    slots_of,
)


class CarryStructurePass(Pass):
    """Carry the scalars of what is structured, until nothing is left to split."""

    name = "linalg-carry-structure"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            while _carry(function):
                pass


@dataclass(frozen=True)
class _Part:
    """A scalar that a slot carries instead of its tensor."""

    type_: IntegerType
    of: Callable[[State], Polynomial]
    """Its expression, of a state of the slot."""


@dataclass(frozen=True)
class _Split:
    """The scalars of a slot, and what makes the tensor of them before an operation."""

    parts: list[_Part]
    join: Callable[[Operation, Sequence[SSAValue]], SSAValue]


def _carry(function: tt.FuncOp) -> bool:
    slots = slots_of(function, is_integer_tensor)
    if not slots:
        return False
    structure, uses = Structure(function), Uses(function)
    chosen: list[tuple[Slot, list[State], _Split]] = []
    for slot in slots:
        states = [structure.of(value) for value in slot.values]
        if (split := _split(slot, states, uses)) is not None:
            chosen.append((slot, states, split))
    scalars, claims = Scalars(function, i64), Claims()
    for slot, states, split in chosen:
        for (op, _), state in zip(slot.operands, states, strict=True):
            if isinstance(state, Mask):
                claims.check(state, Emitter(scalars, op), op, "what a mask compares")
        neighbours = [add_neighbour(slot, part.type_) for part in split.parts]
        for part, neighbour in zip(split.parts, neighbours, strict=True):
            for place, state in zip(neighbour.operands, states, strict=True):
                set_operand(place, scalars.emit(part.of(state), part.type_.width.data, for_=place[0]))
        for number, input_ in enumerate(slot.inputs):
            tensor = split.join(first_after(input_), [each.inputs[number] for each in neighbours])
            tensor.name_hint = input_.name_hint
            input_.replace_all_uses_with(tensor)
    drop_operands([slot for slot, _, _ in chosen])
    drop_inputs([slot for slot, _, _ in chosen])
    return bool(chosen)


def _split(slot: Slot, states: Sequence[State], uses: Uses) -> _Split | None:
    shape = shape_of(slot.inputs[0])
    if all(isinstance(state, Mask) for state in states):
        return _of_masks(shape, [state for state in states if isinstance(state, Mask)])
    linear = [state for state in states if isinstance(state, Linear)]
    # A sum that may wrap around is the tensor where it serves as an address alone.
    serves = all(uses.of_value(input_) == UseKind.META for input_ in slot.inputs)
    if len(linear) < len(states) or any(state.terms or (state.claims and not serves) for state in linear):
        return None
    bits = linear[0].bits
    type_ = IntegerType(bits)
    along = [dim for dim in range(len(shape)) if any(state.strides[dim].terms for state in linear)]
    changing = [dim for dim in along if len({state.strides[dim] for state in linear}) > 1]
    if any(linear[0].strides[dim].number is None for dim in along if dim not in changing):
        changing = along
    parts = [_Part(type_, _base)] + [_Part(type_, _stride(dim)) for dim in changing]

    def join(op: Operation, values: Sequence[SSAValue]) -> SSAValue:
        total = splat(op, values[0], shape)
        for dim in along:
            moved = positions(op, shape[dim], type_)
            stride = linear[0].strides[dim]
            if dim in changing or stride != ONE:
                if dim in changing:
                    factor = values[1 + changing.index(dim)]
                else:
                    factor = insert_before(op, constant(stride.number or 0, type_)).result
                moved = insert_before(op, upstream.MuliOp(moved, splat(op, factor, (shape[dim],)))).result
            total = insert_before(op, upstream.AddiOp(total, spread(op, moved, dim, shape))).result
        return total

    return _Split(parts, join)


def _base(state: State) -> Polynomial:
    assert isinstance(state, Linear)
    return state.base


def _stride(dim: int) -> Callable[[State], Polynomial]:
    def of(state: State) -> Polynomial:
        assert isinstance(state, Linear)
        return state.strides[dim]

    return of


def _of_masks(shape: Ints, masks: Sequence[Mask]) -> _Split | None:
    """Bounds as i32 inside of the block, and whether the conditions hold."""
    if any(mask.opaque for mask in masks):
        return None
    bounded = [dim for dim in range(len(shape)) if any(mask.bounds[dim] != (None, None) for mask in masks)]
    parts = [_Part(i32, _bound(dim, end, shape[dim])) for dim in bounded for end in (0, 1)] + [_Part(i1, _condition)]

    def join(op: Operation, values: Sequence[SSAValue]) -> SSAValue:
        total = splat(op, values[-1], shape)
        for number, dim in enumerate(bounded):
            at = positions(op, shape[dim], i32)
            low, high = (splat(op, each, (shape[dim],)) for each in values[2 * number : 2 * number + 2])
            above = insert_before(op, arith.CmpiOp("sge", at, low)).result
            below = insert_before(op, arith.CmpiOp("slt", at, high)).result
            inside = insert_before(op, upstream.AndIOp(above, below)).result
            total = insert_before(op, upstream.AndIOp(total, spread(op, inside, dim, shape))).result
        return total

    return _Split(parts, join)


def _bound(dim: int, end: int, size: int) -> Callable[[State], Polynomial]:
    whole = Polynomial.constant(size)

    def of(state: State) -> Polynomial:
        assert isinstance(state, Mask)
        bound = state.bounds[dim][end]
        if bound is None:
            return whole if end else ZERO
        if (number := bound.number) is not None:
            return Polynomial.constant(min(max(number, 0), size))
        clamped = computed("min", [computed("max", [bound, ZERO], 64), whole], 64)
        return computed("trunc", [clamped], 32)

    return of


def _condition(state: State) -> Polynomial:
    assert isinstance(state, Mask)
    return conjunction(sorted(state.conditions, key=str)) if state.conditions else ONE
