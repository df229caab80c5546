"""Suggestions for names that are not known, of which a similar one is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SIMILAR = 0.65
"""Least similarity of names, of 1: `nn` is similar to `n`, and `missing` is not to `min`."""


def did_you_mean(name: str, known: Iterable[str], form: str = ", {}") -> str:
    """The question whether `name` should be a similar one of `known`, put into `form`; nothing when none is similar."""
    # In a word any two letters are found: `at` is not what `math` was meant to be.
    candidates = [each for each in known if len(each) > 2 or len(name) <= 3]
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=_SIMILAR)
    return form.format(f"did you mean '{close[0]}'?") if close else ""
