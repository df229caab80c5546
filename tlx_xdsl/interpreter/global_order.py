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

A thread block is in order with itself where its tasks are (mbarriers, named barriers); threads of one task are. Nothing
is said here of the async proxy in global memory.

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

from tlx_xdsl.dialects.base.effects import Kind, accesses_of, is_set
from tlx_xdsl.dialects.tt.enums import MemSyncScope
from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.faults import Fault, fault_at, location_of
from tlx_xdsl.interpreter.global_memory import ALIGNMENT, Buffer, GlobalMemory, offsets_of
from tlx_xdsl.interpreter.orders.touches import Touch, global_touch
from tlx_xdsl.interpreter.races import Actor
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


@dataclass(slots=True)
class _Shadow:
    """The accesses to a buffer: for each element the number of an access, or that of a set of them; 0 is none."""

    size: int
    """Bytes of an element."""
    writes: NDArray[np.int32]
    reads: NDArray[np.int32]
    atomics: NDArray[np.int32]

    @classmethod
    def of(cls, size: int, count: int) -> _Shadow:
        """That of `count` elements without accesses."""
        return cls(size, *(np.zeros(count, np.int32) for _ in range(3)))

    def divide(self, size: int) -> None:
        """Make elements of `size` bytes, which divides what they had."""
        parts = self.size // size
        self.size = size
        self.writes, self.reads, self.atomics = (np.repeat(x, parts) for x in (self.writes, self.reads, self.atomics))


@dataclass
class GlobalOrder:
    """The accesses of all programs of a launch to global memory."""

    released: dict[tuple[int, tuple[int, int, int] | None], Clock] = field(
        default_factory=dict[tuple[int, tuple[int, int, int] | None], Clock]
    )
    """For each address, and program where the scope is that, what those knew who have released something there."""
    touches: list[Touch] | None = None
    """Where a step is to note what it touches that others may touch in another order."""
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
    _clusters: int = 0

    def first_agent(self) -> int:
        """The number before the first agent of the next cluster."""
        self._clusters += 1
        return self._clusters * AGENTS

    def touch(self, touch: Touch) -> None:
        """Note what a step touches, where someone asks for it."""
        if self.touches is not None:
            self.touches.append(touch)

    def note(self, memory: OrderedMemory, op: Operation, buffer: Buffer, index: Index, size: int, kind: str) -> None:
        """Note an access to elements of `size` bytes of a buffer: a `read`, a `write` or an `update`.

        Raises Fault for a race.
        """
        now = self._access(memory, op, kind)
        is_any = isinstance(index, slice) or len(index)
        if is_any and self.touches is not None and now.strength is not Strength.WEAK:
            self.touches.append(global_touch(op, buffer.name, index, size, reads=now.reads_only))
        shadow, index = self._elements(buffer, index, size)
        number = self._number(now)
        if kind != "read" and now.strength is Strength.WEAK:
            for before in (shadow.writes, shadow.reads, shadow.atomics):
                self._check(before, index, now, memory.clock, buffer, is_set=before is not shadow.writes)
            shadow.writes[index] = number
            shadow.reads[index] = shadow.atomics[index] = 0
            return
        self._check(shadow.writes, index, now, memory.clock, buffer, is_set=False)
        mine, others = (shadow.reads, shadow.atomics) if kind == "read" else (shadow.atomics, shadow.reads)
        self._check(others, index, now, memory.clock, buffer, is_set=True)
        if kind != "read":
            self._check(mine, index, now, memory.clock, buffer, is_set=True)
        held = mine[index]
        for each in _different(held):
            grown = self._grow(each, number, now, memory.clock)
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
                if clock.knows(*_step(before)) or not before.excludes(now) or (before.reads_only and now.reads_only):
                    continue
                raise self._race(before, now, buffer, int(np.flatnonzero(chosen == each)[0]), index)

    def _race(self, before: Access, now: Access, buffer: Buffer, at: int, index: Index) -> Fault:
        element = (index.start + at) if isinstance(index, slice) else int(index[at])
        byte = element * self._shadows[buffer.start].size
        verb, past = ("reads" if now.reads_only else "writes"), ("read" if before.reads_only else "written")
        where = f"byte {byte} of '{buffer.name}' in global memory"
        message = f"{now.who} {verb} {where}, and nothing orders it after {before.who}, by which it is {past}"
        return fault_at(now.actor.op, message, [f"{past} at {location_of(before.actor.op)}", *_remedy(before, now)])


def _different(numbers: NDArray[np.int32]) -> list[int]:
    """The numbers, each once: most often there is one."""
    if len(numbers) and (numbers == numbers[0]).all():
        return [int(numbers[0])]
    return np.unique(numbers).tolist()


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
        if mask is None:  # with one this is called again
            self._note(op, addresses, dtype.itemsize, "read")
        return result

    def store(self, op: Operation, addresses: Array, values: Array, dtype: np.dtype[Any], mask: Array | None) -> None:
        """As `GlobalMemory.store`; raises Fault for a race, too."""
        super().store(op, addresses, values, dtype, mask)
        reached = addresses if mask is None else np.asarray(addresses)[np.broadcast_to(mask, np.shape(addresses))]
        self._note(op, reached, dtype.itemsize, "write")

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

    def _note(self, op: Operation, addresses: Array, size: int, kind: str) -> None:
        flat = np.ravel(addresses)
        while len(flat):
            buffer = self.find(int(flat[0]))
            assert buffer is not None
            relative = flat - np.int64(buffer.start)
            inside = (relative >= 0) & (relative < len(buffer.bytes))
            self._order.note(self, op, buffer, relative[inside] // size, size, kind)
            flat = flat[~inside]


def _kind_of(verb: str) -> str:
    return "read" if verb.endswith("load") else "write"
