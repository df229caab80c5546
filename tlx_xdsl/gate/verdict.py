"""A verdict on a kernel's final code, and the file that keeps verdicts from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tlx_xdsl.errors import CompilationError, SourceLocation, render

Outcome: TypeAlias = Literal["clean", "finding", "differs", "not run"]
"""`finding`: the machine reports something at a line. `differs`: the numbers are not those of the interpreter."""

Fault: TypeAlias = Literal["kernel", "passes", "Triton", "ptxas", ""]
"""What is wrong where something was found: the kernel as it is written, our passes, stock Triton, or the assembler."""

BAD = ("finding", "differs")
"""The outcomes that a gate does not let through."""


@dataclass(frozen=True)
class Verdict:
    """Verdict of a gate on a kernel in one configuration, compiled by one Triton for one target."""

    key: str
    kernel: str
    configuration: str
    target: str
    triton: str
    outcome: Outcome
    message: str = ""
    """What was found, or why nothing was run."""
    fault: Fault = ""
    file: str | None = None
    line: int = 0
    column: int = 0
    source_line: str | None = None
    notes: tuple[str, ...] = ()
    assembler: str = ""
    """The version of the ptxas whose cubin was looked at, where one was."""
    seconds: float = 0.0
    """Time of the case, with the compile."""
    text: str = ""
    """The digest of the PTX and of the launch, of which verdicts with the same PTX have the same."""
    defect: str = ""
    """The name of the known defect of the Triton that this comes of (`backend.defects`)."""
    has_products_of_registers: bool = False
    """Whether the PTX has products with an operand in registers, which some assemblers miscompile."""
    compared: int = 0
    """Operands of the cubin that have the values of the PTX."""
    undecided: int = 0
    """Operands of the cubin whose values are not known."""

    @property
    def is_bad(self) -> bool:
        """Return whether a gate does not let it through."""
        return self.outcome in BAD

    @property
    def location(self) -> SourceLocation | None:
        """The place in the kernel's source."""
        return None if self.file is None else SourceLocation(self.file, self.line, self.column)

    def __str__(self) -> str:
        """Return it as a diagnostic."""
        return render("error" if self.is_bad else "remark", self.message, self.location, self.source_line, self.notes)

    def about(self, error: CompilationError, outcome: Outcome, fault: Fault = "", *notes: str) -> Verdict:
        """The verdict with what an error says."""
        place = error.location
        where: dict[str, Any] = {} if place is None else {
            "file": place.filename, "line": place.line, "column": place.column
        }  # fmt: skip
        return replace(
            self, outcome=outcome, fault=fault, message=error.message, source_line=error.source_line,
            notes=(*notes, *map(str, error.notes)), **where,
        )  # fmt: skip


def verdict_of(record: Mapping[str, Any]) -> Verdict:
    """Return the verdict that a record of a file holds."""
    given: dict[str, Any] = {**record, "notes": tuple(record["notes"])}
    return Verdict(**given)


class Results:
    """Verdicts by key, and the file that gets a line for each new one; without a path they live as long as this."""

    def __init__(self, path: Path | None = None):
        """Read what the file holds. Raises CompilationError for a line that is no verdict."""
        self._path = path
        self.known: dict[str, Verdict] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                verdict = verdict_of(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines):
                    # A run that was ended in the middle of a line: what it was about is judged again.
                    continue
                raise CompilationError(
                    "this line is no verdict of `tlx gate`", SourceLocation(str(path), number)
                ) from error
            self.known[verdict.key] = verdict

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        self.known[verdict.key] = verdict
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")

    def by_text(self) -> dict[str, Verdict]:
        """The verdicts of texts that were run, by the digest of each."""
        return {each.text: each for each in self.known.values() if each.text and each.outcome != "not run"}


def counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return how many verdicts there are of each outcome."""
    counts: dict[str, int] = dict.fromkeys(("clean", *BAD, "not run"), 0)
    for each in verdicts:
        counts[each.outcome] += 1
    return counts
