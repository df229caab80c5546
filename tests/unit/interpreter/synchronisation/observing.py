"""Observation of what operations do while the interpreter runs them.

A `Recorder` attributes an access to the operation that runs, or to that whose asynchronous part takes effect, and to
the operands that refer to the bytes. `watching.py` has it see all accesses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tests.unit.interpreter.declared_accesses import DATA, Declaration, Finding, Item, declared, declares, names_of
from tlx_xdsl.dialects.base.effects import Group, Kind, Proxy, Space, Sync, space_of
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.mbarrier import Mbarrier
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.races import Actor
from tlx_xdsl.interpreter.registry import Kind as RunKind

GROUPS = {
    "TMA store": Group.BULK, "cp.async": Group.CP_ASYNC, "wgmma": Group.WGMMA, "tcgen05 operation": Group.TCGEN05,
}  # fmt: skip
"""The group that reports the end of asynchronous operations, by the kind of their queue."""
TENSOR_CORES = ("wgmma", "tcgen05 operation")
"""The queues of tensor cores."""


@dataclass(frozen=True)
class Touch:
    """An access to bytes, before it is known through which operand."""

    kind: Kind
    at: Any
    """A `View`, an address in global memory, or an `Mbarrier`."""
    proxy: Proxy | None = None
    is_moved: bool = True
    """Whether data is read or written; else the access is only checked against others."""
    ends: str | Group | None = None


@dataclass(eq=False)
class Frame:
    """One execution of an operation, until it and what it has started are over."""

    op: Operation
    task: Task
    operands: tuple[Any, ...]
    touches: dict[Any, Touch] = field(default_factory=dict)
    sync: Sync = Sync.NONE
    transfers: dict[Transfer, dict[Any, Touch]] = field(default_factory=dict)
    proxies: dict[Queue, Proxy] = field(default_factory=dict)
    issues: bool = False
    """Whether it has started something asynchronous."""
    waits: set[Queue] = field(default_factory=set)
    """What the operation itself waits for."""
    barriers: dict[View, Mbarrier | None] = field(default_factory=dict)
    """The mbarriers that were where it writes, before it did."""
    results: tuple[Any, ...] = ()


@dataclass
class Made:
    """Accesses that operations with one declaration have made in all runs."""

    items: set[Item] = field(default_factory=set)
    sync: Sync = Sync.NONE


class Recorder:
    """Recorder of the accesses that operations make."""

    def __init__(self) -> None:
        self.made: dict[tuple[type[Operation], Declaration], Made] = defaultdict(Made)
        self.ran: set[type[Operation]] = set()
        self.stray: set[str] = set()
        """Accesses outside of any operation."""
        self._declarations: dict[Operation, Declaration] = {}
        self._frames: list[Frame] = []
        self._moving: list[tuple[Frame, Transfer]] = []
        self._frame_of: dict[Transfer, Frame] = {}
        self._quiet = 0
        self.is_exclusive = False
        """Whether other processes are kept from global memory."""
        self.exclusive = _Exclusive(self)

    def findings(self) -> set[Finding]:
        """Compare what was made with what is declared; an operation that may do anything need not do it."""
        found: set[Finding] = set()
        for (class_, declaration), made in self.made.items():
            wrong, missing = made.sync & ~declaration.sync, declaration.sync & ~made.sync
            found.update(Finding(class_.name, str(flag.name), False) for flag in wrong)
            if declaration.items is None:
                continue
            found.update(Finding(class_.name, str(flag.name), True) for flag in missing)
            for item in made.items:
                if not any(each.allows(item) for each in declaration.items):
                    found.add(Finding(class_.name, str(item), False))
            for each in declaration.items:
                if not any(each.is_made_by(item) for item in made.items):
                    found.add(Finding(class_.name, str(each), True))
        return found

    # Where accesses come from -----------------------------------------------------------------------------------------

    def planned(self, op: Operation, kind: RunKind, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that runs `op` in a frame of its own."""
        if op.regions or op.name == "tt.call":
            return run
        if kind == RunKind.PURE:
            if not declares(type(op)):
                return run

            def pure(*operands: Any) -> Any:
                self.ran.add(type(op))
                return run(*operands)

            return pure

        def inside(frame: Frame, ready: Callable[[], bool]) -> Callable[[], bool]:
            def asked() -> bool:
                with self._inside(frame):
                    return ready()

            return asked

        def effect(task: Task, *operands: Any) -> Any:
            frame = Frame(op, task, operands)
            with self._inside(frame):
                result = run(task, *operands)
            self._finish(frame, result)
            return result

        def step(task: Task, *operands: Any) -> Iterator[Any]:
            frame = Frame(op, task, operands)
            with self._inside(frame):
                coroutine = run(task, *operands)
            while True:
                try:
                    with self._inside(frame):
                        waiting = next(coroutine)
                except StopIteration as end:
                    self._finish(frame, end.value)
                    return end.value
                yield waiting and replace(waiting, ready=inside(frame, waiting.ready))

        return effect if kind == RunKind.EFFECT else step

    @contextmanager
    def _inside(self, frame: Frame) -> Iterator[None]:
        self._frames.append(frame)
        try:
            yield
        finally:
            self._frames.pop()

    @property
    def is_running(self) -> bool:
        """True if an operation runs."""
        return bool(self._frames)

    def complete(self, transfer: Transfer, complete: Callable[[Transfer], None]) -> None:
        """Let an asynchronous operation take effect."""
        frame = self._frame_of.pop(transfer)
        self._moving.append((frame, transfer))
        try:
            with self._inside(frame):
                complete(transfer)
        finally:
            self._moving.pop()
        self._finish_transfer(frame, transfer)

    def issue(self, transfer: Transfer) -> None:
        """Note an asynchronous operation of the one that runs."""
        frame = self._frames[-1]
        frame.transfers[transfer] = {}
        frame.issues = True
        self._frame_of[transfer] = frame

    def touch(self, kind: Kind, at: Any, **rest: Any) -> None:
        """Note an access of what runs."""
        if self._quiet:
            return
        if not self._frames:
            self.stray.add(f"{kind} {at}")
            return
        frame = self._frames[-1]
        moving = self._moving[-1] if self._moving else None
        touches = frame.touches if moving is None or moving[0] is not frame else frame.transfers[moving[1]]
        touch = Touch(kind, at, **rest)
        touches[kind, at if isinstance(at, int) else id(at), touch.is_moved] = touch
        if self.is_exclusive and isinstance(at, int):
            touches[Kind.ATOMIC, at, True] = Touch(Kind.ATOMIC, at)

    def announce(self, kind: Kind, view: View, actor: Actor) -> None:
        """Note an access that is checked for races; `actor` says through which proxy it goes."""
        queue = actor.queue
        proxy = Proxy.ASYNC if actor.is_async else Proxy.GENERIC
        if isinstance(queue, Queue):
            if queue.kind in TENSOR_CORES and (actor.is_async or view.memory.name == "tensor memory"):
                proxy = Proxy.TENSOR_CORE
            self._frames[-1].proxies[queue] = proxy
        frame = self._frames[-1]
        frame.barriers[view] = view.memory.barriers.get(view.address)
        self.touch(kind, view, proxy=proxy, is_moved=False)

    def order(self, sync: Sync) -> None:
        """Note a synchronisation of what runs."""
        if self._frames and not self._quiet:
            self._frames[-1].sync |= sync

    def wait(self, queue: Queue) -> None:
        """Note that what runs waits for asynchronous operations."""
        if self._frames:
            self._frames[-1].waits.add(queue)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Note nothing meanwhile."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    # What they come to ------------------------------------------------------------------------------------------------

    def _finish(self, frame: Frame, result: Any) -> None:
        frame.results = tuple(result) if len(frame.op.results) > 1 else (result,) if frame.op.results else ()
        made = self._made(frame)
        made.sync |= frame.sync
        for touch in frame.touches.values():
            if frame.issues and isinstance(touch.at, int):
                # Whether the asynchronous operation will reach its addresses is looked at when it is issued.
                continue
            if touch.kind is Kind.WRITE and touch.at in frame.barriers:
                before, now = frame.barriers[touch.at], touch.at.memory.barriers.get(touch.at.address)
                if now is not before:
                    touch = replace(touch, kind=Kind.FREE if now is None else Kind.INIT)
            made.items.update(self._items(frame, touch))

    def _finish_transfer(self, frame: Frame, transfer: Transfer) -> None:
        made = self._made(frame)
        made.sync |= frame.sync
        touches = frame.transfers.pop(transfer).values()
        names = [name for touch in touches if touch.kind is Kind.COMPLETE for name, *_ in _operands(frame, touch.at)]
        end = names[0] if names else None if transfer.queue in frame.waits else GROUPS.get(transfer.queue.kind)
        for touch in touches:
            proxy = frame.proxies.get(transfer.queue)
            made.items.update(self._items(frame, replace(touch, ends=end, proxy=proxy)))

    def _made(self, frame: Frame) -> Made:
        op = frame.op
        self.ran.add(type(op))
        if (declaration := self._declarations.get(op)) is None:
            declaration = self._declarations[op] = declared(op)
        return self.made[type(op), declaration]

    def _items(self, frame: Frame, touch: Touch) -> Iterator[Item]:
        """The items of a touch, one for each operand that it may be made through."""
        if touch.kind is Kind.ALLOC:
            yield Item("result", Kind.ALLOC, has_end=False)
            return
        found = list(_operands(frame, touch.at)) or [("?", None, False)]
        is_data = touch.kind in DATA
        for name, space, cluster in found:
            yield Item(
                name, touch.kind, space, touch.proxy if is_data else None, touch.ends if is_data else None, cluster,
                is_data and touch.is_moved,
            )  # fmt: skip


