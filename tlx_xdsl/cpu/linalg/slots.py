"""Values that control flow carries: each with all operands and successor inputs that stand for it, to be split.

`scf.for` has four places for what it carries from turn to turn: the operand with the initial value, the block argument,
the operand of the yield, and the result. Such places are one *slot*. A slot can get a neighbour of another type, which
is appended to all of its operations, and can be dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import cf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, SSAValues

from tlx_xdsl.analysis.integers.transfer import bits_of
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.dialects.regions import edges

from .emitter import refuse


@dataclass(eq=False)
class Slot:
    """The places that one carried value has."""

    inputs: list[SSAValue] = field(default_factory=list[SSAValue])
    """Block arguments and results."""
    operands: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])
    """The operands that define them, by the operation and their number."""

    @property
    def values(self) -> list[SSAValue]:
        """The values of the operands."""
        return [op.operands[number] for op, number in self.operands]


def is_integer_tensor(value: SSAValue) -> bool:
    """True for a tensor of integers, or of single bits."""
    return as_tensor(value.type) is not None and bits_of(value) is not None


def slots_of(function: Operation, carries: Callable[[SSAValue], bool]) -> list[Slot]:
    """Return the slots of `function` whose values `carries` accepts, in program order.

    Raises CompilationError where such a value goes along a conditional branch between blocks.
    """
    by_input: dict[SSAValue, Slot] = {}
    by_operand: dict[tuple[Operation, int], Slot] = {}
    for op in function.walk():
        for edge in edges(op) or ():
            for number, (operand, input_) in enumerate(edge.pairs, edge.first):
                if not carries(operand):
                    continue
                if isinstance(op, cf.ConditionalBranchOp):
                    raise refuse(op, f"it carries a value of type {operand.type}")
                place = (op, number)
                slot = by_operand.get(place) or by_input.get(input_) or Slot()
                for other in {each for each in (by_input.get(input_), by_operand.get(place)) if each is not None}:
                    if other is not slot:
                        _move(other, slot, by_input, by_operand)
                if place not in by_operand:
                    slot.operands.append(place)
                    by_operand[place] = slot
                if input_ not in by_input:
                    slot.inputs.append(input_)
                    by_input[input_] = slot
    return list(dict.fromkeys(by_input.values()))


def _move(
    source: Slot, target: Slot, by_input: dict[SSAValue, Slot], by_operand: dict[tuple[Operation, int], Slot]
) -> None:
    for input_ in source.inputs:
        by_input[input_] = target
    for place in source.operands:
        by_operand[place] = target
    target.inputs += source.inputs
    target.operands += source.operands


def add_neighbour(slot: Slot, type_: Attribute) -> Slot:
    """Append a slot of another type to all operations that have `slot`; its operands are still those of `slot`."""
    added = Slot()
    for input_ in slot.inputs:
        new: SSAValue
        if isinstance(input_, BlockArgument):
            new = input_.block.insert_arg(type_, len(input_.block.args), input_.location)
        else:
            assert isinstance(input_, OpResult)
            op = input_.op
            new = OpResult(type_, op, len(op.results))
            op.results = SSAValues((*op.results, new))
        new.name_hint = input_.name_hint
        added.inputs.append(new)
    for op, number in slot.operands:
        added.operands.append((op, len(op.operands)))
        op.operands = [*op.operands, op.operands[number]]
    return added


def set_operand(place: tuple[Operation, int], value: SSAValue) -> None:
    """Let `value` be the operand at a place of a slot."""
    op, number = place
    op.operands[number] = value


def drop_operands(slots: list[Slot]) -> None:
    """Remove the operands of slots, before what they used is removed."""
    numbers: dict[Operation, set[int]] = {}
    for slot in slots:
        for op, number in slot.operands:
            numbers.setdefault(op, set()).add(number)
    for op, gone in numbers.items():
        op.operands = [value for number, value in enumerate(op.operands) if number not in gone]


def drop_inputs(slots: list[Slot]) -> None:
    """Remove the inputs of slots whose operands are gone; they have no uses."""
    results: dict[Operation, set[int]] = {}
    arguments: dict[Block, list[BlockArgument]] = {}
    for slot in slots:
        for input_ in slot.inputs:
            if isinstance(input_, BlockArgument):
                arguments.setdefault(input_.block, []).append(input_)
            elif isinstance(input_, OpResult):
                results.setdefault(input_.op, set()).add(input_.index)
    for block, found in arguments.items():
        for argument in found:
            block.erase_arg(argument)
    for op, gone in results.items():
        kept = [result for result in op.results if result.index not in gone]
        for index, result in enumerate(kept):
            result.index = index
        op.results = SSAValues(kept)


def first_after(value: SSAValue) -> Operation:
    """The operation before which a value can be used first."""
    owner = value.owner
    found = owner.first_op if isinstance(owner, Block) else owner.next_op
    assert found is not None, "a block ends in an operation"
    return found
