"""A clock for checks whose time is limited: how much they run depends on no machine."""

from itertools import count
from types import SimpleNamespace

from tlx_xdsl.runtime.check import explore as check_explore


def tick(monkeypatch):
    """Let a hundredth of a second pass each time that a check looks at the clock."""
    ticks = count()
    monkeypatch.setattr(check_explore, "time", SimpleNamespace(perf_counter=lambda: next(ticks) / 100))
