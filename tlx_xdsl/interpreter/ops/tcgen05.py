"""MMAs of Blackwell's tensor cores, commits, and tensor memory (PTX ISA, "tcgen05").

Where two CTAs work on one product (`two_ctas`, PTX: .cta_group::2), the even one of the pair issues it for both, and
the operation is nothing in the odd one. Arrivals of such a module come at the barriers of both CTAs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.ttg import memdesc_type
from tlx_xdsl.layouts.encodings import Ints, TensorMemoryLayout
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.elementwise import EXTREMA, extremum_along
from tlx_xdsl.numerics.matmul import multiply

from ..code import Plan
from ..engine import COPIES, SHIFTS, Transfer
from ..faults import Unsupported, fault_at
from ..machine import Task
from ..matmul import scaled_operand
from ..memory import View
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import Built, Coroutine, Kind, Run, action, blocking, structured
from ..tensor_core import issue, tensor_core
from .barriers import arrive_with, touch
from .buffers import allocate
from .tma import check_tile


class _Pairs:
    """True if products of a module are made by pairs of CTAs: all are, or none."""

    def __init__(self, plan: Plan):
        self.used = ttng.has_pair_products(plan.module)


def _pairs(plan: Plan) -> bool:
    if (found := plan.facts.get(_Pairs)) is None:
        found = plan.facts[_Pairs] = _Pairs(plan)
    return found.used


def _everywhere(task: Task, view: View, *, pair: bool) -> list[View]:
    """A buffer of this CTA, and the other one's of the pair after it."""
    if not pair:
        return [view]
    peer = task.cluster.blocks[task.block.rank ^ 1]
    own = task.block
    return [view, view.elsewhere(peer.tensor if view.memory is own.tensor else peer.shared)]


# Commits -------------------------------------------------------------------------------------------------------------


def commit(task: Task, op: Operation, barrier: View, *, pair: bool) -> None:
    """Have a barrier arrived at, once, when all operations of the tensor core so far are complete."""
    barriers = _everywhere(task, barrier, pair=pair)
    core = tensor_core(task)
    released = task.release()
    for view in barriers:
        touch(task, op, view)
        # The arrival comes with the end of what it tracks: who has seen that end has lived long enough.
        for agent, (number, _) in core.last.items():
            task.reach(op, view, agent, number)

    def finish(transfer: Transfer) -> None:
        released.join(core.over(transfer.number))
        for view in barriers:
            arrive_with(task, op, view, 1, released, core.queue.agent)

    task.issue(core.queue, op, finish)


@structured(ttng.TCGen5CommitOp)
def tcgen05_commit(op: ttng.TCGen5CommitOp, planner: Planner) -> Built:
    """One arrival when all is done that this task has issued so far."""
    has_pred, pair = op.pred is not None, _pairs(planner.plan)

    def run(task: Task, barrier: View, *rest: Any) -> Coroutine:
        yield None
        if not has_pred or rest[0]:
            commit(task, op, barrier, pair=pair)

    return Kind.STEP, run


# Products ------------------------------------------------------------------------------------------------------------


@structured(ttng.TCGen5MMAOp)
def tcgen05_mma(op: ttng.TCGen5MMAOp, planner: Planner) -> Built:
    """The product `d = a * b (+ d)`; f32 is read as tf32."""
    dtype = dtype_of(memdesc_type(op.d.type).element_type)
    unsigned = op.is_unsigned is not None

    def number(view: View) -> Array:
        values = view.read(op)
        return values.view(np.uint8) if unsigned else values

    def product(a: View, columns: Sequence[View], added: Array | None) -> Array:
        b = np.concatenate([number(part) for part in columns], axis=1)
        return multiply(number(a), b, added, dtype, tf32=True)

    return Kind.STEP, _product(op, planner, lambda a, b, _scales: lambda part, added: product(a[part], b, added))


@structured(ttng.TCGen5MMAScaledOp)
def tcgen05_mma_scaled(op: ttng.TCGen5MMAScaledOp, planner: Planner) -> Built:
    """The product `d = (a * a_scale) * (b * b_scale) (+ d)`."""
    rows, columns = memdesc_type(op.d.type).shape[-2:]
    kinds = [tt.ScaleDotElemType(kind.value.data) for kind in (op.a_type, op.b_type)]
    dtype = dtype_of(memdesc_type(op.d.type).element_type)

    def product(a: View, a_scale: View, b: Sequence[View], b_scale: View, added: Array | None) -> Array:
        left = scaled_operand(op, a.read(op), a_scale.read(op), kinds[0], rows)
        # The tensor core of each CTA has the scales of all columns of B.
        count, scales = columns // len(b), b_scale.read(op)
        right = [
            scaled_operand(op, part.read(op).T, scales[number * count :][:count], kinds[1], count).T
            for number, part in enumerate(b)
        ]
        return multiply(left, np.concatenate(right, axis=1), added, dtype)

    def prepare(a: Sequence[View], b: Sequence[View], scales: Sequence[Sequence[View]]) -> _Compute:
        a_scales, b_scales = scales
        return lambda part, added: product(a[part], a_scales[part], b, b_scales[part], added)

    return Kind.STEP, _product(op, planner, prepare)


