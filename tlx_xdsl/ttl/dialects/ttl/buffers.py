"""Circular buffers, transfers between them and tensors or pipes, and what waits for transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Self, TypeVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, NoneAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..ttkernel.base import ThreadKind
from .base import (
    ANY_BLOCK,
    Thread,
    Threads,
    TTLOp,
    as_block,
    block_shape,
    defined,
    integer,
    parse_defined,
    parse_indices,
    parse_integers,
    print_operand,
)
from .compute import BlockComputeOp
from .types import (
    AccessorType,
    CBType,
    Direction,
    DirectionAttr,
    PipeType,
    TensorAccessorType,
    TransferHandleType,
)

ValueT = TypeVar("ValueT")


@irdl_op_definition
class CreateCBOp(TTLOp):
    """Make a circular buffer in the memory of each core.

    Example: `%cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<...>`

    `ttl-allocate-circular-buffers` adds `cb_index` and `l1_address` (bytes). With `internal` it is the compiler's own:
    its producer and its consumer are the compute thread.
    """

    name = "ttl.create_cb"

    result = result_def(CBType)
    cb_index = opt_prop_def(IntegerAttr)
    l1_address = opt_prop_def(IntegerAttr)
    internal = opt_prop_def(UnitAttr)

    def __init__(self, type_: CBType, *, internal: bool = False) -> None:
        super().__init__(result_types=[type_], properties={"internal": UnitAttr() if internal else None})

    @property
    def type(self) -> CBType:
        """The type of the buffer."""
        assert isinstance(self.result.type, CBType)
        return self.result.type

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes."""
        shape = _named(parser, "shape", lambda: parse_integers(parser))
        parser.parse_punctuation(",")
        element = _named(parser, "element_type", parser.parse_type)
        parser.parse_punctuation(",")
        factor = _named(parser, "buffer_factor", parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        at = parser.pos
        type_ = parser.parse_type()
        if type_ != CBType.get(tuple(shape), element, factor):
            parser.raise_error(f"expected {CBType.get(tuple(shape), element, factor)}, found {type_}", at)
        return cls.create(
            result_types=[type_],
            properties={name: value for name, value in attributes.items() if name in _PLACE},
            attributes={name: value for name, value in attributes.items() if name not in _PLACE},
        )

    def print(self, printer: Printer) -> None:
        """Write the type twice, as the TTL design has it."""
        printer.print_string(f" shape={list(self.type.shape)}, element_type=")
        printer.print_attribute(self.type.element_type)
        printer.print_string(f", buffer_factor={self.type.buffer_factor}")
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.type)


_PLACE = ("cb_index", "l1_address", "internal")


def _named(parser: Parser, name: str, parse: Callable[[], ValueT]) -> ValueT:
    parser.parse_keyword(name)
    parser.parse_punctuation("=")
    return parse()


@irdl_op_definition
class BindCBOp(TTLOp):
    """A circular buffer under its number, in the driver of a kernel.

    Example: `%cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32, l1_address = 0 : i32} : !ttl.cb<...>`
    """

    name = "ttl.bind_cb"

    result = result_def(CBType)
    cb_index = prop_def(IntegerAttr)
    buffer_factor = prop_def(IntegerAttr)
    l1_address = opt_prop_def(IntegerAttr)
    internal = opt_prop_def(UnitAttr)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type_: CBType, cb_index: int, l1_address: int | None, *, internal: bool = False) -> None:
        super().__init__(
            result_types=[type_],
            properties={
                "cb_index": IntegerAttr(cb_index, i32),
                "buffer_factor": IntegerAttr(type_.buffer_factor, i32),
                "l1_address": None if l1_address is None else IntegerAttr(l1_address, i32),
                "internal": UnitAttr() if internal else None,
            },
        )

    def verify_(self) -> None:
        """The number of blocks is that of the type."""
        type_ = self.result.type
        assert isinstance(type_, CBType)
        if self.buffer_factor.value.data != type_.buffer_factor:
            raise VerifyException(
                f"buffer_factor is {self.buffer_factor.value.data}, but {type_} is for {type_.buffer_factor} blocks"
            )


