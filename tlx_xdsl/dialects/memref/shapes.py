"""Views of memory with other dimensions: `memref.expand_shape` and `memref.collapse_shape`."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from xdsl.dialects import memref as upstream
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, StridedLayoutAttr, i64
from xdsl.dialects.utils import print_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import Ints

from ..base import Groups, GroupsAttr, groups_attr, groups_of, print_groups
from .types import compatible, ranked, sizes_of, strides_of


def expanded_type(source: MemRefType[Attribute], groups: Groups, shape: Ints) -> MemRefType[Attribute]:
    """The type of memory of which each dimension is seen as a group of dimensions of `shape`."""
    strides, offset = strides_of(source)
    found: list[int | None] = [None] * len(shape)
    for stride, group in zip(strides, groups, strict=True):
        for place, dim in enumerate(group):
            inner = [shape[other] for other in group[place + 1 :]]
            found[dim] = None if stride is None or DYNAMIC_INDEX in inner else stride * prod(inner)
    if not strides:
        found = [1] * len(shape)
    return _memory(source, shape, found, offset)


def collapsed_type(source: MemRefType[Attribute], groups: Groups, shape: Ints) -> MemRefType[Attribute] | None:
    """The type of memory of which each group of dimensions is seen as one; None where no stride fits all of a group."""
    strides, offset = strides_of(source)
    sizes = source.get_shape()
    found: list[int | None] = []
    for group in groups:
        held = [dim for dim in group if sizes[dim] != 1]
        for outer, inner in pairwise(held):
            step, rows = strides[inner], sizes[inner]
            if step is None or rows == DYNAMIC_INDEX or strides[outer] != step * rows:
                return None
        last = held[-1] if held else group[-1]
        found.append(strides[last])
    return _memory(source, shape, found, offset)


def _memory(
    source: MemRefType[Attribute], shape: Ints, strides: list[int | None], offset: int | None
) -> MemRefType[Attribute]:
    """Memory with those strides; without a layout where there are no gaps, as upstream infers it for such a source."""
    if not isinstance(source.layout, StridedLayoutAttr):
        return MemRefType(source.element_type, shape, memory_space=source.memory_space)
    return MemRefType(source.element_type, shape, StridedLayoutAttr(strides, offset), source.memory_space)


def _verify(found: MemRefType[Attribute], wanted: MemRefType[Attribute] | None) -> None:
    if wanted is None:
        raise VerifyException("the dimensions of a group have no stride in common")
    (strides, offset), (to_strides, to_offset) = strides_of(found), strides_of(wanted)
    pairs = [*zip(strides, to_strides, strict=True), *zip(sizes_of(found), sizes_of(wanted), strict=True)]
    same = all(compatible(one, other) for one, other in [*pairs, (offset, to_offset)])
    if found.element_type != wanted.element_type or not same:
        raise VerifyException(f"the result must be {wanted}, found {found}")


def _check_groups(groups: GroupsAttr, small: MemRefType[Attribute], large: MemRefType[Attribute]) -> None:
    rank, dims = small.get_num_dims(), [dim for group in groups_of(groups) for dim in group]
    if any(not group for group in groups):
        raise VerifyException("a group has a dimension at least")
    if len(groups) != rank or (rank and dims != list(range(large.get_num_dims()))):
        raise VerifyException(f"the groups {groups_of(groups)} do not make up {small} of {large}")
    sizes, of = large.get_shape(), small.get_shape()
    for size, group in zip(of, groups_of(groups), strict=True):
        parts = [sizes[dim] for dim in group]
        if size != DYNAMIC_INDEX and DYNAMIC_INDEX not in parts and size != prod(parts):
            raise VerifyException(f"{size} elements are no group of sizes {parts}")
    if not rank and prod(sizes) != 1:
        raise VerifyException(f"{small} has one element, {large} does not")


def _print_types(printer: Printer, op: upstream.AlterShapeOperation, source: SSAValue) -> None:
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(source.type)
    printer.print_string(" into ")
    printer.print_attribute(op.result.type)


class CollapseShapeOp(upstream.CollapseShapeOp):
    """See neighbouring dimensions as one: `memref.collapse_shape %0 [[0, 1]] : memref<4x8xf32> into memref<32xf32>`."""

    infer_type = staticmethod(collapsed_type)

    @classmethod
    def of(cls, source: SSAValue, groups: Groups, result_type: Attribute) -> CollapseShapeOp:
        """The memory as `result_type`, whose dimensions are those groups of dimensions."""
        properties = {"reassociation": groups_attr(groups)}
        return cls.create(operands=[source], properties=properties, result_types=[result_type])

    def verify_(self) -> None:
        """The dimensions of a group have one stride; the result has it."""
        source, result = ranked(self.src.type), ranked(self.result.type)
        _check_groups(self.reassociation, result, source)
        _verify(result, collapsed_type(source, groups_of(self.reassociation), result.get_shape()))

    def print(self, printer: Printer) -> None:
        """Print ` %a [[0, 1]] : type into type`."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        print_groups(printer, self.reassociation)
        _print_types(printer, self, self.src)


class ExpandShapeOp(upstream.ExpandShapeOp):
    """See a dimension as several: `memref.expand_shape %0 [[0, 1]] output_shape [4, 8]
    : memref<32xf32> into memref<4x8xf32>`.
    """

    infer_type = staticmethod(expanded_type)

    @classmethod
    def of(cls, source: SSAValue, groups: Groups, result_type: Attribute) -> ExpandShapeOp:
        """The memory as `result_type`, in which those groups are dimensions of the source."""
        sizes = DenseArrayBase.from_list(i64, ranked(result_type).get_shape())
        properties = {"reassociation": groups_attr(groups), "static_output_shape": sizes}
        return cls.create(operands=[source], properties=properties, result_types=[result_type])

    def verify_(self) -> None:
        """Each dimension of the source has the elements of its group, and the result its strides."""
        source, result = ranked(self.src.type), ranked(self.result.type)
        if self.static_output_shape.get_values() != result.get_shape():
            raise VerifyException(f"expected the sizes {list(result.get_shape())} of the result")
        _check_groups(self.reassociation, source, result)
        _verify(result, expanded_type(source, groups_of(self.reassociation), result.get_shape()))

    def print(self, printer: Printer) -> None:
        """Print ` %a [[0, 1]] output_shape [4, 8] : type into type`."""
        printer.print_string(" ")
        printer.print_operand(self.src)
        print_groups(printer, self.reassociation)
        printer.print_string(" output_shape ")
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.output_shape, self.static_output_shape.get_values())
        _print_types(printer, self, self.src)
