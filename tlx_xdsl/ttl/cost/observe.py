"""Observing a run of the checking machine: what its functions move and compute, and the time of each thread.

A thread has a time of its own, which grows by what it computes and by what its transfers take. Where it waits for
another thread it takes over the time of what it waits for: times go the way of `ttkernel.clocks`. A transfer begins
when its network has done with the one before, and the barrier waits for its end. What has no published number takes no
time, so that an estimate is a lower bound, and transfers of different cores do not slow each other down.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from tlx_xdsl.text.diagnostics import source_location

from ..interpreter.ttkernel.machine import CoreThread, Transfer
from ..interpreter.ttkernel.translate import Builder, Dialects, Local, Step, attribute
from .rates import MATRIX, OPERANDS, ChipRates, matrix_cycles

_WAITS = ("cb_wait_front", "cb_reserve_back", "noc_semaphore_wait", "noc_semaphore_wait_min")
_BARRIERS = {"noc_async_read_barrier": True, "noc_async_write_barrier": False}


@dataclass(slots=True)
class Interval:
    """An interval that took time."""

    row: tuple[CoreThread, str]
    """The thread, and the network where it is a transfer."""
    start: float
    end: float
    kind: str
    """As in timelines: `work`, `wait` or `copy`."""
    name: str
    op: Operation


@dataclass
class Observer:
    """Counts and intervals of a run."""

    chip: ChipRates
    fidelity: str
    in_l1: frozenset[int]
    """Numbers of tensors that lie in cores' memories, not in banks of DRAM."""
    tiles: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By engine and function."""
    cycles: Counter[str] = field(default_factory=Counter[str])
    """Of functions that have a number."""
    network: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])
    """Bytes by network and by way: `read` and `written` for tensors, `to cores`."""
    banks: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])
    cores: dict[tuple[int, int], Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    intervals: list[Interval] = field(default_factory=list[Interval])
    _done: dict[tuple[CoreThread, bool], float] = field(default_factory=dict[tuple[CoreThread, bool], float])
    """When a thread's transfers of a direction will have ended."""

    def dialects(self, base: Dialects) -> Dialects:
        """The operations of a machine, observed."""
        return replace(base, builders={name: self._observed(name, build) for name, build in base.builders.items()})

    def _observed(self, full: str, build: Builder) -> Builder:
        name = full.removeprefix("ttkernel.")
        around = self._around(name)
        if around is None:
            return build
        watch = around

        def made(op: Operation) -> Local | Step:
            inner = build(op)
            if isinstance(inner, Step):
                return replace(inner, run=watch(op, inner.run))
            return watch(op, inner)

        return made

    def _around(self, name: str) -> Callable[[Operation, Local], Local] | None:
        """Return what wraps the function that runs an operation of this name; none where nothing is to be seen."""
        if name in _WAITS:
            return self._waiting
        if name in _BARRIERS:
            return lambda op, run: self._barrier(op, run, is_read=_BARRIERS[name])
        if name.startswith(("noc_async_read_", "noc_async_write")) and "atomic" not in name:
            return self._transferring
        if name in MATRIX or name in ("copy_tile", "pack_tile") or name.endswith("_tile"):
            return lambda op, run: self._computing(op, run, name)
        return None

    def _waiting(self, op: Operation, run: Local) -> Local:
        def observed(thread: CoreThread, *operands: Any) -> Any:
            before = thread.clock.time
            result = run(thread, *operands)
            self._note(thread, "", before, thread.clock.time, "wait", op)
            return result

        return observed

    def _transferring(self, op: Operation, run: Local) -> Local:
        def observed(thread: CoreThread, *operands: Any) -> Any:
            result = run(thread, *operands)
            self._count(op, thread, thread.transfers[-1])
            return result

        return observed

    def _count(self, op: Operation, thread: CoreThread, transfer: Transfer) -> None:
        size = transfer.local_end - transfer.local
        tensors = [touch for touch in transfer.touches if touch[0] in ("dram read", "dram write")]
        core = self.cores[thread.x, thread.y]
        if tensors:
            way = "read" if transfer.is_read else "written"
            ((_, tensor, page),) = tensors
            if tensor.index in self.in_l1:
                rate = self.chip.one_to_one
            else:
                rate = self.chip.dram_read if transfer.is_read else self.chip.dram_write
                page_bytes = tensor.pages.shape[1]
                for number in range(-(-size // page_bytes)):
                    self.banks[(page + number) % self.chip.banks, way] += min(page_bytes, size - number * page_bytes)
            self.network[thread.noc, way] += size
        else:
            way, rate = "to cores", self.chip.one_to_one if len(transfer.targets) < 2 else self.chip.multicast
            self.network[thread.noc, way] += size * len(transfer.targets)
        core[way] += size
        start = max(thread.clock.time, self._done.get((thread, transfer.is_read), 0.0))
        end = self._done[thread, transfer.is_read] = start + size / rate
        self._note(thread, f"NOC_{thread.noc}", start, end, "copy", op)

    def _barrier(self, op: Operation, run: Local, *, is_read: bool) -> Local:
        def observed(thread: CoreThread, *operands: Any) -> Any:
            before = thread.clock.time
            thread.clock.time = max(before, self._done.get((thread, is_read), 0.0))
            self._note(thread, "", before, thread.clock.time, "wait", op)
            return run(thread, *operands)

        return observed

    def _computing(self, op: Operation, run: Local, name: str) -> Local:
        kind = attribute(op, "kind")
        is_max = name == "reduce_tile" and isinstance(kind, StringAttr) and kind.data == "max"
        cycles = matrix_cycles(name, self.fidelity, is_max=is_max) if name in MATRIX else None
        engine = "matrix" if name in MATRIX else {"copy_tile": "unpack", "pack_tile": "pack"}.get(name, "vector")

        def observed(thread: CoreThread, *operands: Any) -> Any:
            self.tiles[engine, name] += 1
            if engine == "matrix":
                self.tiles["unpack", name] += OPERANDS.get(name, 1)
            core = self.cores[thread.x, thread.y]
            core[engine] += 1
            before = thread.clock.time
            if cycles is not None:
                self.cycles[name] += cycles
                core["cycles"] += cycles
                thread.clock.time += cycles
            result = run(thread, *operands)
            self._note(thread, "", before, thread.clock.time, "work", op)
            return result

        return observed

    def _note(self, thread: CoreThread, network: str, start: float, end: float, kind: str, op: Operation) -> None:
        """Note an interval; one that goes on where the last one of its row ended, at its line, makes that longer."""
        if end <= start:
            return
        row = (thread, network)
        last = self.intervals[-1] if self.intervals else None
        if last is not None and last.row == row and last.kind == kind and last.end == start and _same(last.op, op):
            last.end = end
            return
        self.intervals.append(Interval(row, start, end, kind, op.name.removeprefix("ttkernel."), op))


def _same(one: Operation, other: Operation) -> bool:
    return one.name == other.name and source_location(one.location) == source_location(other.location)


def per_core(found: Mapping[tuple[int, int], Counter[str]], way: str) -> list[int]:
    """The amounts of something that each core has, in the order of their numbers."""
    return [counts[way] for _, counts in sorted(found.items(), key=lambda each: each[0][::-1])]
