"""Types of `tt`: pointers and tensor descriptors (TritonTypes.td)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tlx_xdsl.dialects.ttg.types import as_tensor, element_bits, print_shaped, shape_attr, shape_of

GLOBAL_ADDRESS_SPACE = 1
"""The address space of a pointer that names none."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to `pointee`: `!tt.ptr<f16>`, or `!tt.ptr<f16, 3>` for shared memory."""

    name = "tt.ptr"

    pointee: Attribute = param_def()
    address_space: IntAttr = param_def()

    @staticmethod
    def get(pointee: Attribute, address_space: int = GLOBAL_ADDRESS_SPACE) -> PointerType:
        """A pointer into `address_space` (1: global memory, 3: shared memory)."""
        return PointerType(pointee, IntAttr(address_space))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<pointee (, address space)?>`."""
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = GLOBAL_ADDRESS_SPACE
            if parser.parse_optional_punctuation(",") is not None:
                space = parser.parse_integer(allow_boolean=False)
        return [pointee, IntAttr(space)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if self.address_space.data != GLOBAL_ADDRESS_SPACE:
                printer.print_string(f", {self.address_space.data}")


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """A TMA tensor descriptor for blocks of a fixed shape, with the layout of the blocks in shared memory.

    Syntax: `!tt.tensordesc<64x64xf16, #shared>`; Triton 3.6 and 3.7 wrap the block in `tensor<...>`, which is
    read too. The version profile chooses which of the two is written (`text/profiles.py`).
    """

    name = "tt.tensordesc"

    shape_param: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()
    encoding: Attribute = param_def()
    """A shared-memory layout, or `none` before layouts are assigned."""

    @staticmethod
    def get(shape: Sequence[int], element_type: Attribute, encoding: Attribute | None = None) -> TensorDescType:
        """The descriptor type of blocks of `shape` elements."""
        return TensorDescType(shape_attr(shape), element_type, NoneAttr() if encoding is None else encoding)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of a block along each dimension."""
        return shape_of(self.shape_param)

    @property
    def element_bits(self) -> int:
        """Bits of one element."""
        return element_bits(self.element_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<64x64xf16 (, layout)?>` or `<tensor<64x64xf16 (, layout)?>>`."""
        with parser.in_angle_brackets():
            if (wrapped := parser.parse_optional_type()) is not None:
                if (tensor := as_tensor(wrapped)) is None:
                    parser.raise_error(f"expected a tensor type in a tensordesc, found {wrapped}")
                return [shape_attr(tensor.get_shape()), tensor.element_type, tensor.encoding]
            shape, element_type = parser.parse_ranked_shape()
            encoding: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(",") is not None:
                encoding = parser.parse_attribute()
        return [shape_attr(shape), element_type, encoding]

    def print_parameters(self, printer: Printer) -> None:
        """Print the form of Triton 3.8 and 3.9."""
        with printer.in_angle_brackets():
            print_shaped(printer, self.shape, self.element_type)
            if not isinstance(self.encoding, NoneAttr):
                printer.print_string(", ")
                printer.print_attribute(self.encoding)
