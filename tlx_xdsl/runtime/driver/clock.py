"""The time that the stages of a compile take."""

from __future__ import annotations

import time


class Clock:
    """Adds up milliseconds by name."""

    def __init__(self, times: dict[str, float] | None = None) -> None:
        self.times: dict[str, float] = {} if times is None else times
        self._last = time.perf_counter()

    def lap(self, name: str) -> float:
        """Book the time since the last call under `name`; returns it."""
        now = time.perf_counter()
        passed = (now - self._last) * 1e3
        self.times[name] = self.times.get(name, 0.0) + passed
        self._last = now
        return passed

    def skip(self) -> None:
        """Book the time since the last call nowhere."""
        self._last = time.perf_counter()
