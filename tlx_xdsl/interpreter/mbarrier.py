"""Barriers: the state of an mbarrier, of a named barrier, and of the barrier of a cluster.

Sources: PTX ISA, "mbarrier", "bar" and "barrier.cluster".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation

from tlx_xdsl.errors import Note
from tlx_xdsl.text.diagnostics import report_warning

from .clocks import Clock
from .engine import Transfer
from .faults import Race, fault_at, place_note
from .users import lines, named_barrier_users


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that counts for a phase: an arrival, or the bytes of an asynchronous operation."""

    agent: int
    step: int
    op: Operation


@dataclass(frozen=True, slots=True)
class Passage:
    """A wait at a barrier that a task has passed."""

    op: Operation
    barrier: str
    """Its name, with the slot."""
    phase: int | None = None
    """The phase of an mbarrier that it was for; -1 for the one before the first, which is complete from the start."""
    repeats: bool = False
    """True if the wait before it at the same mbarrier was for the same phase: it passes at once."""
    arrivals: tuple[Operation, ...] = ()
    """What had completed that phase."""

    @property
    def parity(self) -> int | None:
        """The parity that the wait was given."""
        return None if self.phase is None else self.phase & 1


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object: it counts arrivals and bytes, and a phase completes when both are at zero."""

    name: str
    """The Python name of the barrier with its slot, such as `full[2]`."""
    op: Operation
    """The operation that initialised it."""
    allocation: Operation
    """The operation that allocated it."""
    count: int
    """Arrivals that complete a phase."""
    pending: int = 0
    """Arrivals that the current phase still waits for."""
    bytes: int = 0
    """Bytes that the current phase still waits for; below zero when they come before they are expected."""
    phase: int = 0
    """The number of completed phases: the current phase's parity is its lowest bit."""
    had_bytes: bool = False
    """True if the current phase expects bytes."""
    expected: int = 0
    """All bytes that the current phase expects, those that have come included."""
    waited: int = 0
    """The phases below this one were waited for."""
    data_phase: int = -1
    """The last phase that completed with data from an asynchronous operation."""
    announced: tuple[int, int] = (0, 0)
    """The agent and the step of the fence that makes its initialisation visible to the cluster."""
    arrived: list[Arrival] = field(default_factory=list["Arrival"])
    """The arrivals of the current phase."""
    before: list[Arrival] = field(default_factory=list["Arrival"])
    """The arrivals of the phase before."""
    earlier: list[Arrival] = field(default_factory=list["Arrival"])
    """The arrivals of the phase before that one."""
    passed: dict[int, tuple[int, Operation]] = field(default_factory=dict[int, tuple[int, Operation]])
    """The waits for the phase before the current one: the number of the wait and the operation, by mark."""
    waits: dict[int, tuple[int, int, int]] = field(default_factory=dict[int, tuple[int, int, int]])
    """How many waits each task has passed, and the phases of the first and the last of them, by mark."""
    gathering: Clock = field(default_factory=Clock)
    """The knowledge released by the arrivals of the current phase."""
    completed: Clock = field(default_factory=Clock)
    """The knowledge released by the arrivals of the phase before."""

    def __post_init__(self) -> None:
        self.pending = self.count

    @property
    def is_armed(self) -> bool:
        """Return whether the current phase has begun: something has arrived, or bytes are under way."""
        return self.pending != self.count or self.bytes != 0

    @property
    def missing(self) -> str:
        """Return what the current phase still waits for."""
        parts = [f"{self.pending} of {self.count} arrivals"] if self.pending else []
        if self.bytes > 0:
            parts.append(f"{self.bytes} bytes")
        missing = " and ".join(parts)
        return f"{missing}, while {-self.bytes} bytes have come that are not expected" if self.bytes < 0 else missing

    def done(self, parity: int) -> bool:
        """Return whether the phase of that parity is complete (PTX: mbarrier.try_wait.parity)."""
        return self.phase & 1 != parity & 1

    def pass_wait(self, op: Operation, mark: int, clock: Clock) -> Passage:
        """Note that a task has waited for the phase before the current one, and let it acquire what has completed that.

        `mark` is the agent that counts what it does at mbarriers. Who sees anything of what it does after the wait
        knows of it, even where its writes are not visible yet.
        Raises Fault when nothing orders the wait after the phase before that one: it has the other parity, so that a
        wait that comes sooner takes the phase before it for the one that is meant.
        """
        for other in self.earlier:
            if not clock.knows(other.agent, other.step):
                raise fault_at(
                    op,
                    f"nothing orders this wait for phase {self.phase - 1} of '{self.name}' after phase "
                    f"{self.phase - 2}: a wait that comes sooner passes at once, since phase {self.phase - 3} has the "
                    "same parity",
                    (place_note(f"phase {self.phase - 2} is completed by what arrives at", other.op),),
                    Race,
                )
        self.waited = max(self.waited, self.phase)
        self.passed[mark] = (clock.seen[mark], op)
        clock.join(self.completed)
        meant = self.phase - 1
        count, first, last = self.waits.get(mark, (0, meant, meant - 1))
        self.waits[mark] = (count + 1, first, meant)
        return Passage(op, self.name, meant, last == meant, tuple(arrival.op for arrival in self.before))

    def expect(self, size: int) -> None:
        """Make the current phase wait for `size` bytes more."""
        self.bytes += size
        self.expected += size
        self.had_bytes = True

    def arrive(self, op: Operation, count: int, clock: Clock, mark: int) -> bool:
        """Arrive `count` times with the knowledge `clock`, and say whether that completes the phase.

        `mark` is the agent that counts what arrives: what the task does at mbarriers, or its asynchronous operations.

        Raises Fault when more arrive than the phase waits for, when the bytes are more than were expected, and when
        nothing orders the arrival after the phase before.
        """
        self._check_count(op, count)
        for other in self.before:
            if not clock.knows(other.agent, other.step):
                raise fault_at(
                    op,
                    f"nothing orders this arrival on '{self.name}', in its phase {self.phase}, after phase "
                    f"{self.phase - 1}: it may count for that phase instead",
                    (
                        place_note(f"phase {self.phase - 1} is completed by what arrives at", other.op, ", too"),
                        *self.history(),
                    ),
                    Race,
                )
        self.pending -= count
        self.arrived.append(Arrival(mark, clock.seen.get(mark, 0), op))
        self.gathering.join(clock)
        return self._complete(op)

    def arrive_later(self, transfer: Transfer, count: int) -> bool:
        """Arrive `count` times at the end of an asynchronous operation, and say whether that completes the phase.

        Raises Fault as `arrive` does.
        """
        self._check_count(transfer.op, count)
        self.pending -= count
        return self._end(transfer, transfer.number)

    def deliver(self, transfer: Transfer, size: int) -> bool:
        """Count `size` bytes that an asynchronous operation has written, and say whether that completes the phase."""
        self.bytes -= size
        self.had_bytes = True
        return self._end(transfer, transfer.queue.done)

    def _end(self, transfer: Transfer, step: int) -> bool:
        agent = transfer.queue.agent
        self.arrived.append(Arrival(agent, step, transfer.op))
        self.gathering.join(transfer.marks)
        self.gathering.observe(agent, step)
        return self._complete(transfer.op)

    def _check_count(self, op: Operation, count: int) -> None:
        if count > self.pending:
            raise fault_at(
                op,
                f"too many arrivals on '{self.name}': {count} where its phase {self.phase} waits for {self.pending} "
                f"of {self.count}",
                self.history(),
            )

    def history(self) -> list[Note]:
        """Return how it was initialised, and what the current phase has got so far."""
        count = "1 arrival" if self.count == 1 else f"{self.count} arrivals"
        notes = [line.after(f"    initialised for {count} at ") for line in lines([self.op])]
        arrived = lines([arrival.op for arrival in self.arrived])
        return notes + [line.after(f"    '{self.name}' has got ") for line in arrived]

    def _complete(self, op: Operation) -> bool:
        if self.pending:
            return False
        if self.bytes < 0:
            raise fault_at(op, self.surplus(-self.bytes, self.phase), self.history())
        if self.bytes:
            return False
        self._check_passed(op)
        if self.had_bytes:
            self.data_phase = self.phase
        self.phase += 1
        self.pending = self.count
        self.had_bytes = False
        self.expected = 0
        self.completed, self.gathering = self.gathering, Clock()
        self.earlier, self.before, self.arrived = self.before, self.arrived, []
        self.passed.clear()
        return True

    def surplus(self, size: int, phase: int) -> str:
        """Describe that copies for a phase bring `size` bytes more than it expects."""
        return (
            f"{size} bytes more arrive on '{self.name}' than were expected for its phase {phase}: "
            "the expected bytes are too few"
        )

    def _check_passed(self, op: Operation) -> None:
        """Check that no wait for the phase before this one could have come too late.

        A parity does not say which phase is meant: a wait that is overtaken by the next phase waits for the one after
        it. So what completes a phase must be ordered after every wait for the phase before.
        """
        for agent, (step, wait) in self.passed.items():
            if not self.gathering.knows(agent, step):
                raise fault_at(
                    wait,
                    f"nothing orders this wait for phase {self.phase - 1} of '{self.name}' before phase {self.phase} "
                    "completes, whose parity is the other one: a wait that comes later takes it for a phase that is "
                    "still to come",
                    (place_note(f"phase {self.phase} is completed at", op),),
                    Race,
                )


