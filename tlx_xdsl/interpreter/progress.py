"""A progress bar: one line on standard error, for runs that take a while at a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

DELAY = 2.0
"""Seconds that a run takes before it shows a bar."""
_INTERVAL = 0.1
"""Seconds between two states of the bar."""
_WIDTH = 30
"""Characters of the bar."""


class Progress:
    """Counts what is done of `total`, and shows it when `stream` is a terminal, or as `shown` says."""

    def __init__(self, total: int, what: str, stream: TextIO | None = None, *, shown: bool | None = None):
        self._total = total
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._done = 0
        self._began = time.monotonic()
        self._due = self._began + DELAY if (self._stream.isatty() if shown is None else shown) else float("inf")
        self._shown = 0
        """Characters on the line."""

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._shown:
            self._stream.write(f"\r{' ' * self._shown}\r")
            self._stream.flush()

    def advance(self, said: str = "") -> None:
        """One more is done; `said` is shown behind the bar."""
        self._done += 1
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _INTERVAL
            self._show(now - self._began, said)

    def _show(self, seconds: float, said: str) -> None:
        share = self._done / self._total
        bar = "#" * round(share * _WIDTH)
        left = seconds / self._done * (self._total - self._done)
        line = f"[{bar:<{_WIDTH}}] {self._done} of {self._total} {self._what}, {left:.0f} s left"
        line += f", {said}" if said else ""
        self._stream.write(f"\r{line:<{self._shown}}")
        self._stream.flush()
        self._shown = max(self._shown, len(line))
