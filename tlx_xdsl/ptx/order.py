"""What takes every call and does nothing: the clocks of a run that compares no accesses, counters that do not count."""

from __future__ import annotations

from typing import Any


class Nothing:
    """Has every method."""

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*_args: Any, **_named: Any) -> None:
    return None