def _operands(frame: Frame, at: Any) -> Iterator[tuple[str, Space, bool]]:
    """The operands and results through which bytes are reached, their space, and whether it is in another CTA."""
    op = frame.op
    names = names_of(op)
    values = [*zip(op.operands, frame.operands, strict=True), *zip(op.results, frame.results, strict=False)]
    addressed = [value for value, _ in values if space_of(value.type) is Space.GLOBAL]
    for value, held in values:
        found: tuple[Space, bool] | None = None
        if isinstance(held, View):
            found = _reaches(frame, held, at)
        elif isinstance(at, int) and value in addressed and (len(addressed) == 1 or _holds(frame, held, at)):
            found = Space.GLOBAL, False
        if found is not None:
            for name in names[value]:
                yield name, *found


def _reaches(frame: Frame, held: View, at: Any) -> tuple[Space, bool] | None:
    rank = frame.task.block.rank
    space = Space.TENSOR if held.memory.name == "tensor memory" else Space.SHARED
    if space is Space.SHARED and held.memory.rank != rank:
        space = Space.CLUSTER
    if isinstance(at, View):
        if at.memory.name == held.memory.name and at.footprint.overlaps(held.footprint):
            return space, at.memory.rank != held.memory.rank
    elif isinstance(at, Mbarrier) and space is not Space.TENSOR:
        for block in frame.task.block.cluster.blocks:
            if block.shared.barriers.get(held.address) is at:
                return space, block.rank != held.memory.rank
    return None


def _holds(frame: Frame, held: Any, address: int) -> bool:
    """Return whether an operand is an address, or refers to the array that holds it."""
    if isinstance(held, Descriptor):
        memory = frame.task.block.cluster.launch.memory
        return memory.find(held.address) is memory.find(address)
    return bool((np.asarray(held) == address).any())


class _Exclusive:
    """Held while other processes are kept from global memory."""

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def __enter__(self) -> None:
        self._recorder.is_exclusive = True

    def __exit__(self, *_: object) -> None:
        self._recorder.is_exclusive = False
