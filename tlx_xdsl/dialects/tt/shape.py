"""Operations of `tt` that make tensors or rearrange their elements (TritonOps.td)."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.inferred import (
    fault_of_reshape,
    fault_of_slice,
    fault_of_transpose,
)

from ..base import (
    ANY_LIKE,
    ANY_TENSOR,
    INT_TENSOR,
    Derived,
    EachElement,
    SourceType,
    StaysInThreads,
    TritonOp,
    as_tensor,
    mask_type,
    same,
    scalar_type,
    shape_of_tensor,
    verify_permutation,
    verify_places,
)


class _KeepsElementType(TritonOp):
    """Shared parts of one tensor in, one out, with the same elements."""

    src = operand_def(ANY_TENSOR)
    result = result_def(ANY_TENSOR)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The element type stays."""
        source, result = scalar_type(self.src.type), scalar_type(self.result.type)
        if source != result:
            raise VerifyException(f"the element type must stay, found {source} and {result}")


@irdl_op_definition
class MakeRangeOp(TritonOp):
    """The integers `start` to `end` - 1.

    Example: `%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>`
    """

    name = "tt.make_range"

    start = prop_def(IntegerAttr.constr(i32))
    end = prop_def(IntegerAttr.constr(i32))
    result = result_def(INT_TENSOR)

    traits = traits_def(EachElement(), Pure())
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """The result has one i32 per integer of the range."""
        start, end = self.start.value.data, self.end.value.data
        if start > end:
            raise VerifyException(f"the range must not end before it starts, found {start} to {end}")
        if self.result.type.element_type != i32:
            raise VerifyException(f"a range has i32 elements, found {self.result.type.element_type}")
        shape = shape_of_tensor(self.result.type)
        if shape != (end - start,):
            raise VerifyException(f"the range has {end - start} elements, the result has shape {list(shape)}")


@irdl_op_definition
class SplatOp(TritonOp):
    """A tensor with one value in all elements: `%1 = tt.splat %0 : f32 -> tensor<64x64xf32>`.

    The value may be that of a tensor of rank 0.
    """

    name = "tt.splat"

    src = operand_def(ANY_LIKE)
    result = result_def(ANY_TENSOR)

    traits = traits_def(EachElement(), Pure())
    custom_directives = (SourceType,)
    assembly_format = "$src attr-dict `:` custom<SourceType>(type($src)) `->` type($result)"

    def verify_(self) -> None:
        """The source is the result's element type."""
        source = as_tensor(self.src.type)
        of_rank_0 = source is not None and not source.get_shape()
        if (scalar_type(self.src.type) if of_rank_0 else self.src.type) != scalar_type(self.result.type):
            raise VerifyException(f"cannot splat {self.src.type} into {self.result.type}")


@irdl_op_definition
class UnsplatOp(TritonOp):
    """The only element of a tensor: `%0 = tt.unsplat %1 : tensor<1xf32>`."""

    name = "tt.unsplat"

    SOURCE: ClassVar = same("SOURCE", ANY_TENSOR)

    src = operand_def(SOURCE)
    result = result_def(Derived("SOURCE", scalar_type, "the result"))

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src)"

    def verify_(self) -> None:
        """Check that there is one element."""
        if prod(shape_of_tensor(self.src.type)) != 1:
            raise VerifyException(f"the source must have one element, found {self.src.type}")


@irdl_op_definition
class ExpandDimsOp(_KeepsElementType):
    """Insert a dimension of size 1 at `axis`: `%1 = tt.expand_dims %0 {axis = 1 : i32} : ... -> ...`."""

    name = "tt.expand_dims"
    traits = traits_def(StaysInThreads())

    axis = prop_def(IntegerAttr.constr(i32))

    custom_directives = (SourceType,)
    assembly_format = "$src attr-dict `:` custom<SourceType>(type($src)) `->` type($result)"

    def verify_(self) -> None:
        """The result is the source with a 1 at `axis`."""
        super().verify_()
        shape = list(shape_of_tensor(self.src.type))
        axis = self.axis.value.data
        if not 0 <= axis <= len(shape):
            raise VerifyException(f"axis {axis} is outside the {len(shape) + 1} dimensions of the result")
        shape.insert(axis, 1)
        if list(shape_of_tensor(self.result.type)) != shape:
            raise VerifyException(f"expected the shape {shape}, found {list(shape_of_tensor(self.result.type))}")
        part = shape_of_tensor(self.src.type)
        verify_places(self.src.type, self.result.type, lambda of, whole: fault_of_slice(whole, of, part, axis))


