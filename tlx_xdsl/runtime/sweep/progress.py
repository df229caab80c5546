"""The progress of a sweep, on standard error or in a callback."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import TextIO, TypeAlias

from tlx_xdsl.runtime.sweep.report import JobResult

Progress: TypeAlias = Callable[[int, int, JobResult], None]
"""Called with the number of configurations that are done with, that of all, and the verdict that was just found."""

_WIDTH = 30
"""Characters of the bar."""


class Bar:
    """A bar on a terminal, with how many there are of each verdict."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._counts: Counter[str] = Counter()
        self._length = 0

    def __call__(self, done: int, total: int, result: JobResult) -> None:
        """Draw it anew."""
        self._counts[result.kind] += 1
        bar = ("#" * (_WIDTH * done // total)).ljust(_WIDTH, ".")
        line = f"[{bar}] {done}/{total} " + ", ".join(f"{count} {kind}" for kind, count in self._counts.items())
        self._stream.write(f"\r{line.ljust(self._length)}")
        self._length = len(line)
        if done == total:
            self._stream.write("\n")
        self._stream.flush()


def silent(done: int, total: int, result: JobResult) -> None:
    """Report nothing."""


def reporter(progress: Progress | bool | None) -> Progress:
    """The function to call: a bar for True, and for None where standard error is a terminal."""
    if progress is None or isinstance(progress, bool):
        wanted = sys.stderr.isatty() if progress is None else progress
        return Bar(sys.stderr) if wanted else silent
    return progress
