"""Structured control flow, calls, and warp specialisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects import func, scf
from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tt, ttg
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.scf import WhileOp

from ..code import Body
from ..faults import fault_at
from ..machine import Task
from ..planner import Planner
from ..polls import NO_ONE, Poll, poll_of, polls
from ..registry import Built, Coroutine, Kind, Run, Waiting, one_or_all, structured, threadwise
from ..threads import is_scalar_code, uniform
from .cluster import cluster_sync
from .libdevice import device_function
from .thread_registers import merged


@threadwise(scf.ForOp)
@structured(scf.ForOp)
def for_loop(op: scf.ForOp, planner: Planner) -> Built:
    """The bounds are signed, and an induction variable that is about to overflow ends the loop."""
    body = planner.body(op.body.block)
    size = len(body.steps) + 1

    def numbers(task: Task, *bounds: Any) -> tuple[Any, range]:
        # What is carried around may differ between threads, the number of turns may not.
        lower, upper, step = (uniform(op, bound, task.active) for bound in bounds)
        if step <= 0:
            raise fault_at(op, f"the step of a loop must be positive, found {step}")
        integer: Any = type(lower)  # pyright: ignore[reportUnknownVariableType]
        return integer, range(int(lower), int(upper), int(step))

    def call(task: Task, lower: Any, upper: Any, step: Any, *values: Any) -> Any:
        integer, indices = numbers(task, lower, upper, step)
        carried: Any = values
        for index in indices:
            task.spend(op, size)
            carried = body.call(task, integer(index), *carried)
        return one_or_all(carried)

    def run(task: Task, lower: Any, upper: Any, step: Any, *values: Any) -> Coroutine:
        integer, indices = numbers(task, lower, upper, step)
        carried: Any = values
        for index in indices:
            task.spend(op, size)
            carried = yield from body.run(task, integer(index), *carried)
        return one_or_all(carried)

    return (Kind.STEP, run) if body.suspends else (Kind.EFFECT, call)


@threadwise(scf.IfOp)
@structured(scf.IfOp)
def if_else(op: scf.IfOp, planner: Planner) -> Built:
    """Run one of two blocks; the second may be missing."""
    then = planner.body(op.true_region.block)
    otherwise = planner.body(op.false_region.block) if op.false_region.blocks else None
    if planner.plan.by_threads and not is_scalar_code(op):
        return Kind.STEP, _some_threads(op, then, otherwise)

    def call(task: Task, condition: Any) -> Any:
        body = then if condition else otherwise
        results = [] if body is None else body.call(task)
        return one_or_all(results)

    def run(task: Task, condition: Any) -> Coroutine:
        body = then if condition else otherwise
        results: Any = [] if body is None else (yield from body.run(task))
        return one_or_all(results)

    suspends = then.suspends or (otherwise is not None and otherwise.suspends)
    return (Kind.STEP, run) if suspends else (Kind.EFFECT, call)


def _some_threads(op: scf.IfOp, then: Body, otherwise: Body | None) -> Run:
    """Each block for the threads that take it; what comes of both is put together by the threads that hold it."""

    def run(task: Task, condition: Any) -> Coroutine:
        outer = task.active
        running = np.ones(task.threads, np.bool_) if outer is None else outer
        taken = running & condition
        if not taken.any() or (taken == running).all():
            body = then if taken.any() else otherwise
            results: Any = [] if body is None else (yield from body.run(task))
            return one_or_all(results)
        task.active = taken
        first = yield from then.run(task)
        second: Any = []
        if otherwise is not None:
            task.active = running & ~taken
            second = yield from otherwise.run(task)
        task.active = outer
        return one_or_all(
            [merged(op, value, taken, *both) for value, *both in zip(op.results, first, second, strict=True)]
        )

    return run


@threadwise(scf.WhileOp, WhileOp)
@structured(scf.WhileOp, WhileOp)
def while_loop(op: scf.WhileOp, planner: Planner) -> Built:
    """Let others run after every iteration: the loop may wait for what they write to global memory."""
    spinning = Waiting(op, lambda: True, lambda: "repeats a loop", spins=True)
    is_poll, poll = polls(op), poll_of(op, planner.slot)
    before = planner.body(op.before_region.block)
    after = planner.body(op.after_region.block)
    size = len(before.steps) + len(after.steps) + 1

    def run(task: Task, *values: Any) -> Coroutine:
        carried: Any = values
        changes = task.global_memory.changes
        while True:
            known, begun = changes.count, carried
            go_on, *carried = yield from before.run(task, *carried)
            if not uniform(op, go_on, task.active):
                return one_or_all(carried)
            carried = yield from after.run(task, *carried)
            task.spend(op, size)
            if is_poll and task.order is not None and _are_same(begun, carried):
                # The next iteration would do the same: it waits until someone writes, if no one has in the meantime.
                yield _in_vain(task, op, poll, known)
            else:
                yield spinning

    return Kind.STEP, run


def _in_vain(task: Task, op: Operation, poll: Poll | None, known: int) -> Waiting:
    """Return what a task waits for that has found nothing: a change of memory since there were `known` ones."""
    changes, frame = task.global_memory.changes, task.frame

    def reason() -> str:
        if poll is None:
            return f"polls global memory in a loop, {NO_ONE}"
        return poll.reason(task.global_memory, frame)

    address, time = None if poll is None else poll.address(frame), task.cluster.launch.time
    end = None if poll is None else poll.ends(frame)
    deadline = None if end is None else end + 1 - task.cluster.time

    def ready() -> bool:
        return changes.count != known or (deadline is not None and time.now >= deadline)

    return Waiting(op, ready, reason, spins=True, in_vain=True, polled=address, deadline=deadline)


def _are_same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(one is other or np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@threadwise(scf.ExecuteRegionOp)
@structured(scf.ExecuteRegionOp)
def execute_region(op: scf.ExecuteRegionOp, planner: Planner) -> Built:
    """A region of several blocks in the place of one operation."""
    graph = planner.graph(op.region)

    def run(task: Task) -> Coroutine:
        results = yield from graph.run(task)
        return one_or_all(results)

    return Kind.STEP, run


def _print_number(_task: Task, value: Any) -> None:
    print(value, end="")


def _print_unsigned(_task: Task, value: Any) -> None:
    print(int(value) % (1 << 64), end="")


def _print_newline(_task: Task) -> None:
    print()


PRINTERS: dict[str, Run] = {
    "printI64": _print_number,
    "printU64": _print_unsigned,
    "printF32": _print_number,
    "printF64": _print_number,
    "printNewline": _print_newline,
}
"""Functions of MLIR's runner library (mlir/ExecutionEngine/CRunnerUtils.h)."""


