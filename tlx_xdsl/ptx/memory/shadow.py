"""Record of the accesses to each byte of a memory: its last write, and the last read of each agent.

A write is the number of its agent, of its step and of its lane in one integer. Where nothing in a CTA can be
unordered, as after a barrier of all its threads, no byte is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Booleans, Integers, distinct

from ..lanes import LANE_BITS, NO_LANE, LaneOrder
from ..read.symbols import SHARED_START

STEP_BITS = 40 - LANE_BITS
STEPS = 1 << 25
_STEP = (1 << STEP_BITS) - 1
_LANE = (1 << LANE_BITS) - 1


class Knowledge(Protocol):
    """Knowledge of warps, as `clocks.Clocks` has it."""

    known: NDArray[np.int32]
    fenced: NDArray[np.int32]
    is_async: Booleans

    def check_lives(self, cta: int, warps: Integers) -> None:
        """Raise Trap where warps do not know that a CTA has started, or it has ended."""
        ...

    def report(self, trap: Any) -> None:
        """Raise a report, unless the launch goes on past it."""
        ...

    def unordered(self, warps: Any, agents: Any, steps: Any, memory: int | None) -> Any:
        """Say which steps of agents nothing orders before what warps do with a memory."""
        ...

    def race(self, warp: int, agent: int, step: int, where: str, past: str, *, writes: bool, fence: bool) -> Any:
        """The report of two accesses that nothing orders."""
        ...


class Shadow:
    """The accesses to `size` bytes, of which each CTA has `stride`."""

    def __init__(
        self, clocks: Knowledge, size: int, stride: int, lanes: LaneOrder | None = None, memory: int | None = None
    ):
        """Take what warps know, and the number of the memory where that of other CTAs has to be acquired."""
        self._clocks, self._lanes, self._memory = clocks, lanes, memory
        self._size, self._stride = size, stride
        self._writes: Integers = np.zeros(size, np.int64)
        self._atomic: Booleans | None = None
        """Bytes whose last write was an atomic operation; None as long as there was none."""
        self._reads: dict[tuple[int, int], NDArray[np.int32]] = {}
        """The step of the last read of each byte, by CTA and agent."""
        self._last_reads: dict[int, dict[int, int]] = {}
        """The last step in which each agent has read anything of a CTA's memory."""
        self._last_writes: dict[int, dict[int, int]] = {}

    def access(
        self,
        warps: Integers,
        agents: Integers,
        steps: Integers,
        warp_of: Integers | None,
        places: Integers,
        size: int,
        lanes: Integers | int | None,
        *,
        writes: bool,
        proxy: bool,
        ordered: bool,
        atomic: bool = False,
    ) -> None:
        """Agents access `size` bytes at each place, with what their warps know.

        `warp_of` says whose each access is; None where there is one agent. `proxy` is for the async proxy, which sees
        only what was fenced; with `ordered` an agent's accesses follow each other. Writes that are `atomic` operations
        need no order with each other. `lanes` says which lane of its warp makes each; None where none does.
        Raises Trap for accesses that nothing orders.
        """
        for cta, chosen in self._by_cta(places):
            at = places if chosen is None else places[chosen]
            of = warp_of if warp_of is None or chosen is None else warp_of[chosen]
            own = lanes if not isinstance(lanes, np.ndarray) or chosen is None else lanes[chosen]
            here = (cta, warps, agents, of, at, size)
            self._clocks.check_lives(cta, warps if of is None else distinct(of))
            self._check_writes(*here, own, writes=writes, proxy=proxy, ordered=ordered, atomic=atomic)
            if writes:
                self._check_reads(*here, ordered=ordered)
                self._mark(at, size, atomic=atomic)
            if self._lanes is not None and own is not None:
                if writes:
                    self._lanes.check_reads(warps, of, at, size, own, self._where)
                elif of is not None:
                    self._lanes.note_reads(warps, steps, of, at, size, own)
            self._record(cta, warps, agents, steps, of, at, size, own, writes=writes)

    def _mark(self, places: Integers, size: int, *, atomic: bool) -> None:
        if self._atomic is None:
            if not atomic:
                return
            self._atomic = np.zeros(self._size, np.bool_)
        self._atomic[self._bytes(places, size)] = atomic

    def last_reads(self, cta: int) -> Mapping[int, int]:
        """The last step in which each agent has read anything of a CTA's memory."""
        return self._last_reads.get(cta, {})

    def last_writes(self, cta: int) -> Mapping[int, int]:
        """The last step in which each agent has written anything there."""
        return self._last_writes.get(cta, {})

    def _by_cta(self, places: Integers) -> list[tuple[int, Booleans | None]]:
        low, high = int(places.min()) // self._stride, int(places.max()) // self._stride
        if low == high:
            return [(low, None)]
        ctas = places // self._stride
        return [(int(cta), ctas == cta) for cta in distinct(ctas)]

    @staticmethod
    def _bytes(places: Integers, size: int) -> Integers:
        return places[:, None] + np.arange(size)

    def _rows(self, array: Array, places: Integers, size: int, base: int) -> Array:
        """The entries of `size` bytes at each place, as rows."""
        if size == 1:
            return array[places - base][:, None]
        if size & (size - 1) == 0:
            return array.reshape(-1, size)[(places - base) >> (size.bit_length() - 1)]
        return array[self._bytes(places - base, size)]

    def _check_writes(
        self,
        cta: int,
        warps: Integers,
        agents: Integers,
        warp_of: Integers | None,
        places: Integers,
        size: int,
        lanes: Integers | int | None,
        *,
        writes: bool,
        proxy: bool,
        ordered: bool,
        atomic: bool,
    ) -> None:
        clocks = self._clocks
        last_writes = self.last_writes(cta)
        suspects = self._unknown(last_writes, warps, agents[0] if ordered else None, proxy=proxy and not writes)
        apart = lanes is not None and self._lanes is not None and self._lanes.may_be_apart(last_writes, warps)
        if not suspects and not apart:
            return
        rows = self._rows(self._writes, places, size, 0)
        if atomic and self._atomic is not None:
            rows = np.where(self._rows(self._atomic, places, size, 0), 0, rows)
        if (rows == rows[:, :1]).all():
            rows = rows[:, :1]
        agent, step = rows >> STEP_BITS + LANE_BITS, rows >> LANE_BITS & _STEP
        owner = warps[0] if warp_of is None else warp_of[:, None]
        late = clocks.unordered(owner, agent, step, self._memory)
        fence = np.zeros_like(late)
        if proxy and not writes:
            fence = ~clocks.is_async[agent] & (clocks.fenced[owner, agent] < step)
        if ordered:
            late &= agent != agents[0]
        if (wrong := late | fence).any():
            at = tuple(np.argwhere(wrong)[0])
            where, warp = self._where(int(places[at[0]])), int(np.broadcast_to(owner, late.shape)[at])
            of = int(agent[at]), int(step[at])
            clocks.report(clocks.race(warp, *of, where, "written", writes=writes, fence=not bool(late[at])))
        if apart and self._lanes is not None and lanes is not None:
            self._lanes.check_writes(agent, step, rows & _LANE, owner, lanes, places, self._where, writes=writes)

    def _unknown(
        self, last: Mapping[int, int], warps: Integers, but: np.integer[Any] | None, *, proxy: bool
    ) -> list[int]:
        """The agents, `but` one, whose last step one of the warps does not know."""
        if not last:
            return []
        clocks = self._clocks
        agents, steps, owners = np.array([*last]), np.array([*last.values()]), warps[:, None]
        late = clocks.unordered(owners, agents, steps, self._memory)
        if proxy:
            late = late | (~clocks.is_async[agents] & (clocks.fenced[owners, agents] < steps))
        return agents[late.any(axis=0) & (agents != (-1 if but is None else but))].tolist()

    def _check_reads(
        self,
        cta: int,
        warps: Integers,
        agents: Integers,
        warp_of: Integers | None,
        places: Integers,
        size: int,
        *,
        ordered: bool,
    ) -> None:
        clocks = self._clocks
        for agent in self._unknown(self.last_reads(cta), warps, agents[0] if ordered else None, proxy=False):
            steps = self._rows(self._reads[cta, agent], places, size, cta * self._stride).max(axis=1)
            owners = np.broadcast_to(warps[0] if warp_of is None else warp_of, steps.shape)
            if (late := clocks.unordered(owners, agent, steps, self._memory)).any():
                at = int(np.argmax(late))
                where, warp = self._where(int(places[at])), int(owners[at])
                clocks.report(clocks.race(warp, agent, int(steps[at]), where, "read", writes=True, fence=False))

    def _record(
        self,
        cta: int,
        warps: Integers,
        agents: Integers,
        steps: Integers,
        warp_of: Integers | None,
        places: Integers,
        size: int,
        lanes: Integers | int | None,
        *,
        writes: bool,
    ) -> None:
        if writes:
            last = self._last_writes.setdefault(cta, {})
            if warp_of is None:
                values = np.int64(((int(agents[0]) << STEP_BITS) | int(steps[0])) << LANE_BITS)
            else:
                place = np.searchsorted(warps, warp_of)
                values = (((agents[place].astype(np.int64) << STEP_BITS) | steps[place]) << LANE_BITS)[:, None]
            values = values | (NO_LANE if lanes is None else lanes if isinstance(lanes, int) else lanes[:, None])
            if size & (size - 1) == 0 and size > 1:
                self._writes.reshape(-1, size)[places >> (size.bit_length() - 1)] = values
            else:
                self._writes[self._bytes(places, size)] = values
        else:
            last = self._last_reads.setdefault(cta, {})
        present = range(len(warps)) if warp_of is None else np.flatnonzero(np.isin(warps, warp_of)).tolist()
        for number in present:
            agent, step = int(agents[number]), int(steps[number])
            last[agent] = max(last.get(agent, 0), step)
            if writes:
                continue
            if (held := self._reads.get((cta, agent))) is None:
                held = self._reads[cta, agent] = np.zeros(self._stride, np.int32)
            own = places if warp_of is None else places[warp_of == warps[number]]
            relative = own - cta * self._stride
            if size & (size - 1) == 0 and size > 1:
                held.reshape(-1, size)[relative >> (size.bit_length() - 1)] = step
            else:
                held[self._bytes(relative, size)] = step

    def _where(self, place: int) -> str:
        offset = place % self._stride
        if self._stride == 1 << 16:
            return f"lane {offset >> 9}, column {offset & 511} of tensor memory"
        return f"byte {offset - SHARED_START} of shared memory"