_Compute = Callable[[int, Array | None], Array]
"""The result of CTA 0 or 1 of a pair, with what is to be added."""


def as_held(d: View, rows: int, compute: _Compute) -> _Compute:
    """`compute` for the accumulator `d`, which may hold twice the `rows`: the right half of the columns below the left.

    Source: PTX ISA, "tcgen05.mma", "Layout B".
    """
    if d.shape[0] == rows:
        return compute

    def halved(part: int, added: Array | None) -> Array:
        if added is not None:
            added = np.concatenate(np.split(added, 2), axis=1)
        return np.concatenate(np.split(compute(part, added), 2, axis=1))

    return halved


def issue_product(
    task: Task,
    op: Operation,
    a: View,
    b: View,
    d: View,
    *,
    pair: bool,
    adds: bool,
    rows: int,
    prepare: Callable[[Sequence[View], Sequence[View]], _Compute],
    others: Sequence[View] = (),
) -> None:
    """Issue a product to `d`, to which it adds where `adds` says so; `pair` is for both CTAs.

    The product has `rows` rows in each CTA. `prepare` gets the operands of all CTAs and gives what computes; `others`
    are read, too.
    """
    all_a, all_b, all_d = (_everywhere(task, view, pair=pair) for view in (a, b, d))
    compute = as_held(d, rows, prepare(all_a, all_b))

    def finish(_transfer: Transfer) -> None:
        results = [compute(part, view.read(op) if adds else None) for part, view in enumerate(all_d)]
        for view, result in zip(all_d, results, strict=True):
            view.write(result)

    issue(task, op, d, [*all_a, *all_b, *others], all_d, finish)


def _product(
    op: ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp,
    planner: Planner,
    prepare: Callable[[Sequence[View], Sequence[View], Sequence[Sequence[View]]], _Compute],
) -> Run:
    """Issue a product, and commit it where it has barriers; a synchronous one waits."""
    pair, is_async = op.two_ctas is not None, op.is_async is not None
    has_token, returns = op.acc_dep is not None, op.token is not None
    num_scales = 2 if isinstance(op, ttng.TCGen5MMAScaledOp) else 0
    count = len(op.barriers)
    commits_pair = _pairs(planner.plan)
    if pair and not is_async:
        raise fault_at(op, "the interpreter runs a product of two CTAs only if it is asynchronous", kind=Unsupported)

    def run(task: Task, a: View, b: View, d: View, *rest: Any) -> Coroutine:
        yield None
        rest = rest[has_token:]
        scales, (use_d, pred), arrivals = rest[:num_scales], rest[num_scales:][:2], rest[num_scales + 2 :]
        rank, size = task.block.rank, len(task.cluster.blocks)
        if pair and size % 2:
            raise fault_at(op, f"a product of two CTAs needs a cluster of pairs, found one of {size}")
        if not pred or (pair and rank % 2):
            return None
        for operand in (a, b):
            if operand.memory is task.block.shared:
                check_tile(op, operand)
        all_scales = [_everywhere(task, view, pair=pair) for view in scales]
        issue_product(
            task, op, a, b, d, pair=pair, adds=bool(use_d), rows=d.shape[0] if num_scales else a.shape[0],
            prepare=lambda left, right: prepare(left, right, all_scales),
            others=[view for views in all_scales for view in views],
        )  # fmt: skip
        core = tensor_core(task)
        for barrier, wanted in zip(arrivals[:count], arrivals[count:], strict=True):
            if wanted:
                commit(task, op, barrier, pair=commits_pair)
        if not is_async:
            number = core.queue.issued
            yield from task.wait_for(core.queue, number, op)
            task.clock.join(core.over(number))
        return None

    assert not returns or len(op.results) == 1
    return run


# Tensor memory -------------------------------------------------------------------------------------------------------
# Loads and stores are complete when their operation is: the compiler puts the waits after them.

WARPS = 4
"""Warps of a warp group."""
SCALE_ROWS, SCALE_COLUMNS = 128, 4
"""Scales of one block (PTX ISA, "tcgen05 scale factor layout")."""
LANES = 32
"""Lanes that hold the scales of a block, each with those of four rows."""


def check_warps(task: Task, op: Operation) -> None:
    """Check that the task can reach all lanes: each warp of a warp group reaches 32 of them.

    Raises Fault for part of a warp group.
    """
    if task.warps % WARPS:
        raise fault_at(
            op,
            f"it takes whole warp groups, {WARPS} warps each, to read and write tensor memory: {task.label} has "
            f"{task.warps}",
        )


