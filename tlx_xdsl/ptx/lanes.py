"""The order of the lanes of one warp among each other, in shared memory.

Threads of a warp run independently of each other (PTX ISA, "Independent Thread Scheduling"): what a lane has written
is there for another one after `bar.warp.sync` or another barrier that both have passed. `shfl.sync`, `vote.sync` and
their like let threads meet, but order no memory (CUDA C++ Programming Guide, "Warp Shuffle Functions"). Accesses of
one instruction need no order.

A warp counts its steps, as for other warps (`clocks.py`); `met` is the last one that all of its lanes know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Integers

LANE_BITS = 6
NO_LANE = 63
"""The lane of what no lane does: copies by TMA and the like."""
EVERY_LANE = 62
"""The lane of what all lanes of a warp do together, as `ldmatrix`."""
_MOST_READS = 128
"""Reads that are kept; past them, older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """An instruction that reads, for some warps."""

    at: int
    warps: Integers
    steps: Integers
    warp_of: Integers
    places: Integers
    size: int
    lanes: Integers | int
    low: int
    high: int


class LaneOrder:
    """Knowledge of the lanes of each warp about each other's accesses."""

    def __init__(self, known: NDArray[np.int32], report: Callable[..., None]):
        count = len(known)
        self.at = 0
        """The instruction that makes the accesses."""
        self.copiers: Integers = np.full(count, -1)
        """The agent of each warp's `cp.async`; -1 where there is none."""
        self._met: Integers = known.diagonal().astype(np.int64) - 1
        self._met_copies: Integers = np.zeros(count, np.int64)
        self._reads: list[_Reads] = []
        self._report = report

    def meet(self, warps: Integers, known: NDArray[np.int32]) -> None:
        """All lanes of warps know now these steps of agents."""
        self._met[warps] = np.maximum(self._met[warps], known[warps])
        agents = self.copiers[warps]
        here = (agents >= 0) & (agents < len(known))
        if here.any():
            self._met_copies[warps[here]] = np.maximum(self._met_copies[warps[here]], known[agents[here]])

    def may_be_apart(self, last_writes: Mapping[int, int], warps: Integers) -> bool:
        """Return whether a lane of these warps has written what others need not know."""
        return any(
            last_writes.get(agent, 0) > met
            for agents, steps in ((warps, self._met), (self.copiers[warps], self._met_copies))
            for agent, met in zip(agents.tolist(), steps[warps].tolist(), strict=True)
        )

    def check_writes(
        self,
        agent: Integers,
        step: Integers,
        lane: Integers,
        owner: Integers | np.integer,
        lanes: Integers | int,
        places: Integers,
        where: Callable[[int], str],
        *,
        writes: bool,
    ) -> None:
        """Check the last writes of the bytes of each access against who makes it.

        Reports where another lane of the same warp has made one that it need not know.
        """
        own = lanes if isinstance(lanes, int) else lanes[:, None]
        late = (agent == owner) & (self._met[owner] < step)
        late |= (agent == self.copiers[owner]) & (self._met_copies[owner] < step)
        late &= (lane != own) | (lane == EVERY_LANE)
        if late.any():
            at = tuple(np.argwhere(late)[0])
            self._report(int(agent[at]), int(step[at]), None, where(int(places[at[0]])), "written", writes=writes)

    def note_reads(
        self, warps: Integers, steps: Integers, warp_of: Integers, places: Integers, size: int, lanes: Integers | int
    ) -> None:
        """Keep what an instruction reads, until all lanes of its warps have met."""
        if len(self._reads) >= _MOST_READS:
            self._forget()
            self._reads = self._reads[-_MOST_READS // 2 :]
        low, high = int(places.min()), int(places.max()) + size
        self._reads.append(_Reads(self.at, warps, steps, warp_of, places, size, lanes, low, high))

    def _forget(self) -> None:
        self._reads = [each for each in self._reads if (self._met[each.warps] < each.steps).any()]

    def check_reads(
        self,
        warps: Integers,
        warp_of: Integers | None,
        places: Integers,
        size: int,
        lanes: Integers | int,
        where: Callable[[int], str],
    ) -> None:
        """Check a write against what was read.

        Reports where another lane of the same warp has read one of its bytes, and need not have done so.
        """
        if not self._reads:
            return
        self._forget()
        low, high = int(places.min()), int(places.max()) + size
        for each in self._reads:
            if each.high <= low or high <= each.low or not np.isin(each.warps, warps).any():
                continue
            late = each.warps[self._met[each.warps] < each.steps]
            readers = np.isin(each.warp_of, late)
            owners = np.full(len(places), warps[0]) if warp_of is None else warp_of
            before, lane = _by_byte(each.warp_of[readers], each.places[readers], each.size, _of(each.lanes, readers))
            now, own = _by_byte(owners, places, size, _of(lanes, np.ones(len(places), np.bool_)))
            order = np.lexsort((lane, before))
            before, lane = before[order], lane[order]
            first, last = (np.searchsorted(before, now, side=side) for side in ("left", "right"))
            found = np.flatnonzero(first < last)
            lowest, highest = lane[first[found]], lane[last[found] - 1]
            apart = (lowest != own[found]) | (highest != own[found]) | (own[found] == EVERY_LANE)
            if apart.any():
                byte = int(now[found[np.argmax(apart)]] & _BYTE)
                warp = int(now[found[np.argmax(apart)]] >> _BYTE_BITS)
                self._report(warp, 0, each.at, where(byte), "read", writes=True)


_BYTE_BITS = 40
_BYTE = (1 << _BYTE_BITS) - 1


def _of(lanes: Integers | int, chosen: NDArray[np.bool_]) -> Integers:
    return np.full(np.count_nonzero(chosen), lanes) if isinstance(lanes, int) else lanes[chosen]


def _by_byte(warps: Integers, places: Integers, size: int, lanes: Integers) -> tuple[Integers, Integers]:
    """Each byte of accesses, below the number of its warp, and its lane."""
    keys = (warps << _BYTE_BITS | places)[:, None] + np.arange(size)
    return keys.ravel(), np.repeat(lanes, size)
