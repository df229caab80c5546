"""Common parts of the operations of `ttkernel`: one assembly format, the kind of thread that may call the function."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import AnyOf, IRDLOperation, ParsePropInAttrDict, eq, irdl_attr_definition, param_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..ttcore import TileType, element_bytes, format_of

# Types of `ttkernel`: what the functions of TT-Metalium's device API take and give.


class ThreadKind(StrEnum):
    """Kinds of threads of a core."""

    NOC = "noc"
    """It moves data over the network on chip (the RISC-V processors 0 and 1)."""
    COMPUTE = "compute"
    """It computes with tiles (the three processors of unpack, math and pack)."""


@irdl_attr_definition
class ThreadAttr(Data[ThreadKind]):
    """`#ttkernel.thread<noc>` or `<compute>`, which is also read as `<tensix>`."""

    name = "ttkernel.thread"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ThreadKind:
        """Read `<noc>`."""
        with parser.in_angle_brackets():
            word = parser.parse_identifier()
        word = "compute" if word == "tensix" else word
        if word not in list(ThreadKind):
            parser.raise_error(f"expected noc or compute, found {word}")
        return ThreadKind(word)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<noc>`."""
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


NOC = "ttkernel.noc"
"""The attribute of a function with the number of its processor's network on chip; 0 where nothing says so."""


def noc_of(function: Operation) -> int:
    """The number of the network on chip that a thread's function uses.

    NOC_0 runs towards larger coordinates, NOC_1 towards smaller ones, so a range of cores begins at its last one there.
    """
    number = function.attributes.get(NOC)
    return number.value.data if isinstance(number, IntegerAttr) else 0


@irdl_attr_definition
class CBType(ParametrizedAttribute, TypeAttribute):
    """A circular buffer with room for so many pages: `!ttkernel.cb<4, !ttcore.tile<32x32, f32>>`."""

    name = "ttkernel.cb"

    pages_attr: IntAttr = param_def()
    element_type: Attribute = param_def()
    """A tile, or the type of the elements of rows."""

    @staticmethod
    def get(num_pages: int, element_type: Attribute) -> CBType:
        """The buffer for `num_pages` pages."""
        return CBType(IntAttr(num_pages), element_type)

    @property
    def num_pages(self) -> int:
        """Pages for which there is room."""
        return self.pages_attr.data

    @property
    def data_type(self) -> Attribute:
        """The type of a single element."""
        return self.element_type.data_type if isinstance(self.element_type, TileType) else self.element_type

    def verify(self) -> None:
        """Check that there is room for a page."""
        if self.num_pages < 1:
            raise VerifyException(f"a circular buffer has room for at least one page, found {self.num_pages}")
        (format_of if isinstance(self.element_type, TileType) else element_bytes)(self.data_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<4, !ttcore.tile<32x32, f32>>`."""
        with parser.in_angle_brackets():
            pages = parser.parse_integer()
            parser.parse_punctuation(",")
            return IntAttr(pages), parser.parse_type()

    def print_parameters(self, printer: Printer) -> None:
        """Write `<4, !ttcore.tile<32x32, f32>>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.num_pages}, ")
            printer.print_attribute(self.element_type)


@irdl_attr_definition
class SemaphoreType(ParametrizedAttribute, TypeAttribute):
    """A word in the memory of each core: `!ttkernel.semaphore`."""

    name = "ttkernel.semaphore"


@irdl_attr_definition
class NocAddressType(ParametrizedAttribute, TypeAttribute):
    """An address on the network on chip, of one core or of a rectangle of them: `!ttkernel.noc_addr`."""

    name = "ttkernel.noc_addr"


@irdl_attr_definition
class L1AddressPointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to a word in the core's own memory: `!ttkernel.l1_addr_ptr`."""

    name = "ttkernel.l1_addr_ptr"


@irdl_attr_definition
class TensorAccessorArgsType(ParametrizedAttribute, TypeAttribute):
    """Place of the arguments that describe a tensor: `!ttkernel.TensorAccessorArgs`."""

    name = "ttkernel.TensorAccessorArgs"


@irdl_attr_definition
class TensorAccessorType(ParametrizedAttribute, TypeAttribute):
    """The pages of a tensor: `!ttkernel.TensorAccessor`."""

    name = "ttkernel.TensorAccessor"


INDEX = AnyOf((eq(IndexType()), eq(i32)))
"""Numbers of tiles and registers."""

THREAD = "ttkernel.thread"
"""Attribute of a function that is a kernel of TT-Metalium, a `#ttkernel.thread`."""


class CallableFromThread(OpTrait):
    """The operation's `KIND` is that of the function around it, where that says one."""

    def verify(self, op: Operation) -> None:
        """Compare with the function."""
        assert isinstance(op, TTKernelOp)
        if op.KIND is None:
            return
        parent = op.parent_op()
        while parent is not None and not isinstance(parent, FuncOp):
            parent = parent.parent_op()
        kind = None if parent is None else parent.attributes.get(THREAD)
        if isinstance(kind, ThreadAttr) and kind.data is not op.KIND:
            raise VerifyException(
                f"{op.name} is a function of {op.KIND.value} threads, found it in a {kind.data.value} thread"
            )


class TTKernelOp(IRDLOperation):
    """Base of the operations, each of which is a call: `ttkernel.cb_pop_front(%cb, %n) : (T, i32) -> ()`."""

    KIND: ClassVar[ThreadKind | None] = None
    """The threads that have the function; None if all have."""
    NON_NEGATIVE: ClassVar[bool] = False
    """Whether the number that it gives is 0 or more, also as one of 32 bits with a sign."""

    OF_BUFFER: ClassVar[bool] = False
    """Whether it is a method of its circular buffer, where the API has objects."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(CallableFromThread())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the operands, the attributes and the type of the function."""
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        at = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        if len(types) != len(operands):
            parser.raise_error(f"expected {len(operands)} types of operands, found {len(types)}", at)
        known = cls.get_irdl_definition().properties
        return cls.create(
            operands=[parser.resolve_operand(each, type_) for each, type_ in zip(operands, types, strict=True)],
            result_types=[parser.parse_type()] if results is None else results,
            properties={name: value for name, value in attributes.items() if name in known},
            attributes={name: value for name, value in attributes.items() if name not in known},
        )

    def print(self, printer: Printer) -> None:
        """Write it as a call with its type."""
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.results[0].type)
        else:
            with printer.in_parens():
                printer.print_list(self.result_types, printer.print_attribute)


class ComputeOp(TTKernelOp):
    """Base of the functions of compute threads."""

    KIND: ClassVar = ThreadKind.COMPUTE
    KEEPS_F32: ClassVar = False
    """Whether f32 of its buffers can be unpacked straight to registers: operands of the matrix unit have fewer bits."""


class InitOp(ComputeOp):
    """Base of what prepares a unit. It stays so until the next one of the unit, however often it is used."""


class FormatsInitOp(InitOp):
    """Base of what sets the units to the data formats of buffers; the matrix unit must be prepared after it."""


class MatrixInitOp(InitOp):
    """Base of what prepares the unpacker and the matrix unit."""


class SFPUInitOp(InitOp):
    """Base of what prepares the vector unit."""


class ModeInitOp(InitOp):
    """Base of what brings the unpacker or the packer into a mode, which must be ended before the next one begins."""


class NocOp(TTKernelOp):
    """Base of the functions of threads that move data."""

    KIND: ClassVar = ThreadKind.NOC