@irdl_op_definition
class ReshapeOp(_KeepsElementType):
    """The same elements in row-major order under another shape; with `allow_reorder`, in any order.

    `efficient_layout` says that the layout of the result was chosen for speed.
    """

    name = "tt.reshape"

    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)

    custom_directives = (SourceType,)
    assembly_format = (
        "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? "
        "attr-dict `:` custom<SourceType>(type($src)) `->` type($result)"
    )

    def verify_(self) -> None:
        """The number of elements stays."""
        super().verify_()
        source, result = shape_of_tensor(self.src.type), shape_of_tensor(self.result.type)
        if prod(source) != prod(result):
            raise VerifyException(f"cannot reshape {list(source)} to {list(result)}")
        if self.allow_reorder is None:
            verify_places(self.src.type, self.result.type, lambda a, b: fault_of_reshape(a, b, source, result))


@irdl_op_definition
class BroadcastOp(_KeepsElementType):
    """Repeat dimensions of size 1: `%1 = tt.broadcast %0 : tensor<64x1xi32> -> tensor<64x64xi32>`."""

    name = "tt.broadcast"
    traits = traits_def(StaysInThreads())

    custom_directives = (SourceType,)
    assembly_format = "$src attr-dict `:` custom<SourceType>(type($src)) `->` type($result)"

    def verify_(self) -> None:
        """Check that only dimensions of size 1 change, and that the rank stays."""
        super().verify_()
        source, result = shape_of_tensor(self.src.type), shape_of_tensor(self.result.type)
        if len(source) != len(result) or any(s not in (1, r) for s, r in zip(source, result, strict=True)):
            raise VerifyException(f"cannot broadcast the shape {list(source)} to {list(result)}")


@irdl_op_definition
class TransOp(_KeepsElementType):
    """Permute the dimensions: result dimension i is source dimension `order[i]`."""

    name = "tt.trans"

    order = prop_def(DenseArrayBase.constr(i32))

    custom_directives = (SourceType,)
    assembly_format = "$src attr-dict `:` custom<SourceType>(type($src)) `->` type($result)"

    def verify_(self) -> None:
        """The result shape is the permuted source shape."""
        super().verify_()
        shape, order = shape_of_tensor(self.src.type), tuple(self.order.get_values())
        verify_permutation(self.order, shape, shape_of_tensor(self.result.type))
        verify_places(self.src.type, self.result.type, lambda a, b: fault_of_transpose(a, b, shape, order))


@irdl_op_definition
class GatherOp(TritonOp):
    """Pick along `axis`: `result[i][j] = src[indices[i][j]][j]` for axis 0.

    Example: `%2 = tt.gather %0[%1] {axis = 0 : i32} : (tensor<64xf32>, tensor<128xi32>) -> tensor<128xf32>`
    """

    name = "tt.gather"

    src = operand_def(ANY_TENSOR)
    indices = operand_def(INT_TENSOR)
    axis = prop_def(IntegerAttr.constr(i32))
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(ANY_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """The result has the shape of the indices, which fit into the source beside the axis."""
        source, indices = shape_of_tensor(self.src.type), shape_of_tensor(self.indices.type)
        verify_gather(source, indices, self.axis.value.data)
        if shape_of_tensor(self.result.type) != indices:
            raise VerifyException(f"the result must have the shape of the indices, found {self.result.type}")
        if scalar_type(self.result.type) != scalar_type(self.src.type):
            raise VerifyException(f"the element type must stay, found {self.src.type} and {self.result.type}")
        verify_places(self.indices.type, self.result.type, lambda a, b: None if a == b else _GATHER_LAYOUTS)


_GATHER_LAYOUTS = "the result must have the layout of the indices"


def verify_gather(source: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    """Check that indices of shape `indices` pick from `source` along `axis`."""
    if len(source) != len(indices):
        raise VerifyException(f"the indices must have {len(source)} dimensions, found {len(indices)}")
    if not 0 <= axis < len(source):
        raise VerifyException(f"axis {axis} is outside the {len(source)} dimensions")
    for dim, (have, want) in enumerate(zip(source, indices, strict=True)):
        if dim != axis and want > have:
            raise VerifyException(f"the indices have {want} elements in dimension {dim}, the source has {have}")


@irdl_op_definition
class HistogramOp(TritonOp):
    """Count how often each integer from 0 on occurs in `src`; where `mask` is false, an element does not count.

    Example: `%1 = tt.histogram %0, %mask : tensor<64xi32> -> tensor<16xi32>`
    """

    name = "tt.histogram"

    SOURCE: ClassVar = same("SOURCE", INT_TENSOR)

    src = operand_def(SOURCE)
    mask = opt_operand_def(Derived("SOURCE", mask_type, "the mask"))
    result = result_def(INT_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)"
