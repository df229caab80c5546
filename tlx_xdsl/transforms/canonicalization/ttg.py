"""Rules of `ttg`: layout conversions and views of buffers."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects.ttg import ConvertLayoutOp, MemDescReinterpretOp, MemDescTransOp


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


PATTERNS: tuple[type[RewritePattern], ...] = (Identity, Twice, TransposeOfTranspose)
