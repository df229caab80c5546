"""Drivers of rewrite patterns, as MLIR has them: one until no pattern applies, and one that walks once.

xDSL 0.75 leaves the operations that a pattern makes without a location, and runs two patterns that undo each other
for ever. Every pass that rewrites with patterns calls one of these two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint

from tlx_xdsl.text.diagnostics import error_at

REWRITES_PER_OPERATION = 64
"""Rewrites that are allowed for each operation of the input. A pattern that shrinks the IR or moves one way needs a
few; a hundred-operation module that loops is stopped within a second."""
LEAST_BUDGET = 1000


class _Located(PatternRewriterListener):
    """Gives the operations that a pattern inserts the location of the one that it matched."""

    def __init__(self) -> None:
        super().__init__(operation_insertion_handler=[self._locate])
        self.location: LocationAttr = UnknownLoc()

    def _locate(self, new_op: Operation) -> None:
        for op in new_op.walk():
            if isinstance(op.location, UnknownLoc):
                op.location = self.location


class _Watched(RewritePattern):
    """Applies patterns, within a budget of rewrites."""

    def __init__(self, pattern: RewritePattern, budget: int, located: _Located):
        self.pattern = pattern
        self.budget = budget
        self.located = located

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Apply the pattern to `op`."""
        # The operation may be gone when what replaces it is inserted; its location is not.
        self.located.location = op.location
        self.pattern.match_and_rewrite(op, rewriter)
        if rewriter.has_done_action:
            self.budget -= 1
            if self.budget < 0:
                raise error_at(self.located.location, f"the rewrite patterns do not come to an end at '{op.name}'")


def apply_patterns(
    root: Operation,
    patterns: Sequence[RewritePattern],
    *,
    context: Context | None = None,
    fold: bool = False,
    after_walk: Callable[[Region, PatternRewriterListener], bool] | None = None,
) -> bool:
    """Rewrite the operations inside of `root` until no pattern applies; whether anything changed.

    New operations get the location of the operation that they were made for. `fold` also folds operations that have a
    folder (with `context` to make constants).

    Raises CompilationError when the patterns keep rewriting without an end.
    """
    budget = max(LEAST_BUDGET, REWRITES_PER_OPERATION * sum(1 for _ in root.walk()))
    greedy = GreedyRewritePatternApplier(list(patterns), ctx=context, folding_enabled=fold, dce_enabled=False)
    located = _Located()
    walker = PatternRewriteWalker(_Watched(greedy, budget, located), listener=located, post_walk_func=after_walk)
    return any([walker.rewrite_region(region) for region in root.regions])


def walk_and_apply_patterns(root: Operation, patterns: Sequence[RewritePattern]) -> None:
    """Apply the first pattern that matches to each operation inside of `root`, in program order.

    For lowerings, whose results no pattern matches: an operation is visited once and a new one is not, so this takes
    linear time. New operations get the location of the operation that they were made for.
    """
    located = _Located()
    rewriter: PatternRewriter | None = None
    for op in list(root.walk()):
        # The root, and what a pattern has erased besides the operation that it matched, are in no block.
        if op.parent is None:
            continue
        if rewriter is None:
            rewriter = PatternRewriter(op)
            rewriter.extend_from_listener(located)
        located.location, rewriter.insertion_point = op.location, InsertPoint.before(op)
        rewriter.has_done_action = False
        for pattern in patterns:
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                break
