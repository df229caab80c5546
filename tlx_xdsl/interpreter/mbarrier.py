"""Barriers: the state of an mbarrier, of a named barrier, and of the barrier of a cluster.

Sources: PTX ISA, "mbarrier", "bar" and "barrier.cluster".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.faults import fault_at


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object: it counts arrivals and bytes, and a phase completes when both are at zero."""

    name: str
    """The Python name of the barrier with its slot, such as `full[2]`."""
    op: Operation
    """What initialised it."""
    count: int
    """Arrivals that complete a phase."""
    pending: int = 0
    """Arrivals that the current phase still waits for."""
    bytes: int = 0
    """Bytes that the current phase still waits for; below zero when they come before they are expected."""
    phase: int = 0
    """The number of completed phases: the current phase's parity is its lowest bit."""
    had_bytes: bool = False
    """Whether the current phase was told of bytes."""
    waited: int = 0
    """The phases below this one were waited for."""
    data_phase: int = -1
    """The last phase that completed with data from an asynchronous operation."""
    sources: dict[int, Operation] = field(default_factory=dict[int, Operation])
    """What made the current phase wait for bytes, by agent."""
    announced: tuple[int, int] = (0, 0)
    """The agent and the step of the fence that makes its initialisation visible to the cluster."""
    gathering: Clock = field(default_factory=Clock)
    """What those know that have arrived in the current phase."""
    completed: Clock = field(default_factory=Clock)
    """What they knew that arrived in the phase before."""

    def __post_init__(self) -> None:
        self.pending = self.count

    @property
    def is_armed(self) -> bool:
        """Whether the current phase has begun: something has arrived, or bytes are under way."""
        return self.pending != self.count or self.bytes != 0

    def done(self, parity: int) -> bool:
        """Whether the phase of that parity is complete (PTX: mbarrier.try_wait.parity)."""
        return self.phase & 1 != parity & 1

    def expect(self, size: int) -> None:
        """Make the current phase wait for `size` bytes more."""
        self.bytes += size
        self.had_bytes = True

    def arrive(self, op: Operation, count: int, clock: Clock | None) -> bool:
        """Arrive `count` times, and say whether that completes the phase.

        Raises Fault when more arrive than the phase waits for, or the bytes are more than were expected.
        """
        if count > self.pending:
            raise fault_at(
                op,
                f"too many arrivals on '{self.name}': {count} where its phase {self.phase} waits for {self.pending} "
                f"of {self.count}",
            )
        self.pending -= count
        if clock is not None:
            self.gathering.join(clock)
        return self._complete(op)

    def deliver(self, op: Operation, size: int, agent: int, step: int) -> bool:
        """Count `size` bytes that an asynchronous operation has written, and say whether that completes the phase."""
        self.bytes -= size
        self.had_bytes = True
        self.gathering.learn(agent, step)
        return self._complete(op)

    def _complete(self, op: Operation) -> bool:
        if self.pending:
            return False
        if self.bytes < 0:
            raise fault_at(
                op,
                f"{-self.bytes} bytes more arrive on '{self.name}' than were expected for its phase {self.phase}: "
                "the expected bytes are too few",
            )
        if self.bytes:
            return False
        if self.had_bytes:
            self.data_phase = self.phase
        self.phase += 1
        self.pending = self.count
        self.had_bytes = False
        self.completed, self.gathering = self.gathering, Clock()
        return True


@dataclass(slots=True)
class NamedBarrier:
    """One of the 16 hardware barriers of a thread block: it counts threads."""

    number: int
    threads: int = 0
    """Threads that the current phase waits for; 0 while none has arrived."""
    arrived: int = 0
    phase: int = 0
    gathering: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)
    ops: list[Operation] = field(default_factory=list[Operation])
    """What has arrived in the current phase."""

    def arrive(self, op: Operation, threads: int, expected: int, clock: Clock) -> None:
        """Arrive with all `threads` of a task, of `expected` in all.

        Raises Fault when those who arrive do not agree on the number, or too many do.
        """
        if self.arrived and self.threads != expected:
            raise fault_at(
                op, f"named barrier {self.number} is used for {expected} threads here, and for {self.threads} elsewhere"
            )
        self.threads = expected
        self.arrived += threads
        self.ops.append(op)
        self.gathering.join(clock)
        if self.arrived > expected:
            raise fault_at(
                op, f"{self.arrived} threads arrive at named barrier {self.number}, which waits for {expected}"
            )
        if self.arrived == expected:
            self.arrived = 0
            self.phase += 1
            self.ops.clear()
            self.completed, self.gathering = self.gathering, Clock()


@dataclass(slots=True)
class ClusterBarrier:
    """The barrier of a cluster (PTX: barrier.cluster), at which every task arrives once in a phase."""

    phase: int = 0
    arrived: dict[int, Operation] = field(default_factory=dict[int, Operation])
    """What has arrived in the current phase, by agent."""
    gathering: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)

    def complete(self) -> None:
        """Begin the next phase."""
        self.phase += 1
        self.arrived.clear()
        self.completed, self.gathering = self.gathering, Clock()