@threadwise(tt.CallOp, func.CallOp)
@structured(tt.CallOp, func.CallOp)
def call(op: tt.CallOp | func.CallOp, planner: Planner) -> Built:
    """The callee runs in a frame of its own.

    One without a body may be a device function of CUDA's, or one of MLIR's runner library that prints.
    """
    name, functions = op.callee.string_value(), planner.plan.functions
    if not functions[name].op.body.blocks:
        if (device := device_function(name, op.results)) is not None:
            return Kind.PURE, device
        if (printer := PRINTERS.get(name)) is not None:
            return Kind.EFFECT, printer

        def absent(*_: Any) -> NoReturn:
            raise fault_at(op, f"'@{name}' has no body")

        return Kind.EFFECT, absent

    def run(task: Task, *values: Any) -> Coroutine:
        results = yield from functions[name].call(task, values)
        return one_or_all(results)

    return Kind.STEP, run


@structured(ttg.WarpSpecializeOp)
def warp_specialize(op: ttg.WarpSpecializeOp, planner: Planner) -> Built:
    """The partitions become tasks of their own; the operation ends when they all have ended.

    After `tlx.async_tasks` the thread blocks of a cluster wait for each other, unless the user says otherwise.
    """
    partitions = op.partitions
    default = planner.graph(op.default_region)
    graphs = [planner.graph(region) for region in partitions.partition_regions]
    syncs = "tlx.no_ending_cluster_sync" not in op.attributes and not _says_barriers(op)
    captures = [planner.slot(value) for value in partitions.explicit_captures]

    def partition(task: Task, number: int, values: list[Any]) -> Coroutine:
        yield from graphs[number].run(task, *values)

    def run(task: Task) -> Coroutine:
        values = [uniform(op, task.frame[slot], task.active) for slot in captures]
        started: list[Task] = []
        # Every partition begins with what is known here.
        released = task.release()
        for number, warps in enumerate(op.num_warps):
            child = task.block.start(f"partition {number}", number + 1, warps, task.frame, released.copy())
            child.coroutine = partition(child, number, values)
            started.append(child)
        task.block.crew = [task, *started]
        results: Any = yield from default.run(task)
        yield Waiting(
            op,
            lambda: all(child.ended for child in started),
            lambda: f"waits for the end of {', '.join(child.name for child in started if not child.ended)}",
        )
        for child in started:
            task.acquire(child.clock)
        task.block.crew = [task]
        if syncs and len(task.cluster.blocks) > 1:
            yield from cluster_sync(task, op)
        return one_or_all(results)

    return Kind.STEP, run


def _says_barriers(op: Operation) -> bool:
    """True if the kernel around `op` has an operation for each barrier of its cluster, as text for Triton does."""
    parent = enclosing(op, tt.FuncOp)
    return parent is not None and nvvm.CLUSTER_DIM in parent.attributes


@structured(scf.IndexSwitchOp)
def index_switch(op: scf.IndexSwitchOp, planner: Planner) -> Built:
    """One block for each listed number, and one for all others."""
    cases = {
        int(value): planner.body(region.block)
        for value, region in zip(op.cases.get_values(), op.case_regions, strict=True)
    }
    default = planner.body(op.default_region.block)

    def run(task: Task, number: np.int64) -> Coroutine:
        results: Any = yield from cases.get(int(number), default).run(task)
        return one_or_all(results)

    return Kind.STEP, run
