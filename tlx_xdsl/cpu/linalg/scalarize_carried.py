"""`linalg-scalarize-carried`: a tensor of integers that a loop advances by one number becomes that number.

A value `x` that a loop carries, and to which each turn adds what is the same for all elements, is its initial value
plus a scalar. The loop carries the scalar; the tensor is computed where it is used, and as an address not at all.

Before:
```mlir
%r = scf.for %i = %lb to %ub step %s iter_args(%x = %offsets) -> (tensor<64xi64>) : i32 {
  %y = arith.addi %x, %c16 : tensor<64xi64>
  scf.yield %y : tensor<64xi64>
}
```
After:
```mlir
%d = scf.for %i = %lb to %ub step %s iter_args(%x = %c0) -> (i64) : i32 {
  %y = arith.addi %x, %c16 : i64
  scf.yield %y : i64
}
%t = tt.splat %d : i64 -> tensor<64xi64>
%r = arith.addi %offsets, %t : tensor<64xi64>
```
Loops in loops, and `scf.while`, carry the same scalar on. Sums wrap around in the type's bits, as before.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.transfer import bits_of
from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.values import ONE, Linear, Opaque
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor, integer_bits
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

from .blocks import splat_as
from .scalars import Scalars
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


class ScalarizeCarriedPass(Pass):
    """Make scalars of carried tensors, until there are none to make."""

    name = "linalg-scalarize-carried"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            # Where one loop of a nest can't, the others become plain to see in the next round.
            while _scalarize(function):
                pass


def _is_number(value: SSAValue) -> bool:
    return is_integer_tensor(value) and bits_of(value) != 1


Step = tuple[SSAValue, Polynomial]
"""The input of a slot, and what is added to it."""


def _scalarize(function: tt.FuncOp) -> bool:
    slots = slots_of(function, _is_number)
    if not slots:
        return False
    structure = Structure(function)
    by_input = {input_: slot for slot in slots for input_ in slot.inputs}
    steps = {place: _step(structure, place, by_input) for slot in slots for place in slot.operands}
    chosen = [group for group in _groups(slots, steps, by_input) if _initial(group, steps) is not None]
    if not chosen:
        return False
    scalars = Scalars(function, i64)
    for group in chosen:
        initial = _initial(group, steps)
        assert initial is not None
        _rewrite(group, initial, steps, scalars)
    gone = [slot for group in chosen for slot in group]
    drop_operands(gone)
    drop_inputs(gone)
    return True


def _step(structure: Structure, place: tuple[Operation, int], by_input: dict[SSAValue, Slot]) -> Step | None:
    """The input and the number whose sum an operand is, if it is one."""
    op, number = place
    state = structure.of(op.operands[number])
    if not isinstance(state, Linear) or len(state.terms) != 1 or any(stride.terms for stride in state.strides):
        return None
    ((term, factor),) = state.terms
    if factor != ONE or not isinstance(term, Opaque) or term.value not in by_input or None in _without_ones(term):
        return None
    return term.value, state.base


def _without_ones(term: Opaque) -> list[int | None]:
    tensor = as_tensor(term.value.type)
    assert tensor is not None
    return [dim for dim, size in zip(term.dims, tensor.get_shape(), strict=True) if size > 1]


def _groups(
    slots: Sequence[Slot], steps: dict[tuple[Operation, int], Step | None], by_input: dict[SSAValue, Slot]
) -> list[list[Slot]]:
    """Slots with one initial value: those that take each other's values together, else each on its own."""
    linked: dict[Slot, list[Slot]] = {slot: [slot] for slot in slots}
    for slot in slots:
        for place in slot.operands:
            step = steps[place]
            other = slot if step is None else by_input[step[0]]
            if linked[other] is not linked[slot]:
                merged = linked[other] + linked[slot]
                for each in merged:
                    linked[each] = merged
    groups = {id(group): group for group in linked.values()}.values()
    return [part for group in groups for part in _parts(group, steps)]


def _parts(group: list[Slot], steps: dict[tuple[Operation, int], Step | None]) -> list[list[Slot]]:
    return [group] if _initial(group, steps) is not None else [[slot] for slot in group]


def _initial(group: Sequence[Slot], steps: dict[tuple[Operation, int], Step | None]) -> SSAValue | None:
    """The only value that the group begins with, if it is there wherever the group is; something is added to it."""
    inputs = {input_ for slot in group for input_ in slot.inputs}
    places = [place for slot in group for place in slot.operands]
    begins = {
        op.operands[number] for op, number in places if (step := steps[op, number]) is None or step[0] not in inputs
    }
    if len(begins) != 1 or len(begins) == len(places):
        return None
    (value,) = begins
    return value if all(_is_before(value, input_) for input_ in inputs) else None


def _is_before(value: SSAValue, input_: SSAValue) -> bool:
    """True if `value` is defined in a block around the operation of `input_`."""
    around = value.block if isinstance(value, BlockArgument) else value.owner.parent  # pyright: ignore
    op: Operation | None = input_.op if isinstance(input_, OpResult) else input_.owner.parent_op()  # pyright: ignore
    while op is not None:
        if op.parent is around:
            return op is not value.owner
        op = op.parent_op()
    return False


def _rewrite(
    group: Sequence[Slot], initial: SSAValue, steps: dict[tuple[Operation, int], Step | None], scalars: Scalars
) -> None:
    tensor = as_tensor(initial.type)
    bits = None if tensor is None else integer_bits(tensor.element_type)
    assert tensor is not None and bits is not None
    type_ = tensor.element_type
    added = [(slot, add_neighbour(slot, type_)) for slot in group]
    number_of = {
        input_: number
        for slot, neighbour in added
        for input_, number in zip(slot.inputs, neighbour.inputs, strict=True)
    }
    for slot, neighbour in added:
        for place, new in zip(slot.operands, neighbour.operands, strict=True):
            op, step = place[0], steps[place]
            if step is None or step[0] not in number_of:
                set_operand(new, scalars.number(0, bits, for_=op))
            elif not step[1].terms:
                set_operand(new, number_of[step[0]])
            else:
                by = scalars.emit(step[1], bits, for_=op)
                set_operand(new, insert_before(op, upstream.AddiOp(number_of[step[0]], by)).result)
    for input_, number in number_of.items():
        _replace(input_, initial, number)


def _replace(input_: SSAValue, initial: SSAValue, number: SSAValue) -> None:
    """Let users take the sum of the initial value and a number."""
    anchor = first_after(input_)
    total = insert_before(anchor, upstream.AddiOp(initial, splat_as(anchor, number, initial.type)))
    total.result.name_hint = input_.name_hint
    input_.replace_all_uses_with(total.result)
