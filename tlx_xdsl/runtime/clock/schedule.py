"""Timelines of launches on simulated ranks: what each rank does beside the others, and for whom it waits.

The interpreter runs all programs in step (`interpreter/in_step.py`), and this is its observer. There is no time in it:
a step of one rank is as long as one of another, and a copy to another GPU as long as one within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.dialects.base import Kind, Space, accesses_of
from tlx_xdsl.dialects.tt import MemSyncScope
from tlx_xdsl.dialects.tt.atomic import AtomicOp
from tlx_xdsl.grid import Grid
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.machine import Cluster, Task, ThreadBlock
from tlx_xdsl.interpreter.mbarrier import Mbarrier
from tlx_xdsl.interpreter.registry import Waiting
from tlx_xdsl.text.diagnostics import source_line, users_place
from tlx_xdsl.timing.timeline import Place, Span, SpanKind, Timeline, Track, TrackKind

from ..driver.host_values import bound, split_options
from ..simulate.interpret import interpret_source, source_of_kernel
from ..simulate.options import OPTION_NAMES, Options, known_options

STEPS = "steps"
"""The unit of time."""

_SIGNAL = 0.4
"""The part of a step that a signal takes; what its task does then, up to the next place, takes the rest."""
_UNITS: dict[str, tuple[TrackKind, SpanKind]] = {
    "TMA store": ("tma", "store"),
    "wgmma": ("tensor core", "product"),
    "tcgen05 operation": ("tensor core", "product"),
}
"""The row and the colour of asynchronous operations, by the kind of their queue; others are copies of TMA's row."""


def schedule(
    kernel: Any, grid: Grid, args: tuple[Any, ...], named: Mapping[str, Any], options: Mapping[str, Any] | None
) -> Timeline:
    """Run a launch on simulated ranks, whose arrays it writes, and return what happens in each step."""
    source = source_of_kernel(kernel)
    given, chosen = split_options(source, named, OPTION_NAMES)
    steps = Steps(source.name)
    interpret_source(source, grid, bound(source, args, given), Options(**chosen, **known_options(options), steps=steps))
    return steps.timeline()


