"""The 16 barriers of a CTA, and the barrier of a cluster (PTX ISA, "bar", "barrier", "barrier.cluster")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .traps import Trap


@dataclass(eq=False, slots=True)
class NamedBarrier:
    """A barrier that counts threads."""

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
    """The barrier at which each thread of a cluster arrives once in a phase."""

    threads: int
    arrived: int = 0
    phase: int = 0
    gathering: Any = None
    completed: Any = None
    arrivals: dict[int, int] = field(default_factory=dict[int, int])
    """How often each thread has arrived."""

    def passed(self, phase: int) -> bool:
        """Return whether the phase of that number is complete."""
        return self.phase > phase

    def describe(self, phase: int) -> str:
        """Say what it lacks."""
        return f"the cluster's barrier, where {self.arrived} of {self.threads} threads have arrived"
