"""What is ordered before what: nothing is compared."""

from __future__ import annotations

from typing import Any


class NoOrder:
    """Compares nothing."""

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*_args: Any, **_named: Any) -> None:
    return None
