"""Who works with a buffer: the operations that reach it through views, captures and control flow, by task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import cf, scf
from xdsl.ir import Operation, SSAValue, Use

from tlx_xdsl.dialects.tlx import ReuseGroupOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp, WarpSpecializePartitionsOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.text.diagnostics import source_location

KERNEL = "kernel"
"""What code outside of every task is called."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Where one task works with a buffer."""

    task: str
    file: str
    lines: tuple[int, ...]
    """Ascending, counted from 1; of code in a helper function these are the helper's lines."""


def accesses(buffer: SSAValue) -> list[Operation]:
    """The operations that may access `buffer`, in no particular order; views and branches are looked through."""
    pending, seen = [buffer], {buffer}
    found: dict[Operation, None] = {}
    for value in pending:
        for use in value.uses:
            following = list(_flows_to(use))
            if not following and not isinstance(use.operation, ReuseGroupOp):
                found[use.operation] = None
            for other in following:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
    return list(found)


def _flows_to(use: Use) -> Iterator[SSAValue]:
    """The values that are the used buffer, or a view of it, or may be it on one way through the code."""
    op, index = use.operation, use.index
    match op:
        case WarpSpecializePartitionsOp():
            for region in op.partition_regions:
                yield region.blocks[0].args[index]
        case scf.ForOp():
            yield op.body.block.args[index - 2]
            yield op.results[index - 3]
        case scf.WhileOp():
            yield op.before_region.block.args[index]
        case scf.ConditionOp() if isinstance(loop := op.parent_op(), scf.WhileOp):
            yield loop.after_region.block.args[index - 1]
            yield loop.results[index - 1]
        case scf.YieldOp():
            yield from _yielded_to(op.parent_op(), index)
        case cf.BranchOp():
            yield op.successor.args[index]
        case cf.ConditionalBranchOp():
            then = len(op.then_arguments)
            yield (op.then_block.args[index - 1] if index <= then else op.else_block.args[index - 1 - then])
        case _:
            yield from (result for result in op.results if isinstance(result.type, MemDescType))


def _yielded_to(parent: Operation | None, index: int) -> Iterator[SSAValue]:
    match parent:
        case scf.ForOp():
            yield parent.body.block.args[index + 1]
            yield parent.results[index]
        case scf.WhileOp():
            yield parent.before_region.block.args[index]
        case Operation():
            yield parent.results[index]
        case None:
            return


def task_of(op: Operation) -> str:
    """The task that runs `op`: `default`, `partition0` and so on, or `kernel` outside of every task."""
    child = op
    while (parent := child.parent_op()) is not None:
        region = child.parent_region()
        if isinstance(parent, WarpSpecializePartitionsOp) and region is not None:
            return f"partition{parent.get_region_index(region)}"
        if isinstance(parent, WarpSpecializeOp):
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
