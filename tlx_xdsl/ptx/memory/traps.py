"""What a kernel does wrong, before it is known where."""

from __future__ import annotations

from typing import Any


class Trap(Exception):
    """What a kernel does wrong, at the instruction that its cohort is at."""

    def __init__(self, message: str, notes: tuple[str, ...] = (), kind: type[Any] | None = None):
        super().__init__(message)
        self.message = message
        self.notes = notes
        self.kind = kind
