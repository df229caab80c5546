"""Types of `ttg`: memory descriptors and asynchronous tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import Ints, TensorMemoryLayout, TensorMemoryScalesLayout
from tlx_xdsl.layouts.shared import bytes_of
from tlx_xdsl.layouts.validity import fault_in_buffer, holders_of

from ..base import (
    ClusterType,
    Space,
    as_tensor as as_tensor,
    chosen_layout,
    element_bits as element_bits,
    is_layout_or_placeholder,
    print_shaped,
    shape_attr,
    shape_of,
    tensor_type as tensor_type,
)


def memdesc_type(type_: Attribute) -> MemDescType:
    """`type_` as a memdesc.

    Raises VerifyException for any other type.
    """
    if not isinstance(type_, MemDescType):
        raise VerifyException(f"expected a memdesc, found {type_}")
    return type_


@lru_cache(maxsize=4096)
def _shape_fault(shape: Ints, alloc_shape: Ints) -> str | None:
    """The error in the shape of a buffer, or None."""
    if not shape:
        return "a buffer needs at least one dimension"
    if min(shape) < 1:
        return f"every dimension of a buffer has at least one element, found {list(shape)}"
    if len(alloc_shape) < len(shape):
        return f"the allocation shape {list(alloc_shape)} has fewer dimensions than the view {list(shape)}"
    if any(part > whole for part, whole in zip(shape, alloc_shape[len(alloc_shape) - len(shape) :], strict=True)):
        return f"the view {list(shape)} is larger than its allocation {list(alloc_shape)}"
    return None


@irdl_attr_definition
class MemDescType(ParametrizedAttribute, ClusterType):
    """A view of a buffer in shared or tensor memory.

    Syntax: `!ttg.memdesc<3x64x64xf16, #shared, #smem, mutable, 4x64x64>`: shape in elements, layout, memory space,
    whether it may be written, and the shape of the allocation it is a part of when that differs from its own.
    """

    name = "ttg.memdesc"

    shape_param: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()
    encoding: Attribute = param_def()
    memory_space: Attribute = param_def()
    mutable_param: Attribute = param_def()
    """`unit` or `none`."""
    alloc_shape_param: ArrayAttr[IntAttr] = param_def()

    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Attribute,
        encoding: Attribute,
        memory_space: Attribute,
        *,
        mutable: bool = True,
        alloc_shape: Sequence[int] | None = None,
    ) -> MemDescType:
        """The type of a buffer view; `alloc_shape` defaults to `shape`."""
        return MemDescType(
            shape_attr(shape),
            element_type,
            encoding,
            memory_space,
            UnitAttr() if mutable else NoneAttr(),
            shape_attr(shape if alloc_shape is None else alloc_shape),
        )

    @property
    def space(self) -> Space:
        """The memory that the buffer is in."""
        space: Space = getattr(self.memory_space, "SPACE", Space.SHARED)
        return space

    @property
    def shape(self) -> Ints:
        """Elements along each dimension; in a multi-buffered allocation the first one counts the buffers."""
        return shape_of(self.shape_param)

    @property
    def alloc_shape(self) -> Ints:
        """Shape of the allocation that this is a view of."""
        return shape_of(self.alloc_shape_param)

    @property
    def is_mutable(self) -> bool:
        """True if the buffer may be written."""
        return isinstance(self.mutable_param, UnitAttr)

    @property
    def element_bits(self) -> int:
        """Bits of one element."""
        return element_bits(self.element_type)

    def bytes_of_trailing(self, rank: int) -> int:
        """Bytes of the last `rank` dimensions."""
        return bytes_of(prod(self.shape[len(self.shape) - rank :]), self.element_bits)

    def with_shape(self, shape: Sequence[int], encoding: Attribute | None = None) -> MemDescType:
        """The same buffer kind with another shape, as a whole allocation; in its layout or in another one."""
        return MemDescType.get(
            shape, self.element_type, encoding or self.encoding, self.memory_space, mutable=self.is_mutable
        )

    def with_encoding(self, encoding: Attribute) -> MemDescType:
        """The same view with another layout."""
        return MemDescType(
            self.shape_param,
            self.element_type,
            encoding,
            self.memory_space,
            self.mutable_param,
            self.alloc_shape_param,
        )

    def verify(self) -> None:
        """Check that the view stands inside its allocation."""
        if not is_layout_or_placeholder(self.encoding):
            raise VerifyException(f"the layout of a memdesc must be a layout attribute, found {self.encoding}")
        if (fault := _shape_fault(self.shape, self.alloc_shape)) is not None:
            raise VerifyException(fault)

    def fault(self) -> str | None:
        """Return the error in the layout for a buffer of this shape, or None.

        Text and allocations have none. Passes may compute with types that no buffer has, such as a row of one.
        """
        layout = chosen_layout(self.encoding)
        return None if layout is None else fault_in_buffer(layout, self.shape, self.alloc_shape, self.element_bits)

    def fault_in_cluster(self, ctas: int) -> str | None:
        """Return the error in the layout for code that `ctas` CTAs run together, or None."""
        layout = chosen_layout(self.encoding)
        have = None if layout is None else holders_of(layout)[2]
        return None if have in (None, ctas) else f"the layout of {self} is for {have} CTAs, 'ttg.num-ctas' is {ctas}"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<shape x type, layout, space (, mutable)? (, alloc shape)?>`."""
        position = parser.pos
        with parser.in_angle_brackets():
            shape, element_type = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            encoding = parser.parse_attribute()
            parser.parse_punctuation(",")
            space = parser.parse_attribute()
            mutable: Attribute = NoneAttr()
            alloc_shape: Sequence[int] = shape
            while parser.parse_optional_punctuation(",") is not None:
                if parser.parse_optional_keyword("mutable") is not None:
                    mutable = UnitAttr()
                else:
                    alloc_shape = parser.parse_dimension_list()
        parameters = [shape_attr(shape), element_type, encoding, space, mutable, shape_attr(alloc_shape)]
        if (fault := cls.new(parameters).fault()) is not None:
            parser.raise_error(fault, position)
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            print_shaped(printer, self.shape, self.element_type)
            printer.print_string(", ")
            printer.print_attribute(self.encoding)
            printer.print_string(", ")
            printer.print_attribute(self.memory_space)
            if self.is_mutable:
                printer.print_string(", mutable")
            if self.alloc_shape != self.shape:
                printer.print_string(", ")
                printer.print_dimension_list(self.alloc_shape)


