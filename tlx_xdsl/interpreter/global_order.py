"""Accesses of programs to global memory that nothing orders.

Each element that is reached has the last write that is not atomic, and the reads and the atomic operations since. An
access must be ordered after those that it conflicts with, as the clocks of who makes it say (`clocks.py`); of the
memory consistency model (PTX ISA, "Memory Consistency Model") that is:

* a write conflicts with every other access, but two atomic operations of threads in each other's scope do not; what is
  volatile counts as atomic, and orders nothing;
* a release orders what its task knows before the acquire that reads what it wrote, or what later atomic operations made
  of it. Here an acquire takes all releases at its address so far: programs run in one order, and the read has the last
  value. Those of scope `cta` are for the same thread block only, and where several GPUs run the kernel those of
  scope `gpu` for the same one;
* a fence of scope `gpu` and more makes a release of the atomic operations after it, and an acquire of those before it;
* a bulk store (`cp.async.bulk`, "async-group completion") has written when its task has waited for it without `.read`;
* what threads or cp.async have written is visible to TMA and bulk copies (the async proxy) only after a proxy fence for
  global memory: by who has written, after it, or by who reads, after the acquire ("fence.proxy.async").

A thread block is in order with itself where its tasks are (mbarriers, named barriers). Threads of one task are
where they meet (`within_task.py`).

Elements are as wide as the narrowest access so far to their array. Sets of reads are lists that share their ends: as
much memory as there are different ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.numerics.arrays import Integers, distinct
from tlx_xdsl.text.diagnostics import source_location

from .clocks import Clock
from .dependent_launches import DependentLaunch
from .global_access import Access, Strength, strength_of
from .global_memory import Buffer, GlobalMemory
from .global_races import of_other_threads, race, too_early, unfenced, warn_of_sums
from .grid import Program
from .races import Actor
from .touches import Touch, global_touch
from .within_task import Places, may_be_unordered, place_key

AGENTS = 1 << 20
"""Agents of a cluster at most: those of the next one begin after them."""

_LOOKED_AT = 8
"""Accesses of a set that a new one may replace. Where programs take turns there are no more; others stay."""

_ANY = -1
"""The bytes of the accesses of a set without any."""

Index = slice | Integers

Place: TypeAlias = tuple[Strength, Program]
"""Those that operations of a strength reach."""


class Accessor(Protocol):
    """Maker of an access: a task, or one of its asynchronous operations."""

    clock: Clock
    program: Program
    issue: tuple[int, int] | None

    def actor(self, op: Operation) -> Actor:
        """The agent and step of an access that is made now."""
        ...


@dataclass(slots=True)
class _Shadow:
    """The accesses to a buffer: for each element the number of an access, or that of a set of them; 0 is none."""

    size: int
    """Bytes of an element."""
    writes: NDArray[np.int32]
    reads: NDArray[np.int32]
    atomics: NDArray[np.int32]
    places: Places = field(default_factory=Places)
    """The elements of tensors that threads have accessed last."""

    @classmethod
    def of(cls, size: int, count: int) -> _Shadow:
        """Return the shadow of `count` elements of `size` bytes without accesses."""
        writes, reads, atomics = (np.zeros(count, np.int32) for _ in range(3))
        return cls(size, writes, reads, atomics)

    def divide(self, size: int) -> None:
        """Make elements of `size` bytes, which divides what they had."""
        parts = self.size // size
        self.size = size
        self.writes, self.reads, self.atomics = (np.repeat(x, parts) for x in (self.writes, self.reads, self.atomics))
        # What is written in one piece and read in parts is no longer the same element.
        self.places = Places()


@dataclass
class GlobalOrder:
    """The accesses of all programs of a launch to global memory."""

    in_turn: bool = False
    """Whether programs wait in loops for their turn, and so add in an order that is meant. That of a counter from which
    they take their work is one by chance."""
    ranks: int = 0
    """GPUs that run the kernel side by side; 0 for one, whose programs have no rank."""
    released: dict[tuple[int, Place], Clock] = field(default_factory=dict[tuple[int, "Place"], Clock])
    """For each address and scope, what those knew who have released something there."""
    over: dict[tuple[int, int], Clock] = field(default_factory=dict[tuple[int, int], Clock])
    """For each GPU and each of its launches, what its programs that have ended knew: it precedes the next launch."""
    changed: dict[int, dict[tuple[Program, int, Operation], Access]] = field(
        default_factory=dict[int, "dict[tuple[Program, int, Operation], Access]"]
    )
    """For each address, who has changed the number there by an atomic operation of one number."""
    launches: dict[int, int] = field(default_factory=dict[int, int])
    """For clusters of a launch after the first one of their GPU, by the number of their first agent: its number."""
    dependent: DependentLaunch | None = None
    """What is accessed before and after the wait for earlier launches, where the kernel has one."""
    touches: list[Touch] | None = None
    """Where a step is to note what it touches that others may touch in another order."""
    _accesses: list[Access | None] = field(default_factory=lambda: [None])
    _numbers: dict[tuple[int, int, Operation, bool], int] = field(
        default_factory=dict[tuple[int, int, Operation, bool], int]
    )
    _sets: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, _ANY)])
    """Each set's access that was added last, the set of the others, and the bytes of each, where all are atomic for all
    and of one size; else 0."""
    _grown: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _shadows: dict[int, _Shadow] = field(default_factory=dict[int, _Shadow])
    """By the address of the buffer."""
    _strengths: dict[Operation, Strength] = field(default_factory=dict[Operation, Strength])
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    _sums: set[tuple[Operation, Operation]] = field(default_factory=set[tuple[Operation, Operation]])
    _clusters: int = 0

    def first_agent(self, launch: int = 0) -> int:
        """The number before the first agent of the next cluster, which is of that launch of its GPU."""
        self._clusters += 1
        if launch:
            self.launches[self._clusters] = launch
        return self._clusters * AGENTS

    def strength(self, op: Operation) -> Strength:
        """Return the strength of the accesses of `op`; with one GPU, no scope is wider than it."""
        if (found := self._strengths.get(op)) is None:
            found = strength_of(op)
            found = self._strengths[op] = self._widest if found is Strength.SYS else found
        return found

    @property
    def _widest(self) -> Strength:
        return Strength.SYS if self.ranks else Strength.GPU

    def release(self, address: int, program: Program, strength: Strength, known: Clock) -> None:
        """Release what is known to those in the scope of an operation at an address."""
        key = address, _place(program, strength)
        if (held := self.released.get(key)) is None:
            held = self.released[key] = known.copy()
        held.join(known)

    def acquired(self, address: int, program: Program, strength: Strength) -> list[Clock]:
        """Return the releases at an address that an operation may acquire: the scope of each has the other's program.

        Two operations synchronise where the scope of each has the thread of the other (PTX ISA, "Morally Strong
        Operations").
        """
        places = [_place(program, each) for each in Strength if each is not Strength.WEAK]
        if strength is Strength.SYS:
            places += [(strength, (rank,)) for rank in range(self.ranks) if rank != program[3]]
        return [self.released[address, place] for place in places if (address, place) in self.released]

    def touch(self, touch: Touch) -> None:
        """Note what a step touches, where someone asks for it."""
        if self.touches is not None:
            self.touches.append(touch)

    def note(
        self,
        memory: Accessor,
        op: Operation,
        buffer: Buffer,
        index: Index,
        size: int,
        kind: str,
        places: Integers | None = None,
        *,
        reads_descriptor: bool = False,
    ) -> None:
        """Note an access to elements of `size` bytes of a buffer: a `read`, a `write` or an `update`.

        `places` says which elements of their tensor they are, for what threads access by an operation of their own.
        Raises Fault for a race.
        """
        now = self._access(memory, op, kind, size)
        if self.dependent is not None and not (now.writes_descriptor or reads_descriptor):
            self.dependent.note(op, buffer, index, size, kind, memory.clock)
        is_any = isinstance(index, slice) or len(index)
        if is_any and self.touches is not None and now.strength is not Strength.WEAK:
            self.touches.append(global_touch(op, buffer.name, index, size, reads=now.reads_only))
        shadow, index = self._elements(buffer, index, size)
        number = self._number(now)
        if places is not None and shadow.size == size:
            self._check_places(shadow, index, now, buffer, places)
        else:
            places = None
        self._note_order(shadow, index, number, now, memory.clock, buffer, kind)
        shadow.places.keep(index, places, len(shadow.writes), reads_only=kind == "read")

    def last_writer(self, buffer: Buffer) -> Operation | None:
        """The operation that has written a buffer last."""
        if (shadow := self._shadows.get(buffer.start)) is None or not len(shadow.writes):
            return None
        numbers = (int(shadow.writes.max()), self._sets[int(shadow.atomics.max())][0])
        last = self._accesses[max(numbers)]
        return None if last is None else last.actor.op

    def changes_at(self, buffer: Buffer, byte: int) -> list[Access]:
        """The plain write of an element of a buffer, where there is one, and the atomic changes of it."""
        shadow = self._shadows.get(buffer.start)
        plain = None if shadow is None else self._accesses[int(shadow.writes[byte // shadow.size])]
        return [*([] if plain is None else [plain]), *self.changed.get(buffer.start + byte, {}).values()]

    def note_change(self, memory: Accessor, op: Operation, address: int) -> None:
        """Note that an atomic operation has changed a number, once for each line of a program."""
        access = self._access(memory, op, "update", 0)
        self.changed.setdefault(address, {})[access.program, access.launch, op] = access

    def place_key(self, shape: tuple[int, ...]) -> int:
        """Return what the places of elements in tensors of that shape begin with."""
        return place_key(shape, self._shapes)

    def _check_places(self, shadow: _Shadow, index: Index, now: Access, buffer: Buffer, places: Integers) -> None:
        """Check that threads of a task have met since another one of them has accessed an address.

        Raises Fault where they need not.
        """
        for past, different in shadow.places.conflicts(index, places, reads_only=now.reads_only):
            numbers = (shadow.writes if past == "written" else shadow.reads)[index][different]
            for each in _different(numbers):
                before = self._accesses[each if past == "written" else self._sets[each][0]]
                if before is None or before.actor.agent != now.actor.agent:
                    continue
                if may_be_unordered(before.actor.op, now.actor.op):
                    at = int(different[np.flatnonzero(numbers == each)[0]])
                    raise of_other_threads(before, now, _where(shadow, index, at, buffer), past)

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

    def _access(self, memory: Accessor, op: Operation, kind: str, size: int) -> Access:
        actor = memory.actor(op)
        launch = self.launches.get(actor.agent // AGENTS, 0)
        return Access(actor, memory.program, self.strength(op), kind == "read", memory.issue, launch, size)

    def _number(self, access: Access) -> int:
        key = (access.actor.agent, access.actor.step, access.actor.op, access.reads_only)
        if (number := self._numbers.get(key)) is None:
            number = self._numbers[key] = len(self._accesses)
            self._accesses.append(access)
        return number

    def _grow(self, held: int, number: int, now: Access, clock: Clock) -> int:
        """The set `held` with an access more; of those that were added last, the ones that it covers are left out."""
        if self._sets[held][0] == number:
            return held
        kept: list[int] = []
        for _ in range(_LOOKED_AT):
            if not held:
                break
            last, held, _ = self._sets[held]
            before = self._accesses[last]
            assert before is not None
            if not before.is_covered_by(now, clock):
                kept.append(last)
        for each in (*reversed(kept), number):
            held = self._with(held, each)
        return held

    def _with(self, held: int, number: int) -> int:
        """The set of an access and those of the set `held`."""
        if (grown := self._grown.get((number, held))) is None:
            access = self._accesses[number]
            assert access is not None
            grown = self._grown[number, held] = len(self._sets)
            is_one_size = self._sets[held][2] in (_ANY, access.size)
            self._sets.append((number, held, access.size if is_one_size and access.strength is self._widest else 0))
        return grown

    def _check(
        self, held: NDArray[np.int32], index: Index, now: Access, clock: Clock, buffer: Buffer, *, is_set: bool
    ) -> None:
        chosen = held[index]
        if not chosen.any():
            return
        joins = now.strength is self._widest and not now.actor.is_async
        for each in _different(chosen):
            rest: int = each
            if is_set and joins and self._sets[each][2] in (_ANY, now.size):
                continue
            while rest:
                number, rest = self._sets[rest][:2] if is_set else (rest, 0)
                before = self._accesses[number]
                assert before is not None
                if before.reads_only and now.reads_only:
                    continue
                if clock.knows(*before.step):
                    if not before.needs_fence(now, clock):
                        continue
                    report = unfenced
                elif before.excludes(now):
                    report = race
                else:
                    self._check_sums(before, now, clock, buffer)
                    continue
                at = int(np.flatnonzero(chosen == each)[0])
                shadow = self._shadows[buffer.start]
                where = _where(shadow, index, at, buffer)
                if before.writes_descriptor or now.writes_descriptor:
                    where += ", which holds a tensor descriptor"
                is_other_gpu = before.program[3:] != now.program[3:]
                starts_later = is_other_gpu or before.program[::-1] > now.program[::-1]
                if report is race and before.reads_only and starts_later and not shadow.writes[index][at]:
                    raise too_early(before, now, where)
                if report is race and now.is_issued_before(before):
                    raise race(now, before, where)
                raise report(before, now, where)

    def _check_sums(self, before: Access, now: Access, clock: Clock, buffer: Buffer) -> None:
        """Warn of sums whose order is not that in which they are issued, once for each two lines."""
        key = before.actor.op, now.actor.op
        if self.in_turn and key not in self._sums and before.may_change_order(now, clock):
            self._sums.add(key)
            warn_of_sums(before, now, buffer.name)


def last_writers(order: GlobalOrder, memory: GlobalMemory) -> dict[str, SourceLocation]:
    """Return where each array was written last, by its name."""
    found = [(buffer.name, order.last_writer(buffer)) for buffer in memory]
    places = [(name, None if op is None else source_location(op.location)) for name, op in found]
    return {name: place for name, place in places if place is not None}


def _place(program: Program, strength: Strength) -> Place:
    """The threads in the scope of an operation; of scope `sys`, the GPU that has made it."""
    return strength, program if strength is Strength.CTA else program[3:]


def _where(shadow: _Shadow, index: Index, at: int, buffer: Buffer) -> str:
    element = (index.start + at) if isinstance(index, slice) else int(index[at])
    return f"byte {element * shadow.size} of '{buffer.name}' in global memory"


def _different(numbers: NDArray[np.int32]) -> list[int]:
    """The numbers, each once: most often there is one."""
    if len(numbers) and (numbers == numbers[0]).all():
        return [int(numbers[0])]
    return distinct(numbers).tolist()
