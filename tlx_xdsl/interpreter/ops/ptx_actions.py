"""PTX instructions that act: barriers, fences, asynchronous copies (PTX ISA, "Parallel Synchronization", "cp.async").

An action is known by the first part of its name; its builder looks at the modifiers and gives None for a form that it
does not know. Triton's own barriers have small numbers; what counts here is only who meets whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.ptx.instructions import LANES, TYPES

from ..addresses import buffer_at
from ..faults import fault_at
from ..machine import Task
from ..memory import View
from ..ptx.registers import Registers
from ..ptx.text import Statement, UnknownInstruction
from ..registry import Coroutine
from .barriers import arrive, named_arrive, named_sync
from .clc import request
from .cluster import cluster_arrive, cluster_wait, release_initialised
from .copies import start_bulk_load, start_bulk_store
from .special import block_threads
from .tma import wait_for_stores


@dataclass(frozen=True)
class Running:
    """A statement that runs."""

    task: Task
    op: Operation
    registers: Registers
    others: Mapping[str, Any]
    """The operands that are no numbers: what descriptors' addresses stand for."""
    statement: Statement
    where: Array | None
    """The threads whose guard holds; None for all of them."""

    @property
    def threads(self) -> int:
        """Threads that run it."""
        return self.task.threads if self.where is None else int(self.where.sum())

    def number(self, index: int, type_: str = "b32") -> int:
        """Operand `index`, which may be an address in brackets, as one number.

        Raises Fault where the threads that run it have different ones.
        """
        return self.value(self._text(index), type_)

    def value(self, name: str, type_: str = "b32") -> int:
        """A register, or an address in brackets, as one number.

        Raises Fault where the threads that run it have different ones.
        """
        values = self.registers.read(name.strip("[] \t"), TYPES[type_])
        values = values if self.where is None else values[self.where]
        if (values != values[0]).any():
            raise fault_at(self.op, f"the threads differ in the operand '{name}' of the PTX")
        return int(values[0])

    def view(self, index: int) -> View:
        """The buffer whose address operand `index` is."""
        found = buffer_at(self.task, self.op, self.number(index))
        if found is None:
            raise UnknownInstruction(f"the interpreter knows no buffer at the PTX address '{self._text(index)}'")
        return found

    def once(self) -> None:
        """Check that one thread alone runs it.

        Raises Fault otherwise: each of the others would do the same again.
        """
        if self.threads != 1:
            raise fault_at(self.op, f"{self.threads} threads issue '{self.statement.text}', and one thread is to do so")

    def _text(self, index: int) -> str:
        operands = self.statement.operands
        text = operands[index] if index < len(operands) else None
        if not isinstance(text, str):
            raise UnknownInstruction(f"the interpreter can't read the operands of the PTX '{self.statement.text}'")
        return text.strip("[] \t")


Action: TypeAlias = Callable[[Running], Coroutine]
Recognise: TypeAlias = Callable[[Statement], "Action | None"]

ACTIONS: dict[str, list[Recognise]] = {}
"""The functions that recognise actions, by the first part of the names of their statements."""


def action_of(statement: Statement) -> Action | None:
    """Return what runs a statement that acts; None for one that computes with registers, or that is not known."""
    recognised = (recognise(statement) for recognise in ACTIONS.get(statement.name, ()))
    return next((action for action in recognised if action is not None), None)


_R = TypeVar("_R", bound=Recognise)


def acts(*names: str) -> Callable[[_R], _R]:
    """Register what recognises the forms of instructions with these first names."""

    def register(recognise: _R) -> _R:
        for name in names:
            ACTIONS.setdefault(name, []).append(recognise)
        return recognise

    return register


def _nothing(_running: Running) -> Coroutine:
    yield None


@acts("elect")
def elect(statement: Statement) -> Action | None:
    """The choice of one thread of each warp: here the first one."""
    return _elect if statement.modifiers == ("sync",) else None


def _elect(running: Running) -> Coroutine:
    yield None
    number, _, predicate = str(running.statement.operands[0]).partition("|")
    first = np.arange(running.task.threads) % LANES == 0
    running.registers.write(predicate.strip(), first, TYPES["pred"], running.where)
    if number.strip() != "_":
        running.registers.write(number.strip(), np.zeros_like(first, np.uint32), TYPES["b32"], running.where)


# Barriers ------------------------------------------------------------------------------------------------------------


@acts("bar", "barrier")
def barrier(statement: Statement) -> Action | None:
    """Named barriers, and the barrier of the cluster."""
    kinds = set(statement.modifiers) - {"cta", "aligned"}
    if "cluster" in kinds:
        if "wait" in kinds:
            return _cluster_wait
        return _cluster_arrive if "arrive" in kinds else None
    if kinds in ({"sync"}, {"arrive"}) and 1 <= len(statement.operands) <= 2:
        return _named_sync if kinds == {"sync"} else _named_arrive
    return None


