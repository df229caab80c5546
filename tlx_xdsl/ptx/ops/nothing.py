"""Instructions that change nothing here: hints, and orders that hold anyway.

Launches follow each other, so `griddepcontrol` never waits. What is written is seen at once, so the fences of memory
order nothing but the clocks (`ops/fences.py`).
"""

from __future__ import annotations

from tlx_xdsl.ptx.steps import NOTHING, Builder, Context, Step


def _nothing(context: Context) -> Step:
    return NOTHING


BUILDERS: dict[str, Builder] = dict.fromkeys(
    ("prefetch", "prefetchu", "griddepcontrol", "discard", "applypriority", "pmevent", "nanosleep"),
    _nothing,
)
