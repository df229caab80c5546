"""Applying rewrite patterns: xDSL's driver with locations kept and an end guaranteed.

xDSL 0.74 leaves the operations that a pattern makes without a location, and runs two patterns that undo each other
for ever. Every pass that rewrites with patterns calls `apply_patterns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from tlx_xdsl.text.diagnostics import error_at

REWRITES_PER_OPERATION = 64
"""Rewrites that are allowed for each operation of the input. A pattern that shrinks the IR or moves one way needs a
few; a hundred-operation module that loops is stopped within a second."""
LEAST_BUDGET = 1000


class _Watched(RewritePattern):
    """Applies a pattern, knowing where it is at work and how often it has rewritten."""

    def __init__(self, pattern: RewritePattern, budget: int):
        self.pattern = pattern
        self.budget = budget
        self.at: Operation | None = None
        self.location = UnknownLoc()

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Apply the pattern to `op`."""
        # The operation may be gone when what replaces it is inserted; its location is not.
        self.at, self.location = op, op.location
        self.pattern.match_and_rewrite(op, rewriter)
        if rewriter.has_done_action:
            self.budget -= 1
            if self.budget < 0:
                raise error_at(self.location, f"the rewrite patterns do not come to an end at '{op.name}'")

    def keep_location(self, new_op: Operation) -> None:
        """Give an operation that the pattern inserted the place of the one that it works on."""
        for op in new_op.walk():
            if isinstance(op.location, UnknownLoc):
                op.location = self.location


def apply_patterns(
    root: Operation,
    patterns: Sequence[RewritePattern],
    *,
    context: Context | None = None,
    fold: bool = False,
    recursively: bool = True,
    after_walk: Callable[[Region, PatternRewriterListener], bool] | None = None,
) -> bool:
    """Rewrite the operations inside of `root` until no pattern applies; whether anything changed.

    New operations get the location of the operation that they were made for. `fold` also folds operations that know
    how (with `context` to make constants); without `recursively` each operation is visited once.

    Raises CompilationError when the patterns keep rewriting without an end.
    """
    budget = max(LEAST_BUDGET, REWRITES_PER_OPERATION * sum(1 for _ in root.walk()))
    greedy = GreedyRewritePatternApplier(list(patterns), ctx=context, folding_enabled=fold, dce_enabled=False)
    watched = _Watched(greedy, budget)
    walker = PatternRewriteWalker(
        watched,
        apply_recursively=recursively,
        listener=PatternRewriterListener(operation_insertion_handler=[watched.keep_location]),
        post_walk_func=after_walk,
    )
    return any([walker.rewrite_region(region) for region in root.regions])