def _named(running: Running) -> tuple[int, int]:
    """Number and threads of a barrier."""
    several = len(running.statement.operands) == 2
    return running.number(0), running.number(1) if several else block_threads(running.task)


def _named_sync(running: Running) -> Coroutine:
    yield from named_sync(running.task, running.op, *_named(running))


def _named_arrive(running: Running) -> Coroutine:
    yield None
    named_arrive(running.task, running.op, *_named(running))


def _cluster_arrive(running: Running) -> Coroutine:
    yield None
    cluster_arrive(running.task, running.op, relaxed="relaxed" in running.statement.modifiers)


def _cluster_wait(running: Running) -> Coroutine:
    yield from cluster_wait(running.task, running.op)


@acts("mbarrier")
def mbarrier(statement: Statement) -> Action | None:
    """`mbarrier.arrive` on a barrier of this thread block: each thread arrives once, its state is thrown away."""
    kinds = set(statement.modifiers) - {"release", "cta", "shared", "shared::cta", "b64"}
    is_plain = statement.operands[:1] == ("_",) and len(statement.operands) == 2
    return _mbarrier_arrive if kinds == {"arrive"} and is_plain else None


def _mbarrier_arrive(running: Running) -> Coroutine:
    yield None
    view = running.view(1)
    arrive(running.task, running.op, view, running.threads)


# Fences --------------------------------------------------------------------------------------------------------------


@acts("fence", "membar")
def fence(statement: Statement) -> Action:
    """Return the effect of a fence on the clocks; a task is in order for itself, global memory has no caches here."""
    if statement.name == "membar":
        return _nothing if statement.modifiers == ("cta",) else _release_all(system=statement.modifiers == ("sys",))
    match statement.modifiers:
        case ("mbarrier_init", *_):
            return _release_initialised
        case ("proxy", "async" | "async::generic", *spaces):
            in_global = "global" in spaces
            return _proxy_fence(in_shared=not in_global, in_global=in_global or not spaces)
        case ("release", "sync_restrict::shared::cta", "cluster"):
            return _release_shared
        case ("cluster" | "gpu" | "sys" as scope,) | ("release" | "acq_rel" | "sc", "cluster" | "gpu" | "sys" as scope):
            return _release_all(system=scope == "sys")
        case _:
            return _nothing


def _release_all(*, system: bool) -> Action:
    def run(running: Running) -> Coroutine:
        yield None
        running.task.fence_cluster(system=system)

    return run


def _release_shared(running: Running) -> Coroutine:
    yield None
    running.task.fence_cluster(shared_only=True)


def _release_initialised(running: Running) -> Coroutine:
    yield None
    release_initialised(running.task)


def _proxy_fence(*, in_shared: bool, in_global: bool) -> Action:
    def run(running: Running) -> Coroutine:
        yield None
        running.task.fence(in_shared=in_shared, in_global=in_global)

    return run


# Asynchronous operations ---------------------------------------------------------------------------------------------


@acts("cp")
def copy(statement: Statement) -> Action | None:
    """Bulk copies between global and shared memory, their groups, and prefetches."""
    match statement.modifiers:
        case ("async", "bulk", "prefetch", *_):
            return _nothing
        case ("async", "bulk", "commit_group"):
            return _nothing
        case ("async", "bulk", "wait_group"):
            return partial(_wait_for_stores, reads_only=False)
        case ("async", "bulk", "wait_group", "read"):
            return partial(_wait_for_stores, reads_only=True)
        case ("async", "bulk", "shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes"):
            return _bulk_load
        case ("async", "bulk", "global", "shared::cta", "bulk_group"):
            return _bulk_store
        case _:
            return None


def _bulk_load(running: Running) -> Coroutine:
    yield None
    running.once()
    start_bulk_load(
        running.task, running.op, running.number(1, "b64"), running.view(0), running.number(2), running.view(3)
    )


def _bulk_store(running: Running) -> Coroutine:
    yield None
    running.once()
    start_bulk_store(running.task, running.op, running.view(1), running.number(0, "b64"), running.number(2))


def _wait_for_stores(running: Running, *, reads_only: bool) -> Coroutine:
    yield from wait_for_stores(running.task, running.op, running.number(0), reads_only=reads_only)


@acts("prefetch")
def prefetch(_statement: Statement) -> Action:
    """A hint changes nothing."""
    return _nothing


@acts("clusterlaunchcontrol")
def cluster_launch_control(statement: Statement) -> Action | None:
    """Requests; what decodes the response only computes."""
    if statement.modifiers[:1] != ("try_cancel",):
        return None
    return _request_for_all if "multicast::cluster::all" in statement.modifiers else _request


def _request(running: Running) -> Coroutine:
    yield None
    running.once()
    request(running.task, running.op, running.view(0), running.view(1), for_all=False)


def _request_for_all(running: Running) -> Coroutine:
    yield None
    running.once()
    request(running.task, running.op, running.view(0), running.view(1), for_all=True)
