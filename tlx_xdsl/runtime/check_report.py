"""What a check has found, and how to see it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.text.diagnostics import Diagnostic

RULES = ("deadlock", "fault", "warning", "relaunch")
"""The kinds of findings; what only a launch after the first one shows is a `relaunch`."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, and how to see it again."""

    diagnostic: Diagnostic
    rule: str
    """`deadlock`, `fault`, `warning`, or `relaunch`: what a launch on arrays as an earlier one left them shows."""
    options: Mapping[str, Any]
    """The `stage`, `schedule` and `seed` of the first run that has shown it."""

    def __str__(self) -> str:
        """Return the report, with the options that show it."""
        shown = " ".join(f"--{name} {value}" for name, value in self.options.items())
        return f"{self.diagnostic}\nnote: seen with {shown}"


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    findings: tuple[Finding, ...]
    runs: int
    stages: tuple[str, ...]
    seconds: float
    remarks: tuple[Finding, ...] = ()
    """What is wrong only if the host leaves arrays as they are between launches, and was not said to."""

    def __bool__(self) -> bool:
        """True where nothing was found; remarks do not count."""
        return not self.findings

    def __str__(self) -> str:
        """Return all findings and remarks, and a line that sums up."""
        return "\n".join([*map(str, self.findings), *map(str, self.remarks), self.summary])

    @property
    def summary(self) -> str:
        """The line that sums up."""
        number = len(self.findings)
        found = "nothing found" if not number else f"{number} finding{'' if number == 1 else 's'}"
        if self.remarks:
            found += f", {len(self.remarks)} remark{'' if len(self.remarks) == 1 else 's'}"
        orders = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        return f"{orders} at {' and '.join(self.stages)} in {self.seconds:.1f} s: {found}"
