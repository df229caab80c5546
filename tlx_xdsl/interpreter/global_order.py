"""Accesses of programs to global memory that nothing orders.

Each element that is reached has the last write that is not atomic, and the reads and the atomic operations since. An
access must be ordered after those that it conflicts with, as the clocks of who makes it say (`clocks.py`); of the
memory consistency model (PTX ISA, "Memory Consistency Model") that is:

* a write conflicts with every other access, but two atomic operations of threads in each other's scope do not; what is
  volatile counts as atomic, and orders nothing;
* a release orders what its task knows before the acquire that reads what it wrote, or what later atomic operations made
  of it. Here an acquire takes all releases at its address so far: programs run in one order, and the read has the last
  value. Those of scope `cta` are for the same thread block only;
* a fence of scope `gpu` and more makes a release of the atomic operations after it, and an acquire of those before it;
* a bulk store (`cp.async.bulk`, "async-group completion") has written when its task has waited for it without `.read`.

* what threads or cp.async have written is visible to TMA and bulk copies (the async proxy) only after a proxy fence for
global memory: by who has written, after it, or by who reads, after the acquire ("Proxies", "fence.proxy.async").

A thread block is in order with itself where its tasks are (mbarriers, named barriers); threads of one task are.

Elements are as wide as the narrowest access so far to their array. Sets of reads are lists that share their ends: as
much memory as there are different ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.effects import TENSORMAP, Kind, accesses_of, effects_of, is_set
from tlx_xdsl.dialects.tt.enums import MemSyncScope
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.faults import Fault, fault_at, location_of
from tlx_xdsl.interpreter.global_memory import ALIGNMENT, Buffer, GlobalMemory, offsets_of
from tlx_xdsl.interpreter.races import Actor
from tlx_xdsl.interpreter.within_task import conflicts, may_be_unordered, place_key
from tlx_xdsl.numerics.arrays import Array

AGENTS = 1 << 20
"""Agents of a cluster at most: those of the next one begin after them."""

Index = slice | NDArray[np.int64]


class Strength(Enum):
    """What an access conflicts with."""

    WEAK = auto()
    """Plain: with every write."""
    CTA = auto()
    """Atomic for the threads of a thread block."""
    GPU = auto()
    """Atomic for all."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access, as later ones need it."""

    actor: Actor
    program: tuple[int, int, int]
    strength: Strength
    reads_only: bool

    @property
    def who(self) -> str:
        """Who has made it."""
        return f"{self.actor.what} of program {self.program}"

    def excludes(self, other: Access) -> bool:
        """Return whether the two conflict unless one is ordered after the other; they are not both reads."""
        if Strength.WEAK in (self.strength, other.strength):
            return True
        return Strength.CTA in (self.strength, other.strength) and self.program != other.program

    def needs_fence(self, other: Access, clock: Clock) -> bool:
        """Return whether this is a write of the generic proxy, which the async proxy of `other` need not see yet.

        `clock` says what is ordered before `other`.
        """
        if self.reads_only or self.actor.is_async or not other.actor.is_async or _writes_descriptor(self):
            return False
        return clock.fenced_global.get(self.actor.agent, 0) < self.actor.step


@dataclass(slots=True)
class _Shadow:
    """The accesses to a buffer: for each element the number of an access, or that of a set of them; 0 is none."""

    size: int
    """Bytes of an element."""
    writes: NDArray[np.int32]
    reads: NDArray[np.int32]
    atomics: NDArray[np.int32]
    written_as: NDArray[np.int64] | None = None
    """The place in its tensor of what threads have written last, from 1, where that is kept (`within_task`); 0 is none."""
    read_as: NDArray[np.int64] | None = None
    """The same of what they have read last, since the last write."""

    @classmethod
    def of(cls, size: int, count: int) -> _Shadow:
        """That of `count` elements without accesses."""
        return cls(size, *(np.zeros(count, np.int32) for _ in range(3)))

    def divide(self, size: int) -> None:
        """Make elements of `size` bytes, which divides what they had."""
        parts = self.size // size
        self.size = size
        self.writes, self.reads, self.atomics = (np.repeat(x, parts) for x in (self.writes, self.reads, self.atomics))
        # What is written in one piece and read in parts is no longer the same element.
        self.written_as = self.read_as = None


