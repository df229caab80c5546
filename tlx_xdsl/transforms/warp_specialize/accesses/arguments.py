"""The arguments of a kernel that is specialised: new ones, those that go, and what must hold of them at a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, LocationAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.utils.hints import isa

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.transforms.rewriting import update_signature

HOST_VALUE = "tlx.host_value"
"""Attribute of an argument: the number that the host gives for it, as Python over the names of the others."""
HOST_MEMORY = "tlx.host_memory"
"""Attribute of an argument: the memory that the host gives for it, of so many elements, and whether these are zero."""
SPLIT = "tlx.split"
"""Attribute of a function: the programs that share the work of one of the plain launch, along its axis x."""
CONDITIONS = "tlx.launch_conditions"
"""Attribute of a function: what must hold at a launch, as Python over the names of the arguments."""


def add_argument(
    function: tt.FuncOp, at: int, name: str, type_: Attribute, attributes: DictionaryAttr, location: LocationAttr
) -> BlockArgument:
    """Add an argument at a place among the others."""
    held = _attributes(function)
    argument = function.body.blocks[0].insert_arg(type_, at, location)
    argument.name_hint = name
    function.arg_attrs = ArrayAttr([*held[:at], attributes, *held[at:]])
    update_signature(function)
    return argument


def new_name(function: tt.FuncOp, wanted: str) -> str:
    """Return `wanted`, or where an argument has that name, the same with a number."""
    taken = {argument.name_hint for argument in function.body.blocks[0].args}
    name, number = wanted, 1
    while name in taken:
        # xDSL takes the number off a hint such as 'a_desc_1'.
        name, number = f"{wanted}{number + 1}", number + 1
    return name


def descriptor_name(pointer: str | None) -> str:
    """The name of the descriptor of what a pointer leads to: `a_desc` for `a_ptr`."""
    return f"{(pointer or 'tensor').removesuffix('_ptr')}_desc"


def drop_unused_arguments(function: tt.FuncOp) -> None:
    """Remove the arguments that nothing uses; descriptors stay, and their extents with them."""
    entry, held = function.body.blocks[0], _attributes(function)
    of_descriptors = {each for found in descriptors_of(function) for each in (found.descriptor, *found.extents)}
    kept = [argument for argument in entry.args if argument.uses or argument in of_descriptors]
    function.arg_attrs = ArrayAttr([held[argument.index] for argument in kept])
    for argument in reversed(entry.args):
        if argument not in kept:
            entry.erase_arg(argument)
    update_signature(function)


def add_conditions(function: tt.FuncOp, conditions: Sequence[str]) -> None:
    """Add what must hold at a launch to what the function asks already."""
    held = function.attributes.get(CONDITIONS)
    before = [each.data for each in held.data] if isa(held, ArrayAttr[StringAttr]) else []
    if found := list(dict.fromkeys([*before, *conditions])):
        function.attributes[CONDITIONS] = ArrayAttr([StringAttr(each) for each in found])


def is_grid_size(value: SSAValue) -> bool:
    """Say whether a value is an argument that the host gives, inside of tasks or before: a size of the plain grid.

    No such size is 0 where a program runs.
    """
    block = value.owner
    if not isinstance(value, BlockArgument) or not isinstance(block, Block):
        return False
    match block.parent_op():
        case ttg.WarpSpecializePartitionsOp() as tasks:
            return is_grid_size(tasks.explicit_captures[value.index])
        case tt.FuncOp() as function:
            return HOST_VALUE in _attributes(function)[value.index].data
        case _:
            return False


def _attributes(function: tt.FuncOp) -> list[DictionaryAttr]:
    count = len(function.body.blocks[0].args)
    held = list(function.arg_attrs.data) if function.arg_attrs is not None else []
    return held + [DictionaryAttr({})] * (count - len(held))


@dataclass(frozen=True)
class DescriptorArgument:
    """A descriptor among the arguments."""

    descriptor: BlockArgument
    extents: tuple[BlockArgument, ...]
    """Its shape and its strides, which follow it."""


def descriptors_of(function: tt.FuncOp) -> list[DescriptorArgument]:
    """The descriptors among the arguments, with their extents."""
    entry = function.body.blocks[0]
    found: list[DescriptorArgument] = []
    for argument in entry.args:
        if isinstance(type_ := argument.type, tt.TensorDescType):
            rank = len(type_.shape)
            following = tuple(entry.args[argument.index + 1 : argument.index + 1 + 2 * rank])
            is_full = [each.type for each in following] == [i32] * rank + [i64] * rank
            found.append(DescriptorArgument(argument, following if is_full else ()))
    return found