@blocking(ttng.TMEMAllocOp)
def tmem_alloc(task: Task, op: ttng.TMEMAllocOp, *values: Array) -> Coroutine:
    """Allocate tensor memory; it is poison without an initial value."""
    type_ = memdesc_type(op.result.type)
    with_token = op.token is not None
    view = allocate(task, op, task.block.tensor, type_)
    if values:
        check_warps(task, op)
        task.write(op, view, values[0])
        yield None
    return (view, None) if with_token else view


@action(ttng.TMEMLoadOp)
def tmem_load(task: Task, op: ttng.TMEMLoadOp, view: View, *_token: Any) -> Any:
    """A reducing load also gives the least or greatest element of each row; NaN counts only where it is asked for."""
    extra = (op.token is not None) + (op.red is not None)
    absolute = op.abs is not None and bool(op.abs.value.data)
    nan_wins = op.nan is not None and bool(op.nan.value.data)
    takes_least = op.red_op is not None and op.red_op.case is ttng.TMEMLoadReduceModifier.MIN
    function = EXTREMA["min" if takes_least else "max", nan_wins]
    reduces, with_token = op.red is not None, op.token is not None
    check_warps(task, op)
    values = task.read(op, view)
    if not extra:
        return values
    results: list[Any] = [values]
    if with_token:
        results.append(None)
    if reduces:
        results.append(extremum_along(function, np.abs(values) if absolute else values, 1))
    return results


@action(ttng.TMEMStoreOp)
def tmem_store(task: Task, op: ttng.TMEMStoreOp, view: View, *rest: Any) -> None:
    """Write a whole buffer where the predicate holds."""
    *_token, values, pred = rest
    if pred:
        check_warps(task, op)
        task.write(op, view, values)


@structured(ttng.TMEMCopyOp)
def tmem_copy(op: ttng.TMEMCopyOp, planner: Planner) -> Built:
    """Issue a copy; lines of scales are the blocks of the hardware, other elements keep their index.

    In a kernel with products of pairs the even CTA issues it for both.
    """
    layout = ttng.tensor_memory_layout(memdesc_type(op.dst.type))
    shape = memdesc_type(op.dst.type).shape
    of_scales = not isinstance(layout, TensorMemoryLayout)
    if of_scales and (shape[-2] % SCALE_ROWS or shape[-1] % SCALE_COLUMNS):
        raise fault_at(
            op, f"scales are copied in blocks of {SCALE_ROWS} x {SCALE_COLUMNS}, found {shape[-2]} x {shape[-1]}"
        )

    pair = _pairs(planner.plan)

    def run(task: Task, source: View, target: View) -> Coroutine:
        yield None
        if pair and task.block.rank % 2:
            return
        check_tile(op, source)
        issue_copy(task, op, source, target, held, pair=pair)

    def held(values: Array) -> Array:
        return scales_of_blocks(values, shape) if of_scales and values.shape != shape else values

    return Kind.STEP, run


def issue_copy(
    task: Task, op: Operation, source: View, target: View, arranged: Callable[[Array], Array], *, pair: bool
) -> None:
    """Issue a copy to tensor memory, for this CTA or for both of a pair; `arranged` makes the target's elements."""
    sources, targets = (_everywhere(task, view, pair=pair) for view in (source, target))

    def finish(_transfer: Transfer) -> None:
        for read, written in zip(sources, targets, strict=True):
            written.write(arranged(read.read(op)))

    issue(task, op, COPIES, sources, targets, finish)


@action(tlx.TMEMShiftOp)
def tmem_shift(task: Task, op: tlx.TMEMShiftOp, view: View) -> None:
    """Issue the move of all rows."""
    issue_shift(task, op, view)


def issue_shift(task: Task, op: Operation, view: View) -> None:
    """Issue the move of all rows of a buffer but the last one of each 32."""

    def finish(_transfer: Transfer) -> None:
        values = view.read(op)
        groups = values.reshape(-1, LANES, values.shape[-1])
        view.write(np.concatenate([groups[:, 1:], groups[:, -1:]], axis=1).reshape(values.shape))

    issue(task, op, SHIFTS, [], [view], finish)


def scales_of_blocks(values: Array, shape: Ints) -> Array:
    """Scales in the order of shared memory as a matrix: in each block, row r + 32 j is in line r, as its j-th four."""
    rows, columns = shape[-2] // SCALE_ROWS, shape[-1] // SCALE_COLUMNS
    blocks = values.reshape(rows, columns, LANES, SCALE_ROWS // LANES, SCALE_COLUMNS)
    return blocks.transpose(0, 3, 2, 1, 4).reshape(shape)
