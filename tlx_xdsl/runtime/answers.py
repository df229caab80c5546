"""Judgement of a kernel, for exercises: its numbers, and what the interpreter says in several orders.

The puzzles in `notebooks/puzzles/` call it beside what a learner writes:

    judged(add, 4, x, y, z, n, BLOCK=256, expected={"z": (z, x + y)})
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, shown_path
from tlx_xdsl.grid import Grid

from .simulate.interpret import interpret, source_of_kernel

ORDERS = (("round-robin", 0), ("random", 1), ("adversarial", 0))
"""Schedules with their seeds; what is wrong in one of them is wrong."""

Expected = Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
"""By a name to show: an array that the kernel writes, and what it should hold."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on an answer, with its reason; true where it is right."""

    right: bool
    text: str

    def __bool__(self) -> bool:
        """True for a right answer."""
        return self.right

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def _repr_html_(self) -> str:
        colour = "#2e7d32" if self.right else "#c62828"
        style = f"border-left: 4px solid {colour}; padding: 0.4em 0.8em; white-space: pre-wrap; font-size: 0.85em"
        return f'<pre style="{style}">{html.escape(self.text)}</pre>'


def judged(
    kernel: Any, grid: Grid, /, *args: Any, expected: Expected, tolerance: float = 1e-3, **named: Any
) -> Verdict:
    """Run a kernel in each of ORDERS on the arguments that `interpret` takes, and compare what it writes.

    Arrays of `expected` are filled with NaN before each run. `tolerance` is a part of the largest expected number. What
    kernels do wrong, also with each other in global memory, is reported as the interpreter says it; so is what the
    frontend refuses. What is left unfinished counts as wrong.
    """
    turns = 0
    for schedule, seed in ORDERS:
        options: dict[str, Any] = {"schedule": schedule, "seed": seed, "global_order": True, **named}
        for array, _ in expected.values():
            array[...] = np.nan
        try:
            run = interpret(kernel, grid, *args, **options)
        except (CompilationError, TypeError, ValueError) as error:
            return Verdict(False, _in_cell(kernel, str(error)))
        if run.warnings:
            return Verdict(False, _in_cell(kernel, "\n".join(map(str, run.warnings))))
        turns += run.turns
        for name, (array, right) in expected.items():
            if wrong := difference(name, array, right, tolerance):
                return Verdict(False, wrong)
    return Verdict(True, f"right: in {len(ORDERS)} orders of the tasks, {turns} turns in all")


def _in_cell(kernel: Any, text: str) -> str:
    """The text with the kernel's name for its file: that of a notebook's cell says nothing to its reader."""
    source = source_of_kernel(kernel)
    return text.replace(f"{shown_path(source.filename)}:", f"{source.name}:")


def difference(name: str, found: NDArray[Any], right: NDArray[Any], tolerance: float) -> str | None:
    """Return where and by how much an array is not what it should be; None where it is, within the tolerance."""
    values, wanted = found.astype(np.float64), right.astype(np.float64)
    missing = np.isnan(values) & ~np.isnan(wanted)
    if missing.any():
        reason = "not written, or computed from what is no number (inf - inf, 0 / 0)"
        return f"{_first(name, missing)} is NaN: {reason}. So {_are(missing)}."
    wrong = ~np.isclose(values, wanted, rtol=0, atol=tolerance * float(np.nanmax(np.abs(wanted))), equal_nan=True)
    if not wrong.any():
        return None
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return f"{_first(name, wrong)} is {values[place]:g}, expected {wanted[place]:g}. Wrong {_are(wrong)}."


def _first(name: str, wrong: NDArray[np.bool_]) -> str:
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return f"{name}[{', '.join(map(str, place))}]"


def _are(wrong: NDArray[np.bool_]) -> str:
    count = int(wrong.sum())
    return f"{'is' if count == 1 else 'are'} {count} of {wrong.size} elements"
