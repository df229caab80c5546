"""Scripts whose launches are checked: each in many orders first, and then run in the interpreter."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tlx_xdsl.runtime.check.explore import Limits
from tlx_xdsl.runtime.check.report import Finding
from tlx_xdsl.runtime.check.run import check_launch
from tlx_xdsl.runtime.simulate.interpret import Interpretation

from .without_gpu import InterpretedKernel, Launch

SECONDS = 2.0
"""Time for the orders of one launch, by default."""


@dataclass
class Record:
    """Record of the launches of this process, and of their findings."""

    launches: int = 0
    runs: int = 0
    kernels: set[str] = field(default_factory=set[str])
    found: dict[tuple[str, str], Finding] = field(default_factory=dict[tuple[str, str], Finding])
    """By rule and place: a line is reported once, for the first launch that shows it."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Findings in the order in which they were found."""
        return tuple(self.found.values())

    @property
    def errors(self) -> Sequence[Finding]:
        """Return the findings that are errors, not warnings: races, deadlocks and other faults."""
        return [each for each in self.found.values() if each.diagnostic.severity == "error"]

    @property
    def summary(self) -> str:
        """A line that sums up."""
        errors, warnings = len(self.errors), len(self.found) - len(self.errors)
        said = [
            f"{count} {what}{'' if count == 1 else 's'}" for count, what in ((errors, "error"), (warnings, "warning"))
        ]
        found = ", ".join(each for each in said if not each.startswith("0 ")) or "nothing found"
        return f"{self.launches} launches of {len(self.kernels)} kernels checked in {self.runs} runs: {found}"


RECORD = Record()


class CheckedKernel(InterpretedKernel):
    """A kernel whose launches are checked in several orders of their tasks before they run."""

    seconds = SECONDS

    def perform(self, launch: Launch) -> Interpretation:
        """Check a launch, report on stderr what was not reported yet, and run it.

        Where `interpret` faults, so does this: what the script would go on with is not known.
        """
        limits = Limits(self.seconds, (launch.options.stage,))
        report = check_launch(launch.source, launch.grid, launch.arguments, launch.options, limits)
        RECORD.launches += 1
        RECORD.runs += report.runs
        RECORD.kernels.add(launch.source.name)
        for each in report.findings:
            place = each.diagnostic.location
            key = each.rule, each.diagnostic.message if place is None else str(place)
            if key not in RECORD.found:
                RECORD.found[key] = each
                print(each, file=sys.stderr)
        return super().perform(launch)
