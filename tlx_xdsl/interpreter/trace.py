"""A trace of a run as Chrome, Perfetto and Speedscope show it ("Trace Event Format", Google).

Each program is a process of the trace. It has a row for each task, with a slice for every turn, named by the line of
Python that ran, and one for every wait; rows for each kind of asynchronous operations of a task, from issue to
completion; and a row for each array of mbarriers, with an instant for every phase that completes. Time is logical: a
turn of a task, or the completion of an asynchronous operation, is one microsecond.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.text.diagnostics import source_line, source_location

from .engine import Transfer
from .faults import location_of
from .grid import program_text
from .machine import Cluster, Task, ThreadBlock
from .mbarrier import Mbarrier
from .registry import Waiting


@dataclass(frozen=True)
class _Row:
    """A row of a program."""

    program: int
    number: int


@dataclass(frozen=True)
class _Open:
    """A slice whose end is not known yet."""

    row: _Row
    name: str
    begin: int
    op: Operation


class Trace:
    """An observer (`machine.Observer`) that writes down what it sees."""

    def __init__(self, kernel: str):
        self._kernel = kernel
        self._now = 0
        """Turns that are over."""
        self._events: list[dict[str, Any]] = []
        self._programs: dict[ThreadBlock, int] = {}
        """The process of the trace for each thread block that runs."""
        self._count = 0
        self._rows: dict[tuple[int, str], _Row] = {}
        self._tasks: dict[Task, Operation | None] = {}
        """The time at which each task begins its next turn."""
        self._waits: dict[Task, _Open] = {}
        self._transfers: dict[Transfer, _Open] = {}

    # What the machine reports ----------------------------------------------------------------------------------------

    def began(self, cluster: Cluster) -> None:
        """Each thread block is a program of its own from now on."""
        for block in cluster.blocks:
            number = self._programs[block] = self._count
            self._count += 1
            name = f"{self._kernel}, program {program_text(block.program)}"
            if len(cluster.blocks) > 1:
                name += f", CTA {block.rank} of its cluster"
            self._events.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": name}})
            self._events.append(
                {"ph": "M", "pid": number, "name": "process_sort_index", "args": {"sort_index": number}}
            )

    def ran(self, task: Task) -> None:
        """Note the turn of a task, and the wait that ends with it or begins after it."""
        self._close(self._waits.pop(task, None), self._now)
        row = self._row(task.block, task.name)
        op = self._tasks.get(task) or task.cluster.plan.function
        self._slice(row, _line(op), self._now, self._now + 1, op)
        self._now += 1
        self._tasks[task] = task.op
        waiting = task.waiting
        if task.ended:
            del self._tasks[task]
        elif waiting is not None and not waiting.ready():
            self._waits[task] = _Open(row, _wait_name(waiting), self._now, waiting.op)

    def issued(self, cluster: Cluster, transfer: Transfer) -> None:
        """Open a slice on the first free row of the queue's kind."""
        queue = transfer.queue
        taken = {opened.row for opened in self._transfers.values()}
        block = cluster.blocks[queue.rank]
        name = f"{queue.kind} of {queue.owner}"
        lane = 1
        while (row := self._row(block, name if lane == 1 else f"{name} ({lane})")) in taken:
            lane += 1
        self._transfers[transfer] = _Open(row, f"{queue.kind}: {_line(transfer.op)}", self._now, transfer.op)

    def completed(self, cluster: Cluster, transfer: Transfer) -> None:
        """Close the slice of an operation."""
        self._now += 1
        self._close(self._transfers.pop(transfer, None), self._now)

    def flipped(self, barrier: Mbarrier, block: ThreadBlock) -> None:
        """Mark the completion of a phase."""
        array = barrier.name.partition("[")[0]
        row = self._row(block, f"mbarrier {array}")
        phase = barrier.phase - 1
        self._events.append({
            "ph": "i", "s": "t", "pid": row.program, "tid": row.number, "ts": self._now,
            "name": f"{barrier.name} completes phase {phase}",
            "args": {"parity": phase & 1, "at": location_of(barrier.op)},
        })  # fmt: skip

    # The file --------------------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Write the file; what is still open, as after a deadlock, ends with the trace.

        Raises OSError when the file can't be written.
        """
        unfinished = [*self._waits.values(), *self._transfers.values()]
        self._waits.clear()
        self._transfers.clear()
        for opened in unfinished:
            self._close(opened, self._now + 1, unfinished=True)
        self._events.sort(key=lambda event: event.get("ts", -1))
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {"time": "logical: 1 us is one turn of a task or one completion", "turns": self._now}
        with path.open("w", encoding="utf-8") as file:
            json.dump({"traceEvents": self._events, "displayTimeUnit": "ms", "otherData": about}, file)

    def _row(self, block: ThreadBlock, name: str) -> _Row:
        program = self._programs[block]
        if (row := self._rows.get((program, name))) is None:
            row = self._rows[program, name] = _Row(program, len(self._rows) + 1)
            self._name(program, row.number, "thread", name)
        return row

    def _name(self, program: int, row: int, what: str, name: str) -> None:
        """Name a program or a row, and show it in the order in which it came to be."""
        ids = {"ph": "M", "pid": program, "tid": row}
        self._events.append({**ids, "name": f"{what}_name", "args": {"name": name}})
        self._events.append({**ids, "name": f"{what}_sort_index", "args": {"sort_index": row or program}})

    def _close(self, opened: _Open | None, end: int, *, unfinished: bool = False) -> None:
        if opened is not None:
            self._slice(opened.row, opened.name, opened.begin, end, opened.op, unfinished=unfinished)

    def _slice(self, row: _Row, name: str, begin: int, end: int, op: Operation, *, unfinished: bool = False) -> None:
        args: dict[str, Any] = {"op": op.name, "at": location_of(op)}
        if unfinished:
            args["unfinished"] = True
        self._events.append({
            "ph": "X", "pid": row.program, "tid": row.number, "ts": begin, "dur": end - begin, "name": name,
            "args": args,
        })  # fmt: skip


def _line(op: Operation) -> str:
    """The source line of an operation, else its name."""
    text = source_line(source_location(op.location))
    return op.name if text is None else text.strip()


def _wait_name(waiting: Waiting) -> str:
    if (view := waiting.barrier) is not None and (barrier := view.memory.barriers.get(view.address)) is not None:
        return f"wait {barrier.name} phase {barrier.phase}"
    return waiting.reason().replace("waits", "wait", 1)