class CBOp(TTLOp):
    """Base of the four steps of a circular buffer's protocol.

    A producer reserves, writes and pushes; a consumer waits, reads and pops. Each works on `blocks` blocks, one by
    default.
    """

    PRODUCES: ClassVar[bool]
    """Whether it is a step of the producer's."""
    ACQUIRES: ClassVar[bool]
    """Whether it waits for room or data; the other step gives it back."""

    cb = operand_def(CBType)
    blocks = opt_prop_def(IntegerAttr)

    @property
    def cb_type(self) -> CBType:
        """The type of the buffer."""
        assert isinstance(self.cb.type, CBType)
        return self.cb.type

    @property
    def num_blocks(self) -> int:
        """Blocks that the step is about."""
        return 1 if self.blocks is None else self.blocks.value.data

    @property
    def num_pages(self) -> int:
        """Pages that the step is about."""
        return self.num_blocks * self.cb_type.block_pages

    def verify_(self) -> None:
        """Check that there is room for so many blocks."""
        if not 1 <= self.num_blocks <= self.cb_type.buffer_factor:
            raise VerifyException(
                f"{self.name} of {self.num_blocks} blocks, but {self.cb_type} has room for {self.cb_type.buffer_factor}"
            )


class AcquireOp(CBOp):
    """Base of the steps that give the place of blocks."""

    ACQUIRES: ClassVar = True

    view = result_def(ANY_BLOCK)

    assembly_format = "$cb attr-dict `:` type($cb) `->` type($view)"

    def __init__(self, cb: SSAValue, blocks: int | None = None) -> None:
        assert isinstance(cb.type, CBType)
        shape = list(cb.type.shape) if blocks is None else [blocks, *cb.type.shape]
        super().__init__(
            operands=[cb],
            result_types=[TensorType(cb.type.element_type, shape)],
            properties={"blocks": None if blocks is None else integer(blocks)},
        )

    def verify_(self) -> None:
        """The view has the shape of a block, or of several under one more dimension, and what is pushed is written."""
        super().verify_()
        if is_unwritten(self) and result_for(self) is None:
            raise VerifyException(
                "this block is reserved and pushed, but nothing is stored into it: expected a ttl.store"
            )
        type_ = as_block(self.view.type)
        shape = self.cb_type.shape if self.blocks is None else (self.num_blocks, *self.cb_type.shape)
        if tuple(type_.get_shape()) != shape or type_.get_element_type() != self.cb_type.element_type:
            expected = TensorType(self.cb_type.element_type, list(shape))
            raise VerifyException(f"the view of {self.cb_type} is {expected}, found {type_}")


class ReleaseOp(CBOp):
    """Base of the steps that give blocks back."""

    ACQUIRES: ClassVar = False

    def __init__(self, cb: SSAValue, blocks: int | None = None) -> None:
        super().__init__(operands=[cb], properties={"blocks": None if blocks is None else integer(blocks)})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read a buffer that was defined before; its type need not be said."""
        cb = parse_defined(parser)
        attributes = parser.parse_optional_attr_dict()
        blocks = attributes.pop("blocks", None)
        return cls.create(operands=[cb], properties={} if blocks is None else {"blocks": blocks}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the buffer without its type."""
        printer.print_string(" ")
        printer.print_ssa_value(self.cb)
        printer.print_op_attributes({**self.properties, **self.attributes})


@irdl_op_definition
class CBReserveOp(AcquireOp):
    """Wait until there is room for a block, and give its place.

    Example: `%v = ttl.cb_reserve %cb : !ttl.cb<...> -> tensor<...>`.
    """

    name = "ttl.cb_reserve"
    PRODUCES: ClassVar = True


