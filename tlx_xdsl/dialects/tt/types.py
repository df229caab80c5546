"""Types of `tt`: pointers and tensor descriptors (TritonTypes.td)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..base import (
    GLOBAL_ADDRESS_SPACE as GLOBAL_ADDRESS_SPACE,
    PointerType as PointerType,
    Space,
    as_tensor,
    element_bits,
    print_shaped,
    shape_attr,
    shape_of,
)


# Attributes are compared by their dataclass fields: without this, those of the base would not count.
@dataclass(frozen=True, init=False)
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """Base of the tensor descriptors: blocks of a fixed shape, with their layout in shared memory."""

    shape_param: ArrayAttr[IntAttr]
    element_type: Attribute
    encoding: Attribute
    """A shared-memory layout, or `none` before layouts are assigned."""

    @property
    def space(self) -> Space:
        """The memory of the tensor that it describes."""
        return Space.GLOBAL

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of a block along each dimension."""
        return shape_of(self.shape_param)

    @property
    def element_bits(self) -> int:
        """Bits of one element."""
        return element_bits(self.element_type)

    def verify(self) -> None:
        """Blocks have at least one dimension."""
        if not self.shape:
            raise VerifyException("the block of a tensor descriptor needs at least one dimension")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<64x64xf16 (, layout)?>` or `<tensor<64x64xf16 (, layout)?>>`."""
        with parser.in_angle_brackets():
            position = parser.pos
            if (wrapped := parser.parse_optional_type()) is not None:
                if (tensor := as_tensor(wrapped)) is None:
                    parser.raise_error(f"expected a tensor type in a tensor descriptor, found {wrapped}", position)
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


@irdl_attr_definition
class TensorDescType(DescriptorType):
    """A TMA tensor descriptor for blocks of a fixed shape, with the layout of the blocks in shared memory.

    Syntax: `!tt.tensordesc<64x64xf16, #shared>`; Triton 3.6 and 3.7 wrap the block in `tensor<...>`, which is
    read too. The version profile chooses which of the two is written (`text/profiles.py`).
    """

    name = "tt.tensordesc"

    @staticmethod
    def get(shape: Sequence[int], element_type: Attribute, encoding: Attribute | None = None) -> TensorDescType:
        """The descriptor type of blocks of `shape` elements."""
        return TensorDescType(shape_attr(shape), element_type, NoneAttr() if encoding is None else encoding)


def descriptor_type(type_: Attribute) -> DescriptorType:
    """`type_` as a tensor descriptor.

    Raises VerifyException for any other type.
    """
    if not isinstance(type_, DescriptorType):
        raise VerifyException(f"expected a tensor descriptor, found {type_}")
    return type_
