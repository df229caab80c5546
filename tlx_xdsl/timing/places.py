"""The user's lines and names in a timeline, whether a model or probes have made it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tlx_xdsl.ptx.read.faults import location_of
from tlx_xdsl.ptx.read.syntax import Module, Place

BARRIER_NAME = re.compile(r"barrier_(?:wait|arrive|expect_bytes)\w*\(\s*(?:bar\s*=\s*)?([A-Za-z_]\w*)")
"""The name of a barrier, or of an array of them, in a line of a kernel."""
_LIBRARY = re.compile(r"triton[/\\](?:language|tools)[/\\]")
"""Files of Triton, whose lines are not the user's."""


def user_line(module: Module, place: Place | None) -> tuple[str, int]:
    """Return file and line of the user's code that an instruction comes from, or an empty name and 0."""
    while place is not None:
        where = location_of(module, place)
        if where is not None and not _LIBRARY.search(where.filename):
            return where.filename, where.line
        place = place.inlined_at
    return "", 0


def task_of(tasks: Sequence[tuple[int, int, str]], warp: int) -> str:
    """Return the name of the task of a warp."""
    return next((name for first, count, name in tasks if first <= warp < first + count), "warps")
