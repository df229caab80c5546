"""The recorder of the events of a wave, in the place of the vector clocks and of the counters of traffic.

Instructions report to the vector clocks (`ptx/clocks.py`) what they issue, arrive at and wait for, and to the counters
(`ptx/traffic.py`) what they move. The recorder takes both, and makes events of them. What an instruction says of
itself, such as the shape of a product, is read from its operation code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tlx_xdsl.element_types import tcgen05_types
from tlx_xdsl.numerics.arrays import Integers, distinct
from tlx_xdsl.ptx.cohort import LANES, Cohort, Item, Wait
from tlx_xdsl.ptx.flow import EXIT
from tlx_xdsl.ptx.global_order import WEAK, Sync
from tlx_xdsl.ptx.memory.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from tlx_xdsl.ptx.memory.surroundings import Surroundings
from tlx_xdsl.ptx.ops.memory import Nothing
from tlx_xdsl.ptx.read.symbols import SHARED_START
from tlx_xdsl.ptx.read.syntax import Address, Instruction, Vector

from .accesses import Patterns
from .trace import BYTES_OF_K, Event, Kind, Point, Step, Trace, Warp
from .trips import Loop, Trips

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_COPIES: dict[str, Kind] = {"TMA load": "tma_load", "TMA store": "tma_store", "bulk copy": "remote"}
_GLOBAL: dict[str, Kind] = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "tensormap": "store",
}  # fmt: skip
"""What an access to global memory is, by the name of the instruction."""
_COMMITS: dict[str, Kind] = {"cp.async": "copy_commit", "TMA store": "tma_commit", "wgmma": "wgmma_commit"}
_WAITS: dict[str, Kind] = {"cp.async": "copy_wait", "TMA store": "tma_wait", "wgmma": "wgmma_wait"}
_WORTH = 2
"""Times the limit of steps that a run may have in all for it to go on to its end."""
_LONGEST = 4
"""The same for a run whose rounds vary."""
_ALIKE = 0.05
"""The part of a round by which rounds of a loop, or their distances from a line, differ if nothing varies."""
_FEW_ROUNDS = 2
"""Rounds that lie on a line by chance."""
MOST_POLLS = 100
"""Times that a warp may find the same value in global memory by one instruction before it counts as stuck: whoever
writes it is not among the CTAs that run, or is stuck itself."""


@dataclass(slots=True)
class Copy:
    """A bulk copy, or an operation of the tensor core, under way."""

    event: Event
    warp: int
    key: tuple[int, ...] = ()
    """The instruction, the thread and the block that have issued it."""


@dataclass(slots=True)
class Rules:
    """The rules that all recorders of a launch share."""

    instructions: list[Instruction]
    hollow: Mapping[int, int]
    """Instructions that write zeros or guesses in the place of data, and which of the two."""
    checked: Mapping[int, int]
    """Loads whose results are needed, and how much of them."""
    wanted: Mapping[int, int]
    """Instructions that must write global memory."""
    most_steps: int
    """Steps of a warp past which the run stops."""
    trips: Trips
    share: float = 1.0
    """The clusters of the launch that run at once, for each that runs here."""


class _Pause:
    """The end of a turn of threads that poll: it is waited for once, and then over."""

    def __init__(self) -> None:
        self._is_over = False

    def passed(self, phase: int) -> bool:
        """Return whether the turn has ended."""
        self._is_over, before = True, self._is_over
        return before

    def describe(self, phase: int) -> str:
        """Say what is waited for."""
        return "a value in global memory"


class Recorder(Nothing):
    """Notes down what the warps of a wave do, cluster by cluster."""

    def __init__(self, wave: Surroundings, ctas: Integers, rules: Rules):
        self._wave, self._rules = wave, rules
        self._per_cta = wave.padded_threads // LANES
        self._per_cluster = self._per_cta * wave.cluster_size
        size = wave.cluster_size
        warps = range(wave.ctas * self._per_cta)
        self._warps = [Warp(warp // self._per_cta % size, warp % self._per_cta) for warp in warps]
        self._open: list[list[Event]] = [[] for _ in warps]
        """The events of the block that each warp is in."""
        self._held: dict[tuple[int, int], list[Event]] = {}
        """Events of a block that a warp waits in, and will run again."""
        self.traces = [
            Trace(part.tolist(), self._warps[first : first + self._per_cluster], [])
            for first, part in zip(warps[:: self._per_cluster], np.split(ctas, len(ctas) // size), strict=True)
        ]
        self._points: dict[tuple[Any, int], int] = {}
        self._arrived: dict[tuple[Any, int], tuple[int, ...]] = {}
        """The point of a barrier that each warp has arrived at last."""
        self._patterns = Patterns()
        self._known: dict[tuple[Any, ...], Event] = {}
        """Events that are the same each time."""
        self._copy: Copy | None = None
        """The bulk copy that was issued last."""
        self._copies: dict[int, Event] = {}
        """The `cp.async` that each warp has issued last."""
        self._polls: dict[int, tuple[int, int, bytes]] = {}
        """The last strong read of each warp: the instruction, how often it gave the same, and what."""
        self._pauses = False
        self._counters: dict[int, tuple[int, set[int]]] = {}
        """By address of global memory: the number that was taken first of this round, and the warps that took one."""
        self._stuck: set[int] = set()
        self._most_steps = rules.most_steps
        self.is_over = False
        """True if the run has stopped at the limit of steps."""
        self._is_near = False
        """True if little was left at the limit of steps, so that the run has gone on."""
        self.untrue: dict[int, int] = {}
        """Instructions whose data are needed after all, and how much of them."""
        self._has_zeros = False
        self._zeros = np.zeros(wave.shared.stride * wave.ctas, np.int32)
        """By byte of shared memory: the instruction, from 1, that has written zeros in the place of data."""
        self._global_zeros: dict[str, set[int]] = {}
        """The same by array of global memory."""
        self._empty = [Step(block.number) for block in wave.program.blocks]

    # Steps -----------------------------------------------------------------------------------------------------------

    def ran(self, number: int, cohort: Cohort, warps: list[int], following: int) -> int:
        """Warps of a cohort have run a block, or wait at its beginning; returns the block that follows."""
        if self.untrue:
            return EXIT
        most = 0
        for warp in warps:
            events = self._open[warp]
            if cohort.waiting is not None:
                if events:
                    self._held[warp, number] = events
                    self._open[warp] = []
                continue
            own = self._warps[warp]
            own.ran += 1
            most = max(most, own.ran)
            if self._held and (before := self._held.pop((warp, number), None)):
                events = before + events
            own.steps.append(Step(number, tuple(events)) if events else self._empty[number])
            if events:
                self._open[warp] = []
        if most >= self._most_steps and not self.is_over:
            self._estimate(cohort, following)
        if self._stuck and not self._stuck.isdisjoint(warps):
            self._cut(warps)
            return EXIT
        if self._pauses and cohort.waiting is None:
            # Turns are long: others may write meanwhile what is polled.
            cohort.waiting = Wait((Item(np.ones(cohort.n, np.bool_), _Pause(), 0),))
        self._pauses = False
        return EXIT if self.is_over else following

    def _estimate(self, cohort: Cohort, following: int) -> None:
        """Stop all warps at the limit of steps, and estimate how many each runs in all; or go on if few are left.

        Rounds that vary without a trend, as tiles of causal attention may, are run up to a later limit.
        """
        most, self._most_steps = self._most_steps, self._most_steps * _WORTH
        parts, is_known = self._parts(cohort, following)
        if not is_known and most < _LONGEST * self._rules.most_steps:
            return
        if max(parts.values(), default=1.0) < _WORTH and is_known and not self._is_near:
            self._is_near = True
            return
        # What has lasted longer than its loops' counters said is in a loop that does not count.
        self._stop({} if self._is_near else parts)

    def out_of_time(self) -> None:
        """Stop all warps where they are, and estimate how many steps each runs in all."""
        self._stop(self._parts(None, EXIT)[0])

    def _parts(self, cohort: Cohort | None, following: int) -> tuple[dict[int, float], bool]:
        """Estimate how many times its steps each warp in loops that count runs in all; False where that is not sure."""
        parts: dict[int, float] = {}
        is_known = True
        for each in self._wave.everyone():
            block = following if each is cohort else each.pc
            for thread, warp in zip(each.first_lanes.tolist(), each.warps.tolist(), strict=True):
                steps = self._warps[int(warp)].steps
                if steps and (loops := self._rules.trips.around(block, each.R, thread)):
                    rest, is_regular = _rest(loops, [step.block for step in steps])
                    parts[int(warp)] = 1 + rest / len(steps)
                    is_known = is_known and is_regular
        return parts, is_known

    def _stop(self, parts: Mapping[int, float]) -> None:
        self.is_over = True
        self._cut(range(len(self._warps)))
        usual = max(parts.values(), default=0)
        for warp, own in enumerate(self._warps):
            own.ran = round(len(own.steps) * parts.get(warp, usual))

    def finish(self) -> None:
        """Keep what warps have done in blocks that they wait in for good."""
        for (warp, number), events in self._held.items():
            self._warps[warp].steps.append(Step(number, tuple(events)))

    def _cut(self, warps: Iterable[int]) -> None:
        for warp in warps:
            self.traces[warp // self._per_cluster].whole = False

    def _note(self, warp: int, event: Event) -> Event:
        """Give a warp an event."""
        self._open[warp].append(event)
        return event

    def _same(self, at: int, kind: Kind, **fields: Any) -> Event:
        """An event that was made before, if it was."""
        key = (at, kind, *fields.values())
        if (found := self._known.get(key)) is None:
            found = self._known[key] = Event(at, kind, **fields)
        return found

    def _warps_of(self, cohort: Cohort, mask: Any) -> list[int]:
        return cohort.warps.tolist() if mask is None else self._counted(cohort, mask)[0]

    def _counted(self, cohort: Cohort, chosen: Any) -> tuple[list[int], list[int]]:
        """The warps that have some threads, by a mask or by their places in the cohort, and how many each has."""
        if len(chosen) == 1 and chosen.dtype != np.bool_:
            return [int(cohort.warp_of[chosen[0]])], [1]
        if cohort.whole and chosen.dtype == np.bool_:
            counts = np.count_nonzero(chosen.reshape(-1, LANES), axis=1)
            here = np.flatnonzero(counts)
            return cohort.warps[here].tolist(), counts[here].tolist()
        warps, counts = np.unique(cohort.warp_of[chosen], return_counts=True)
        return warps.tolist(), counts.tolist()

    # Points ----------------------------------------------------------------------------------------------------------

    def _point(self, barrier: Any, phase: int, warp: int) -> int:
        """The number of a point in the trace of a warp."""
        key = barrier, phase
        if (found := self._points.get(key)) is not None:
            return found
        points = self.traces[warp // self._per_cluster].points
        cta = warp % self._per_cluster // self._per_cta
        if isinstance(barrier, Mbarrier):
            place = next(place for place, each in self._wave.mbarriers.items() if each is barrier)
            name = place % self._wave.shared.stride - SHARED_START
            point = Point("mbarrier", name, barrier.cta % self._wave.cluster_size, phase)
        elif isinstance(barrier, NamedBarrier):
            point = Point("named", barrier.number, cta, phase)
        else:
            assert isinstance(barrier, ClusterBarrier)
            point = Point("cluster", 0, 0, phase)
        points.append(point)
        self._points[key] = len(points) - 1
        return len(points) - 1

    def _counts(self, warp: int, event: Event, barrier: Any) -> None:
        """Let an event of a warp count towards the phase of a barrier."""
        number = self._point(barrier, barrier.phase, warp)
        self.traces[warp // self._per_cluster].points[number].contributions += 1
        event.points = (*event.points, number)

    def _signal(self, cohort: Cohort, chosen: Any, barrier: Any) -> None:
        for warp, count in zip(*self._counted(cohort, chosen), strict=True):
            event = self._note(warp, Event(cohort.at, "signal", count=count))
            self._counts(warp, event, barrier)
            if not isinstance(barrier, Mbarrier):
                self._arrived[barrier, warp] = event.points

    def arrive(self, cohort: Cohort, threads: Any, barrier: Any, *, releases: bool, scope: int) -> None:
        """Threads arrive at an mbarrier."""
        self._signal(cohort, threads, barrier)

    def release(self, cohort: Cohort, chosen: Any, barrier: Any) -> None:
        """Threads arrive at a named barrier, or at that of the cluster."""
        self._signal(cohort, chosen, barrier)

    arrive_relaxed = release

    def acquire(self, cohort: Cohort, chosen: Any, barrier: Any, scope: int = 0) -> None:
        """Threads have waited for the phase of a barrier that they have arrived at."""
        for warp in self._warps_of(cohort, chosen):
            self._note(warp, Event(cohort.at, "wait", self._arrived.get((barrier, warp), ())))

    def pass_wait(self, cohort: Cohort, chosen: Any, barrier: Any, scope: int) -> None:
        """Threads have waited for the last phase of an mbarrier that is complete."""
        phase = barrier.phase - 1
        for warp in self._warps_of(cohort, chosen):
            points = (self._point(barrier, phase, warp),) if phase >= 0 else ()
            self._note(warp, Event(cohort.at, "wait", points))

    # Groups ----------------------------------------------------------------------------------------------------------

    def commit(self, cohort: Cohort, mask: Any, kind: str) -> None:
        """Warps close a group."""
        for warp in self._warps_of(cohort, mask):
            self._note(warp, self._same(cohort.at, _COMMITS[kind]))

    def wait_group(self, cohort: Cohort, mask: Any, kind: str, count: int, *, only_reads: bool = False) -> None:
        """Warps wait for all but the last groups."""
        for warp in self._warps_of(cohort, mask):
            self._note(warp, self._same(cohort.at, _WAITS[kind], count=count, only_reads=only_reads))

    def copies_arrive(self, cohort: Cohort, threads: Integers, barrier: Any) -> None:
        """The end of the `cp.async` of threads so far counts at an mbarrier."""
        for warp in self._warps_of(cohort, threads):
            self._counts(warp, self._note(warp, Event(cohort.at, "copy_commit")), barrier)

    # Copies ----------------------------------------------------------------------------------------------------------

    def issue(self, cohort: Cohort, thread: int, kind: str, to: Any = None) -> Copy:
        """A thread issues a bulk copy; once for each CTA that gets it."""
        warp = int(cohort.warp_of[thread])
        key = cohort.at, int(cohort.threads[thread]), self._warps[warp].ran
        if self._copy is not None and key == self._copy.key:
            self._copy.event.multicast += 1
            return self._copy
        self._copy = Copy(self._note(warp, Event(cohort.at, _COPIES[kind])), warp, key)
        self._discards(cohort, kind == "TMA store" and cohort.at not in self._rules.wanted)
        return self._copy

    def writes(self, token: Copy, units: Integers, size: int) -> None:
        """A copy writes units of 16 bytes of shared memory."""
        self.reads(token, units, size)
        if self._has_zeros:
            self._zeros.reshape(-1, size)[units] = 0

    def reads(self, token: Copy, units: Integers, size: int) -> None:
        """A copy reads units of 16 bytes of shared memory."""
        event = token.event
        if event.place < 0:
            event.place = int(units.min()) * size % self._wave.shared.stride - SHARED_START
            event.size = units.size * size
        if self._has_zeros and (level := self._rules.wanted.get(event.at, 0)):
            self._require(level, distinct(self._zeros.reshape(-1, size)[units]).tolist())

    def complete(self, token: Copy, barrier: Any) -> None:
        """The end of a copy counts at an mbarrier."""
        self._counts(token.warp, token.event, barrier)

    def global_units(self, token: Copy, addresses: Integers, size: int, what: str, strength: int = WEAK) -> None:
        """A bulk copy accesses `size` bytes of global memory at each address, all of one array."""
        if not len(addresses):
            return
        sectors, lines = self._patterns.units(addresses)
        token.event.sectors += sectors
        token.event.lines += lines
        if what != "read" and token.event.at not in self._rules.wanted:
            self._write_zeros(token.event.at, int(addresses[0]))

    def copy(self, cohort: Cohort, threads: Integers, places: Integers, size: int) -> None:
        """Threads issue `cp.async`."""
        self._mark(cohort, places, size, writes=True)
        for warp, count in zip(*self._counted(cohort, threads), strict=True):
            self._copies[warp] = self._note(warp, Event(cohort.at, "copy", size=count * size))

    def remote_stores(self, cohort: Cohort, chosen: Any, places: Integers, size: int, barrier: Any, to: int) -> None:
        """Threads issue `st.async`, whose end counts at an mbarrier."""
        for warp, count in zip(*self._counted(cohort, chosen), strict=True):
            self._counts(warp, self._note(warp, Event(cohort.at, "remote", size=count * size)), barrier)

    # Products --------------------------------------------------------------------------------------------------------

    def issue_groups(self, cohort: Cohort, kind: str) -> None:
        """Each warp of a cohort issues its 16 rows of a product."""
        instruction = self._rules.instructions[cohort.at]
        parts = instruction.modifiers
        m, n, k = map(int, cast(re.Match[str], _SHAPE.fullmatch(parts[3])).groups())
        is_in_registers = isinstance(instruction.operands[1], Vector)
        event = self._same(cohort.at, "wgmma", shape=(m, n, k), element=parts[5], in_registers=is_in_registers)
        for warp in cohort.warps.tolist():
            self._note(warp, event)

    def tensor_product(self, cohort: Cohort, thread: int, m: int, n: int) -> None:
        """A thread issues a product of the fifth generation."""
        instruction = self._rules.instructions[cohort.at]
        element = instruction.modifiers[2].removeprefix("kind::")
        # Elements of less than 8 bits have a byte each, but for the kinds that have no others.
        bits = max((each.bits for each in tcgen05_types(element).values()), default=4 if "f4" in element else 8)
        shape = m, n, 8 * BYTES_OF_K // (bits if "mxf4" in element else max(bits, 8))
        is_in_tensor = isinstance(instruction.operands[1], Address)
        event = self._same(cohort.at, "mma5", shape=shape, element=element, in_registers=is_in_tensor)
        self._note(int(cohort.warp_of[thread]), event)

    def tensor_issue(self, cohort: Cohort, thread: int, accumulator: Any) -> Copy:
        """A thread issues an operation of the tensor core; `accumulator` is the form of a product."""
        warp = int(cohort.warp_of[thread])
        if accumulator is None:
            return Copy(self._note(warp, Event(cohort.at, "tensor_copy")), warp)
        self.tensor_product(cohort, thread, accumulator[1], accumulator[2])
        return Copy(Event(cohort.at, "mma5"), warp)

    def tensor_moved(self, cohort: Cohort, mask: Any) -> None:
        """Warps load or store tensor memory."""
        instruction = self._rules.instructions[cohort.at]
        is_load = instruction.modifiers[0] == "ld"
        held = instruction.operands[0 if is_load else -1]
        count = len(held.items) if isinstance(held, Vector) else 1
        kind: Kind = "tensor_load" if is_load else "tensor_store"
        event = self._same(cohort.at, kind, size=4 * LANES * count)
        for warp in self._warps_of(cohort, mask):
            self._note(warp, event)

    def tensor_access(
        self, cohort: Cohort, row: int, cta: int, lanes: Integers, columns: Integers, writes: bool
    ) -> None:
        """A warp loads or stores tensor memory."""
        kind: Kind = "tensor_store" if writes else "tensor_load"
        size = 4 * np.broadcast(lanes, columns).size
        self._note(int(cohort.warps[row]), self._same(cohort.at, kind, size=size))

    def tensor_commit(self, cohort: Cohort, thread: int, barrier: Any) -> None:
        """The end of all that a thread has issued to the tensor core counts at an mbarrier."""
        warp = int(cohort.warp_of[thread])
        self._counts(warp, self._note(warp, Event(cohort.at, "mma5_commit")), barrier)

    def tensor_wait(self, cohort: Cohort, mask: Any, kind: str) -> None:
        """Warps wait for their loads or stores of tensor memory."""
        for warp in self._warps_of(cohort, mask):
            self._note(warp, self._same(cohort.at, "tensor_wait"))

    # Accesses of threads ---------------------------------------------------------------------------------------------

    def shared_accesses(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads access `size` bytes of shared memory each."""
        if not len(places):
            return
        is_copy = self._rules.instructions[cohort.at].name == "cp"
        kind: Kind = "remote" if not is_copy and self._is_remote(cohort, mask, places) else "shared"
        for warp, count, moved in self._patterns.shared(cohort, mask, places, size):
            if is_copy:
                self._copies[warp].count = count
            else:
                self._note(warp, self._same(cohort.at, kind, count=count, size=moved))

    def _is_remote(self, cohort: Cohort, mask: Any, places: Integers) -> bool:
        if self._wave.cluster_size == 1:
            return False
        own = cohort.ctas if mask is None else cohort.ctas[mask]
        return bool((places // self._wave.shared.stride != own).any())

    def shared_rows(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> None:
        """Each warp accesses so many rows of a matrix."""
        for warp, count, moved in self._patterns.rows(cohort, mask, places, rows, size):
            self._note(warp, self._same(cohort.at, "shared", count=count, size=moved))

    def global_accesses(self, cohort: Cohort, mask: Any, addresses: Any, size: int) -> None:
        """Threads access `size` bytes of global memory each."""
        at = cohort.at
        name = self._rules.instructions[at].name
        is_hollow = at in self._rules.hollow
        self._discards(cohort, is_hollow and at not in self._rules.wanted)
        if not len(addresses):
            return
        if name == "atom" and len(addresses) == 1 and self._takes(at):
            self._count_others(int(cohort.warp_of[0 if mask is None else np.argmax(mask)]), addresses, size)
        if is_hollow:
            self._write_zeros(at, int(addresses[0]))
        elif at in self._rules.checked and self._global_zeros:
            buffer = self._wave.machine.memory.find(int(addresses[0]))
            writers = self._global_zeros.get(buffer.name if buffer is not None else "", ())
            self._require(self._rules.checked[at], writers)
        for warp, moved, sectors, lines in self._patterns.of_global(cohort, mask, addresses, size):
            if name == "cp":
                event = self._copies[warp]
                event.sectors, event.lines = sectors, lines
            else:
                self._note(warp, Event(at, _GLOBAL[name], size=moved, sectors=sectors, lines=lines))

    def _takes(self, at: int) -> bool:
        """Return whether an instruction may take the next number of a counter, as dynamic schedules of tiles do."""
        parts = self._rules.instructions[at].modifiers
        return at in self._rules.checked and "add" in parts and parts[-1][1:] in ("32", "64") and parts[-1][0] in "usb"

    def _count_others(self, warp: int, address: Any, size: int) -> None:
        """Count for the CTAs that do not run, which take numbers as often: once a warp here takes one again."""
        memory = self._wave.machine.memory
        now = int(memory.load(address, size, 1)[0])
        first, takers = self._counters.setdefault(int(address[0]), (now, set()))
        if warp in takers:
            now += int((now - first) * (self._rules.share - 1))
            memory.store(address, np.array([now % (1 << 8 * size)], f"u{size}"), size, 1)
            self._counters[int(address[0])] = first, takers = now, set[int]()
        takers.add(warp)

    def global_access(self, cohort: Cohort, mask: Any, addresses: Any, size: int, sync: Sync, what: str) -> None:
        """Threads have accessed global memory: a warp that asks the same again and again is stuck."""
        if sync.scope == WEAK or what == "write":
            return
        found = self._wave.machine.memory.load(addresses[:1], size, 1).tobytes()
        for warp in self._warps_of(cohort, mask):
            at, count, before = self._polls.get(warp, (-1, 0, b""))
            count = count + 1 if (at, before) == (cohort.at, found) else 0
            self._polls[warp] = cohort.at, count, found
            self._pauses |= count > 0
            if count > MOST_POLLS:
                self._stuck.add(warp)

    # Zeros in the place of data --------------------------------------------------------------------------------------

    def _discards(self, cohort: Cohort, discards: bool) -> None:
        self._wave.machine.memory.discards = discards

    def _write_zeros(self, at: int, address: int) -> None:
        if (buffer := self._wave.machine.memory.find(address)) is not None:
            self._global_zeros.setdefault(buffer.name, set()).add(at + 1)

    def _require(self, level: int, writers: Iterable[int]) -> None:
        """Note that the data of instructions, by their numbers from 1 on, are needed; 0 is none."""
        for at in (each - 1 for each in writers if each):
            if self._rules.hollow.get(at, 0) < level and self._rules.wanted.get(at, 0) < level:
                self.untrue[at] = max(level, self.untrue.get(at, 0))

    def _mark(self, cohort: Cohort, places: Integers, size: int, *, writes: bool) -> None:
        """Note an access to shared memory: who has written zeros there, or whether they are needed."""
        at = cohort.at
        if writes:
            is_hollow = at in self._rules.hollow
            if is_hollow or self._has_zeros:
                self._has_zeros = True
                self._zeros[places[:, None] + np.arange(size)] = at + 1 if is_hollow else 0
        elif self._has_zeros and at in self._rules.checked:
            found = distinct(self._zeros[places[:, None] + np.arange(size)])
            self._require(self._rules.checked[at], found.tolist())

    def load(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads read shared memory."""
        self._mark(cohort, places, size, writes=False)

    def store(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads write shared memory."""
        self._mark(cohort, places, size, writes=True)

    def update(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads update shared memory."""
        self._mark(cohort, places, size, writes=False)
        self._mark(cohort, places, size, writes=True)

    def rows_read(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> None:
        """Warps read rows of a matrix."""
        self._mark(cohort, places, size, writes=False)
        self.shared_rows(cohort, mask, places, rows, size)

    def rows_written(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> None:
        """Warps write rows of a matrix."""
        self._mark(cohort, places, size, writes=True)
        self.shared_rows(cohort, mask, places, rows, size)


def _rest(loops: list[tuple[Loop, int]], blocks: list[int]) -> tuple[float, bool]:
    """Estimate the blocks that a warp will run yet, which is in these loops, inner ones first, and has run `blocks`.

    Rounds that get shorter or longer evenly go on to do so. False comes with rounds of which that can't be said.
    """
    rest, is_known, ran = 0.0, True, np.array(blocks)
    for loop, left in loops:
        times = np.flatnonzero(ran == loop.header)
        since = len(ran) - int(times[-1]) if len(times) else 0
        # What lies between two stays in the loop is no part of a round.
        left_at = np.cumsum(~np.isin(ran, list(loop.blocks)))[times]
        rounds = np.diff(times)[np.diff(left_at) == 0]
        if not len(rounds):
            rest, is_known = max((since + rest) * left - since, 0.0), True
            continue
        usual = np.full(left, np.median(rounds))
        is_known = left <= 1 or np.ptp(rounds) <= _ALIKE * usual[0]
        if not is_known and len(rounds) > _FEW_ROUNDS:
            places = np.arange(len(rounds) + left)
            line = np.polyval(np.polyfit(places[: len(rounds)], rounds, 1), places)
            is_known = np.ptp(line[: len(rounds)] - rounds) <= _ALIKE * usual[0]
            usual = np.maximum(line[len(rounds) :], 0.0) if is_known else usual
        rest = max(float(usual.sum()) - since, 0.0)
    return rest, is_known


class Counters(Nothing):
    """The counters of traffic of a launch, which hand accesses to the recorder of the wave."""

    def shared_access(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads access shared memory."""
        cohort.wave.order.shared_accesses(cohort, mask, places, size)

    def global_access(self, cohort: Cohort, mask: Any, addresses: Any, size: int) -> None:
        """Threads access global memory."""
        cohort.wave.order.global_accesses(cohort, mask, addresses, size)
