"""Has a `Recorder` see what the interpreter does, by the few functions through which operations do anything.

They are wrapped while it records, so that the interpreter needs nothing for it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from tests.unit.interpreter.synchronisation.observing import Recorder
from tlx_xdsl.dialects.base.effects import Kind, Sync
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.machine import Cluster, Task
from tlx_xdsl.interpreter.mbarrier import Mbarrier, NamedBarrier
from tlx_xdsl.interpreter.memory import Memory, View
from tlx_xdsl.interpreter.planner import Planner
from tlx_xdsl.interpreter.races import Actor
from tlx_xdsl.runtime.simulate import plans as interpret_plans


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record what is planned and run meanwhile."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        watch = _Watch(recorder, patch)
        watch.operations()
        watch.buffers()
        watch.global_memory()
        watch.order()
        # Plans that were made before know nothing of the watch, and those of now are of no use without it.
        patch.setattr(interpret_plans, "_known", OrderedDict())
        yield recorder


class _Watch:
    """Wraps functions of the interpreter."""

    def __init__(self, recorder: Recorder, patch: pytest.MonkeyPatch):
        self._recorder, self._patch = recorder, patch

    def _before(self, owner: type, name: str, note: Callable[..., Any]) -> None:
        """Call `note` with the arguments of a method before it runs."""
        method = getattr(owner, name)

        @functools.wraps(method)
        def noted(*args: Any, **kwargs: Any) -> Any:
            note(*args, **kwargs)
            return method(*args, **kwargs)

        self._patch.setattr(owner, name, noted)

    def operations(self) -> None:
        """Watch operations as they run, and what they start."""
        recorder, patch = self._recorder, self._patch
        build, begin, issue, complete = Planner.build, Cluster.begin, Cluster.issue, Transfer.complete

        def planned(planner: Planner, op: Operation) -> Any:
            kind, run = build(planner, op)
            return kind, recorder.planned(op, kind, run)

        def issued(cluster: Cluster, *args: Any) -> Transfer:
            transfer = issue(cluster, *args)
            recorder.issue(transfer)
            return transfer

        def begun(cluster: Cluster, first: tuple[int, int, int]) -> None:
            begin(cluster, first)
            cluster.released = _Released()

        patch.setattr(Planner, "build", planned)
        patch.setattr(Cluster, "begin", begun)
        patch.setattr(Cluster, "issue", issued)
        patch.setattr(Transfer, "complete", lambda transfer: recorder.complete(transfer, complete))
        self._before(Task, "wait_for", lambda _task, queue, *_, **__: recorder.wait(queue))

    def buffers(self) -> None:
        """Shared and tensor memory: what is checked, what is moved, what is allocated."""
        recorder, cell = self._recorder, View.cell.fget  # pyright: ignore

        def allocated(*_: Any, **__: Any) -> None:
            # Arguments of a launch are placed, and buffers seen as others, outside of any operation with effects.
            if recorder.is_running:
                recorder.touch(Kind.ALLOC, None)

        self._patch.setattr(View, "cell", property(lambda view: _WatchedCell(recorder, view, cell(view))))
        for name, kind in (
            ("read", Kind.READ), ("raw", Kind.READ), ("write", Kind.WRITE), ("write_raw", Kind.WRITE),
        ):  # fmt: skip
            self._before(View, name, lambda view, *_, kind=kind: recorder.touch(kind, view))
        for owner, name in ((Memory, "allocate"), (Memory, "family"), (GlobalMemory, "add")):
            self._before(owner, name, allocated)

    def global_memory(self) -> None:
        """Watch reads and writes through pointers and descriptors, and what no other process may come between."""
        recorder = self._recorder

        def touched(kind: Kind, addresses: Any, mask: Any) -> None:
            # The first of them will do: the others are in the same operand.
            reached = np.asarray(addresses)
            reached = reached if mask is None else reached[np.broadcast_to(mask, reached.shape)]
            if reached.size:
                recorder.touch(kind, int(reached.flat[0]))

        def block(_memory: GlobalMemory, _op: Operation, address: int, *extents: Any) -> None:
            *_, verb = extents
            recorder.touch(Kind.READ if verb.endswith("load") else Kind.WRITE, address)

        def window(desc: Descriptor, *_: Any) -> None:
            # What reduces reads the elements, too.
            if recorder.is_exclusive:
                recorder.touch(Kind.READ, desc.address)

        made = GlobalMemory.__init__

        def make(memory: GlobalMemory) -> None:
            made(memory)
            memory.exclusive = recorder.exclusive

        self._patch.setattr(GlobalMemory, "__init__", make)
        self._before(GlobalMemory, "load", lambda _, _op, at, _type, mask, *__: touched(Kind.READ, at, mask))
        self._before(GlobalMemory, "store", lambda _, _op, at, _values, _type, mask: touched(Kind.WRITE, at, mask))
        self._before(GlobalMemory, "bytes_at", block)
        self._before(GlobalMemory, "strided", block)
        self._before(Descriptor, "window", window)

    def order(self) -> None:
        """Barriers, fences, and what is released and acquired."""
        touch, order, recorder = self._recorder.touch, self._recorder.order, self._recorder
        release_performed = Task.release_performed

        def performed(task: Task) -> Any:
            # It releases nothing of what the task has done itself.
            with recorder.quiet():
                return release_performed(task)

        self._patch.setattr(Task, "release_performed", performed)
        before = self._before
        before(Task, "release", lambda _task: order(Sync.RELEASE))
        before(Task, "acquire", lambda *_: order(Sync.ACQUIRE))
        # A proxy fence for global memory alone is none for shared memory.
        before(
            Task, "fence",
            lambda _task, in_shared=True, in_global=False: order(Sync.FENCE_PROXY if in_shared else Sync.FENCE),
        )  # fmt: skip
        before(Task, "fence_cluster", lambda _task, **_: order(Sync.FENCE))
        before(NamedBarrier, "arrive", lambda *_: order(Sync.NAMED))
        before(Mbarrier, "arrive", lambda barrier, *_: touch(Kind.ARRIVE, barrier))
        before(Mbarrier, "arrive_later", lambda barrier, *_: touch(Kind.ARRIVE, barrier))
        before(Mbarrier, "deliver", lambda barrier, *_: touch(Kind.COMPLETE, barrier))
        before(Mbarrier, "pass_wait", lambda barrier, *_: (touch(Kind.WAIT, barrier), order(Sync.ACQUIRE)))
        for name, sync in (("cluster_phase", Sync.CLUSTER), ("init_fences", Sync.FENCE)):
            self._patch.setattr(Task, name, _noting(name, lambda sync=sync: order(sync)), raising=False)


class _WatchedCell:
    """A cell of a view whose checks are noted."""

    def __init__(self, recorder: Recorder, view: View, cell: Any):
        self._recorder, self._view, self._cell = recorder, view, cell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)

    def read(self, actor: Actor, *rest: Any) -> None:
        self._recorder.announce(Kind.READ, self._view, actor)
        self._cell.read(actor, *rest)

    def overwrite(self, actor: Actor, *rest: Any) -> None:
        self._recorder.announce(Kind.WRITE, self._view, actor)
        self._cell.overwrite(actor, *rest)

    def end(self, actor: Actor, *rest: Any) -> None:
        self._recorder.touch(Kind.FREE, self._view)
        self._cell.end(actor, *rest)


class _Released(dict[int, Clock]):
    """Releases by address; each address has some, so that every acquire and release is made."""

    def __bool__(self) -> bool:
        return True

    def get(self, key: int, default: Any = None) -> Clock:
        return super().get(key) or Clock()


def _noting(name: str, note: Callable[[], None]) -> property:
    """An attribute that calls `note` when it is set anew."""
    hidden = f"_noted_{name}"

    def set_(task: Task, value: Any) -> None:
        if hidden in vars(task):
            note()
        vars(task)[hidden] = value

    return property(lambda task: vars(task)[hidden], set_)
