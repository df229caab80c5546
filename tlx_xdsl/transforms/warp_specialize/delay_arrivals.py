"""`tlx-ws-delay-arrivals`: the producer's threads report a block some turns after they have started to copy it.

`tlx-ws-form-tasks` waits for each copy at once. Then one block is on its way, and a turn takes a round trip to memory.
Here the wait leaves the copies of later turns in flight, and the arrival is at the slot of an earlier turn; after the
loop the last ones are waited for.

Before:
```mlir
scf.for %k = %c0 to %n step %c1 : i32 {
  ...
  %w = ttg.async_wait {num = 0 : i32}
  ttng.fence_async_shared {bCluster = false}
  ttng.arrive_barrier %full_k, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
}
```
After, in Python:
```python
for k in range(n):
    ...
    tlx.async_load_wait_group(2)
    tlx.fence_async_shared()
    tlx.barrier_arrive(full[(k + 2) % 4], pred=k >= 2)
tlx.async_load_wait_group(0)
tlx.fence_async_shared()
tlx.barrier_arrive(full[(n + 2) % 4], pred=n > 1)
tlx.barrier_arrive(full[(n + 3) % 4], pred=n > 0)
```
A consumer gives a slot back in the turn after it (`products/releases.py`), so two slots are not the producer's: of
four, two wait for their report. The fence comes after the wait, for `cp.async` writes until then.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp

from ..rewriting import Pass, constant_integer, insert_before, ops_of
from .products.numbers import number
from .products.releases import arrive_at_slot_before, turns_of_slots
from .products.turn_counts import Turns

MOST_TURNS = 2
"""Turns that an arrival is late at most: three blocks of 16 KiB on their way are more than an H200's latency holds."""


class DelayArrivalsPass(Pass):
    """Keep several copies of the producer's threads in flight."""

    name = "tlx-ws-delay-arrivals"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the loops of producers in place."""
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for loop in [each for each in tasks.default_region.walk() if isinstance(each, scf.ForOp)]:
                _delay(loop)


@dataclass(frozen=True)
class _Report:
    """The arrival after a wait, with the slots of its ring and the count that chooses one."""

    wait: ttg.AsyncWaitOp
    arrival: ttng.ArriveBarrierOp
    depth: int
    turns: Turns


def _delay(loop: scf.ForOp) -> None:
    """Delay the arrivals of a loop that commits all of its copies in each turn, by steps that are known.

    The induction variable says which turn it is: no proof knows that where steps are not known.
    """
    step = constant_integer(loop.step)
    commits = [op for op in loop.walk() if isinstance(op, ttg.AsyncCommitGroupOp)]
    waits = [op for op in loop.body.block.ops if isinstance(op, ttg.AsyncWaitOp)]
    found = [report for wait in waits if (report := _report_after(wait, loop)) is not None]
    if step is None or not found or len(found) != len(commits):
        return
    # A consumer that needs another ring's next block holds one more slot of this one.
    late = min(MOST_TURNS, *(report.depth - 1 - len(found) for report in found))
    if late < 1:
        return
    after = loop.next_op
    assert after is not None, "a block ends in an operation"
    rest = insert_before(after, found[0].wait.clone(), located_at=found[0].wait)
    insert_before(after, ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}), located_at=rest)
    for report in found:
        # Copies complete in the order of their groups, whichever ring they are for.
        report.wait.num = IntegerAttr(late * len(found), i32)
        begun = insert_before(report.arrival, CmpiOp("sge", loop.body.block.args[0], _start(loop, step * late, loop)))
        arrive_at_slot_before(report.arrival, report.turns.value, report.depth, begun.results[0], report.arrival, late)
        total = report.turns.after_loop(after)
        for back in range(late, 0, -1):
            has_run = insert_before(after, CmpiOp("sgt", loop.ub, _start(loop, step * (back - 1), after)))
            arrive_at_slot_before(report.arrival, total, report.depth, has_run.results[0], after, back)
        view = report.arrival.alloc.owner
        Rewriter.erase_op(report.arrival)
        if isinstance(view, Operation) and not view.results[0].first_use:
            Rewriter.erase_op(view)


def _report_after(wait: ttg.AsyncWaitOp, loop: scf.ForOp) -> _Report | None:
    op = wait.next_op
    while isinstance(op, ttng.FenceAsyncSharedOp | ttg.MemDescIndexOp):
        op = op.next_op
    if not isinstance(op, ttng.ArriveBarrierOp) or wait.num.value.data:
        return None
    slots = turns_of_slots(op, loop)
    return None if slots is None else _Report(wait, op, *slots)


def _start(loop: scf.ForOp, distance: int, place: Operation) -> SSAValue:
    """Insert the loop's first value plus a distance."""
    if not distance:
        return loop.lb
    lower = constant_integer(loop.lb)
    if lower is not None:
        return number(place, lower + distance, loop.lb.type)
    return insert_before(place, arith.AddiOp(loop.lb, number(place, distance, loop.lb.type))).result
