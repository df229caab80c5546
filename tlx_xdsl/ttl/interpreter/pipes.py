"""Pipes, by what they mean: the k-th block that the source sends is the k-th that each receiver takes.

The source waits for the other receivers to ask for it; the copy for itself is kept until it does. Where the compiler
has put semaphores around a receiver's copy (`synchronized`), the sender writes to the block that the receiver has
named, which must have happened by then, and only the semaphore is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.buffers import CopyOp
from ..dialects.ttl.pipes import CreatePipeOp, Place, Way
from .blocks import View
from .ttkernel.clocks import Moment
from .ttkernel.machine import CoreThread, Transfer, wrong
from .ttkernel.translate import Local


@dataclass(eq=False)
class Pipe:
    """A pipe of a run, with one way."""

    op: Way
    is_synchronized: bool
    """Whether semaphores say when a block is there."""
    receives: dict[Place, list[tuple[CoreThread, View]]] = field(
        default_factory=dict[Place, list[tuple[CoreThread, View]]]
    )
    """What each receiver has asked for so far."""
    sends: int = 0
    sent: list[tuple[Array, Moment]] = field(default_factory=list[tuple[Array, Moment]])
    asked: dict[Place, list[Moment]] = field(default_factory=dict[Place, list[Moment]])
    """When each receiver has asked."""

    @property
    def label(self) -> str:
        """Return how messages call it."""
        return f"the pipe from {self.op.src} to {self.op.first}..{self.op.last}"


class Pipes:
    """The ways of a pipe."""

    def __init__(self, op: CreatePipeOp, *, is_synchronized: bool) -> None:
        self.op = op
        self.ways = [Pipe(way, is_synchronized) for way in op.ways]
        self._from = {each.op.src: each for each in self.ways}

    def of_source(self, place: Place) -> Pipe:
        """The way that begins at a core; another one where none does."""
        return self._from.get(place, self.ways[0])

    def of_receiver(self, place: Place, source: Place | None) -> Pipe:
        """The way from a source to a core, or, where each core has one, that to it."""
        if source is not None:
            return self.of_source(source)
        return next((each for each in self.ways if place in each.op.destinations), self.ways[0])


@dataclass(eq=False)
class PipeTransfer(Transfer):
    """A copy to or from a pipe."""

    is_ready: Callable[[], bool] = lambda: True
    reason: Callable[[], str] = lambda: "waits"


def send(op: CopyOp) -> Local:
    """Begin to send a block."""

    def run(thread: CoreThread, view: View, pipes: Pipes, *address: int) -> Transfer:
        pipe = pipes.of_source((thread.x, thread.y))
        if (thread.x, thread.y) != pipe.op.src:
            raise wrong(op, thread, f"copies to {pipe.label}, but it is not its source: use 'if_src'")
        view.read(op)
        number = pipe.sends
        pipe.sends += 1
        others = [place for place in pipe.op.destinations if place != pipe.op.src]

        def missing() -> list[Place]:
            return [place for place in others if len(pipe.receives.get(place, ())) <= number]

        transfer = PipeTransfer(
            op, f"copy to {pipe.label}", False, view.start, view.start + view.size,
            lambda: _land_send(op, thread, pipe, number, view, *address), (("pipe", pipe),),
            is_ready=lambda: pipe.is_synchronized or not missing(),
            reason=lambda: f"waits until the receivers {missing()} of {pipe.label} ask for block {number}",
        )  # fmt: skip
        thread.transfers.append(transfer)
        thread.machine.noc_bytes += view.size * len(pipe.op.destinations)
        return transfer

    return run


def _land_send(
    op: Operation, thread: CoreThread, pipe: Pipe, number: int, view: View, address: int | None = None
) -> None:
    data = view.read(op).copy()
    if not pipe.is_synchronized:
        for moments in pipe.asked.values():
            for moment in moments[number : number + 1]:
                thread.clock.acquire(moment)
        pipe.sent.append((data, thread.clock.release()))
        return
    for place in pipe.op.destinations:
        asked = pipe.receives.get(place, [])
        if len(asked) <= number:
            raise wrong(op, thread, f"sends block {number} through {pipe.label}, before core {place} has reserved it")
        there = asked[number][1]
        if address is not None and address != there.start:
            raise wrong(op, thread, f"sends block {number} through {pipe.label} to address {address} of core {place}, "
                        f"which has reserved {there.start}")  # fmt: skip
        there.write(op, data)


def _land_receive(op: CopyOp, thread: CoreThread, pipe: Pipe, number: int, view: View) -> None:
    data, moment = pipe.sent[number]
    view.write(op, data)
    thread.clock.acquire(moment)


def receive(op: CopyOp) -> Local:
    """Begin to take a block."""
    synchronized = op.synchronized is not None

    def run(thread: CoreThread, pipes: Pipes, *rest: Any) -> Transfer:
        place, view = (thread.x, thread.y), rest[-1]
        pipe = pipes.of_receiver(place, rest[:-1] or None)
        if place not in pipe.op.destinations:
            raise wrong(op, thread, f"copies from {pipe.label}, but it is none of its receivers: use 'if_dst'")
        view.check_held(op)
        thread.core.poison(view.start, view.size)
        asked = pipe.receives.setdefault(place, [])
        number = len(asked)
        asked.append((thread, view))
        if not synchronized:
            pipe.asked.setdefault(place, []).append(thread.clock.release())
        transfer = PipeTransfer(
            op, f"copy from {pipe.label}", True, view.start, view.start + view.size,
            lambda: None if synchronized else _land_receive(op, thread, pipe, number, view), (("pipe", pipe),),
            is_ready=lambda: synchronized or len(pipe.sent) > number,
            reason=lambda: f"waits for block {number} of {pipe.label}, {len(pipe.sent)} were sent",
        )  # fmt: skip
        if not synchronized:
            thread.transfers.append(transfer)
        return transfer

    return run


def if_source(op: Operation) -> Local:
    """Return whether the core is the source of a pipe."""

    def run(thread: CoreThread, pipes: Pipes) -> bool:
        return _is_in((thread.x, thread.y), *pipes.op.sources)

    return run


def if_destination(op: Operation) -> Local:
    """Return whether the core is a receiver of a pipe."""

    def run(thread: CoreThread, pipes: Pipes) -> bool:
        return _is_in((thread.x, thread.y), *pipes.op.receivers)

    return run


def _is_in(place: Place, first: Place, last: Place) -> bool:
    return first[0] <= place[0] <= last[0] and first[1] <= place[1] <= last[1]
