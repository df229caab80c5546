"""Common parts of the operations of `ttl`: the threads that may run them, and pieces of their assembly format."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType, bf16, f32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, base, traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from ..ttcore import BlockFloatType, TileType, is_float
from ..ttkernel.base import ThreadAttr, ThreadKind

ANY_BLOCK = base(TensorType) | base(MemRefType)
"""A block of a circular buffer, as a value or as a place in memory."""

THREAD = "ttl.kernel_thread"
"""Attribute of a function that a thread runs, a `#ttkernel.thread`."""


class Threads(Enum):
    """Threads that may run an operation."""

    ANY = "compute and datamovement threads"
    COMPUTE = "compute threads"
    DATAMOVEMENT = "datamovement threads"


class Thread(Operation):
    """Base of the operations whose region a thread of each core runs."""

    KIND: ClassVar[ThreadKind]


def thread_of(op: Operation) -> tuple[Operation, ThreadKind] | None:
    """The thread around `op`, in a kernel or as a function of its own; None outside of one."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, Thread):
            return parent, parent.KIND
        if isinstance(parent, FuncOp):
            kind = parent.attributes.get(THREAD)
            return (parent, kind.data) if isinstance(kind, ThreadAttr) else None
        parent = parent.parent_op()
    return None


class RunsOnThread(OpTrait):
    """The operation's `THREADS` say where it may be."""

    def verify(self, op: Operation) -> None:
        """Compare with the thread around the operation, where there is one."""
        assert isinstance(op, TTLOp)
        found = thread_of(op)
        if found is None or op.THREADS is Threads.ANY:
            return
        kind = ThreadKind.COMPUTE if op.THREADS is Threads.COMPUTE else ThreadKind.NOC
        if found[1] is not kind:
            other = "compute" if found[1] is ThreadKind.COMPUTE else "datamovement"
            raise VerifyException(f"{op.name} runs in {op.THREADS.value} only, found it in a {other} thread")


class TTLOp(IRDLOperation):
    """Base of the operations: properties are in the attribute dictionary."""

    THREADS: ClassVar[Threads] = Threads.ANY
    NON_NEGATIVE: ClassVar[bool] = False
    """Whether the integers that it gives are 0 or more."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(RunsOnThread())


def as_block(type_: Attribute) -> TensorType[Attribute] | MemRefType[Attribute]:
    """The type of a block as a tensor or as memory."""
    assert isinstance(type_, TensorType | MemRefType)
    return cast("TensorType[Attribute] | MemRefType[Attribute]", type_)


def block_shape(type_: Attribute) -> tuple[int, ...]:
    """The shape of a block, in tiles or elements."""
    return tuple(as_block(type_).get_shape())


def aligned(shape: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """The shape with `rank` dimensions: ones are added or left out in front; None where there are others."""
    extra = len(shape) - rank
    if any(size != 1 for size in shape[: max(extra, 0)]):
        return None
    return (1,) * -extra + shape[max(extra, 0) :]


def tile_of(type_: Attribute) -> TileType:
    """The tile that a block consists of.

    Raises VerifyException for a block of single elements.
    """
    element: Attribute = type_
    if isinstance(type_, TensorType | MemRefType):
        element = as_block(cast(Attribute, type_)).get_element_type()
    if not isinstance(element, TileType):
        raise VerifyException(f"expected a block of tiles, found {type_}")
    return element


def computed_tile(tiles: Sequence[TileType]) -> TileType | None:
    """The tile that an operation computes of others, or None where they can't meet.

    Floats meet in the widest type: registers hold all of them. Block floats are computed as bf16, which has room for
    them. bf16 and f16 have exponents of different sizes, for which the units have one setting. Integers meet theirs.
    """
    types = {bf16 if isinstance(each.data_type, BlockFloatType) else each.data_type for each in tiles}
    if len(types) == 1:
        return TileType.get(*types)
    if f32 in types and all(map(is_float, types)):
        return TileType.get(f32)
    return None


def integer(number: int) -> IntegerAttr:
    """A number as an attribute of 64 bits."""
    return IntegerAttr(number, i64)


def parse_integers(parser: Parser) -> list[int]:
    """Read `[1, 2]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def parse_defined(parser: Parser) -> SSAValue:
    """Read a value that was defined before, whose type the text need not repeat."""
    return defined(parser, parser.parse_unresolved_operand())


def defined(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """The value that was defined before under a name."""
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error("expected a value that is defined before it is used", operand.span)
    return values[operand.index]


def parse_indices(parser: Parser) -> list[SSAValue]:
    """Read the values in square brackets, if there are any."""
    return parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_defined(parser)) or []


def print_operand(printer: Printer, value: SSAValue, indices: tuple[SSAValue, ...] = ()) -> None:
    """Write `%acc[%i, %j]`, or `%view` without indices."""
    printer.print_ssa_value(value)
    if indices:
        with printer.in_square_brackets():
            printer.print_list(indices, printer.print_ssa_value)
