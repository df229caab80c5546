"""Asynchronous operations: what TMA, cp.async, wgmma and tcgen05 do while the tasks go on.

A task issues a `Transfer` to a `Queue`. The scheduler completes it at some later time, and only then does it move its
data. A queue is an agent of the clocks: transfer number s of the queue is its step s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array

from .clocks import Clock
from .faults import Fault, fault_at, location_of, place_note, remedy
from .races import Actor, Footprint

OVER = {
    "TMA store": "it is over after tlx.async_descriptor_store_wait() of its task",
    "wgmma": "it is over after tlx.async_dot_wait() of its task",
    "cp.async": "it is over after tlx.async_load_wait_group() of its task",
    "tcgen05 operation": "it is over when a barrier that the dot or a tlx.tcgen05_commit() after it names completes",
}
"""By what an asynchronous operation is known to be over, by its kind."""

OUTLIVING = ("TMA store",)
"""The kinds of asynchronous operations that take effect although the tasks of their cluster have ended: those that
write global memory. The hardware keeps the shared memory of a thread block until they have read it; PTX promises that
of stores that were waited for only."""


@dataclass(eq=False, slots=True)
class Transfer:
    """An asynchronous operation in flight."""

    queue: Queue
    number: int
    """Its place in the queue, from 1."""
    op: Operation
    what: str
    """Its name in reports, such as `the TMA load of the default task`."""
    finish: Callable[[Transfer], None]
    """Move the data and release to what waits for it."""
    marks: Clock = field(default_factory=Clock)
    """The facts that its task knew when it was issued: they hold for whoever sees it complete."""
    serial: int = 0
    """Its place among all transfers of the cluster."""
    issuer: Any = None
    """The task that has issued it, where one has (`machine.Task`)."""

    def complete(self) -> None:
        """Take effect."""
        self.queue.pending.remove(self)
        self.finish(self)


@dataclass(eq=False, slots=True)
class Queue:
    """The asynchronous operations of one kind that one task has issued, or that report to one barrier."""

    agent: int
    kind: str
    owner: str
    """The task whose operations they are."""
    in_order: bool
    """True if they take effect in the order in which they were issued."""
    rank: int = 0
    """The thread block of that task in its cluster."""
    over: str = ""
    """By what one of them is known to be over."""
    hint: str = ""
    """A note for a race between two of them."""
    barriers: tuple[Any, ...] = ()
    """The mbarriers at which their bytes complete (`memory.View`)."""
    writes: int = 0
    """The agent of what bulk stores write, where these are such: it is over later than their reads."""
    issued: int = 0
    waited: int = 0
    """Its task has waited for all transfers up to this number."""
    last: Operation | None = None
    """The operation that issued the last transfer."""
    wait: Operation | None = None
    """The operation at which its task has waited for transfers last."""
    pending: list[Transfer] = field(default_factory=list[Transfer])

    @property
    def done(self) -> int:
        """All transfers up to this number have taken effect."""
        return min((transfer.number for transfer in self.pending), default=self.issued + 1) - 1

    @property
    def outlives(self) -> bool:
        """True if the transfers take effect although all tasks have ended."""
        return self.kind in OUTLIVING

    @property
    def ready(self) -> list[Transfer]:
        """The transfers that may take effect next."""
        return self.pending[:1] if self.in_order else self.pending

    def end(self) -> str:
        """Say by what a transfer is known to be over, and how far its task has got with that."""
        if self.wait is None:
            return self.over
        return f"{self.over}, which has waited at {location_of(self.wait)} for the first {self.waited} of {self.issued}"

    def actor(self, op: Operation) -> Actor:
        """The agent of the accesses of the transfer that is issued next."""
        return Actor(self.agent, self.issued + 1, op, f"the {self.kind} of {self.owner}", is_async=True, queue=self)

    def knowledge(self, clock: Clock) -> Clock:
        """Return what precedes the next transfer: what its task knows, and its predecessors where order holds."""
        known = clock.copy()
        if self.in_order:
            known.observe(self.agent, self.issued)
        return known


COPIES, SHIFTS = "tcgen05.cp", "tcgen05.shift"
"""The keys of the agents of copies and of shifts, among footprints of accumulators."""


@dataclass(eq=False, slots=True)
class TensorCore:
    """The tensor core as one task sees it."""

    queue: Queue
    rank: int
    """The thread block of the task in its cluster."""
    in_issue_order: bool
    """True if each operation follows all that were issued before, as with `tensor_core_order="issue"`."""
    agents: dict[Footprint | str, int] = field(default_factory=dict[Footprint | str, int])
    last: dict[int, tuple[int, Operation]] = field(default_factory=dict[int, tuple[int, Operation]])
    """The last operation of each agent, with its number."""

    def followed(self, agent: int) -> Iterable[int]:
        """The agents after whose operations so far the next one of `agent` comes."""
        if self.in_issue_order:
            return self.agents.values()
        copies, shifts = self.agents.get(COPIES), self.agents.get(SHIFTS)
        if agent == copies:
            return ()
        if agent == shifts:
            return [each for each in self.agents.values() if each not in (copies, shifts)]
        return [each for each in (agent, copies, shifts) if each is not None]

    def over(self, number: int) -> Clock:
        """The knowledge that all operations up to `number` are complete."""
        known = Clock()
        for agent in (self.queue.agent, *self.agents.values()):
            known.observe(agent, number)
        return known


# Results of asynchronous matrix products that were not waited for ----------------------------------------------------


class InFlight:
    """The result of a wgmma that may still run: only another wgmma, or the wait for it, may take it."""

    # numpy refuses to compute with it.
    __array_ufunc__: ClassVar[None] = None

    def __init__(self, queue: Queue, number: int, op: Operation):
        self.queue = queue
        self.number = number
        """Of the transfer in its queue."""
        self.op = op
        self.value: Array | None = None
        """The result, when the transfer is complete."""

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse to become an array."""
        raise TypeError("the result of an asynchronous operation is in flight")

    def misused(self, op: Operation) -> Fault:
        """The report when `op` takes it."""
        return fault_at(
            op,
            f"'{op.name}' uses the result of an asynchronous dot that was not waited for",
            (place_note("the dot is at", self.op), remedy("wait with tlx.async_dot_wait(0, acc)")),
        )
