"""The states of mbarrier objects, of the barriers of a CTA, and of that of a cluster (PTX ISA, "mbarrier")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .surroundings import Trap

MOST_ARRIVALS = (1 << 20) - 1
"""Arrivals of a phase at most (PTX ISA, "Contents of the mbarrier object")."""


@dataclass(eq=False, slots=True)
class Mbarrier:
    """An mbarrier: it counts arrivals and bytes, and a phase completes when both are at zero."""

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


@dataclass(eq=False, slots=True)
class NamedBarrier:
    """A barrier of a CTA, of 16, which counts threads (PTX ISA, "bar", "barrier")."""

    number: int
    threads: int = 0
    """Threads that the phase waits for; 0 while none has arrived."""
    arrived: int = 0
    phase: int = 0
    gathering: Any = None
    """What those who have arrived know."""
    completed: Any = None

    def arrive(self, threads: int, expected: int) -> bool:
        """Count threads of a CTA, of `expected` in all, and say whether that completes the phase.

        Raises Trap when they do not agree on the number, or too many come.
        """
        if self.arrived and self.threads != expected:
            raise Trap(
                f"barrier {self.number} is used for {expected} threads here, and for {self.threads} by those who have "
                "arrived"
            )
        self.threads = expected
        self.arrived += threads
        if self.arrived > expected:
            raise Trap(f"{self.arrived} threads arrive at barrier {self.number}, which waits for {expected}")
        if self.arrived < expected:
            return False
        self.arrived = 0
        self.phase += 1
        self.completed, self.gathering = self.gathering, None
        return True

    def passed(self, phase: int) -> bool:
        """Return whether the phase of that number is complete."""
        return self.phase > phase

    def describe(self, phase: int) -> str:
        """Say what it lacks."""
        return f"barrier {self.number}, where {self.arrived} of {self.threads} threads have arrived"


@dataclass(eq=False, slots=True)
class ClusterBarrier:
    """The barrier at which each thread of a cluster arrives once in a phase (PTX ISA, "barrier.cluster")."""

    threads: int
    """Those that have not exited: it waits for no others."""
    arrived: int = 0
    phase: int = 0
    gathering: Any = None
    completed: Any = None
    arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """How often each thread has arrived."""

    def arrive(self, threads: int) -> None:
        """Count threads that arrive."""
        self.arrived += threads
        self._complete()

    def leave(self, threads: list[int]) -> None:
        """Wait no more for threads that exit."""
        self.threads -= len(threads)
        self.arrived -= sum(self.arrivals.get(thread, 0) > self.phase for thread in threads)
        self._complete()

    def _complete(self) -> None:
        if self.arrived and self.arrived == self.threads:
            self.arrived = 0
            self.phase += 1
            self.completed, self.gathering = self.gathering, None

    def passed(self, phase: int) -> bool:
        """Return whether the phase of that number is complete."""
        return self.phase > phase

    def describe(self, phase: int) -> str:
        """Say what it lacks."""
        return f"the cluster's barrier, where {self.arrived} of {self.threads} threads have arrived"
