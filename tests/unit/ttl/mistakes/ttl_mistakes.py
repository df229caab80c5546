"""Mistakes in TTL kernels, each one change of a kernel that is right, and what must be said of it at which line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics
from tlx_xdsl.ttl.runtime import Prepared
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

How = Literal["before", "run", "check", "warning", "remark"]
"""When it is said: before a run, in the default run, in another order, by a warning, or by a repair."""
BUDGET = 20
"""Orders that are looked through for what the default run does not show."""


@dataclass(frozen=True)
class Twin:
    """A kernel that is right."""

    name: str
    text: str
    arrays: Callable[[], Mapping[str, Any]]
    """Its arguments by name, numpy arrays and numbers."""
    expected: Callable[..., Mapping[str, Any]]
    """Of the arrays as they were, what those that it writes hold afterwards."""
    mistakes: list[Mistake] = field(default_factory=list["Mistake"], hash=False)

    def mistake(self, kind: str, how: How, said: str, *change: str, at: str = "") -> None:
        """Add a kind: texts of the kernel, each followed by its replacement; `at` is in the line that is named.

        Without `at` it is the first line of the first replacement.
        """
        self.mistakes.append(Mistake(self, kind, how, said, change, at))


@dataclass(frozen=True)
class Mistake:
    """A kind of mistake."""

    twin: Twin
    kind: str
    how: How
    said: str
    """A part of the message."""
    change: tuple[str, ...]
    at: str

    def __str__(self) -> str:
        """Return its name in reports."""
        return f"{self.twin.name}: {self.kind}"

    @property
    def text(self) -> str:
        """The kernel with the mistake."""
        text = self.twin.text
        for old, new in zip(self.change[::2], self.change[1::2], strict=True):
            assert text.count(old) == 1, f"{self}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        return text

    @property
    def line(self) -> int:
        """The line that must be named."""
        lines = self.text.split("\n")
        wanted = self.at or self.change[1].strip("\n").split("\n")[0].strip()
        (found,) = [number for number, line in enumerate(lines, 1) if wanted in line]
        return found


@dataclass(frozen=True)
class Finding:
    """A message of a check."""

    how: How
    message: str
    line: int
    notes: str = ""


def findings_of(text: str, name: str, twin: Twin, folder: Path, machine: str = "ttkernel") -> list[Finding]:
    """Compile and run a kernel, and give all that is said of it; a wrong result, or a place elsewhere, has line 0."""
    path = folder / f"{re.sub('[^a-z0-9]', '_', name.lower())}.py"
    path.write_text(text)
    before = twin.arrays()
    arrays = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in before.items()}
    values = list(arrays.values())
    found: list[Finding] = []
    how: How = "before"
    with collected_diagnostics() as said:
        try:
            prepared = Prepared(load_ttl_kernel(f"{path}:{twin.name}"), values, machine)
            how = "run"
            report = prepared.run(values)
            assert report is not None
            found += [_finding("warning", each, path) for each in report.warnings]
            for key, wanted in twin.expected(**before).items():
                if not np.allclose(arrays[key], wanted, rtol=1e-5, atol=1e-5):
                    found.append(Finding("run", f"'{key}' is wrong", 0))
            how = "check"
            if not found and (explored := prepared.explore(values, BUDGET)) is not None and explored.fault is not None:
                raise explored.fault
        except CompilationError as error:
            notes = "\n".join(error.notes)
            found.append(Finding(how, error.message, _line(error.location, path), notes))
    return [*(_finding("remark" if each.severity == "remark" else "warning", each, path) for each in said), *found]


def _finding(how: How, diagnostic: Diagnostic, path: Path) -> Finding:
    return Finding(how, diagnostic.message, _line(diagnostic.location, path), "\n".join(diagnostic.notes))


def _line(place: SourceLocation | None, path: Path) -> int:
    return place.line if place is not None and Path(place.filename).name == path.name else 0


def verdict(mistake: Mistake, found: list[Finding]) -> str:
    """Say what is missing in the findings of a mistake; empty where it is named as it must be."""
    good = [each for each in found if each.how == mistake.how and each.line == mistake.line]
    if any(mistake.said in each.message for each in good):
        return ""
    said = "\n".join(f"  [{each.how}, line {each.line}] {each.message}" for each in found)
    return f"{mistake}: expected at line {mistake.line} ({mistake.how}) {mistake.said!r}, found\n{said or '  nothing'}"
