"""Decisions of a specialisation, each with its reason and with what the others would have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tlx_xdsl.errors import CompilationError


@dataclass(frozen=True)
class Alternative:
    """Another value of a decision: what the clock expects of it in milliseconds, or why it is none."""

    value: Any
    milliseconds: float | None = None
    why_not: str = ""

    def __str__(self) -> str:
        """Return the value with its time or its reason."""
        found = self.why_not if self.milliseconds is None else f"{self.milliseconds:.4g} ms"
        return f"{self.value}: {found}"


GIVEN = "given"
"""The reason of a decision that the caller has made."""


@dataclass(frozen=True)
class Decision:
    """One decision of a specialised kernel."""

    name: str
    value: Any
    reason: str = ""
    line: str = ""
    """The place in the plain kernel, as `file:line`; empty where it is about all of the kernel."""
    alternatives: tuple[Alternative, ...] = ()

    def __str__(self) -> str:
        """Return a line, and one for each alternative."""
        named = self.name if self.value == "" else f"{self.name} = {self.value}"
        head = f"{named}: {self.reason}" if self.reason else named
        place = f" ({self.line})" if self.line else ""
        return "\n".join((head + place, *(f"  {each}" for each in self.alternatives)))


class NotSpecialisedError(CompilationError):
    """The reason why a launch takes the plain kernel; nothing is wrong with either."""


class ComparisonError(Exception):
    """A specialised kernel computes something else than its plain one, where `check` has them compared."""