@dataclass
class GlobalOrder:
    """The accesses of all programs of a launch to global memory."""

    released: dict[tuple[int, tuple[int, int, int] | None], Clock] = field(
        default_factory=dict[tuple[int, tuple[int, int, int] | None], Clock]
    )
    """For each address, and program where the scope is that, what those knew who have released something there."""
    _accesses: list[Access | None] = field(default_factory=lambda: [None])
    _numbers: dict[tuple[int, int, Operation, bool], int] = field(
        default_factory=dict[tuple[int, int, Operation, bool], int]
    )
    _sets: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """Each set's access that was added last, and the set of the others."""
    _grown: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _shadows: dict[int, _Shadow] = field(default_factory=dict[int, _Shadow])
    """By the address of the buffer."""
    _strengths: dict[Operation, Strength] = field(default_factory=dict[Operation, Strength])
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    _clusters: int = 0

    def first_agent(self) -> int:
        """The number before the first agent of the next cluster."""
        self._clusters += 1
        return self._clusters * AGENTS

    def note(
        self,
        memory: OrderedMemory,
        op: Operation,
        buffer: Buffer,
        index: Index,
        size: int,
        kind: str,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        """Note an access to elements of `size` bytes of a buffer: a `read`, a `write` or an `update`.

        `places` says which elements of their tensor they are, for what threads access by an operation of their own.
        Raises Fault for a race.
        """
        shadow, index = self._elements(buffer, index, size)
        now = self._access(memory, op, kind)
        number = self._number(now)
        self._note_order(shadow, index, number, now, memory.clock, buffer, kind)
        if places is not None or shadow.written_as is not None or shadow.read_as is not None:
            self._note_places(shadow, index, now, buffer, kind, places if shadow.size == size else None)

    def place_key(self, shape: tuple[int, ...]) -> int:
        """What the places of elements in tensors of that shape begin with."""
        return place_key(shape, self._shapes)

    def _note_places(
        self,
        shadow: _Shadow,
        index: Index,
        now: Access,
        buffer: Buffer,
        kind: str,
        places: NDArray[np.int64] | None,
    ) -> None:
        """Keep which elements of their tensors threads have accessed.

        Raises Fault where two threads of a task have accessed one address, and need not have met in between.
        """
        for held, past in ((shadow.written_as, "written"), (shadow.read_as, "read")):
            if held is None or places is None or (kind == "read" == past[:4]):
                continue
            different = np.flatnonzero((held[index] != places) & (held[index] != 0))
            if not len(different):
                continue
            numbers = (shadow.writes if past == "written" else shadow.reads)[index][different]
            for each in _different(numbers):
                before = self._accesses[each if past == "written" else self._sets[each][0]]
                if before is None or before.actor.agent != now.actor.agent:
                    continue
                if may_be_unordered(before.actor.op, now.actor.op):
                    at = int(different[np.flatnonzero(numbers == each)[0]])
                    element = (index.start + at) if isinstance(index, slice) else int(index[at])
                    where = f"byte {element * shadow.size} of '{buffer.name}' in global memory"
                    raise _of_other_threads(before, now, where, past)
        if kind == "read":
            if places is not None:
                if shadow.read_as is None:
                    shadow.read_as = np.zeros(len(shadow.writes), np.int64)
                shadow.read_as[index] = places
            return
        if places is not None and shadow.written_as is None:
            shadow.written_as = np.zeros(len(shadow.writes), np.int64)
        if shadow.written_as is not None:
            shadow.written_as[index] = 0 if places is None else places
        if shadow.read_as is not None:
            shadow.read_as[index] = 0

    def _note_order(
        self, shadow: _Shadow, index: Index, number: int, now: Access, clock: Clock, buffer: Buffer, kind: str
    ) -> None:
        if kind != "read" and now.strength is Strength.WEAK:
            for before in (shadow.writes, shadow.reads, shadow.atomics):
                self._check(before, index, now, clock, buffer, is_set=before is not shadow.writes)
            shadow.writes[index] = number
            shadow.reads[index] = shadow.atomics[index] = 0
            return
        self._check(shadow.writes, index, now, clock, buffer, is_set=False)
        mine, others = (shadow.reads, shadow.atomics) if kind == "read" else (shadow.atomics, shadow.reads)
        self._check(others, index, now, clock, buffer, is_set=True)
        if kind != "read":
            self._check(mine, index, now, clock, buffer, is_set=True)
        held = mine[index]
        for each in _different(held):
            grown = self._grow(each, number, now, clock)
            if grown != each:
                held[held == each] = grown
        mine[index] = held

    def _elements(self, buffer: Buffer, index: Index, size: int) -> tuple[_Shadow, Index]:
        """The shadow of a buffer, with the index of elements of `size` bytes in it."""
        shadow = self._shadows.get(buffer.start)
        if shadow is None:
            shadow = self._shadows[buffer.start] = _Shadow.of(size, -(-len(buffer.bytes) // size))
        if shadow.size == size:
            return shadow, index
        common = int(np.gcd(shadow.size, size))
        if common != shadow.size:
            shadow.divide(common)
        parts = size // common
        if isinstance(index, slice):
            return shadow, slice(index.start * parts, index.stop * parts)
        return shadow, (index[:, None] * parts + np.arange(parts)).ravel()

    def _access(self, memory: OrderedMemory, op: Operation, kind: str) -> Access:
        if (strength := self._strengths.get(op)) is None:
            strength = self._strengths[op] = strength_of(op)
        return Access(memory.actor(op), memory.program, strength, kind == "read")

    def _number(self, access: Access) -> int:
        key = (access.actor.agent, access.actor.step, access.actor.op, access.reads_only)
        if (number := self._numbers.get(key)) is None:
            number = self._numbers[key] = len(self._accesses)
            self._accesses.append(access)
        return number

    def _grow(self, held: int, number: int, now: Access, clock: Clock) -> int:
        """The set `held` with an access more; those that it makes superfluous are left out where that is easy."""
        last, rest = self._sets[held]
        if last == number:
            return held
        if held:
            before = self._accesses[last]
            assert before is not None
            same = before.strength is now.strength
            if same and (before.actor.agent == now.actor.agent or (not rest and clock.knows(*_step(before)))):
                held = rest
        if (grown := self._grown.get((number, held))) is None:
            grown = self._grown[number, held] = len(self._sets)
            self._sets.append((number, held))
        return grown

    def _check(
        self, held: NDArray[np.int32], index: Index, now: Access, clock: Clock, buffer: Buffer, *, is_set: bool
    ) -> None:
        chosen = held[index]
        if not chosen.any():
            return
        for each in _different(chosen):
            rest: int = each
            while rest:
                number, rest = self._sets[rest] if is_set else (rest, 0)
                before = self._accesses[number]
                assert before is not None
                if before.reads_only and now.reads_only:
                    continue
                if clock.knows(*_step(before)):
                    if not before.needs_fence(now, clock):
                        continue
                    report = _unfenced
                elif before.excludes(now):
                    report = _race
                else:
                    continue
                at = int(np.flatnonzero(chosen == each)[0])
                element = (index.start + at) if isinstance(index, slice) else int(index[at])
                shadow = self._shadows[buffer.start]
                where = f"byte {element * shadow.size} of '{buffer.name}' in global memory"
                if _writes_descriptor(before) or _writes_descriptor(now):
                    where += ", which holds a tensor descriptor"
                starts_later = before.program[::-1] > now.program[::-1]
                if report is _race and before.reads_only and starts_later and not shadow.writes[element]:
                    raise _too_early(before, now, where)
                raise report(before, now, where)


def _race(before: Access, now: Access, where: str) -> Fault:
    verb, past = ("reads" if now.reads_only else "writes"), ("read" if before.reads_only else "written")
    message = f"{now.who} {verb} {where}, and nothing orders it after {before.who}, by which it is {past}"
    return fault_at(now.actor.op, message, [f"{past} at {location_of(before.actor.op)}", *_remedy(before, now)])


def _too_early(before: Access, now: Access, where: str) -> Fault:
    """The race of a read with the first write, by a program that starts earlier: most likely the read is too early."""
    message = f"{before.who} reads {where}, and nothing orders it after {now.who}, by which it is written"
    notes = (
        f"written at {location_of(now.actor.op)}, later in this run",
        *_remedy(now, before),
        "if it is to read what was there before the launch, the write must be ordered after it instead",
    )
    return fault_at(before.actor.op, message, notes)


def _of_other_threads(before: Access, now: Access, where: str, past: str) -> Fault:
    verb = "reads" if now.reads_only else "writes"
    message = (
        f"a thread of {now.who} {verb} {where}, and nothing orders it after another one, by which it is {past}"
    )  # fmt: skip
    notes = (
        f"{past} at {location_of(before.actor.op)}, as another element of its tensor, which another thread may have",
        "tl.debug_barrier() between the two lets all threads of the task meet",
    )
    return fault_at(now.actor.op, message, notes)


def _unfenced(before: Access, now: Access, where: str) -> Fault:
    verb = "reads" if now.reads_only else "writes"
    message = (
        f"{now.who} {verb} {where}, which {before.who} has written without a proxy fence in between: the write need not "
        "be visible to the async proxy"
    )
    notes = (
        f"written at {location_of(before.actor.op)}",
        'tlx.fence("async_global") must come in between: after that line, or before this one and after the acquire',
    )
    return fault_at(now.actor.op, message, notes)


def _different(numbers: NDArray[np.int32]) -> list[int]:
    """The numbers, each once: most often there is one."""
    if len(numbers) and (numbers == numbers[0]).all():
        return [int(numbers[0])]
    return np.unique(numbers).tolist()


def _writes_descriptor(access: Access) -> bool:
    """Whether it is of the proxy of tensor descriptors, which has fences of its own (`ops/tensormaps.py`)."""
    return effects_of(access.actor.op).by is TENSORMAP


def _step(access: Access) -> tuple[int, int]:
    return access.actor.agent, access.actor.step


def _remedy(before: Access, now: Access) -> list[str]:
    queue = before.actor.queue
    notes = [] if queue is None else [f"{queue.end()}; that must come first"]
    if before.program == now.program:
        return [*notes, f"a barrier must order them: {before.actor.what} arrives at it, {now.actor.what} waits for it"]
    if Strength.WEAK not in (before.strength, now.strength):
        return [*notes, "an atomic operation of scope 'cta' is none for other programs: use scope='gpu'"]
    return [
        *notes,
        f"an atomic operation with sem='release' after that line, by program {before.program}, and one with "
        f"sem='acquire' at the same address before this line, by program {now.program}, order them",
    ]


def strength_of(op: Operation) -> Strength:
    """What an operation's accesses conflict with: weakly with all writes, unless it declares that it is atomic."""
    is_atomic = any(Kind.ATOMIC in access.kind for access in accesses_of(op) or ())
    if not is_atomic and not is_set(op, "isVolatile"):
        return Strength.WEAK
    scope = cast(Any, op.properties.get("scope"))
    is_local = scope is not None and MemSyncScope(scope.value.data) is MemSyncScope.CTA
    return Strength.CTA if is_local else Strength.GPU


class Viewer(Protocol):
    """A task, as the order of its accesses needs it."""

    agent: int
    clock: Clock

    @property
    def label(self) -> str:
        """Its name in reports."""
        ...

    @property
    def program(self) -> tuple[int, int, int]:
        """The program whose task it is."""
        ...


class OrderedMemory(GlobalMemory):
    """Global memory as one task sees it, or one asynchronous operation: each access is noted."""

    def __init__(self, memory: GlobalMemory, order: GlobalOrder, task: Viewer, issued: Actor | None = None):
        super().__init__()
        self.exclusive, self.changes, self.uninitialized = memory.exclusive, memory.changes, memory.uninitialized
        self._buffers, self._starts = memory._buffers, memory._starts  # pyright: ignore[reportPrivateUsage]
        self._order = order
        self._memory, self._task, self._issued = memory, task, issued
        self.program = task.program
        self.clock = task.clock

    def actor(self, op: Operation) -> Actor:
        """The agent and step of an access that is made now."""
        if self._issued is not None:
            return self._issued
        agent = self._task.agent
        return Actor(agent, self.clock.seen.setdefault(agent, 1), op, self._task.label)

    def issued(self, actor: Actor, clock: Clock) -> GlobalMemory:
        """The same for an asynchronous operation, whose accesses may happen at any time from now on."""
        found = OrderedMemory(self._memory, self._order, self._task, actor)
        found.clock = clock.copy()
        found.clock.seen[actor.agent] = actor.step
        return found

    def add(
        self,
        name: str,
        data: NDArray[np.uint8],
        skew: int = 0,
        alignment: int = ALIGNMENT,
        written: NDArray[np.uint8] | None = None,
    ) -> int:
        """As `GlobalMemory.add`, for all tasks."""
        return self._memory.add(name, data, skew, alignment, written)

    def load(self, op: Operation, addresses: Array, dtype: np.dtype[Any], mask: Array | None, other: Array) -> Array:
        """As `GlobalMemory.load`; raises Fault for a race, too."""
        result = super().load(op, addresses, dtype, mask, other)
        chosen = _chosen(addresses, mask)
        self._note(op, np.ravel(addresses)[chosen], dtype.itemsize, "read", self._places(op, addresses, chosen))
        return result

    def store(self, op: Operation, addresses: Array, values: Array, dtype: np.dtype[Any], mask: Array | None) -> None:
        """As `GlobalMemory.store`; raises Fault for a race, too."""
        super().store(op, addresses, values, dtype, mask)
        chosen = _chosen(addresses, mask)
        reached = np.ravel(addresses)[chosen]
        if len(reached) > 1 and strength_of(op) is Strength.WEAK:
            self._check_once(op, addresses, values, dtype, chosen)
        self._note(op, reached, dtype.itemsize, "write", self._places(op, addresses, chosen))

    def _check_once(
        self, op: Operation, addresses: Array, values: Array, dtype: np.dtype[Any], chosen: slice | NDArray[np.int64]
    ) -> None:
        """Check that what was stored is there: not where two elements of one store have one address.

        Raises Fault for those with different values.
        """
        reached = np.ravel(addresses)[chosen]
        given = np.ascontiguousarray(np.broadcast_to(values, np.shape(addresses)).astype(dtype, copy=False)).ravel()[
            chosen
        ]
        held = np.ascontiguousarray(self._loaded_again(op, reached, dtype))
        bits = np.dtype(f"V{dtype.itemsize}") if dtype.itemsize not in (1, 2, 4, 8) else np.dtype(f"u{dtype.itemsize}")
        lost = np.flatnonzero(given.view(bits) != held.view(bits))
        if not len(lost):
            return
        first = int(lost[0])
        second = int(np.flatnonzero(reached == reached[first])[-1])
        buffer = self.find(int(reached[first]))
        assert buffer is not None
        numbers = np.arange(np.size(addresses))[chosen]
        elements = [[int(i) for i in np.unravel_index(numbers[at], np.shape(addresses))] for at in (first, second)]
        raise fault_at(
            op,
            f"'{buffer.name}' in global memory is written twice at byte {int(reached[first]) - buffer.start} by one store: "
            f"its elements {elements[0]} and {elements[1]} have different values, and either may stay",
            ("give each element an address of its own, mask all but one of them, or use an atomic operation",),
        )

    def _loaded_again(self, op: Operation, addresses: Array, dtype: np.dtype[Any]) -> Array:
        """What is in memory, without a note of it."""
        buffer = self.find(int(addresses[0]))
        assert buffer is not None
        if int(addresses.min()) < buffer.start or int(addresses.max()) + dtype.itemsize > buffer.end:
            return self._scattered(op, addresses, dtype)
        whole = buffer.bytes[: len(buffer.bytes) // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole[(addresses - np.int64(buffer.start)) // dtype.itemsize]

    def _places(self, op: Operation, addresses: Array, chosen: slice | NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Which elements of their tensor are accessed; None where the threads of the task meet before it matters."""
        if self._issued is not None or not isinstance(op, tt.LoadOp | tt.StoreOp) or not conflicts(op):
            return None
        first = self._order.place_key(np.shape(addresses)) + 1
        return np.arange(first, first + np.size(addresses))[chosen]

    def bytes_at(self, op: Operation, address: int, size: int, verb: str) -> NDArray[np.uint8]:
        """As `GlobalMemory.bytes_at`; raises Fault for a race, too."""
        found = super().bytes_at(op, address, size, verb)
        buffer = self.find(address)
        assert buffer is not None
        first = address - buffer.start
        self._order.note(self, op, buffer, slice(first, first + size), 1, _kind_of(verb))
        return found

    def strided(
        self, op: Operation, address: int, counts: list[int], strides: list[int], dtype: np.dtype[Any], verb: str
    ) -> Array:
        """As `GlobalMemory.strided`; raises Fault for a race, too."""
        found = super().strided(op, address, counts, strides, dtype, verb)
        buffer = self.find(address)
        assert buffer is not None
        size, first = dtype.itemsize, address - buffer.start
        unit = size if first % size == 0 else 1
        offsets = offsets_of(first, counts, strides, size // unit)
        self._order.note(self, op, buffer, offsets // unit, unit, _kind_of(verb))
        return found

    def _note(
        self, op: Operation, flat: NDArray[np.int64], size: int, kind: str, places: NDArray[np.int64] | None
    ) -> None:
        while len(flat):
            buffer = self.find(int(flat[0]))
            assert buffer is not None
            relative = flat - np.int64(buffer.start)
            inside = (relative >= 0) & (relative < len(buffer.bytes))
            mine = None if places is None else places[inside]
            self._order.note(self, op, buffer, relative[inside] // size, size, kind, mine)
            flat = flat[~inside]
            places = None if places is None else places[~inside]


def _chosen(addresses: Array, mask: Array | None) -> slice | NDArray[np.int64]:
    """Which of the elements, in row-major order, a mask leaves."""
    return slice(None) if mask is None else np.flatnonzero(np.broadcast_to(mask, np.shape(addresses)))


def _kind_of(verb: str) -> str:
    return "read" if verb.endswith("load") else "write"