@irdl_op_definition
class CBPushOp(ReleaseOp):
    """Give the block that was reserved to the consumer: `ttl.cb_push %cb`."""

    name = "ttl.cb_push"
    PRODUCES: ClassVar = True


@irdl_op_definition
class CBWaitOp(AcquireOp):
    """Wait until a block has been pushed, and give its place: `%v = ttl.cb_wait %cb : !ttl.cb<...> -> tensor<...>`."""

    name = "ttl.cb_wait"
    PRODUCES: ClassVar = False


@irdl_op_definition
class CBPopOp(ReleaseOp):
    """Give the block that was waited for back to the producer: `ttl.cb_pop %cb`."""

    name = "ttl.cb_pop"
    PRODUCES: ClassVar = False


@irdl_op_definition
class BlockOp(TTLOp):
    """A block of several: `%b = ttl.block %view, %i : tensor<2x1x1x!tile> -> tensor<1x1x!tile>`."""

    name = "ttl.block"

    view = operand_def(ANY_BLOCK)
    index = operand_def(IndexType())
    result = result_def(ANY_BLOCK)

    traits = traits_def(Pure())
    assembly_format = "$view `,` $index attr-dict `:` type($view) `->` type($result)"

    def __init__(self, view: SSAValue, index: SSAValue) -> None:
        type_ = as_block(view.type)
        shape = list(type_.get_shape())[1:]
        kind = TensorType if isinstance(type_, TensorType) else MemRefType
        super().__init__(operands=[view, index], result_types=[kind(type_.get_element_type(), shape)])

    def verify_(self) -> None:
        """The block has the view's shape without the first dimension."""
        if block_shape(self.view.type)[1:] != block_shape(self.result.type):
            raise VerifyException(f"a block of {self.view.type} has one dimension less, found {self.result.type}")


