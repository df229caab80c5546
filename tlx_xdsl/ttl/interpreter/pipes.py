"""Pipes, by what they mean: the k-th block that the source sends is the k-th that each receiver takes.

The source waits for the other receivers to ask for it; the copy for itself is kept until it does. Where the compiler
has put semaphores around a receiver's copy (`synchronized`), the sender writes to the block that the receiver has
named, which must have happened by then, and only the semaphore is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.buffers import CopyOp
from ..dialects.ttl.pipes import CreatePipeOp
from .blocks import View
from .ttkernel.machine import CoreThread, Transfer, wrong
from .ttkernel.races import Moment
from .ttkernel.translate import Local

Place = tuple[int, int]


@dataclass(eq=False)
class Pipe:
    """A pipe of a run."""

    op: CreatePipeOp
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
        (x0, y0), (x1, y1) = self.op.dst_range
        return f"the pipe from {self.op.src} to {(x0, y0)}..{(x1, y1)}"


@dataclass(eq=False)
class PipeTransfer(Transfer):
    """A copy to or from a pipe."""

    is_ready: Callable[[], bool] = lambda: True
    reason: Callable[[], str] = lambda: "waits"


def send(op: CopyOp) -> Local:
    """Begin to send a block."""

    def run(thread: CoreThread, view: View, pipe: Pipe) -> Transfer:
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
            lambda: _land_send(op, thread, pipe, number, view), (("pipe", pipe),),
            is_ready=lambda: pipe.is_synchronized or not missing(),
            reason=lambda: f"waits until the receivers {missing()} of {pipe.label} ask for block {number}",
        )  # fmt: skip
        thread.transfers.append(transfer)
        thread.machine.noc_bytes += view.size * len(pipe.op.destinations)
        return transfer

    return run


def _land_send(op: Operation, thread: CoreThread, pipe: Pipe, number: int, view: View) -> None:
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
        asked[number][1].write(op, data)


def _land_receive(op: CopyOp, thread: CoreThread, pipe: Pipe, number: int, view: View) -> None:
    data, moment = pipe.sent[number]
    view.write(op, data)
    thread.clock.acquire(moment)


def receive(op: CopyOp) -> Local:
    """Begin to take a block."""
    synchronized = op.synchronized is not None

    def run(thread: CoreThread, pipe: Pipe, view: View) -> Transfer:
        place = thread.x, thread.y
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

    def run(thread: CoreThread, pipe: Pipe) -> bool:
        return (thread.x, thread.y) == pipe.op.src

    return run


def if_destination(op: Operation) -> Local:
    """Return whether the core is a receiver of a pipe."""

    def run(thread: CoreThread, pipe: Pipe) -> bool:
        return (thread.x, thread.y) in pipe.op.destinations

    return run
