"""The pointer type of `tt` (TritonTypes.td, TritonTypeEnums.td)."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .enums import Keyword
from .memory import Space
from .spelling import spells


class PtrAddrSpace(Keyword):
    """The address space of a pointer; 3, shared memory, has no name."""

    Global = 1
    Descriptor = 0
    Constant = 4


GLOBAL_ADDRESS_SPACE = PtrAddrSpace.Global.value
"""The address space of a pointer that names none."""
SHARED_ADDRESS_SPACE = 3
"""The address space of shared memory."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to `pointee`: `!tt.ptr<f16>`, or `!tt.ptr<f16, "constant">` (from Triton 3.9 on)."""

    name = "tt.ptr"

    pointee: Attribute = param_def()
    address_space: IntAttr = param_def()

    @property
    def space(self) -> Space:
        """The memory that it points into."""
        return Space.SHARED if self.address_space.data == SHARED_ADDRESS_SPACE else Space.GLOBAL

    @staticmethod
    def get(pointee: Attribute, address_space: int = GLOBAL_ADDRESS_SPACE) -> PointerType:
        """A pointer into `address_space` (1: global, 0: a tensor descriptor, 4: constant, 3: shared memory)."""
        return PointerType(pointee, IntAttr(address_space))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<pointee (, address space)?>`."""
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = GLOBAL_ADDRESS_SPACE
            if parser.parse_optional_punctuation(",") is not None:
                space = _parse_space(parser)
        return [pointee, IntAttr(space)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        space = self.address_space.data
        as_number = spells(printer, "pointer_space_as_number")
        name = next((case.keyword for case in PtrAddrSpace if case.value == space), None)
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            # Up to 3.8 a pointer that is only read is like others; 4 is LLVM's constant memory, of 32-bit addresses.
            if space != GLOBAL_ADDRESS_SPACE and not (as_number and space == PtrAddrSpace.Constant.value):
                printer.print_string(f", {space}" if as_number or name is None else f', "{name}"')


def _parse_space(parser: AttrParser) -> int:
    position = parser.pos
    if (name := parser.parse_optional_str_literal()) is None:
        return parser.parse_integer(allow_boolean=False)
    case = next((case for case in PtrAddrSpace if case.keyword == name), None)
    if case is None:
        expected = ", ".join(f'"{case.keyword}"' for case in PtrAddrSpace)
        parser.raise_error(f'expected one of {expected}, found "{name}"', position)
    return case.value
