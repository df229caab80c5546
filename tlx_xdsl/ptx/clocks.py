"""Happens-before of a wave: vector clocks of warps and of asynchronous operations, as matrices.

Each warp is an agent, and so are the operations of one kind that a warp has issued and that report to one thing: its
`cp.async`, its stores by TMA, its loads by TMA to one mbarrier, the products of its warp group, its operations of the
tensor core. `known[warp]` holds the last step of each agent that is over and visible to the warp; `fenced[warp]`
the last one that is visible to the async proxy, too (PTX ISA, "Async proxy"). Two accesses to the same byte of which
one writes must be ordered (Lamport 1978; Mattern 1989), whichever way this run had them.

The threads of a warp count as one, for they run together here. That accesses of different lanes of one warp need an
order, too, is `lanes.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Booleans, Integers, distinct

from .cohort import LANES, Cohort
from .global_order import CLUSTER, SHARED, WEAK, Foreign, Sync, WaveView, joined, longest
from .lanes import EVERY_LANE, LaneOrder
from .memory.barriers import Mbarrier
from .memory.shadow import STEPS, Shadow
from .memory.surroundings import Surroundings, Trap
from .read.faults import PtxRace, describe

_MOST_PLACES = 3
"""Places that a note about an earlier access names."""
_NOT_ACQUIRED = (
    "it was waited for, but not released to the cluster, as '.release.cluster' on an arrival does, or not acquired "
    "from it: by '.acquire.cluster' on the wait, fence.acquire.cluster after it or, for shared memory, "
    "fence.acquire.sync_restrict::shared::cluster.cluster",
)
_NOTHING = np.zeros((2, 2, 0), np.int32)


STARTED = 1
"""The step of each warp that is its start; what it does comes later."""


@dataclass(frozen=True, slots=True)
class Token:
    """An asynchronous operation, or those of all warp groups of a cohort."""

    agents: Integers
    steps: Integers
    warps: Integers
    """The warp that has issued each."""
    what: str
    ordered_with_itself: bool = False
    """True if each comes after those that its agent has had before."""
    lane: int | None = None
    """The lane that has issued it; None where whole warps have."""


class Clocks:
    """Compares the accesses of a wave to shared and tensor memory."""

    def __init__(self, wave: Surroundings):
        self.wave = wave
        self.warps = wave.ctas * wave.padded_threads // LANES
        self._per_cta = wave.padded_threads // LANES
        self.known: NDArray[np.int32] = np.zeros((self.warps, self.warps), np.int32)
        self.fenced: NDArray[np.int32] = np.zeros((self.warps, self.warps), np.int32)
        every = np.arange(self.warps)
        self.known[every, every] = STARTED + 1
        self._is_cluster = wave.cluster_size > 1
        self._acquired, self._seen = np.zeros((2, 2, self.warps, self.warps if self._is_cluster else 0), np.int32)
        """What each warp has acquired of other CTAs' accesses to shared and to global memory, `known` at the most; and
        what it has waited for, which a fence acquires."""
        self._home: Integers = every // self._per_cta
        """The CTA of each agent."""
        self._steps: dict[int, int] = {}
        """The last step of each asynchronous agent."""
        self._agents: dict[tuple[Any, ...], int] = {}
        self._issuers_of: dict[int, int] = {}
        """The warp of each asynchronous agent."""
        self.names: dict[int, str] = {}
        self.is_async: Booleans = np.zeros(self.warps, np.bool_)
        """Whether an agent is of the async proxy."""
        self._is_mark: Booleans = np.zeros(self.warps, np.bool_)
        """Whether an agent stands for what has happened, and accesses no memory: all arrivals signal that."""
        self._groups: dict[tuple[str, int], list[int]] = {}
        """The steps that were committed by each warp and not waited for, by the kind of operation."""
        self._places: dict[tuple[int, int], list[int]] = {}
        """The instructions of each step of an agent."""
        self._released: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        """What each warp knew at its last fence, which its relaxed arrivals release."""
        self._arrivals: dict[int, dict[int, int]] = {}
        """The last step in which each agent of another CTA has arrived at an mbarrier of a CTA."""
        self.lanes = LaneOrder(self.known, self._report_lanes)
        self.shared = Shadow(self, len(wave.shared.bytes), wave.shared.stride, self.lanes, SHARED)
        self._tensor: Shadow | None = None
        self.view = WaveView(wave.machine.global_order, self)
        self._looks = self.view.order.compares or self.view.order.dependent is not None
        self._left = wave.ctas
        self._poll: Any = None
        """The last strong read, which a loop may do again and again before anyone writes."""
        self._global_places: dict[tuple[Any, ...], tuple[Integers, Integers]] = {}
        """The warps and their steps of the accesses to global memory, by instruction and by themselves."""

    # Agents ----------------------------------------------------------------------------------------------------------

    def agent(self, kind: str, warp: int, to: Any = None, *, is_async: bool = True) -> int:
        """The agent of operations of a kind, of a warp, that report to one thing."""
        key = (kind, warp, to)
        if (found := self._agents.get(key)) is None:
            found = self._agents[key] = self.warps + len(self._agents)
            self.names[found] = f"{kind} of warp {warp % self._per_cta}"
            self._issuers_of[found] = warp
            if found >= self.known.shape[1]:
                more = max(found, 64)
                self.known = np.pad(self.known, ((0, 0), (0, more)))
                self.fenced = np.pad(self.fenced, ((0, 0), (0, more)))
                if self._is_cluster:
                    both = np.stack([self._acquired, self._seen])
                    self._acquired, self._seen = np.pad(both, ((0, 0), (0, 0), (0, 0), (0, more)))
                self._home = np.pad(self._home, (0, more))
                self.is_async = np.pad(self.is_async, (0, more))
                self._is_mark = np.pad(self._is_mark, (0, more))
            self._home[found] = warp // self._per_cta
            self.is_async[found] = is_async
            self._steps[found] = 0
        return found

    def warp_of_agent(self, agent: int) -> int:
        """The warp that an agent is, or that has issued its operations."""
        return self._issuers_of.get(agent, agent)

    def _note(self, agent: int, step: int, cohort: Cohort) -> None:
        found = self._places.setdefault((agent, step), [])
        if cohort.at not in found and len(found) < 8 * _MOST_PLACES:
            found.append(cohort.at)

    def _begin(self, cohort: Cohort, agent: int) -> int:
        step = self._steps[agent] = self._steps[agent] + 1
        self._note(agent, step, cohort)
        return step

    # Accesses of threads ---------------------------------------------------------------------------------------------

    def load(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads read `size` bytes at each place."""
        warps, lanes = self._who(cohort, mask)
        self._threads(cohort, warps, places, size, lanes, writes=False)

    def store(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads write `size` bytes at each place."""
        warps, lanes = self._who(cohort, mask)
        self._threads(cohort, warps, places, size, lanes, writes=True)

    def update(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """Threads read and write `size` bytes at each place by atomic operations."""
        warps, lanes = self._who(cohort, mask)
        self._threads(cohort, warps, places, size, lanes, writes=True, atomic=True)

    def rows_read(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> None:
        """Each warp reads so many rows."""
        self._threads(cohort, np.repeat(self._running(cohort, mask), rows), places, size, EVERY_LANE, writes=False)

    def rows_written(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> None:
        """Each warp writes so many rows."""
        self._threads(cohort, np.repeat(self._running(cohort, mask), rows), places, size, EVERY_LANE, writes=True)

    @staticmethod
    def _who(cohort: Cohort, mask: Any) -> tuple[Integers, Integers]:
        return (cohort.warp_of, cohort.lane) if mask is None else (cohort.warp_of[mask], cohort.lane[mask])

    @staticmethod
    def _running(cohort: Cohort, mask: Any) -> Integers:
        return cohort.warps if mask is None else cohort.warps[mask.reshape(-1, LANES)[:, 0]]

    def _threads(
        self,
        cohort: Cohort,
        warps: Integers,
        places: Integers,
        size: int,
        lanes: Integers | int,
        *,
        writes: bool,
        atomic: bool = False,
    ) -> None:
        if not len(places):
            return
        first = int(warps[0])
        own = np.array([first]) if warps[-1] == first else distinct(warps)
        steps = self.known[own, own].astype(np.int64)
        for warp, step in zip(own.tolist(), steps.tolist(), strict=True):
            self._note(warp, step, cohort)
        self.lanes.at = cohort.at
        self.shared.access(
            own, own, steps, warps, places, size, lanes, writes=writes, proxy=False, ordered=False, atomic=atomic
        )

    # Global memory ---------------------------------------------------------------------------------------------------

    def global_access(
        self, cohort: Cohort, mask: Any, addresses: NDArray[np.uint64], size: int, sync: Sync, what: str
    ) -> None:
        """Threads access `size` bytes of global memory at each address: a `read`, a `write`, or an `update`."""
        if not len(addresses) or not self._looks:
            return
        warps = cohort.warp_of if mask is None else cohort.warp_of[mask]
        own = cohort.warps if mask is None else warps[np.flatnonzero(np.diff(warps, prepend=-1))]
        steps = self.known[own, own].astype(np.int64)
        key = (cohort.at, own.tobytes(), steps.tobytes())
        if sync.scope != WEAK and what == "read":
            poll = (key, addresses.tobytes(), self.view.order.writes)
            if poll == self._poll:
                return
            self._poll = poll
        self._global_places.setdefault(key, (own, steps))
        codes = self.view.code(warps, self.known[warps, warps], sync.scope)
        released: list[int] = []
        for buffer, chosen in self.wave.machine.memory.groups(addresses, size, what):
            at, of = addresses[chosen].astype(np.int64), warps[chosen]
            self.view.access(buffer, at, size, of, codes[chosen], what)
            self._note_early(buffer, at, size, what, cohort.at, of)
            if sync.scope != WEAK and self.view.order.compares:
                released += self.view.synchronize(buffer, at, size, of, sync, what)
        for warp in set(released):
            self.known[warp, warp] += 1

    def global_copy(self, cohort: Cohort, threads: Integers, addresses: NDArray[np.uint64], size: int) -> None:
        """Threads read `size` bytes of global memory by the `cp.async` that they have issued last."""
        if not len(threads) or not self._looks:
            return
        warps = cohort.warp_of[threads]
        agents = self.lanes.copiers[warps]
        steps = np.array([self._steps[agent] for agent in agents.tolist()])
        for buffer, chosen in self.wave.machine.memory.groups(addresses, size, "load"):
            codes = self.view.code(agents[chosen], steps[chosen], WEAK)
            self.view.access(buffer, addresses[chosen].astype(np.int64), size, warps[chosen], codes, "read")
            self._note_early(buffer, addresses[chosen].astype(np.int64), size, "read", cohort.at, warps[chosen])

    def global_units(self, token: Token, addresses: Integers, size: int, what: str, strength: int = WEAK) -> None:
        """A copy by TMA accesses `size` bytes of global memory at each address, all of one array."""
        if not len(addresses) or not self._looks:
            return
        warp, agent, step = int(token.warps[0]), int(token.agents[0]), int(token.steps[0])
        if what != "read":
            written = self.agent("TMA write", warp)
            self._steps[written] = step
            self._places[written, step] = self._places[agent, step]
            agent = written
        buffer = self.wave.machine.memory.find(int(addresses[0]))
        self.view.access(buffer, addresses, size, warp, self.view.code(agent, step, strength), what)
        self._note_early(buffer, addresses, size, what, self._places[agent, step][-1], np.full(len(addresses), warp))

    def grid_wait(self, cohort: Cohort, mask: Any) -> None:
        """Warps have waited for the launches before."""
        agent = self.agent("griddepcontrol.wait", 0, is_async=False)
        self.known[cohort.warps if mask is None else distinct(cohort.warp_of[mask]), agent] = 1

    def _note_early(self, buffer: Any, addresses: Integers, size: int, what: str, at: int, warps: Integers) -> None:
        if (dependent := self.view.order.dependent) is not None:
            agent = self.agent("griddepcontrol.wait", 0, is_async=False)
            dependent.note(buffer, addresses, size, what, at, self.known[warps, agent] == 0)

    # Asynchronous operations -----------------------------------------------------------------------------------------

    def issue(self, cohort: Cohort, thread: int, kind: str, to: Any = None) -> Token:
        """A thread issues an operation of the async proxy."""
        warp = int(cohort.warp_of[thread])
        agent = self.agent(kind, warp, to)
        step = self._begin(cohort, agent)
        return Token(np.array([agent]), np.array([step]), np.array([warp]), kind, lane=int(cohort.lane[thread]))

    def issue_groups(self, cohort: Cohort, kind: str) -> Token:
        """Each warp group of a cohort issues an operation."""
        warps = cohort.warps[::4]
        agents = np.array([self.agent(kind, int(warp)) for warp in warps])
        steps = np.array([self._begin(cohort, int(agent)) for agent in agents])
        return Token(agents, steps, warps, kind)

    def reads(self, token: Token, units: Integers, size: int) -> None:
        """An operation reads units of 16 bytes."""
        self.groups_read(token, units.reshape(1, -1), size)

    def groups_read(self, token: Token, units: Integers, size: int) -> None:
        """Each operation of a token reads a row of units."""
        self._units(token, units, size, writes=False)

    def writes(self, token: Token, units: Integers, size: int) -> None:
        """An operation writes units of 16 bytes."""
        self._units(token, units.reshape(1, -1), size, writes=True)

    def _units(self, token: Token, units: Integers, size: int, *, writes: bool) -> None:
        for agent, step, warp, row in zip(token.agents, token.steps, token.warps, units, strict=True):
            self.shared.access(
                np.array([warp]), np.array([agent]), np.array([step]), None, row * size, size, token.lane,
                writes=writes, proxy=True, ordered=token.ordered_with_itself,
            )  # fmt: skip

    def copy(self, cohort: Cohort, threads: Integers, places: Integers, size: int) -> None:
        """Threads issue `cp.async`, of the generic proxy."""
        warps = cohort.warp_of[threads]
        for warp in distinct(warps).tolist():
            agent = self.agent("cp.async", warp, is_async=False)
            step = self._begin(cohort, agent)
            self.lanes.copiers[warp], self.lanes.at = agent, cohort.at
            own = warps == warp
            self.shared.access(
                np.array([warp]), np.array([agent]), np.array([step]), None, places[own], size,
                cohort.lane[threads][own], writes=True, proxy=False, ordered=False,
            )  # fmt: skip

    def remote_stores(
        self, cohort: Cohort, chosen: Booleans, places: Integers, size: int, barrier: Any, to: int
    ) -> None:
        """Threads issue `st.async`, whose end counts at an mbarrier."""
        warps = cohort.warp_of[chosen]
        for warp in distinct(warps).tolist():
            agent = self.agent("st.async", warp, to, is_async=False)
            step = self._begin(cohort, agent)
            token = Token(np.array([agent]), np.array([step]), np.array([warp]), "st.async")
            self.shared.access(
                token.warps, token.agents, token.steps, None, places[warps == warp], size, None,
                writes=True, proxy=False, ordered=True,
            )  # fmt: skip
            self.complete(token, barrier)

    def commit(self, cohort: Cohort, mask: Any, kind: str) -> None:
        """Warps close a group of operations of a kind."""
        for warp in self._issuers(cohort, mask, kind):
            agent = self._agents.get((kind, warp, None))
            self._groups.setdefault((kind, warp), []).append(0 if agent is None else self._steps[agent])
        if kind == "TMA store":
            self.commit(cohort, mask, "TMA write")

    def wait_group(self, cohort: Cohort, mask: Any, kind: str, count: int, *, only_reads: bool = False) -> None:
        """Warps wait for all but the last groups of operations of a kind, or for what these read."""
        if kind == "TMA store" and not only_reads:
            self.wait_group(cohort, mask, "TMA write", count)
        for warp in self._issuers(cohort, mask, kind):
            groups = self._groups.get((kind, warp), [])
            done = groups[: len(groups) - count] if count else groups
            agent = self._agents.get((kind, warp, None))
            if not done or agent is None:
                continue
            self._groups[kind, warp] = groups[len(done) :]
            waiting = slice(warp, warp + 4) if kind == "wgmma" else slice(warp, warp + 1)
            self.known[waiting, agent] = np.maximum(self.known[waiting, agent], done[-1])
            if self.is_async[agent]:
                self.fenced[waiting, agent] = np.maximum(self.fenced[waiting, agent], done[-1])

    def _issuers(self, cohort: Cohort, mask: Any, kind: str) -> list[int]:
        warps = cohort.warps if mask is None else distinct(cohort.warp_of[mask])
        return [warp for warp in warps.tolist() if kind != "wgmma" or warp % 4 == 0]

    def complete(self, token: Token, barrier: Any) -> None:
        """The end of an operation counts at an mbarrier."""
        warp = int(token.warps[0])
        self._check_made(token.warps, barrier)
        known, fenced = self.known[warp].copy(), self.fenced[warp].copy()
        known[token.agents], fenced[token.agents] = token.steps, token.steps
        barrier.arrivals.update(zip(token.agents.tolist(), token.steps.tolist(), strict=True))
        self._gather(barrier, known, fenced, token.warps[:1], self.view.foreign.get(warp))

    def copies_arrive(self, cohort: Cohort, threads: Integers, barrier: Any) -> None:
        """The end of the `cp.async` of threads so far counts at an mbarrier."""
        for warp in distinct(cohort.warp_of[threads]).tolist():
            known = self.known[warp].copy()
            if (agent := self._agents.get(("cp.async", warp, None))) is not None:
                known[agent] = self._steps[agent]
            self._gather(barrier, known, self.fenced[warp], np.array([warp]), self.view.foreign.get(warp))

    # Order -----------------------------------------------------------------------------------------------------------

    def _gather(
        self,
        barrier: Any,
        known: NDArray[np.int32],
        fenced: NDArray[np.int32],
        warps: Integers,
        foreign: Foreign | None = None,
        scope: int = CLUSTER,
    ) -> None:
        data = self._data(barrier, known, warps, scope) if self._is_cluster else _NOTHING
        if barrier.gathering is None:
            barrier.gathering = (known.copy(), fenced.copy(), foreign, data)
            return
        before = barrier.gathering
        both = before[2] if foreign is None else joined(before[2], foreign)
        barrier.gathering = (longest(before[0], known), longest(before[1], fenced), both, longest(before[3], data))

    def _data(self, barrier: Any, known: NDArray[np.int32], warps: Integers, scope: int) -> NDArray[np.int32]:
        """Return what arriving warps release to a scope: to waits that acquire from their own CTA, and to others.

        That is what they have acquired themselves. Asynchronous operations that were waited for are over, whoever asks.
        """
        count = len(known)
        own = np.isin(self._home[:count], warps // self._per_cta) | self.is_async[:count]
        everything = np.where(own, known, np.minimum(known, self._acquired[:, warps, :count].max(axis=1)))
        if not isinstance(barrier, Mbarrier) or warps[0] // self._per_cta == barrier.cta:
            return np.stack([everything, everything])
        over = np.where(self.is_async[:count], everything, 0)
        return np.stack([over, everything if scope >= CLUSTER else over])

    def unordered(self, warps: Any, agents: Any, steps: Any, memory: int | None) -> Any:
        """Say which steps of agents warps don't know, or have not acquired where those are of other CTAs."""
        late = self.known[warps, agents] < steps
        if not self._is_cluster or memory is None:
            return late
        apart = (self._home[agents] != warps // self._per_cta) & ~self.is_async[agents]
        return late | (apart & (self._acquired[memory, warps, agents] < steps))

    def take_all(self, warp: int, steps: NDArray[np.int32]) -> None:
        """Note that a warp has acquired steps of agents from all of the GPU."""
        for row in (self.known[warp], *(self._acquired[:, warp] if self._is_cluster else ())):
            row[: len(steps)] = np.maximum(row[: len(steps)], steps)

    def _release(self, warps: Integers, barrier: Any, scope: int = CLUSTER) -> None:
        known, fenced = self.known[warps].max(axis=0), self.fenced[warps].max(axis=0)
        self._gather(barrier, known, fenced, warps, self.view.of_others(warps), scope)
        self.known[warps, warps] += 1
        if int(self.known[warps, warps].max()) >= STEPS:
            raise Trap(f"a warp has arrived more than {STEPS} times: run without comparing accesses (races=False)")

    def release(self, cohort: Cohort, chosen: Booleans, barrier: Any) -> None:
        """Threads arrive at a barrier."""
        self._release(distinct(cohort.warp_of[chosen]), barrier)

    def arrive(self, cohort: Cohort, threads: Integers, barrier: Any, *, releases: bool, scope: int) -> None:
        """Threads arrive at an mbarrier, and release what they know to a scope or, relaxed, what a fence has."""
        warps = distinct(cohort.warp_of[threads])
        self._check_made(warps, barrier)
        if not releases:
            self._arrive_relaxed(cohort, warps, barrier)
            return
        for warp in warps.tolist():
            step = int(self.known[warp, warp])
            self._note(warp, step, cohort)
            self._arrived(barrier, warp, warp, step)
        self._release(warps, barrier, scope)

    def _arrive_relaxed(self, cohort: Cohort, warps: Integers, barrier: Any) -> None:
        for warp in warps.tolist():
            agent = self.agent("mbarrier.arrive", warp, is_async=False)
            self._is_mark[agent] = True
            step = self.known[warp, agent] = self._begin(cohort, agent)
            self._arrived(barrier, warp, agent, step)
            self._gather(barrier, *self._relaxed(warp), np.array([warp]))

    def _arrived(self, barrier: Any, warp: int, agent: int, step: int) -> None:
        """Note an arrival at an mbarrier."""
        barrier.arrivals[agent] = step
        if warp // self._per_cta != barrier.cta:
            self.check_lives(barrier.cta, np.array([warp]))
            self._arrivals.setdefault(barrier.cta, {})[agent] = step

    def fence(self, cohort: Cohort, mask: Any, scope: int, acquires: slice) -> None:
        """Warps fence: what they know now is released by relaxed operations after it.

        What they have waited for of other CTAs is acquired for the memories `acquires`.
        """
        warps = cohort.warps if mask is None else distinct(cohort.warp_of[mask])
        self._acquired[acquires, warps] = np.maximum(self._acquired[acquires, warps], self._seen[acquires, warps])
        for warp in warps.tolist():
            if scope != WEAK:
                self.view.fence(warp, scope)
            self._released[warp] = (self.known[warp].copy(), self.fenced[warp].copy())
            self.known[warp, warp] += 1

    def arrive_relaxed(self, cohort: Cohort, chosen: NDArray[Any], barrier: Any) -> None:
        """Threads arrive at the cluster's barrier without releasing more than what a fence has."""
        for warp in distinct(cohort.warp_of[chosen]).tolist():
            self._gather(barrier, *self._relaxed(warp), np.array([warp]))

    def _relaxed(self, warp: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return what a relaxed arrival signals: what a fence has released, who has started, and what has arrived."""
        known = np.where(self._is_mark, self.known[warp], 0).astype(np.int32)
        known[: self.warps] = np.minimum(self.known[warp, : self.warps], STARTED)
        fenced = np.zeros_like(known)
        if (released := self._released.get(warp)) is None:
            return known, fenced
        return longest(known, released[0]), longest(fenced, released[1])

    def check_lives(self, cta: int, warps: Integers) -> None:
        """Check that another CTA, whose memory warps access, has started for all that they know, and has not ended."""
        if self.wave.cluster_size == 1:
            return
        of_others = warps[warps // self._per_cta != cta]
        if not len(of_others):
            return
        rank = cta % self.wave.cluster_size
        if not self.wave.alive[cta]:
            self.report(
                Trap(
                    f"warp {int(of_others[0]) % self._per_cta} uses the memory of another CTA, {rank}, which has ended",
                    ("a barrier.cluster before its end does",),
                    PtxRace,
                )
            )
            return
        own = slice(cta * self._per_cta, (cta + 1) * self._per_cta)
        late = self.known[of_others, own].max(axis=1) < STARTED
        if late.any():
            self.report(
                Trap(
                    f"warp {int(of_others[late][0]) % self._per_cta} uses the memory of another CTA, and nothing "
                    f"orders that after the start of CTA {rank} of the cluster",
                    ("a barrier.cluster before it does",),
                    PtxRace,
                )
            )

    def acquire(self, cohort: Cohort, chosen: Booleans, barrier: Any, scope: int = CLUSTER) -> None:
        """Threads have waited for a barrier, and acquire from the CTAs of a scope."""
        if barrier.completed is None:
            return
        warps = distinct(cohort.warp_of[chosen])
        known, fenced, foreign, (near, everything) = barrier.completed
        count = len(known)
        self.known[warps, :count] = np.maximum(self.known[warps, :count], known)
        self.fenced[warps, :count] = np.maximum(self.fenced[warps, :count], fenced)
        if self._is_cluster:
            for held, taken in ((self._acquired, everything if scope >= CLUSTER else near), (self._seen, everything)):
                held[:, warps, :count] = np.maximum(held[:, warps, :count], taken[:, None])
        self.lanes.meet(warps, known)
        if foreign:
            for warp in warps.tolist():
                self.view.take(warp, foreign)

    def pass_wait(self, cohort: Cohort, chosen: Booleans, barrier: Any, scope: int) -> None:
        """Threads have waited for an mbarrier, and acquire from the CTAs of a scope."""
        warps = distinct(cohort.warp_of[chosen])
        self._check_made(warps, barrier)
        self._check_phase(warps, barrier)
        self.acquire(cohort, chosen, barrier, scope)

    def initialise(self, cohort: Cohort, threads: Integers, place: int) -> None:
        """A thread makes an mbarrier, or ends it."""
        warp = int(cohort.warp_of[threads[0]])
        self.store(cohort, np.isin(np.arange(cohort.n), threads[:1]), np.array([place]), 8)
        if (barrier := self.wave.mbarriers.get(place)) is not None:
            barrier.made = (warp, int(self.known[warp, warp]))

    def _check_made(self, warps: Integers, barrier: Any) -> None:
        if barrier.made is None:
            return
        agent, step = barrier.made
        if (self.known[warps, agent] < step).any():
            self.report(
                Trap(
                    f"nothing orders this use of {barrier.name} after its initialisation",
                    (f"initialised at {self.places(agent, step)}",),
                    PtxRace,
                )
            )

    def _check_phase(self, warps: Integers, barrier: Any) -> None:
        """Check that the phase before the one that is waited for is known to be complete.

        While it is not, its parity is that of the phase after: the wait would end at once.
        """
        for agent, step in barrier.earlier_arrivals.items():
            if (self.known[warps, agent] < step).any():
                self.report(
                    Trap(
                        f"this waits for a parity of {barrier.name}, and nothing orders it after the phase before, "
                        "which has the other one: with that phase not complete yet it would not wait",
                        (f"that phase has an arrival at {self.places(agent, step)}",),
                        PtxRace,
                    )
                )
                return

    def proxy_fence(self, cohort: Cohort, mask: Any) -> None:
        """Make what warps know visible to the async proxy."""
        warps = cohort.warps if mask is None else distinct(cohort.warp_of[mask])
        self.fenced[warps] = self.known[warps]

    def warp_sync(self, cohort: Cohort, named: Any) -> None:
        """Threads of warps meet; where only some of a warp's do, that counts for all of them."""
        for warp in cohort.warps[named.any(axis=1)].tolist():
            self.lanes.meet(np.array([warp]), self.known[warp])
            self.known[warp, warp] += 1

    # Tensor memory ---------------------------------------------------------------------------------------------------

    @property
    def tensor(self) -> Shadow:
        """Return what is known of accesses to tensor memory, whose bytes are its words."""
        if self._tensor is None:
            self._tensor = Shadow(self, self.wave.ctas << 16, 1 << 16)
        return self._tensor

    @staticmethod
    def _words(cta: int, lanes: Integers, columns: Integers) -> Integers:
        return ((cta << 16) + (lanes << 9) + columns).ravel()

    def tensor_access(
        self, cohort: Cohort, row: int, cta: int, lanes: Integers, columns: Integers, writes: bool
    ) -> None:
        """A warp reads or writes tensor memory."""
        warp = cohort.warps[row : row + 1]
        agent = self.agent("tcgen05.st" if writes else "tcgen05.ld", int(warp[0]), is_async=False)
        step = self._begin(cohort, agent)
        places = self._words(cta, *np.broadcast_arrays(lanes, columns))
        self.tensor.access(
            warp, np.array([agent]), np.array([step]), None, places, 1, None, writes=writes, proxy=False, ordered=True
        )

    def tensor_issue(self, cohort: Cohort, thread: int, accumulator: Any) -> Token:
        """A thread issues an operation of the tensor core; they follow each other in the order of their issue."""
        token = self.issue(cohort, thread, "tcgen05 operation")
        return Token(token.agents, token.steps, token.warps, token.what, ordered_with_itself=True)

    def tensor_moves(self, token: Token, cta: int, lanes: Integers, columns: Integers, writes: bool) -> None:
        """An operation of the tensor core reads or writes tensor memory, which has no proxies."""
        places = self._words(cta, *np.broadcast_arrays(lanes, columns))
        self.tensor.access(
            token.warps, token.agents, token.steps, None, places, 1, None, writes=writes, proxy=False, ordered=True
        )

    def tensor_commit(self, cohort: Cohort, thread: int, barrier: Any) -> None:
        """The end of all that a thread has issued to the tensor core counts at an mbarrier."""
        warp = int(cohort.warp_of[thread])
        known, fenced = self.known[warp].copy(), self.fenced[warp].copy()
        if (agent := self._agents.get(("tcgen05 operation", warp, None))) is not None:
            known[agent] = fenced[agent] = self._steps[agent]
            self._arrived(barrier, warp, agent, self._steps[agent])
        self._gather(barrier, known, fenced, np.array([warp]), self.view.foreign.get(warp))

    def tensor_wait(self, cohort: Cohort, mask: Any, kind: str) -> None:
        """Warps wait for their loads or stores of tensor memory."""
        for warp in (cohort.warps if mask is None else distinct(cohort.warp_of[mask])).tolist():
            if (agent := self._agents.get((f"tcgen05.{kind}", warp, None))) is not None:
                self.known[warp, agent] = self._steps[agent]

    # The end ---------------------------------------------------------------------------------------------------------

    def ended(self, cta: int) -> None:
        """Check that what others do with the memory of a CTA is over when its last thread ends.

        Raises Trap for accesses of asynchronous operations, and of other CTAs, that no thread of it has waited for.
        """
        own = range(cta * self._per_cta, (cta + 1) * self._per_cta)
        knows = self.known[own.start : own.stop].max(axis=0)
        for verb, last in (
            ("read", self.shared.last_reads(cta)),
            ("written", self.shared.last_writes(cta)),
            ("arrived at", self._arrivals.get(cta, {})),
        ):
            for agent, step in last.items():
                if agent not in own and knows[agent] < step:
                    self.report(
                        Trap(
                            f"the CTA ends, and nothing orders that after its shared memory was {verb} by the "
                            f"{self.name(agent)}",
                            (f"{verb} at {self.places(agent, step)}",),
                            PtxRace,
                        )
                    )
        self._left -= 1
        if not self._left:
            # Later waves may still ask where something was; of the rest nothing is needed.
            self.shared, self._tensor = Shadow(self, 0, 1), None
            self.known = self.fenced = np.zeros((0, 0), np.int32)
            self._acquired = self._seen = _NOTHING[0]

    # Reports ---------------------------------------------------------------------------------------------------------

    def report(self, trap: Trap) -> None:
        """Raise a report of accesses that nothing orders, unless the launch goes on past it."""
        if not self.wave.passes_over(trap):
            raise trap

    def places(self, agent: int, step: int) -> str:
        """Return where a step of an agent stands."""
        found = self._places.get((agent, step), [])
        found = [*found, *(
            key[0] for key, (warps, steps) in self._global_places.items()
            if key[0] not in found and ((warps == agent) & (steps == step)).any()
        )]  # fmt: skip
        module, instructions = self.wave.program.module, self.wave.program.function.instructions
        shown = "; ".join(describe(module, instructions[at]) for at in found[:_MOST_PLACES])
        return shown or "an unknown place"

    def name(self, agent: int) -> str:
        """The name of an agent in reports."""
        return self.names.get(agent) or f"warp {agent % self._per_cta}"

    def _report_lanes(self, agent: int, step: int, at: int | None, where: str, past: str, *, writes: bool) -> None:
        """Report two accesses of different lanes of a warp, of which the first was at an instruction."""
        instructions = self.wave.program.function.instructions
        place = self.places(agent, step) if at is None else describe(self.wave.program.module, instructions[at])
        trap = Trap(
            f"this {'writes' if writes else 'reads'} {where}, and nothing orders it after what was {past} by another "
            f"lane of the warp" + ("" if agent < self.warps else f", by the {self.name(agent)}"),
            (f"{past} at {place}", "bar.warp.sync must come in between, or another barrier"),
            PtxRace,
        )
        self.report(trap)

    def race(self, warp: int, agent: int, step: int, where: str, past: str, *, writes: bool, fence: bool) -> Trap:
        """The report of two accesses that nothing orders."""
        verb = "writes" if writes else "reads"
        other = self.name(agent)
        note = f"{past} by the {other}" if agent >= self.warps else f"{past} by {other}"
        if fence:
            return Trap(
                f"the async proxy {verb} {where}, {note} without a proxy fence in between",
                (f"{past} at {self.places(agent, step)}", "fence.proxy.async must come after that, before a barrier"),
                PtxRace,
            )
        remedy = _NOT_ACQUIRED if self.known[warp, agent] >= step else ()
        return Trap(
            f"this {verb} {where}, and nothing orders it after what was {note}",
            (f"{past} at {self.places(agent, step)}", *remedy),
            PtxRace,
        )
