"""The state of an mbarrier object (PTX ISA, "mbarrier")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .traps import Trap

MOST_ARRIVALS = (1 << 20) - 1
"""Arrivals of a phase at most (PTX ISA, "Contents of the mbarrier object")."""


@dataclass(eq=False, slots=True)
class Mbarrier:
    """It counts arrivals and bytes, and a phase completes when both are at zero."""

    name: str
    cta: int
    """The CTA that has it, by its number in the wave."""
    count: int
    pending: int = 0
    bytes: int = 0
    """Bytes that the phase still waits for; below zero when they come before they are expected."""
    phase: int = 0
    gathering: Any = None
    """What is known to those who have arrived in the current phase."""
    completed: Any = None
    arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """The step of each agent that has arrived in the current phase."""
    last_arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """Those of the last phase that is complete."""
    earlier_arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """Those of the phase before that one."""
    made: tuple[int, int] | None = None
    """The agent and the step that have initialised it."""

    def __post_init__(self) -> None:
        self.pending = self.count

    def passed(self, phase: int) -> bool:
        """Return whether the phase of that parity is complete."""
        return self.phase & 1 != phase & 1

    def describe(self, phase: int) -> str:
        """Say what the current phase lacks."""
        lacks = [f"{self.pending} of {self.count} arrivals"] if self.pending else []
        if self.bytes > 0:
            lacks.append(f"{self.bytes} bytes")
        elif self.bytes < 0:
            lacks.append(f"{-self.bytes} bytes have come that are not expected")
        return f"parity {phase & 1} of {self.name}, whose phase {self.phase} lacks {' and '.join(lacks) or 'nothing'}"

    def arrive(self, count: int) -> None:
        """Count arrivals; complete the phase when nothing is missing.

        Raises Trap when more arrive than the phase waits for.
        """
        if count > self.pending:
            raise Trap(
                f"too many arrivals at {self.name}: {count}, where its phase {self.phase} waits for {self.pending} of "
                f"{self.count}"
            )
        self.pending -= count
        self.complete()

    def complete(self) -> None:
        """Begin the next phase if nothing is missing.

        Raises Trap when more bytes have come than were expected.
        """
        if self.pending:
            return
        if self.bytes < 0:
            raise Trap(f"{-self.bytes} bytes more arrive at {self.name} than its phase {self.phase} expects")
        if self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            self.completed, self.gathering = self.gathering, None
            self.earlier_arrivals, self.last_arrivals, self.arrivals = self.last_arrivals, self.arrivals, {}
