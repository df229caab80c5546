"""Types of `ttkernel`: what the functions of TT-Metalium's device API take and give."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..ttcore import TileType, element_bytes


class ThreadKind(StrEnum):
    """What a thread of a core does."""

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
        """There is room for a page."""
        if self.num_pages < 1:
            raise VerifyException(f"a circular buffer has room for at least one page, found {self.num_pages}")
        element_bytes(self.data_type)

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
    """Where the arguments are that describe a tensor: `!ttkernel.TensorAccessorArgs`."""

    name = "ttkernel.TensorAccessorArgs"


@irdl_attr_definition
class TensorAccessorType(ParametrizedAttribute, TypeAttribute):
    """The pages of a tensor: `!ttkernel.TensorAccessor`."""

    name = "ttkernel.TensorAccessor"