@irdl_op_definition
class CopyOp(TTLOp):
    """Begin to copy a block: `%xf = ttl.copy %acc[%r, %c], %view : T, T -> !ttl.transfer_handle<read>`.

    One side is a view of a circular buffer. The other is an accessor with the place in its tensor (the tile of the
    block's upper left corner, or a tile's, row's or shard's number), or a pipe, with the coordinates of the source
    where it gathers from several, or with the receivers' address where they have reported it. Where the block has fewer
    dimensions than the tensor it has a size of 1 in the first ones. The view holds what was read, or may be released,
    when the transfer was waited for.

    `synchronized` says that a semaphore is waited for instead: the sender's transfer does the copying.
    """

    name = "ttl.copy"
    THREADS: ClassVar = Threads.DATAMOVEMENT

    source = operand_def()
    source_indices = var_operand_def(IndexType())
    destination = operand_def()
    destination_indices = var_operand_def(IndexType())
    handle = result_def(TransferHandleType)
    synchronized = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        source: SSAValue,
        destination: SSAValue,
        source_indices: tuple[SSAValue, ...] = (),
        destination_indices: tuple[SSAValue, ...] = (),
    ) -> None:
        direction = Direction.READ if isinstance(source.type, TensorAccessorType | PipeType) else Direction.WRITE
        super().__init__(
            operands=[source, source_indices, destination, destination_indices],
            result_types=[TransferHandleType.get(direction)],
        )

    @property
    def direction(self) -> Direction:
        """Return whether the block is read into the view or written from it."""
        assert isinstance(self.handle.type, TransferHandleType)
        return self.handle.type.direction

    @property
    def view(self) -> SSAValue:
        """The block in the core's own memory."""
        return self.destination if self.direction is Direction.READ else self.source

    @property
    def far(self) -> SSAValue:
        """The accessor or pipe on the other side."""
        return self.source if self.direction is Direction.READ else self.destination

    @property
    def indices(self) -> tuple[SSAValue, ...]:
        """The place in the accessor's tensor, the source of a pipe, or the address at its receivers."""
        return tuple(self.source_indices if self.direction is Direction.READ else self.destination_indices)

    def verify_(self) -> None:
        """One side is a view, the other one is none, and the handle has their direction."""
        near = [isinstance(each.type, TensorType | MemRefType) for each in (self.source, self.destination)]
        if near == [False, False]:
            raise VerifyException("one side of a copy must be a block of a circular buffer, found none")
        if near == [True, True]:
            raise VerifyException(
                "one side of a copy must be a tensor accessor or a pipe, found a block of a circular buffer on both"
            )
        direction = Direction.WRITE if near[0] else Direction.READ
        if self.direction is not direction:
            raise VerifyException(f"this copy is a {direction.value}, found a handle of a {self.direction.value}")
        indices = len(self.source_indices) + len(self.destination_indices)
        match self.far.type:
            case TensorAccessorType():
                rank = len(block_shape(self.far.type.tensor))
                if indices not in (1, rank) or indices != len(self.indices):
                    raise VerifyException(
                        f"an accessor of {rank} dimensions takes 1 or {rank} indices, found {indices}"
                    )
            case PipeType():
                most = 2 if self.direction is Direction.READ else 1
                if indices not in (0, most) or indices != len(self.indices):
                    what = "the source's coordinates" if most == 2 else "the receivers' address"
                    raise VerifyException(f"a pipe takes {most} indices, {what}, or none, found {indices}")
            case other:
                raise VerifyException(f"expected a tensor accessor or a pipe, found {other}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes."""
        source, source_indices = parser.parse_unresolved_operand(), parse_indices(parser)
        parser.parse_punctuation(",")
        destination, destination_indices = parser.parse_unresolved_operand(), parse_indices(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_punctuation(",")
        destination_type = parser.parse_type()
        parser.parse_punctuation("->")
        handle = parser.parse_type()
        op = cls.build(
            operands=[
                _far_side(parser, source, source_type),
                source_indices,
                _far_side(parser, destination, destination_type),
                destination_indices,
            ],
            result_types=[handle],
            properties={"synchronized": attributes.pop("synchronized", None)},
        )
        op.attributes.update(attributes)
        if isinstance(handle, TransferHandleType) and isinstance(handle.direction_attr, NoneAttr):
            far = (TensorAccessorType, PipeType)
            direction = Direction.READ if isinstance(op.source.type, far) else Direction.WRITE
            op = cls.create(
                operands=op.operands,
                result_types=[TransferHandleType.get(direction)],
                properties=op.properties,
                attributes=op.attributes,
            )
        return op

    def print(self, printer: Printer) -> None:
        """Write indices after what they belong to."""
        printer.print_string(" ")
        print_operand(printer, self.source, tuple(self.source_indices))
        printer.print_string(", ")
        print_operand(printer, self.destination, tuple(self.destination_indices))
        flags: dict[str, Attribute] = {} if self.synchronized is None else {"synchronized": self.synchronized}
        printer.print_op_attributes({**flags, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(", ")
        printer.print_attribute(self.destination.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.handle.type)


@irdl_op_definition
class WaitOp(TTLOp):
    """Wait until a transfer is complete: `ttl.wait %xf`.

    The hardware waits for all transfers of this direction that its processor has begun.
    """

    name = "ttl.wait"
    THREADS: ClassVar = Threads.DATAMOVEMENT

    handle = operand_def(TransferHandleType)

    def __init__(self, handle: SSAValue) -> None:
        super().__init__(operands=[handle])

    @property
    def direction(self) -> Direction:
        """The direction of the transfers that are waited for."""
        assert isinstance(self.handle.type, TransferHandleType)
        return self.handle.type.direction

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read a handle that was defined before; its type may follow."""
        handle = parse_defined(parser)
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":"):
            parser.parse_type()
        return cls.create(operands=[handle], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the handle without its type."""
        printer.print_string(" ")
        printer.print_ssa_value(self.handle)
        printer.print_op_attributes(self.attributes)


def _far_side(parser: Parser, operand: UnresolvedOperand, type_: Attribute) -> SSAValue:
    """An operand of a copy, whose type may be the short one of accessors."""
    if not isinstance(type_, AccessorType):
        return parser.resolve_operand(operand, type_)
    value = defined(parser, operand)
    if not isinstance(value.type, TensorAccessorType) or not type_.fits(value.type.tensor):
        parser.raise_error(f"expected an accessor of this layout, found {value.type}", operand.span)
    return value


@irdl_op_definition
class DMABarrierOp(TTLOp):
    """Wait for all transfers of a direction that this thread has begun: `ttl.dma_barrier read`.

    Without a word it waits for both directions: `ttl-canonicalize` makes one barrier of each.
    """

    name = "ttl.dma_barrier"
    THREADS: ClassVar = Threads.DATAMOVEMENT

    direction_attr = opt_prop_def(DirectionAttr)

    def __init__(self, direction: Direction | None = None) -> None:
        super().__init__(properties={"direction_attr": None if direction is None else DirectionAttr(direction)})

    @property
    def direction(self) -> Direction:
        """The direction of the transfers that are waited for.

        Raises VerifyException for a barrier of both.
        """
        if self.direction_attr is None:
            raise VerifyException("this barrier is for reads and writes: run ttl-canonicalize before")
        return self.direction_attr.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `read`, `write` or nothing."""
        op = cls(next((each for each in Direction if parser.parse_optional_keyword(each.value)), None))
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        """Write the direction as a word."""
        if self.direction_attr is not None:
            printer.print_string(f" {self.direction.value}")
        printer.print_op_attributes(self.attributes)


def blocks_of(view: SSAValue) -> int:
    """Blocks that a view has, by the number of its dimensions.

    Raises VerifyException for what is no view.
    """
    shape = block_shape(view.type)
    return shape[0] if len(shape) > len(acquisition_of(view).cb_type.shape) else 1


def acquisition_of(view: SSAValue) -> AcquireOp:
    """The step that gave a view, or one of whose blocks it is.

    Raises VerifyException for anything else.
    """
    owner = view.owner
    while isinstance(owner, BlockOp):
        owner = owner.view.owner
    if not isinstance(owner, AcquireOp):
        raise VerifyException(f"expected the view of a ttl.cb_wait or ttl.cb_reserve, found {_name(owner)}")
    return owner


def _name(owner: object) -> str:
    return f"the result of {owner.name}" if isinstance(owner, Operation) else "a block argument"


def steps(op: Operation) -> Iterator[CBOp]:
    """The steps of protocols inside of `op`, in program order."""
    return (each for each in op.walk() if isinstance(each, CBOp))


ADDED_STORE = "ttl.added"
"""The attribute of a store that the kernel leaves out."""


def result_for(op: AcquireOp) -> SSAValue | None:
    """The value that must be meant for a reserved block which nothing is stored into.

    That is the only one of its type that is computed before it in the same block of code, and that nothing uses.
    """
    before = op.prev_op
    found: list[SSAValue] = []
    while before is not None:
        if isinstance(before, BlockComputeOp) and before.result.type == op.view.type:
            found += [] if before.result.uses.get_length() else [before.result]
        before = before.prev_op
    return found[0] if len(found) == 1 else None


def is_unwritten(op: AcquireOp) -> bool:
    """Return whether a compute thread reserves a block, pushes it, and writes nothing into it."""
    thread = op.parent_op()
    while thread is not None and not isinstance(thread, Thread):
        thread = thread.parent_op()
    if not op.PRODUCES or thread is None or thread.KIND is not ThreadKind.COMPUTE or op.view.uses.get_length():
        return False
    return any(isinstance(each, CBPushOp) and each.cb is op.cb for each in steps(thread))
