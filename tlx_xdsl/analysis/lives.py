"""Lives of buffers, as far as the order of the text says: from the first to the last use in each task.

Tasks run side by side, so each has a time of its own: the lines at which it uses buffers, in program order. What keeps
two tasks apart are barriers, which is the checker's business (`tlx check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Operation

from tlx_xdsl.dialects import ttg
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.text.diagnostics import source_location

from .buffer_users import task_of, task_order


@dataclass(frozen=True, slots=True)
class Life:
    """The time in one task between the first and the last use of a buffer, ends included, in moments of that task."""

    task: str
    first: int
    last: int
    uses: tuple[int, ...]
    """The moments at which it is used."""
    loop: tuple[int, int] | None
    """The moments of the loops around its uses, in which what it holds may last from one turn to the next."""

    @property
    def whole(self) -> tuple[int, int]:
        """The time with that of the loops."""
        return (self.first, self.last) if self.loop is None else (self.loop[0], self.loop[1])


Moments: TypeAlias = Mapping[str, tuple[SourceLocation, ...]]
"""The lines of each task at which it uses buffers, in program order: its moments."""


def lives(accesses: Sequence[Sequence[Operation]], order: Mapping[Operation, int]) -> tuple[Moments, list[list[Life]]]:
    """The moments of a function's tasks, and the lives of each of some buffers, of which `accesses` has the uses.

    `order` is the place of each operation in the text. Uses without a line in the source have no moment.
    """
    every = sorted({op for ops in accesses for op in ops}, key=order.__getitem__)
    found: dict[str, dict[SourceLocation, None]] = {}
    for op in every:
        place = source_location(op.location)
        if place is not None:
            found.setdefault(task_of(op), {})[_line(place)] = None
    moments = {task: tuple(found[task]) for task in sorted(found, key=task_order)}
    at = {task: {place: number for number, place in enumerate(places)} for task, places in moments.items()}

    def moment(op: Operation) -> int | None:
        place = source_location(op.location)
        return None if place is None else at[task_of(op)][_line(place)]

    inside: dict[Operation, list[int]] = {}
    for op in every:
        number, loop = moment(op), _loop_around(op)
        if number is not None and loop is not None:
            inside.setdefault(loop, []).append(number)
    spans = {loop: (min(numbers), max(numbers)) for loop, numbers in inside.items()}
    return moments, [list(_of(ops, moment, spans)) for ops in accesses]


def _of(
    ops: Iterable[Operation], moment: Callable[[Operation], int | None], spans: Mapping[Operation, tuple[int, int]]
) -> Iterator[Life]:
    uses: dict[str, list[tuple[int, Operation]]] = {}
    for op in ops:
        number = moment(op)
        if number is not None:
            uses.setdefault(task_of(op), []).append((number, op))
    for task in sorted(uses, key=task_order):
        numbers = sorted({number for number, _ in uses[task]})
        loops = [spans[loop] for _, op in uses[task] if (loop := _loop_around(op)) is not None]
        around = None
        if loops:
            around = min(numbers[0], *(low for low, _ in loops)), max(numbers[-1], *(high for _, high in loops))
        yield Life(task, numbers[0], numbers[-1], tuple(numbers), around)


def _line(place: SourceLocation) -> SourceLocation:
    """The line alone: two uses in one line are at one moment."""
    return SourceLocation(place.filename, place.line)


def _loop_around(op: Operation) -> Operation | None:
    """The outermost loop around `op` in its task."""
    found = None
    current = op.parent_op()
    while current is not None and not isinstance(current, ttg.WarpSpecializeOp | ttg.WarpSpecializePartitionsOp):
        if isinstance(current, scf.ForOp | scf.WhileOp):
            found = current
        current = current.parent_op()
    return found
