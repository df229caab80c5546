"""Uses of a buffer: the operations that reach it through views, captures and control flow, by task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue, Use

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.text.diagnostics import source_location

from .value_classes import ValueClasses

KERNEL = "kernel"
"""The name of code outside of every task."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The lines at which one task uses a buffer."""

    task: str
    file: str
    lines: tuple[int, ...]
    """Ascending, counted from 1; of code in a helper function these are the helper's lines."""


def uses(buffer: SSAValue, classes: ValueClasses) -> list[Use]:
    """The uses of `buffer` that may access it, in no particular order, also through views and where it is forwarded to.

    `classes` are the buffers of the function. Of two buffers that branches mix, each is taken to reach all that
    either does.
    """
    pending, seen = [buffer], {buffer}
    found: list[Use] = []
    for value in pending:
        for use in value.uses:
            op = use.operation
            if op in classes.forwarding:
                following = [name for name in classes.members(value) if name in classes.successor_inputs]
            else:
                following = [result for result in op.results if isinstance(result.type, ttg.MemDescType)]
                if not following and not isinstance(op, tlx.ReuseGroupOp):
                    found.append(use)
            pending += [name for name in following if name not in seen]
            seen.update(following)
    return found


def accesses(buffer: SSAValue, classes: ValueClasses) -> list[Operation]:
    """The operations of `uses`, each once."""
    return list(dict.fromkeys(use.operation for use in uses(buffer, classes)))


def task_of(op: Operation) -> str:
    """The task that runs `op`: `default`, `partition0` and so on, or `kernel` outside of every task."""
    child = op
    while (parent := child.parent_op()) is not None:
        region = child.parent_region()
        if isinstance(parent, ttg.WarpSpecializePartitionsOp) and region is not None:
            return f"partition{parent.get_region_index(region)}"
        if isinstance(parent, ttg.WarpSpecializeOp):
            return "default"
        child = parent
    return KERNEL


def uses_by_task(ops: Iterable[Operation]) -> tuple[Uses, ...]:
    """The places of `ops`, by task and file: code outside of tasks first, then `default`, then the partitions."""
    lines: dict[tuple[str, str], set[int]] = {}
    for op in ops:
        place = source_location(op.location)
        key = (task_of(op), "" if place is None else place.filename)
        lines.setdefault(key, set()).update([] if place is None else [place.line])
    return tuple(
        Uses(task, file, tuple(sorted(found)))
        for (task, file), found in sorted(lines.items(), key=lambda item: (task_order(item[0][0]), item[0][1]))
    )


def task_order(task: str) -> tuple[int, int]:
    """A sort key: `kernel`, `default`, then the partitions by number."""
    number = task.removeprefix("partition")
    return (2, int(number)) if number.isdigit() else ((0, 0) if task == KERNEL else (1, 0))