@irdl_attr_definition
class AsyncTokenType(ParametrizedAttribute, TypeAttribute):
    """A handle on an asynchronous operation; it orders operations and holds no data."""

    name = "ttg.async.token"


ROWS = 128
"""Rows of tensor memory, which PTX calls lanes."""


def tensor_memory_layout(buffer: MemDescType) -> TensorMemoryLayout | TensorMemoryScalesLayout | None:
    """The layout of a buffer in tensor memory; None for a placeholder.

    Raises VerifyException for any other buffer.
    """
    if buffer.space is not Space.TENSOR:
        raise VerifyException(f"the buffer must be in tensor memory, found {buffer}")
    layout = chosen_layout(buffer.encoding)
    if layout is not None and not isinstance(layout, TensorMemoryLayout | TensorMemoryScalesLayout):
        raise VerifyException(f"a buffer in tensor memory needs a tensor_memory layout, found {buffer.encoding}")
    return layout


def columns_of(buffer: MemDescType) -> int:
    """Columns of 32 bits that a buffer takes; that of scales where the layout is not chosen yet."""
    layout = tensor_memory_layout(buffer)
    if not isinstance(layout, TensorMemoryLayout):
        m, k = buffer.shape[-2:]
        return prod(buffer.shape[:-2]) * -(-m // 32) * -(-k // 4)
    m, n = buffer.shape[-2:]
    ctas = 1 << len(layout.cga_layout)
    columns = -(-n * element_bits(buffer.element_type) * layout.col_stride // 32)
    if layout.halves_columns:
        columns = -(-columns // 2)
    return prod(buffer.shape[:-2]) * columns * -(-m // ROWS) // ctas or 1