@dataclass(eq=False)
class Steps:
    """An observer (`interpreter.in_step.StepObserver`) that makes a timeline of what it sees."""

    kernel: str
    now: int = 0
    _tracks: list[Track] = field(default_factory=list[Track])
    _spans: list[Span] = field(default_factory=list[Span])
    _places: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _lines: list[Place] = field(default_factory=list[Place])
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The track of a row of a group."""
    _groups: dict[ThreadBlock, str] = field(default_factory=dict[ThreadBlock, str])
    _at: dict[Task, Operation | None] = field(default_factory=dict[Task, "Operation | None"])
    """Where each task begins its next turn."""
    _waits: dict[Task, tuple[int, Waiting]] = field(default_factory=dict[Task, tuple[int, Waiting]])
    _transfers: dict[Transfer, int] = field(default_factory=dict[Transfer, int])
    """When each asynchronous operation under way has begun."""
    _last: dict[int, int] = field(default_factory=dict[int, int])
    """The last span of each track."""
    _signals: dict[tuple[tuple[int, ...], int, Operation], int] = field(
        default_factory=dict[tuple[tuple[int, ...], int, Operation], int]
    )
    """The last span of each program's atomic operation of scope `sys`."""

    def began(self, cluster: Cluster) -> None:
        """Make a group of each thread block: `rank 1 program 4`, with the launch where it is not the first."""
        launch = cluster.launch
        for block in cluster.blocks:
            x, y, z, *rank = block.program
            text = f"rank {rank[0] if rank else 0}"
            if launch.grid != (1, 1, 1):
                text += f" program {x + launch.grid[0] * (y + launch.grid[1] * z)}"
            if cluster.number:
                text += f" launch {cluster.number + 1}"
            self._groups[block] = text if len(cluster.blocks) == 1 else f"{text} CTA {block.rank}"

    def ran(self, task: Task) -> None:
        """Add the turn of a task, and the wait before it."""
        track = self._track(self._groups[task.block], task.name, "warp")
        op = self._at.get(task) or task.cluster.plan.function
        if (opened := self._waits.pop(task, None)) is not None:
            begin, waiting = opened
            after, cause = self._released(task, waiting)
            self._add(track, begin, self.now, "wait", _wait_name(waiting), waiting.op, cause, after)
        is_signal = isinstance(op, AtomicOp) and op.reach is MemSyncScope.SYSTEM and _writes(op)
        begin = float(self.now)
        if is_signal:
            begin += _SIGNAL
            span = self._add(track, self.now, begin, "issue", _line(op), op)
            self._signals[task.program, task.cluster.number, op] = span
            op = task.op or op
        self._add(track, begin, self.now + 1, "work", _line(op), op)
        self._at[task] = task.op
        if task.waiting is not None and not task.ended and not task.waiting.ready():
            self._waits[task] = self.now + 1, task.waiting

    def issued(self, cluster: Cluster, transfer: Transfer) -> None:
        """Note when an asynchronous operation begins."""
        self._transfers[transfer] = self.now + 1

    def completed(self, cluster: Cluster, transfer: Transfer) -> None:
        """Add an asynchronous operation."""
        queue = transfer.queue
        unit, kind = _UNITS.get(queue.kind, ("tma", "copy"))
        group = self._groups[cluster.blocks[queue.rank]]
        track = self._track(group, f"{queue.kind}s of {queue.owner}", unit)
        begin = min(self._transfers.pop(transfer), self.now)
        self._add(track, begin, self.now + 1, kind, f"{queue.kind}: {_line(transfer.op)}", transfer.op)

    def flipped(self, barrier: Mbarrier, block: ThreadBlock) -> None:
        """See `Observer.flipped`."""

    def timeline(self) -> Timeline:
        """Return what was seen."""
        waited: dict[str, dict[str, float]] = {}
        for span in self._spans:
            track = self._tracks[span.track]
            if track.kind == "warp":
                of = waited.setdefault(" ".join(track.group.split()[:2]), {"wait": 0.0, "all": 0.0})
                of["wait" if span.kind == "wait" else "all"] += span.end - span.start
        shares = ", ".join(f"{of['wait'] / sum(of.values()):.0%} on {rank}" for rank, of in sorted(waited.items()))
        return Timeline(
            self.kernel, f"{len(waited)} ranks", "simulated", self._tracks, self._spans, self._lines, self.now,
            sentences=[f"Tasks wait for {shares} of the steps between their first and their last one."],
            notes=["A step is no time: each task goes on once in it, and of each queue one operation is over."],
            unit=STEPS,
        )  # fmt: skip

    def _track(self, group: str, name: str, kind: TrackKind) -> int:
        if (group, name) not in self._numbers:
            self._numbers[group, name] = len(self._tracks)
            self._tracks.append(Track(name, kind, group))
        return self._numbers[group, name]

    def _add(
        self, track: int, start: float, end: float, kind: SpanKind, name: str, op: Operation, cause: str = "",
        after: int = -1,
    ) -> int:  # fmt: skip
        """Add a span, or let the one before go on; gives its place."""
        place = self._place(op)
        before = self._spans[self._last[track]] if track in self._last else None
        same = before is not None and (before.end, before.kind, before.name, before.place) == (start, kind, name, place)
        if before is not None and same and kind == "work":
            before.end = end
            return self._last[track]
        self._last[track] = len(self._spans)
        self._spans.append(Span(track, start, end, kind, name, place, cause, after))
        return self._last[track]

    def _place(self, op: Operation) -> int:
        where = users_place(op.location)
        if where is None:
            return -1
        key = (where.filename, where.line)
        if key not in self._places:
            self._places[key] = len(self._lines)
            self._lines.append(Place(*key, (source_line(where) or "").strip()))
        return self._places[key]

    def _released(self, task: Task, waiting: Waiting) -> tuple[int, str]:
        """Return the span of the last change of what a task has polled, and who made it; -1 where none is known."""
        order = task.order
        if order is None or waiting.polled is None or not (found := order.changed.get(waiting.polled)):
            return -1, ""
        (program, launch, op), last = list(found.items())[-1]
        return self._signals.get((program, launch, op), -1), f"changed by {last.who}"


def _writes(op: Operation) -> bool:
    return any(access.space is Space.GLOBAL and Kind.WRITE in access.kind for access in accesses_of(op) or ())


def _line(op: Operation) -> str:
    where = users_place(op.location)
    text = None if where is None else source_line(where)
    return op.name if text is None else text.strip()


def _wait_name(waiting: Waiting) -> str:
    if (view := waiting.barrier) is not None and (barrier := view.memory.barriers.get(view.address)) is not None:
        return f"wait {barrier.name}"
    return f"wait: {_line(waiting.op)}"
