"""`canonicalize`: upstream's rules and ours, folding and removal of dead code, with locations kept.

Before:
```mlir
%0 = tt.splat %c1 : i32 -> tensor<64xi32>
%1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
```
After:
```mlir
%1 = arith.constant dense<1> : tensor<1x64xi32>
```

The laws of the rules: a rule never makes the IR worse, goes one way, and no rule can undo another. Barriers, waits and
fences are never touched, however idle they look.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from tlx_xdsl.dialects.tt import AddPtrOp, BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from tlx_xdsl.dialects.ttg import ConvertLayoutOp, MemDescReinterpretOp, MemDescTransOp, as_tensor

from .driver import apply_patterns


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


class Identity(RewritePattern):
    """convert(x : L -> L) -> x; reinterpret(x : T -> T) -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvertLayoutOp | MemDescReinterpretOp, rewriter: PatternRewriter) -> None:
        """Drop what changes nothing."""
        if op.src.type == op.result.type:
            rewriter.replace(op, [], [op.src])


class Twice(RewritePattern):
    """convert(convert(x : L -> M) : M -> N) -> convert(x : L -> N); reinterpret(reinterpret(x)) -> reinterpret(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvertLayoutOp | MemDescReinterpretOp, rewriter: PatternRewriter) -> None:
        """Go to the last type at once."""
        if isinstance(inner := op.src.owner, type(op)):
            rewriter.replace(op, type(op)(operands=[inner.src], result_types=[op.result.type]))


class TransposeOfTranspose(RewritePattern):
    """trans(trans(x, p), q) -> x, when q undoes p and the type comes back."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MemDescTransOp, rewriter: PatternRewriter) -> None:
        """Drop a pair of transposes that undo each other."""
        inner = op.src.owner
        if not isinstance(inner, MemDescTransOp) or inner.src.type != op.result.type:
            return
        first, second = tuple(inner.order.get_values()), tuple(op.order.get_values())
        if [first[dim] for dim in second] == list(range(len(first))):
            rewriter.replace(op, [], [inner.src])


PATTERNS: tuple[type[RewritePattern], ...] = (
    ShapeOfConstant,
    SplatOfSplat,
    IdentityBroadcast,
    AddPtrOfZero,
    Identity,
    Twice,
    TransposeOfTranspose,
)


class CanonicalizePass(ModulePass):
    """Apply all canonicalisation rules until none applies."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Canonicalise the module."""
        ours = [pattern() for pattern in PATTERNS]
        patterns = [*ours, CanonicalizationRewritePattern()]
        apply_patterns(op, patterns, context=ctx, fold=True, after_walk=region_dce)
