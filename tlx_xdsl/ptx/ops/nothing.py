"""Instructions that change nothing here: hints, and orders that hold anyway.

Launches follow each other, so `griddepcontrol` never waits. What is written is seen at once, so the fences of memory
order nothing but the clocks (`ops/fences.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cohort import Cohort
from ..steps import NOTHING, Builder, Context, Step
from .memory import Mask


def _nothing(context: Context) -> Step:
    return NOTHING


def _policy(context: Context) -> Step:
    """`createpolicy`: an opaque number, which loads and stores take for a hint."""

    def run(cohort: Cohort, mask: Mask) -> NDArray[Any]:
        return np.zeros(1, np.uint64)

    return Step((), context.result(context.operand(0), "u8"), effect=run)


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(
        ("prefetch", "prefetchu", "griddepcontrol", "discard", "applypriority", "pmevent", "nanosleep"), _nothing
    ),
    "createpolicy": _policy,
}
