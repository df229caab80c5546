"""`ttl-schedule-pipeline{depth=}`: have more transfers outstanding at once.

Before, with `buffer_factor=4` and the consumer of both buffers in one loop:
```mlir
affine.for %i = 0 to 7 {
  %v = ttl.cb_reserve %a : ...
  %xf = ttl.copy %from_a[%c0, %i], %v : ...
  ttl.wait %xf
  ttl.cb_push %a
  %w = ttl.cb_reserve %b : ...
  %yf = ttl.copy %from_b[%c0, %i], %w : ...
  ttl.wait %yf
  ttl.cb_push %b
}
```
After: four transfers begin before one barrier waits for all of them.
```mlir
affine.for %i = 0 to 6 step 2 {
  %v = ttl.cb_reserve %a {blocks = 2 : i64} : ...
  %v0 = ttl.block %v, %c0 : ...
  %xf0 = ttl.copy %from_a[%c0, %i], %v0 : ...
  %i1 = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
  %v1 = ttl.block %v, %c1 : ...
  %xf1 = ttl.copy %from_a[%c0, %i1], %v1 : ...
  // ... the same for %b
  ttl.dma_barrier read
  ttl.cb_push %a {blocks = 2 : i64}
  ttl.cb_push %b {blocks = 2 : i64}
}
affine.for %i = 6 to 7 {
  // ... one block of %a and of %b: reserve, copy, reserve, copy, wait, wait, push, push
}
```
A NoC barrier waits for all outstanding transfers of its direction, so a transfer can't stay outstanding while an
earlier one is waited for. Prefetching is therefore batching: what is begun before the same barrier overlaps.

(a) In each block of a datamovement thread, the waits of neighbouring groups (acquire, copy, wait, release) go after the
    copies of all of them, and the releases after the waits. The order of steps on one circular buffer stays.
(b) A loop that consists of such groups is strip-mined: up to `depth` blocks at once, or half of the smallest buffer,
    so that the other side works on one half while this one works on the other. The rest of the iterations keep their
    loop. Readers reserve and push batches, writers wait for and pop them. A batch divides each buffer: its blocks must
    not go over the end of the ring. For the same reason a loop inside of another one has no rest. With a `depth` of a
    whole buffer, both sides take turns.

Legal when no two transfers of a batch depend on each other (`analysis.ttl.transfers`), and when no two threads can
come to wait for each other: a release now comes after acquisitions that were later. Those need runs of the partner
before the one that needs the release, where all buffers of the batch are in lockstep with one partner
(`analysis.ttl.buffer_sides`) and the batch is no larger than any of them. Several groups without one partner keep
their order, and so does everything with pipes and semaphores. A transfer never begins earlier than it could before:
its own acquisition is before it, as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import OpT, Pass, insert_before, ops_of

from ..analysis.buffer_sides import BufferSides
from ..analysis.transfers import Dependence, dependences, loops_around, parameters_of
from ..dialects.ttl import (
    AcquireOp,
    BlockOp,
    CBOp,
    CopyOp,
    DatamovementThreadOp,
    DMABarrierOp,
    KernelOp,
    ReleaseOp,
    WaitOp,
)
from .affine.strip_mining import Strips, strips, trip_count
from .transfer_groups import Group, Run, is_index_arithmetic, runs_of


@dataclass(frozen=True)
class SchedulePipelinePass(Pass):
    """Schedule the transfers of every datamovement thread."""

    name = "ttl-schedule-pipeline"

    depth: int | None = None
    """Iterations whose transfers are outstanding together; half of the smallest buffer where nothing is said."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for kernel in ops_of(op, KernelOp):
            scheduler = _Scheduler(kernel, self.depth)
            for thread in ops_of(kernel, DatamovementThreadOp):
                for loop in ops_of(thread, affine.ForOp):
                    scheduler.batch(loop)
                for block in (thread.body.block, *(loop.body.block for loop in ops_of(thread, affine.ForOp))):
                    for run in runs_of(block):
                        scheduler.reorder(run)


