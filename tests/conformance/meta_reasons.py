"""Rules that sort the failures of Meta's tests by their cause."""

from __future__ import annotations

from typing import Any


def reason_of(result: dict[str, Any]) -> str:
    """The class of a failure; nothing for a test that did not fail."""
    if result["outcome"] not in ("failed", "error", "crashed"):
        return ""
    return "other"
