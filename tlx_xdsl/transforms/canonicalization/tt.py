"""Rules of `tt`: constants through shape operations, and pointers that stay."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects.tt import AddPtrOp, BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from tlx_xdsl.dialects.ttg.types import as_tensor


def _element_bytes(value: SSAValue) -> bytes | None:
    """The bytes of the one element that a scalar or splat constant consists of, or None."""
    if not isinstance(value.owner, ConstantOp):
        return None
    attribute = value.owner.value
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        size = attribute.get_element_type().compile_time_size
        data = attribute.data.data
        return data[:size] if data == data[:size] * (len(data) // size) else None
    if isinstance(attribute, IntegerAttr | FloatAttr):
        type_: Any = attribute.get_type()
        return type_.pack((attribute.value.data,))
    return None


def _splat_constant(element: bytes, type_: Attribute) -> ConstantOp | None:
    """The constant of tensor type `type_` with `element` everywhere."""
    tensor = as_tensor(type_)
    if tensor is None:
        return None
    count = 1
    for size in tensor.get_shape():
        count *= size
    attribute = DenseIntOrFPElementsAttr(cast(Any, tensor), BytesAttr(element * count))
    return ConstantOp.create(properties={"value": attribute}, result_types=[type_])


class ShapeOfConstant(RewritePattern):
    """splat(c), broadcast(dense<c>), expand_dims, reshape and trans of it -> dense<c>."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: SplatOp | BroadcastOp | ExpandDimsOp | ReshapeOp | TransOp, rewriter: PatternRewriter
    ) -> None:
        """A splat stays a splat."""
        element = _element_bytes(op.src)
        if element is not None and (constant := _splat_constant(element, op.result.type)) is not None:
            rewriter.replace(op, constant)


class SplatOfSplat(RewritePattern):
    """broadcast(splat(x)) -> splat(x) of the larger shape; expand_dims likewise."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp | ExpandDimsOp, rewriter: PatternRewriter) -> None:
        """Make the larger splat at once."""
        if isinstance(inner := op.src.owner, SplatOp):
            rewriter.replace(op, SplatOp(operands=[inner.src], result_types=[op.result.type]))


class IdentityBroadcast(RewritePattern):
    """broadcast(x : T -> T) -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, rewriter: PatternRewriter) -> None:
        """Drop a broadcast to the same shape."""
        if op.src.type == op.result.type:
            rewriter.replace(op, [], [op.src])


class AddPtrOfZero(RewritePattern):
    """addptr(p, 0) -> p."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddPtrOp, rewriter: PatternRewriter) -> None:
        """A pointer that does not move is the pointer."""
        element = _element_bytes(op.offset)
        if element is not None and not any(element):
            rewriter.replace(op, [], [op.ptr])


PATTERNS: tuple[type[RewritePattern], ...] = (
    ShapeOfConstant,
    SplatOfSplat,
    IdentityBroadcast,
    AddPtrOfZero,
)