@dataclass(slots=True)
class NamedBarrier:
    """A hardware barrier of a thread block, of 16: it counts threads."""

    number: int
    threads: int = 0
    """Threads that the current phase waits for; 0 while none has arrived."""
    arrived: int = 0
    phase: int = 0
    gathering: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)
    ops: dict[int, Operation] = field(default_factory=dict[int, Operation])
    """The arrivals of the current phase, by agent."""
    steps: list[Arrival] = field(default_factory=list["Arrival"])
    """The same with what clocks know of them."""
    before: tuple[Arrival, ...] = ()
    """The arrivals of the phase before."""

    @property
    def name(self) -> str:
        """Return the barrier's name in reports."""
        return f"named barrier {self.number}"

    def arrive(self, op: Operation, threads: int, expected: int, clock: Clock, agent: int) -> None:
        """Arrive with all `threads` of a task, of `expected` in all.

        Warps count one by one: where a task has several times the number that is expected, and no other arrives, each
        group of its warps completes a phase of its own. Raises Fault when those who arrive do not agree on the number,
        when too many do, or one does so twice.
        """
        if threads > expected and threads % expected == 0 and not self.arrived and not self.others(op):
            report_warning(
                op,
                f"a task of {threads} threads arrives at named barrier {self.number}, which waits for {expected}: each "
                f"{expected} of them pass alone, and nothing is ordered",
            )
            self.phase += threads // expected
            self.completed = clock
            return
        if self.arrived and self.threads != expected:
            raise fault_at(
                op,
                f"named barrier {self.number} is used for {expected} threads here, and for {self.threads} elsewhere",
                self.history(),
            )
        if agent in self.ops:
            raise fault_at(
                op,
                f"a task arrives twice in one phase of named barrier {self.number}: {self.arrived} of {expected} "
                "threads have arrived, and the others are still to come",
                [*self.history(), *self.others(op)],
            )
        for other in self.before:
            if not clock.knows(other.agent, other.step):
                raise fault_at(
                    op,
                    f"nothing orders this arrival at named barrier {self.number} after its phase before: it may count "
                    "for that phase, in which the task arrives twice then",
                    (place_note("that phase is completed by what arrives at", other.op, ", too"), *self.history()),
                    Race,
                )
        self.threads = expected
        self.arrived += threads
        if self.arrived > expected:
            raise fault_at(
                op,
                f"{self.arrived} threads arrive at named barrier {self.number}, which waits for {expected}",
                self.history(),
            )
        self.ops[agent] = op
        self.steps.append(Arrival(agent, clock.seen.get(agent, 0), op))
        self.gathering.join(clock)
        if self.arrived == expected:
            self.arrived = 0
            self.phase += 1
            self.before = tuple(self.steps)
            self.steps.clear()
            self.ops.clear()
            self.completed, self.gathering = self.gathering, Clock()

    def history(self) -> list[str]:
        """Return what the current phase has got so far."""
        return [f"    named barrier {self.number} has got {line}" for line in lines(list(self.ops.values()))]

    def others(self, op: Operation) -> list[str]:
        """Return what may arrive beside `op`."""
        users = named_barrier_users(op, self.number)
        return [f"    others arrive at {line}" for line in lines(users)]


@dataclass(slots=True)
class ClusterBarrier:
    """The barrier of a cluster (PTX: barrier.cluster), at which every task arrives once in a phase."""

    phase: int = 0
    arrived: dict[int, Operation] = field(default_factory=dict[int, Operation])
    """The arrivals of the current phase, by agent."""
    gathering: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)

    def complete(self) -> None:
        """Begin the next phase."""
        self.phase += 1
        self.arrived.clear()
        self.completed, self.gathering = self.gathering, Clock()
