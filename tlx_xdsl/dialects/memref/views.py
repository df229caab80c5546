"""Views of memory: operations that move no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import memref as upstream
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    MemRefType,
    StridedLayoutAttr,
    UnrankedMemRefType,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList, split_dynamic_index_list, verify_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .types import (
    ANY_MEMREF,
    compatible,
    element_of,
    fits,
    numbers_of,
    ranked,
    sizes_of,
    strides_of,
)


@irdl_op_definition
class ReinterpretCastOp(IRDLOperation):
    """See the memory of `source`, from its base on, with any offset, sizes and strides, in elements.

    Example: `%1 = memref.reinterpret_cast %0 to offset: [%o], sizes: [128], strides: [1]
        : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>`
    """

    name = "memref.reinterpret_cast"

    source = operand_def(ANY_MEMREF)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)

    traits = traits_def(NoMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$source `to` `offset` `` `:`"
        "custom<DynamicIndexList>($offsets, $static_offsets)"
        "`` `,` `sizes` `` `:`"
        "custom<DynamicIndexList>($sizes, $static_sizes)"
        "`` `,` `strides` `` `:`"
        "custom<DynamicIndexList>($strides, $static_strides)"
        "attr-dict `:` type($source) `to` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        offset: SSAValue | int,
        sizes: Sequence[SSAValue | int],
        strides: Sequence[SSAValue | int],
    ):
        lists = [split_dynamic_index_list(values, DYNAMIC_INDEX) for values in ([offset], sizes, strides)]
        known = [[value if isinstance(value, int) else None for value in values] for values in (strides, [offset])]
        super().__init__(
            operands=[source, *(operands for _, operands in lists)],
            properties={
                f"static_{name}": DenseArrayBase.from_list(i64, numbers)
                for name, (numbers, _) in zip(("offsets", "sizes", "strides"), lists, strict=True)
            },
            result_types=[MemRefType(element_of(source.type), lists[1][0], StridedLayoutAttr(known[0], known[1][0]))],
        )

    def verify_(self) -> None:
        """The result has the element type of the source, and the numbers that are given."""
        for name, static, operands in (
            ("offset", self.static_offsets, self.offsets),
            ("size", self.static_sizes, self.sizes),
            ("stride", self.static_strides, self.strides),
        ):
            verify_dynamic_index_list(static.get_values(), operands, DYNAMIC_INDEX, f" in the {name} arguments")
        strides, offset = strides_of(self.result.type)
        shape = sizes_of(self.result.type)
        offsets = numbers_of(self.static_offsets)
        if element_of(self.source.type) != element_of(self.result.type):
            raise VerifyException(f"{self.source.type} does not have the elements of {self.result.type}")
        if len(offsets) != 1:
            raise VerifyException(f"expected one offset, found {len(offsets)}")
        for name, found, given in (
            ("offset", (offset,), offsets),
            ("sizes", shape, numbers_of(self.static_sizes)),
            ("strides", strides, numbers_of(self.static_strides)),
        ):
            if len(found) != len(given) or not all(map(fits, found, given)):
                shown = ["?" if each is None else each for each in given]
                raise VerifyException(f"{self.result.type} does not have the {name} [{', '.join(map(str, shown))}]")


class SubviewOp(upstream.SubviewOp):
    """See a box of memory: offsets, sizes and steps along each dimension, in elements; xDSL checks no types.

    Example: `%1 = memref.subview %0[%i, 0] [4, 8] [1, 1]
        : memref<16x8xf32> to memref<4x8xf32, strided<[8, 1], offset: ?>>`
    """

    def verify_(self) -> None:
        """The result is the box, without some of the dimensions of size 1 if it has fewer."""
        super().verify_()
        source, result = ranked(self.source.type), ranked(self.result.type)
        strides, _ = strides_of(source)
        lists = [numbers_of(each) for each in (self.static_offsets, self.static_sizes, self.static_strides)]
        if any(len(each) != len(strides) for each in lists):
            raise VerifyException(f"expected {len(strides)} offsets, sizes and strides for {source}")
        if source.element_type != result.element_type or source.memory_space != result.memory_space:
            raise VerifyException(f"{source} does not have the elements of {result}")
        for dim, (offset, size, step, extent) in enumerate(zip(*lists, source.get_shape(), strict=True)):
            if extent == DYNAMIC_INDEX or offset is None:
                continue
            last = offset if size is None or step is None else offset + (size - 1) * step
            # An empty box may not begin at the end, which upstream refuses, too.
            if not 0 <= offset < extent or last >= extent:
                raise VerifyException(f"the box is not inside of dimension {dim} of {source}")
        if kept_dimensions(whole := box_type(self), result) is None:
            raise VerifyException(f"the result must be {whole}, found {result}")


def box_type(op: upstream.SubviewOp) -> MemRefType[Attribute]:
    """The type of the box of a `memref.subview` with all dimensions of the source."""
    lists = [numbers_of(each) for each in (op.static_offsets, op.static_sizes, op.static_strides)]
    # What is no number is dynamic to it.
    return upstream.SubviewOp.infer_result_type(ranked(op.source.type), *cast(Any, lists))


def kept_dimensions(whole: MemRefType[Attribute], result: MemRefType[Attribute]) -> tuple[int, ...] | None:
    """The dimensions of `whole` that `result` has, which may lack some of size 1; None where it is another type."""
    whole_strides, whole_offset = strides_of(whole)
    strides, offset = strides_of(result)
    left = list(zip(result.get_shape(), strides, strict=True))
    kept: list[int] = []
    for number, dimension in enumerate(zip(whole.get_shape(), whole_strides, strict=True)):
        if left and left[0] == dimension:
            left.pop(0)
            kept.append(number)
        elif dimension[0] != 1:
            return None
    return tuple(kept) if not left and offset == whole_offset else None


@irdl_op_definition
class CastOp(IRDLOperation):
    """See memory through a type that states more, or less, of its sizes and strides.

    Example: `%1 = memref.cast %0 : memref<4xf32> to memref<?xf32>`
    """

    name = "memref.cast"

    source = operand_def(ANY_MEMREF)
    dest = result_def(ANY_MEMREF)

    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue, type_: Attribute):
        super().__init__(operands=[source], result_types=[type_])

    def verify_(self) -> None:
        """Check that the element types are the same, and each number that both types state."""
        source, dest = self.source.type, self.dest.type
        unranked = [isinstance(type_, UnrankedMemRefType) for type_ in (source, dest)]
        same = element_of(source) == element_of(dest) and not all(unranked)
        if same and not any(unranked):
            (strides, offset), (to_strides, to_offset) = strides_of(source), strides_of(dest)
            pairs = ((sizes_of(source), sizes_of(dest)), (strides, to_strides), ((offset,), (to_offset,)))
            same = all(len(one) == len(other) and all(map(compatible, one, other)) for one, other in pairs)
        if not same:
            raise VerifyException(f"cannot cast {source} to {dest}")


@irdl_op_definition
class ExtractAlignedPointerAsIndexOp(IRDLOperation):
    """The address of the base of memory, in bytes: offsets of views do not count.

    Example: `%1 = memref.extract_aligned_pointer_as_index %0 : memref<4xf32> -> index`
    """

    name = "memref.extract_aligned_pointer_as_index"

    source = operand_def(ANY_MEMREF)
    aligned_pointer = result_def(IndexType)

    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source `:` type($source) `->` type(results) attr-dict"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[IndexType()])
