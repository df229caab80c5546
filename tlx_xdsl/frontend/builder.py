"""Insertion of located operations."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects.ttg import as_tensor
from tlx_xdsl.language.core import dtype, pointer_type

from .types import ir_type
from .values import Tensor

OpT = TypeVar("OpT", bound=Operation)
IRDLOpT = TypeVar("IRDLOpT", bound=IRDLOperation)


class _HasSSA(Protocol):
    @property
    def ssa(self) -> SSAValue: ...


Operand: TypeAlias = _HasSSA | SSAValue | Sequence[_HasSSA | SSAValue] | None
"""An operand as the frontend has it: a value of its own, one of the IR, or several for a variadic operand."""

Result: TypeAlias = Attribute | Sequence[Attribute] | None
"""The type of a result; None for an optional one that is left out."""


def operation(op: type[IRDLOpT], *operands: Operand, results: Sequence[Result] = (), **properties: Any) -> IRDLOpT:
    """The operation `op` with an entry of `operands` and `results` for each that it declares.
    In `properties`, an integer is an i32, a bool an i1, a tuple or list an array of i32; strings and enumerations have
    attributes of their own, and None leaves the property out.
    """
    made = op.__new__(op)
    # Not its own constructor, which may take something else.
    IRDLOperation.__init__(
        made,
        operands=[_operand(operand) for operand in operands],
        properties={name: _attribute(value) for name, value in properties.items()},
        result_types=results,
    )
    return made


def _operand(value: Operand) -> Any:
    if isinstance(value, Sequence):
        return [_operand(item) for item in value]
    return value if value is None or isinstance(value, SSAValue) else value.ssa


def _attribute(value: Any) -> Attribute | None:
    match value:
        case Enum():
            return cast(Any, value).attr
        case bool():
            return IntegerAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i32)
        case str():
            return StringAttr(value)
        case tuple() | list():
            return DenseArrayBase.from_list(i32, cast(Sequence[int], value))
        case _:
            return value


@dataclass
class _Frame:
    """A stretch of code whose constants stand together at its start: a function or a partition."""

    block: Block
    constants: dict[tuple[Attribute, Attribute], SSAValue] = field(
        default_factory=dict[tuple[Attribute, Attribute], SSAValue]
    )
    last: Operation | None = None


class Builder:
    """Appends operations to a block; each gets the current location."""

    def __init__(self) -> None:
        self.location: LocationAttr = UnknownLoc()
        self._block: Block | None = None
        self._frames: list[_Frame] = []
        self._blocks: list[Block] | None = None
        self._entry: Block | None = None
        self.depth = 0
        """Number of regions of operations that are open around the insertion point."""

    @property
    def block(self) -> Block:
        """The block that operations are appended to."""
        assert self._block is not None, "no insertion point"
        return self._block

    @contextmanager
    def at_end_of(self, block: Block) -> Generator[None]:
        """Append to `block` inside the `with`."""
        outer, blocks = self._block, self._blocks
        self._block, self._blocks = block, None
        self.depth += 1
        try:
            yield
        finally:
            self._block, self._blocks = outer, blocks
            self.depth -= 1

    @contextmanager
    def function(self, blocks: list[Block]) -> Generator[None]:
        """Append to the one block of `blocks`, the body of a function, inside the `with`.

        `new_block` adds blocks to it, which branches of `cf` lead to.
        """
        outer, outer_blocks, outer_entry, depth = self._block, self._blocks, self._entry, self.depth
        self._frames.append(_Frame(blocks[0]))
        self._block, self._blocks, self._entry, self.depth = blocks[0], blocks, blocks[0], 0
        try:
            yield
        finally:
            self._frames.pop()
            self._block, self._blocks, self._entry, self.depth = outer, outer_blocks, outer_entry, depth

    @property
    def can_branch(self) -> bool:
        """Say whether the insertion point is directly in a function's body, where `cf` branches may stand."""
        return self._blocks is not None

    def new_block(self, arg_types: Sequence[Attribute] = ()) -> Block:
        """A new block of the function whose body we are in; its arguments get the current location."""
        assert self._blocks is not None, "blocks may stand in a function's body only"
        block = Block(arg_types=arg_types)
        for argument in block.args:
            argument.location = self.location
        self._blocks.append(block)
        return block

    def move_to(self, block: Block) -> None:
        """Append to `block`, another block of this function, from now on."""
        self._block = block

    def mark(self) -> Operation | None:
        """The last operation before the insertion point, for `erase_after`."""
        return self.block.last_op

    def erase_after(self, mark: Operation | None) -> None:
        """Erase the operations that were appended to this block since `mark`."""
        while (last := self.block.last_op) is not mark and last is not None:
            last.detach()
            last.erase(safe_erase=False)

    @contextmanager
    def frame(self, block: Block) -> Generator[None]:
        """Append to `block`, which also takes the constants of the code inside the `with`."""
        self._frames.append(_Frame(block))
        try:
            with self.at_end_of(block):
                yield
        finally:
            self._frames.pop()

    def insert(self, op: OpT) -> OpT:
        """Append `op` at the current location."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def emit(self, op: type[IRDLOpT], *operands: Operand, results: Sequence[Result] = (), **properties: Any) -> IRDLOpT:
        """Append an operation; see `operation`."""
        return self.insert(operation(op, *operands, results=results, **properties))

    def value(self, op: Operation, element: dtype | pointer_type, shape: tuple[int, ...] = ()) -> Tensor:
        """Append `op`; its first result, of that element type and shape."""
        return Tensor(self.insert(op).results[0], element, shape)

    def tensor(
        self,
        op: type[IRDLOperation],
        element: dtype | pointer_type,
        shape: tuple[int, ...],
        *operands: Operand,
        **properties: Any,
    ) -> Tensor:
        """Append an operation whose only result has that element type and shape; see `operation`."""
        return self.value(operation(op, *operands, results=[ir_type(element, shape)], **properties), element, shape)

    def insert_at_entry(self, op: OpT) -> OpT:
        """Put `op`, which has no operands, before all else that the function does: once, outside of loops and tasks."""
        assert self._entry is not None, "no function"
        op.location = self.location
        if (first := self._entry.first_op) is None:
            self._entry.add_op(op)
        else:
            self._entry.insert_op_before(op, first)
        return op

    def constant(self, value: int | float | bool, type_: Attribute) -> SSAValue:
        """The scalar or splat constant `value` of type `type_`; equal constants of a frame are one operation."""
        attribute = constant_attr(value, type_)
        frame = self._frames[-1]
        key = (attribute, type_)
        if (known := frame.constants.get(key)) is not None:
            return known
        op = ConstantOp.create(properties={"value": attribute}, result_types=[type_])
        op.location = self.location
        op.result.name_hint = _constant_hint(value, type_)
        if frame.last is not None:
            frame.block.insert_op_after(op, frame.last)
        elif frame.block.first_op is not None:
            frame.block.insert_op_before(op, frame.block.first_op)
        else:
            frame.block.add_op(op)
        frame.last = op
        frame.constants[key] = op.result
        return op.result


def unit(given: bool) -> UnitAttr | None:
    """The attribute of a property that is there or not."""
    return UnitAttr() if given else None


def constant_attr(value: int | float | bool, type_: Attribute) -> Attribute:
    """The attribute of the constant `value` of a scalar or tensor type."""
    if (tensor := as_tensor(type_)) is not None:
        number = float(value) if isinstance(tensor.element_type, AnyFloat) else int(value)
        return DenseIntOrFPElementsAttr.from_list(cast(Any, tensor), [number])
    if isinstance(type_, AnyFloat):
        return FloatAttr(float(value), type_)
    return IntegerAttr(int(value), cast(IntegerType, type_), truncate_bits=True)


def _constant_hint(value: int | float | bool, type_: Attribute) -> str:
    if type_ == IntegerType(1):
        return "true" if value else "false"
    if isinstance(type_, TensorType) or isinstance(value, float):
        return "cst"
    return f"c{value}" if value >= 0 else f"cm{-value}"


_SUFFIXES = re.compile(r"(_\d+)+$")


def hint(value: SSAValue, name: str) -> None:
    """Let `value` print as `name` unless it has a name already.

    A numeric ending is dropped: it is how the printer distinguishes values of one name.
    """
    if value.name_hint is None and (stem := _SUFFIXES.sub("", name)):
        value.name_hint = stem


def hint_all(values: Sequence[SSAValue], names: Sequence[str]) -> None:
    """`hint` for each value."""
    for value, name in zip(values, names, strict=True):
        hint(value, name)
