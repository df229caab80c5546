"""Canonicalisation rules of our dialects, one file per dialect.

The laws: a rule never makes the IR worse, goes one way, and no rule can undo another. Barriers, waits and fences are
never touched, however idle they look.
"""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern


def all_patterns() -> tuple[RewritePattern, ...]:
    """The rules of all our dialects."""
    from tlx_xdsl.transforms.canonicalization.tt import PATTERNS as TT_PATTERNS
    from tlx_xdsl.transforms.canonicalization.ttg import PATTERNS as TTG_PATTERNS

    return tuple(pattern() for pattern in (*TT_PATTERNS, *TTG_PATTERNS))