class _Scheduler:
    """Decides what may be done in a kernel, and does it."""

    def __init__(self, kernel: KernelOp, depth: int | None) -> None:
        self.parameters = parameters_of(kernel)
        self.sides = BufferSides(kernel)
        self.depth = depth
        self.batched: set[tuple[SSAValue, bool]] = set()
        """The buffers with a side that works on several blocks at once, and whether it is the producer's."""

    def partner(self, groups: Iterable[Group]) -> Block | None:
        """The block that is the other side of all groups, and takes one block of each at a time."""
        own: list[CBOp] = [step for group in groups for step in group.steps]
        if any((step.cb, not step.PRODUCES) in self.batched for step in own):
            return None
        return self.sides.partner(own)

    def dependences(self, groups: Iterable[Group]) -> list[Dependence]:
        """The dependences between the transfers of some groups."""
        return dependences([copy for group in groups for copy in group.copies], self.parameters)

    # --- (a) ---------------------------------------------------------------------------------------------------------

    def reorder(self, run: Run) -> None:
        """Put the waits of groups with one partner after their copies, and the releases after the waits."""
        clusters: list[tuple[Block | None, list[Group]]] = []
        for group in run.groups.values():
            partner = self.partner([group])
            if clusters and partner is not None and clusters[-1][0] is partner:
                clusters[-1][1].append(group)
            else:
                clusters.append((partner, [group]))
        for _, groups in clusters:
            found = self.dependences(groups)
            if len(groups) > 1 and not any(each.conflicts.in_same_iteration for each in found):
                _issue_together(run, groups)

    # --- (b) ---------------------------------------------------------------------------------------------------------

    def batch(self, loop: affine.ForOp) -> None:
        """Let a loop that consists of groups work on several blocks at once."""
        match runs_of(loop.body.block):
            case [run] if len(run.ops) == len(loop.body.block.ops) - 1 and not loop.inits:
                groups = [*run.groups.values()]
            case _:
                return
        if self.partner(groups) is None:
            return
        cut = strips(loop, self._batch_size(loop, groups))
        if cut is not None:
            self.batched |= {(group.acquire.cb, group.acquire.PRODUCES) for group in groups}
            _strip_mine(loop, run, cut)

    def _batch_size(self, loop: affine.ForOp, groups: list[Group]) -> int:
        """The iterations that there is room for, and of which no two depend on each other; 0 for none."""
        factors = [group.acquire.cb_type.buffer_factor for group in groups]
        most = min(factors) // 2 if self.depth is None else min(self.depth, *factors)
        for each in self.dependences(groups):
            if each.conflicts.in_same_iteration and each.source is not each.sink:
                return 0
            nearest = each.conflicts.nearest(loops_around(each.source).index(loop))
            if not isinf(nearest):
                most = min(most, (int(nearest) - 1) // loop.step.value.data + 1)
        # The blocks of an acquisition are in one piece: no batch may go over the end of the ring. So batches fill it
        # without a rest, and where the loop runs again, it goes on where a batch may begin.
        count = trip_count(loop)

        def fits(size: int) -> bool:
            is_aligned = not loops_around(loop) or (count is not None and count % size == 0)
            return is_aligned and not any(factor % size for factor in factors)

        return next(filter(fits, range(most if count is None else min(most, count), 1, -1)), 0)


def _issue_together(run: Run, groups: list[Group]) -> None:
    """Move the waits of some groups after their copies, as one barrier, and their releases after it."""
    # Groups of others, whose steps are between these, keep their place: then so do these.
    first, last = (run.ops.index(op) for op in (groups[0].acquire, groups[-1].steps[1]))
    region = run.ops[first : last + 1]
    cbs = {group.acquire.cb for group in groups}
    steps = [op for op in region if isinstance(op, CBOp)]
    if any(step.cb not in cbs for step in steps) or len(steps) != 2 * len(groups):
        return
    end = region[-1].next_op
    assert end is not None, "a block ends in an operation"
    waits = [op for op in region if isinstance(op, WaitOp | DMABarrierOp)]
    for direction in dict.fromkeys(wait.direction for wait in waits):
        of_direction = [wait for wait in waits if wait.direction is direction]
        insert_before(end, DMABarrierOp(direction), located_at=of_direction[-1])
    for wait in waits:
        Rewriter.erase_op(wait)
    for step in steps:
        if isinstance(step, ReleaseOp):
            step.detach()
            insert_before(end, step, located_at=step)


def _strip_mine(loop: affine.ForOp, run: Run, cut: Strips) -> None:
    """Insert the loop over batches; the loop itself is left with the rest, or erased."""
    step = loop.step.value.data
    body = Block(arg_types=[IndexType()])
    index = body.args[0]
    old_index = loop.body.block.args[0]
    index.name_hint, index.location = old_index.name_hint, old_index.location
    main = affine.ForOp.from_region(
        loop.lowerBoundOperands, cut.middle.operands, [], [], loop.lowerBoundMap, AffineMapAttr(cut.middle.map),
        Region(body), step * cut.batch,
    )  # fmt: skip
    insert_before(loop, main)
    _Batch(loop, main, cut.batch).fill(run)
    if cut.rest is None:
        Rewriter.erase_op(loop)
        return
    rest = affine.ForOp.from_region(
        cut.rest.operands, loop.upperBoundOperands, [], [], AffineMapAttr(cut.rest.map), loop.upperBoundMap,
        loop.detach_region(loop.body), step,
    )  # fmt: skip
    rest.attributes = loop.attributes.copy()
    insert_before(loop, rest)
    Rewriter.erase_op(loop)


class _Batch:
    """The body of a loop over batches."""

    def __init__(self, loop: affine.ForOp, main: affine.ForOp, size: int) -> None:
        self.body, self.size = main.body.block, size
        self.values: list[dict[SSAValue, SSAValue]] = []
        """What the values of the old body are in each iteration of the batch."""
        self.views: dict[SSAValue, list[SSAValue]] = {}
        """The blocks of the batch, by the view of the old body."""
        self.shared: dict[SSAValue, SSAValue] = {}
        """The same for those that do not follow from the index."""
        self.numbers: list[SSAValue] = []
        old_index = loop.body.block.args[0]
        for number in range(size):
            constant = arith.ConstantOp(IntegerAttr.from_index_int_value(number))
            self.numbers.append(insert_before(main, constant, located_at=loop).result)
        for number in range(size):
            index: SSAValue = self.body.args[0]
            if number:
                shift = AffineMap(1, 0, (AffineExpr.dimension(0) + number * loop.step.value.data,))
                index = self._add(affine.ApplyOp([index], AffineMapAttr(shift)), loop).result
                index.name_hint = old_index.name_hint
            self.values.append({old_index: index})

    def fill(self, run: Run) -> None:
        """Add all operations of a run, each for all iterations of the batch, and one barrier."""
        releases: list[ReleaseOp] = []
        copy: CopyOp | None = None
        for op in run.ops:
            match op:
                case AcquireOp():
                    self._acquire(op)
                case CopyOp():
                    self._copy(op)
                    copy = op
                case ReleaseOp():
                    releases.append(op)
                case _ if is_index_arithmetic(op):
                    self._compute(op)
                case _:
                    pass
        if copy is not None:
            self._add(DMABarrierOp(copy.direction), copy)
        for release in releases:
            self._add(type(release)(release.cb, self.size), release)
        self._add(affine.YieldOp.get(), releases[-1])

    def _add(self, op: OpT, source: Operation) -> OpT:
        op.location = source.location
        self.body.add_op(op)
        return op

    def _acquire(self, op: AcquireOp) -> None:
        view = self._add(type(op)(op.cb, self.size), op).view
        view.name_hint = op.view.name_hint
        self.views[op.view] = [self._add(BlockOp(view, number), op).result for number in self.numbers]

    def _copy(self, op: CopyOp) -> None:
        for values, view in zip(self.values, self.views[op.view], strict=True):
            mapping = {**self.shared, **values, op.view: view}
            source, destination = (mapping.get(each, each) for each in (op.source, op.destination))
            source_indices = tuple(mapping.get(each, each) for each in op.source_indices)
            destination_indices = tuple(mapping.get(each, each) for each in op.destination_indices)
            self._add(CopyOp(source, destination, source_indices, destination_indices), op)

    def _compute(self, op: Operation) -> None:
        """Compute once what is the same in all iterations."""
        if all(operand not in self.values[0] for operand in op.operands):
            self._add(op.clone(self.shared), op)
            return
        for values in self.values:
            mapping = {**self.shared, **values}
            self._add(op.clone(mapping), op)
            values.update(zip(op.results, (mapping[each] for each in op.results), strict=True))
