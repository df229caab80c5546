"""The user's lines and names in a timeline, whether a model or probes have made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.ptx.read.faults import location_of
from tlx_xdsl.ptx.read.syntax import Module, Place

_BARRIER = re.compile(r"barrier_(?:wait|arrive|expect_bytes)\w*\(\s*(?:bar\s*=\s*)?([A-Za-z_]\w*)")
"""The name of a barrier, or of an array of them, in a line of a kernel."""
_LIBRARY = re.compile(r"triton[/\\](?:language|tools)[/\\]")
"""Files of Triton, whose lines are not the user's."""


def user_line(module: Module, place: Place | None) -> SourceLocation | None:
    """Return the user's line that an instruction comes from; None for one that has none."""
    while place is not None:
        where = location_of(module, place)
        if where is not None and not _LIBRARY.search(where.filename):
            return where
        place = place.inlined_at
    return None


def task_of(tasks: Sequence[tuple[int, int, str]], warp: int) -> str:
    """Return the name of the task of a warp."""
    return next((name for first, count, name in tasks if first <= warp < first + count), "warps")


def mbarrier_names(everywhere: Iterable[int], uses: Iterable[tuple[str, int]]) -> dict[int, str]:
    """Return what a user calls each mbarrier, by its byte of shared memory: from the texts of lines that use it."""
    named: dict[str, set[int]] = {}
    for text, byte in uses:
        if found := _BARRIER.search(text):
            named.setdefault(found[1], set()).add(byte)
    names = {byte: f"mbarrier {number}" for number, byte in enumerate(sorted(everywhere))}
    for name, bytes_ in named.items():
        for number, byte in enumerate(sorted(bytes_)):
            names[byte] = f"{name}[{number}]" if len(bytes_) > 1 else name
    return names
