"""One display of progress for all work that takes a while, by tqdm where that is installed (the extra `cli`).

It shows at a terminal and in a notebook of Jupyter; in one of marimo the bar is marimo's. Without tqdm nothing is
shown, and nothing else changes.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, TextIO

DELAY = 2.0
"""Seconds that work takes before it shows a bar."""


class Progress:
    """Counts what is done of `total`, for `with`; `what` is counted, such as `programs`.

    The bar appears after `delay` seconds (2) and goes away at the end. With `wanted` it is shown wherever `stream`
    (standard error) goes, and with False nowhere; by default at a terminal and in a notebook.
    """

    def __init__(
        self,
        total: int,
        what: str,
        *,
        delay: float | None = None,
        wanted: bool | None = None,
        stream: TextIO | None = None,
    ):
        to = sys.stderr if stream is None else stream
        delay = DELAY if delay is None else delay
        self._due = time.monotonic() + delay
        self._bar: Any = None
        # A program without a console has no standard error.
        is_seen = in_notebook() or (to is not None and to.isatty())  # pyright: ignore[reportUnnecessaryComparison]
        if not (is_seen if wanted is None else wanted):
            return
        if _in_marimo():
            self._bar = _MarimoBar(total, what)
        elif find_spec("tqdm") is not None:
            base: Any = import_module("tqdm.notebook" if in_notebook() else "tqdm").tqdm
            # Without tqdm's thread, for processes are forked meanwhile.
            kind: Any = type("Bar", (base,), {"monitor_interval": 0})
            self._bar = kind(
                total=total, desc=what, file=to, leave=False, delay=delay, dynamic_ncols=True,
                bar_format="{desc} |{bar:24}| {n_fmt} of {total_fmt} {elapsed}<{remaining}{postfix}",
            )  # fmt: skip

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def advance(self, count: int = 1) -> None:
        """Count so many more as done."""
        if self._bar is not None:
            self._bar.update(count)

    def expect(self, total: int) -> None:
        """Set the total, as far as is known by now."""
        if self._bar is not None:
            self._bar.total = total

    def note(self, text: str) -> None:
        """Say something after the bar, such as what is being done."""
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=time.monotonic() >= self._due)


class _MarimoBar:
    """A bar of marimo's own, with the methods of tqdm's that are used here."""

    def __init__(self, total: int, what: str):
        marimo: Any = sys.modules["marimo"]
        self._context = marimo.status.progress_bar(total=total, title=what, remove_on_exit=True)
        self._bar = self._context.__enter__()
        self._text: str | None = None

    @property
    def total(self) -> int:
        return self._bar.total

    @total.setter
    def total(self, number: int) -> None:
        self._bar.total = number

    def update(self, count: int) -> None:
        self._bar.update(increment=count, subtitle=self._text)

    def set_postfix_str(self, text: str, *, refresh: bool) -> None:
        self._text = text
        if refresh:
            self._bar.update(increment=0, subtitle=text)

    def close(self) -> None:
        self._context.__exit__(None, None, None)


def in_notebook() -> bool:
    """Return whether a notebook shows what this process draws."""
    return "ipykernel" in sys.modules or _in_marimo()


def _in_marimo() -> bool:
    marimo: Any = sys.modules.get("marimo")
    return marimo is not None and bool(getattr(marimo, "running_in_notebook", bool)())
