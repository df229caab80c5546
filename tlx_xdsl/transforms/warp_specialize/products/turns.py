"""`tlx-ws-take-turns`: consumers take turns at the tensor cores; one computes while the others' products run.

All have a softmax between their products. Left alone they issue products at the same time, wait for the same unit,
and then all compute. So a consumer issues the products of a turn only when it is called, and calls the next one as
soon as they are issued. Named barrier c is "consumer c may issue", of the threads of two: those that wait and those
that arrive. The last consumer calls consumer 0 once at the start, and consumer 0 takes the last call at the end, so
that each barrier completes as often as a task waits for it.

Before:
```mlir
%half = tlx.replica_id
%s = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : ...
%d = ttng.warp_group_dot %p, %v, %acc {isAsync = true} : ...
```
After `tlx-ws-take-turns`:
```mlir
%half = tlx.replica_id
tlx.named_barrier_wait %half, 256
%s = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : ...
%d = ttng.warp_group_dot %p, %v, %acc {isAsync = true} : ...
%other = arith.subi %c1, %half : i32
tlx.named_barrier_arrive %other, 256
```

The next one of more than two is `(%half + 1) % 3`. All consumers must take equally many turns, so nothing that decides
about products may depend on the number of the consumer, or on what may differ between two reads of memory. Of a loop
that some turn more often (`tlx.uneven`), the others pass on as many turns in the loop after it (`tlx.rest`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import regions, tlx, ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import Kind, Space, accesses_of, as_tensor
from tlx_xdsl.layouts.distributed import WARP_SIZE

from ...rewriting import Pass, constant_integer, insert_before, ops_of
from ..tasks_of import NOTE, REST, UNEVEN, copies_of
from .numbers import number
from .products_in_flight import in_block

NamedBarrier = tlx.NamedBarrierWaitOp | tlx.NamedBarrierArriveOp


class TakeTurnsPass(Pass):
    """Let the copies of a partition issue the products of attention in turn."""

    name = "tlx-ws-take-turns"

    def run(self, op: ModuleOp) -> None:
        """Handle each partition of several copies."""
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for index, region in enumerate(tasks.partitions.partition_regions):
                copies = copies_of(tasks, index)
                if copies > 1 and (first := _free_barrier(op)) is not None:
                    _take_turns(region, copies, first, 2 * WARP_SIZE * tasks.num_warps[index])
            for loop in ops_of(tasks, scf.ForOp):
                for name in (UNEVEN, REST):
                    loop.attributes.pop(name, None)


def _free_barrier(module: ModuleOp) -> int | None:
    """Return the first of the numbers above those of all named barriers; None where one of these is computed."""
    used = [constant_integer(op.id) for op in module.walk() if isinstance(op, NamedBarrier)]
    found = [each for each in used if each is not None]
    return None if len(found) < len(used) else max(found, default=-1) + 1


def _take_turns(region: Region, copies: int, first: int, threads: int) -> None:
    sections = _sections(region)
    loops = {op.parent_op() for op, _ in sections if isinstance(op.parent_op(), scf.ForOp)}
    innermost = [loop for loop in loops if loop is not None and not _holds_loop(loop)]
    if not innermost or not all(computes(loop) for loop in innermost) or not _run_alike(region, sections):
        return
    passed_on = _passed_on(region, sections)
    if passed_on is None:
        return
    entry = region.blocks[0]
    order = {op: position for position, op in enumerate(entry.ops)}
    starts = min((in_block(op, entry) for op, _ in (*sections, *passed_on)), key=order.__getitem__)
    replica = insert_before(starts, tlx.ReplicaIdOp()).result
    replica.name_hint = "replica"
    mine = _plus(starts, replica, first)
    other = _next(starts, replica, mine, copies, first)
    _when(starts, replica, copies - 1, tlx.NamedBarrierArriveOp, first, threads)
    for begin, end in (*sections, *passed_on):
        barrier = insert_before(begin, _named(tlx.NamedBarrierWaitOp, mine, threads))
        others = "the other one computes" if copies == 2 else "the others compute"
        barrier.attributes[NOTE] = StringAttr(f"this consumer's turn at the tensor cores: {others}")
        following = end.next_op
        assert following is not None, "a block ends in an operation"
        insert_before(following, _named(tlx.NamedBarrierArriveOp, other, threads), located_at=end)
    end_of_task = entry.last_op
    assert end_of_task is not None, "a task ends in an operation"
    _when(end_of_task, replica, 0, tlx.NamedBarrierWaitOp, first, threads)


def _plus(place: Operation, value: SSAValue, summand: int) -> SSAValue:
    return value if not summand else insert_before(place, arith.AddiOp(value, number(place, summand))).result


def _next(place: Operation, replica: SSAValue, mine: SSAValue, copies: int, first: int) -> SSAValue:
    """Insert the number of the barrier of the consumer that has its turn after one."""
    if copies == 2:
        return insert_before(place, arith.SubiOp(number(place, 2 * first + 1), mine)).result
    following = insert_before(place, arith.AddiOp(replica, number(place, 1))).result
    return _plus(place, insert_before(place, arith.RemSIOp(following, number(place, copies))).result, first)


def _named(kind: type[NamedBarrier], barrier: SSAValue, threads: int) -> NamedBarrier:
    return kind(operands=[barrier], properties={"threads": IntegerAttr(threads, i32)})


def _when(
    place: Operation, replica: SSAValue, which: int, kind: type[NamedBarrier], barrier: int, threads: int
) -> None:
    """Insert an operation on a named barrier that one of the consumers does."""
    is_it = insert_before(place, CmpiOp("eq", replica, number(place, which))).result
    inside = Block()
    branch = insert_before(place, scf.IfOp(is_it, [], Region(inside), Region()))
    inside.add_op(scf.YieldOp())
    inside.last_op.location = place.location  # pyright: ignore[reportOptionalMemberAccess]
    inner = _named(kind, number(place, barrier), threads)
    inner.location = branch.location
    Rewriter.insert_op(inner, InsertPoint.at_start(inside))


# --- where products are issued ---------------------------------------------------------------------------------------


def _sections(region: Region) -> list[tuple[Operation, Operation]]:
    """Return the first and the last product of each run of them that no wait for products interrupts."""
    found: list[tuple[Operation, Operation]] = []
    for block in _blocks(region):
        begin: Operation | None = None
        end: Operation | None = None
        for op in block.ops:
            if isinstance(op, ttng.WarpGroupDotOp):
                begin, end = begin or op, op
            elif begin is not None and end is not None and (isinstance(op, ttng.WarpGroupDotWaitOp) or op.regions):
                found.append((begin, end))
                begin = end = None
        if begin is not None and end is not None:
            found.append((begin, end))
    return found


def _blocks(region: Region) -> list[Block]:
    """Return the blocks of a region, in the order in which their operations run."""
    found: list[Block] = []
    for block in region.blocks:
        found.append(block)
        for op in block.ops:
            for inner in op.regions:
                found += _blocks(inner)
    return found


def _holds_loop(loop: Operation) -> bool:
    return any(isinstance(op, scf.ForOp | scf.WhileOp) for op in loop.walk() if op is not loop)


def computes(loop: Operation) -> bool:
    """Return whether a loop computes functions, such as exponentials, of matrices beside its products."""
    computed = [op.results[0].type for op in loop.walk() if op.dialect_name() == "math"]
    return any(len(type_.get_shape()) > 1 for type_ in map(as_tensor, computed) if type_ is not None)


# --- whether both take as many turns ---------------------------------------------------------------------------------


def _run_alike(region: Region, sections: Sequence[tuple[Operation, Operation]]) -> bool:
    """Return whether both copies get to all sections equally often."""
    differing = _differing(region)
    for begin, _ in sections:
        holder = begin.parent_op()
        while holder is not None and not isinstance(holder, ttg.WarpSpecializePartitionsOp):
            match holder:
                case scf.ForOp():
                    is_made_up = UNEVEN in holder.attributes
                    decides: Sequence[SSAValue] = () if is_made_up else (holder.lb, holder.ub, holder.step)
                case scf.IfOp():
                    decides = (holder.cond,)
                case _:
                    return False
            if differing.intersection(decides):
                return False
            holder = holder.parent_op()
    return True


def _passed_on(
    region: Region, sections: Sequence[tuple[Operation, Operation]]
) -> list[tuple[Operation, Operation]] | None:
    """Return what stands for the sections of the turns that a copy lacks; None where these are not equally many."""
    loops = [op for op in region.walk() if isinstance(op, scf.ForOp)]
    rests = [loop for loop in loops if REST in loop.attributes]
    numbers = {
        sum(begin.parent_op() is loop for begin, _ in sections) for loop in loops if UNEVEN in loop.attributes
    } - {0}
    if not numbers or not rests:
        return []
    if numbers != {1}:
        return None
    found: list[tuple[Operation, Operation]] = []
    for loop in rests:
        first, end = loop.body.block.first_op, loop.body.block.last_op
        assert first is not None and end is not None and end.prev_op is not None, "slots are given back"
        found.append((first, end.prev_op))
    return found


def _differing(region: Region) -> set[SSAValue]:
    """Return the values that may differ between the copies."""
    found: set[SSAValue] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for op in region.walk():
            differs = isinstance(op, tlx.ReplicaIdOp) or _may_change(op) or bool(found.intersection(op.operands))
            if differs and not op.regions:
                found.update(op.results)
            if op.regions and isinstance(op, scf.ForOp | scf.IfOp):
                bounds = op.operands[:3] if isinstance(op, scf.ForOp) else op.operands[:1]
                if found.intersection(bounds):
                    found.update(op.results)
                    found.update(argument for inner in op.regions for block in inner.blocks for argument in block.args)
            elif op.regions and differs:
                found.update(op.results)
            for edge in regions.edges(op) or ():
                found.update(value for operand, value in edge.pairs if operand in found)
    return found


def _may_change(op: Operation) -> bool:
    """Return whether an operation reads what another task may have changed since: an atomic, or shared memory."""
    if op.regions:
        return False
    found = accesses_of(op)
    return found is None or any(
        each.kind & Kind.ATOMIC or (each.kind & Kind.READ and each.space is not Space.GLOBAL) for each in found
    )
