"""Rules that sort the failures of Meta's tests by their cause."""

from __future__ import annotations

import re
from typing import Any

FORK_TEXT = "asserts the fork's text"
"""Of IR, of PTX, of messages, or of the objects that its compiler is made of."""
AMD = "AMD"
LATER_TRITON = "needs a later Triton"
UNWRITTEN = "reads memory that the test left unwritten"
OVERWRITTEN = "reads a buffer that another one at the same place has overwritten"
OUTSIDE = "stores outside of its own tensor"
OTHER = "other"

FAILURES = ("failed", "error", "crashed")

_RULES: tuple[tuple[str, str], ...] = (
    (AMD, r"exists for AMD GPUs only|AMDMFMALayout|amd_mfma|gfx\d"),
    (LATER_TRITON, r"does not exist in Triton \d\.\d, it came with|Triton 3\.6 and 3\.7 can't"),
    (OVERWRITTEN, r"is read, but .* has overwritten it"),
    (UNWRITTEN, r"is read, but nothing has written"),
    (OUTSIDE, r"error: store out of bounds: "),
    # Our message stands in what was asserted: the error was raised, in other words.
    (FORK_TEXT, r"AssertionError: .*Expected.*error: tlx\.|assert \(?'[^']*' in [\"'].*error: "),
    (FORK_TEXT, r"Regex pattern did not match|assert '(cute: |Please make sure)"),
    # Internals of its frontend: encodings as they are built, annotations, fields of its metadata.
    (FORK_TEXT, r"has no attribute '(_to_encoding|preferred_ctas_per_cga)'|in 'Any'"),
    (FORK_TEXT, r"At index 0 diff: \(0, 1\) != \[0, 1\]"),
)


def reason_of(result: dict[str, Any]) -> str:
    """The class of a failure; nothing for a test that did not fail.

    `without_text` is the outcome of the same test without its statements about text.
    """
    if result["outcome"] not in FAILURES:
        return ""
    if result.get("without_text") in ("passed", "skipped"):
        return FORK_TEXT
    reason = " ".join(result.get("reason_without_text", result["reason"]).split())
    return next((name for name, pattern in _RULES if re.search(pattern, reason)), OTHER)
