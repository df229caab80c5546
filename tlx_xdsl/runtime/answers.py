"""Judgement of a kernel, for exercises: its numbers, and what the interpreter says in several orders.

The puzzles in `notebooks/puzzles/` call it beside what a learner writes:

    verdict = judged(add, 4, x, y, z, n, BLOCK=256, expected={"z": (z, x + y)})
    settled(verdict, __file__)
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, shown_path
from tlx_xdsl.grid import Grid
from tlx_xdsl.progress import in_notebook

from .simulate.interpret import interpret, source_of_kernel

ORDERS = (("round-robin", 0), ("random", 1), ("adversarial", 0))
"""Schedules with their seeds; what is wrong in one of them is wrong."""

PROGRESS = "progress.json"
"""File beside the puzzles that names those which are solved."""

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
    kernel: Any, grid: Grid, /, *args: Any, expected: Expected, tolerance: float = 1e-3,
    prepare: Callable[[], object] = lambda: None, **named: Any,
) -> Verdict:  # fmt: skip
    """Run a kernel in each of ORDERS on the arguments that `interpret` takes, and compare what it writes.

    Before each run arrays of `expected` are filled with NaN, and `prepare` is called, to reset others. `tolerance` is a
    part of the largest expected number. Reports of the interpreter, also between programs in global memory, and
    errors of the frontend are wrong answers, and so is unfinished work.
    """
    turns = 0
    for schedule, seed in ORDERS:
        options: dict[str, Any] = {"schedule": schedule, "seed": seed, "global_order": True, **named}
        for array, _ in expected.values():
            array[...] = np.nan
        prepare()
        try:
            run = interpret(kernel, grid, *args, **options)
        except (CompilationError, TypeError, ValueError) as error:
            return Verdict(False, in_file(kernel, str(error)))
        if run.warnings:
            return Verdict(False, in_file(kernel, "\n".join(map(str, run.warnings))))
        turns += run.turns
        for name, (array, right) in expected.items():
            if wrong := difference(name, array, right, tolerance):
                return Verdict(False, wrong)
    return Verdict(True, f"right: in {len(ORDERS)} orders of the tasks, {turns} turns in all")


def in_file(kernel: Any, text: str) -> str:
    """Return a report on a kernel with the name of its file in the place of the path.

    A notebook's cell that is not saved yet has a file that says nothing to its reader: it gets the kernel's name.
    """
    source = source_of_kernel(kernel)
    file = Path(source.filename)
    name = source.name if "__marimo__" in file.name else file.name
    return text.replace(f"{shown_path(source.filename)}:", f"{name}:")


def settled(verdict: Verdict, file: str) -> Verdict:
    """Note in the file PROGRESS beside a puzzle that it is solved, and return the verdict, which a notebook shows.

    Where Python runs the puzzle's file as a script, print the verdict and how many puzzles are solved, and raise
    SystemExit with status 1 for a wrong answer, with 0 for a right one. Where neither a notebook nor a script is run,
    as in a test, nothing is noted.
    """
    path = Path(file).resolve()
    puzzles = sorted(path.parent.glob("[0-9]*.py"))
    script = not in_notebook() and Path(sys.argv[0]).resolve() == path
    if path in puzzles and (script or in_notebook()):
        solved = _solved(path, verdict)
        names = [each.stem for each in puzzles]
        left = [name for name in names if name not in solved]
        rest = f"; next: {left[0]}" if left else ""
        verdict = Verdict(verdict.right, f"{verdict}\n{len(names) - len(left)} of {len(names)} puzzles solved{rest}")
    if script:
        print(verdict)
        raise SystemExit(0 if verdict else 1)
    return verdict


def _solved(puzzle: Path, verdict: Verdict) -> set[str]:
    """Return the names of the puzzles that are solved, after a verdict on one of them."""
    file = puzzle.parent / PROGRESS
    try:
        solved = set(json.loads(file.read_text(encoding="utf-8"))["solved"])
    except (OSError, ValueError, KeyError, TypeError):
        # There is none yet, or it was changed by hand.
        solved: set[str] = set()
    if verdict and puzzle.stem not in solved:
        solved.add(puzzle.stem)
        file.write_text(json.dumps({"solved": sorted(solved)}, indent=2) + "\n", encoding="utf-8")
    return solved


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
