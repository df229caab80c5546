"""Runs of bytes that programs touch, and queries: the programs that overlap, those that leave a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx_xdsl.numerics.arrays import distinct

from .touches import Touch
from .values import Booleans, Integers, added, axes_of


@dataclass(frozen=True, eq=False)
class Runs:
    """Bytes `start[i]` to `end[i] - 1` of an array, each touched by `program[i]`."""

    program: Integers
    start: Integers
    end: Integers

    def __len__(self) -> int:
        return len(self.program)

    def where(self, chosen: Any) -> Runs:
        """Choose some of the runs."""
        return Runs(self.program[chosen], self.start[chosen], self.end[chosen])

    @staticmethod
    def joined(all_: Sequence[Runs]) -> Runs:
        """All runs of several."""
        if not all_:
            none = np.zeros(0, np.int64)
            return Runs(none, none, none)
        return Runs(
            np.concatenate([runs.program for runs in all_]),
            np.concatenate([runs.start for runs in all_]),
            np.concatenate([runs.end for runs in all_]),
        )

    def united(self) -> Runs:
        """The same bytes, each of a program in one run, as few as there can be; sorted by program and start."""
        if len(self) < 2:
            return self
        low, span = int(self.start.min()), int(self.end.max()) - int(self.start.min()) + 1
        first, last = int(self.program.min()), int(self.program.max())
        if (last - first + 1) * span >= 1 << 62:
            parts = [self.where(self.program == program).united() for program in distinct(self.program)]
            return Runs.joined(parts)
        # Programs are moved so far apart that the end of all runs before one is that of its own program, or smaller
        # than its start.
        moved = (self.program - first) * span - low
        start, end, program = self.start + moved, self.end + moved, self.program
        if np.any(start[1:] < start[:-1]):
            # The runs of each access come in order: a stable sort of them merges.
            order = np.argsort(start, kind="stable")
            start, end, program = start[order], end[order], program[order]
        reach = np.maximum.accumulate(end)
        fresh = np.concatenate(([True], start[1:] > reach[:-1]))
        begins = np.flatnonzero(fresh)
        lasts = np.concatenate((begins[1:], [len(fresh)])) - 1
        back = (program[begins] - first) * span - low
        return Runs(program[begins], start[begins] - back, reach[lasts] - back)


def runs_of(touch: Touch, first: int) -> Runs:
    """The bytes that a touch stands for; `first` is the number of the first of its programs.

    Along one dimension elements mostly follow each other, for all programs at once: then a run is known by its ends.
    """
    dim = _contiguous_dim(touch)
    parts = [part for part in touch.offset.parts if dim not in axes_of(part)]
    masks = [mask for mask in touch.masks if dim not in axes_of(mask)]
    rank = touch.offset.parts[0].ndim
    starts = added(parts) if parts else np.zeros((1,) * rank, np.int64)
    ends = starts + touch.size
    if dim is not None:
        along = next(part for part in touch.offset.parts if dim in axes_of(part))
        here = np.ones((1,) * rank, np.bool_)
        for mask in touch.masks:
            if dim in axes_of(mask):
                here = here & mask
        axis = dim + 1
        here = np.broadcast_to(here, (len(here), *along.shape[1:]))
        whole: Booleans = np.all(here, axis=axis, keepdims=True)
        count, skipped = np.where(whole, here.shape[axis], 0), np.zeros(whole.shape, np.int64)
        # Most programs touch all: only the others are counted.
        parts_of = np.flatnonzero(~whole.reshape(len(whole), -1).all(1))
        count[parts_of] = here[parts_of].sum(axis, keepdims=True)
        skipped[parts_of] = np.argmax(here[parts_of], axis=axis, keepdims=True)
        lowest = skipped * touch.size + along.take([0], axis)
        starts, ends = starts + lowest, starts + lowest + count * touch.size
    return _selected(touch, starts, ends, masks, first)


def _selected(touch: Touch, starts: Integers, ends: Integers, masks: Sequence[Booleans], first: int) -> Runs:
    """Return the runs of programs that touch something and that no mask hides, joined and sorted."""
    chosen: Booleans = touch.active.reshape((-1,) + (1,) * (starts.ndim - 1)) & (ends > starts)
    for mask in masks:
        chosen = chosen & mask
    programs = np.arange(len(touch.active), dtype=np.int64).reshape((-1,) + (1,) * (starts.ndim - 1)) + first
    picked = [np.broadcast_to(array, chosen.shape)[chosen] for array in (programs, starts, ends)]
    return Runs(picked[0], picked[1], picked[2]).united()


def _contiguous_dim(touch: Touch) -> int | None:
    """The dimension along which elements follow each other in memory, whatever the other dimensions are."""
    for part in touch.offset.parts:
        axes = axes_of(part)
        if len(axes) != 1 or sum(axes[0] in axes_of(other) for other in touch.offset.parts) != 1:
            continue
        dim = axes[0]
        if not np.all(np.diff(part, axis=dim + 1) == touch.size):
            continue
        masks = [mask for mask in touch.masks if dim in axes_of(mask)]
        if all(axes_of(mask) == (dim,) and _is_one_run(mask, dim + 1) for mask in masks):
            return dim
    return None


def _is_one_run(mask: Booleans, axis: int) -> bool:
    """True if the true elements along an axis follow each other, in every program."""
    mask = mask[~mask.reshape(len(mask), -1).all(1)]
    edges = np.diff(mask.astype(np.int8), axis=axis) == 1
    return bool(np.all(edges.sum(axis=axis) + mask.take(0, axis) <= 1))


@dataclass(frozen=True)
class Meeting:
    """Two programs that touch the same byte."""

    program: int
    other: int
    byte: int


def meeting(runs: Runs, others: Runs | None = None) -> Meeting | None:
    """Two different programs of which one touches a byte in `runs`, the other in `others` (or both in `runs`).

    Of several such pairs, the one with the lowest byte.
    """
    if others is None:
        return _overlap(runs.united())
    # One program does both to a byte: only different ones count. Each program's runs are united on each side, so that
    # an overlap is one between the sides.
    return _overlap_between(runs.united(), others.united())


def _overlap(runs: Runs) -> Meeting | None:
    """The runs of each program do not overlap each other, so that those that do are of different programs."""
    order = np.argsort(runs.start, kind="stable")
    program, start, end = runs.program[order], runs.start[order], runs.end[order]
    reach = np.maximum.accumulate(end)
    found = np.flatnonzero(start[1:] < reach[:-1])
    if not len(found):
        return None
    later = int(found[0]) + 1
    earlier = int(np.argmax(end[:later]))
    pair = sorted((int(program[earlier]), int(program[later])))
    return Meeting(pair[0], pair[1], int(start[later]))


def _overlap_between(runs: Runs, others: Runs) -> Meeting | None:
    """Find the others that each run overlaps, until one is of another program."""
    if not len(runs) or not len(others):
        return None
    order = np.argsort(others.start, kind="stable")
    sorted_others = others.where(order)
    reach = np.maximum.accumulate(sorted_others.end)
    low = np.searchsorted(reach, runs.start, side="right")
    high = np.searchsorted(sorted_others.start, runs.end, side="left")
    for index in np.flatnonzero(low < high):
        candidates = slice(int(low[index]), int(high[index]))
        different = (sorted_others.program[candidates] != runs.program[index]) & (
            sorted_others.end[candidates] > runs.start[index]
        )
        if different.any():
            at = int(low[index]) + int(np.argmax(different))
            byte = max(int(runs.start[index]), int(sorted_others.start[at]))
            return Meeting(int(runs.program[index]), int(sorted_others.program[at]), byte)
    return None


def program_at(runs: Runs, byte: int, program: int) -> bool:
    """True if `program` touches `byte`."""
    return bool(np.any((runs.program == program) & (runs.start <= byte) & (runs.end > byte)))
