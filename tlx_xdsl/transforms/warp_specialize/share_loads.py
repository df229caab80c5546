"""`tlx-ws-share-loads`: one CTA of a cluster of two loads a block for both, where both would load the same one.

Tiles that follow each other often lie above each other, and take the same blocks of B. Whether they do is computed for
each tile, and both CTAs find the same answer: nothing has to be known of the order of tiles. The CTAs load in turns:
once for both where that is so (TMA multicast), and else the block of each.

The CTA that loads for a slot must know that the slot is empty in both. The other CTA's consumers arrive at its `far`,
a second barrier: with one for all of them, a consumer that is a turn ahead could be counted for one that is late. That
one CTA loads even where nothing is shared keeps the other one from being a turn ahead, in which `far` could complete
twice before it is looked at.

Before, in the producer and in a consumer, without types:
```mlir
ttng.wait_barrier %empty_k, %phase
ttng.barrier_expect %full_k, 32768, %true
ttng.async_tma_copy_global_to_local %b_desc[%k, %n] %b_k, %full_k, %true

ttng.arrive_barrier %empty_k, 1
```
After, in Python:
```python
is_owner = stage % 2 == rank
tlx.barrier_wait(empty[stage], phase ^ 1)
if is_owner:
    tlx.barrier_wait(far[stage], phase ^ 1)
tlx.barrier_expect_bytes(full[stage], 32768)
if is_owner:
    if is_same:
        tlx.async_descriptor_load(b_desc, b[stage], [k, n], full[stage], multicast_targets=[0, 1])
    else:
        tlx.async_descriptor_load(b_desc, b[stage], [k, n_1], full[stage], multicast_targets=[other_rank])
        tlx.async_descriptor_load(b_desc, b[stage], [k, n], full[stage])

if stage % 2 != rank:
    tlx.barrier_arrive(tlx.remote_view(far[stage], stage % 2))
tlx.barrier_arrive(empty[stage])
```
`%rank` is that of `tlx-ws-make-persistent` with `cluster`, by which both CTAs turn equally often. Refused where loops
or branches of the producer depend on it all the same, and where no load is likely to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import regions, tlx, ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type

from ..captures import isolate
from ..rewriting import Pass, constant, insert_before, ops_of
from .outer_values import use_outer_values_in
from .refusal import refusal_at
from .tasks_of import NOTE

TmaLoad = ttng.AsyncTMACopyGlobalToLocalOp


@dataclass(frozen=True)
class ShareLoadsPass(Pass):
    """Let the CTAs of clusters share loads."""

    name = "tlx-ws-share-loads"

    cluster: int = 1
    """CTAs of a cluster; with one the module stays as it is."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises WarpSpecializeRefusal where the CTAs can't share a load.
        """
        for tasks in ops_of(op, ttg.WarpSpecializeOp) if self.cluster > 1 else ():
            if self.cluster != 2:
                raise refusal_at(tasks, "the clusters of specialised kernels have two CTAs")
            ranks = [each for each in ops_of(op, tlx.ClusterCTARankOp) if each.parent is tasks.parent]
            if not ranks:
                raise refusal_at(tasks, "clusters are for kernels that 'persistent' has given their tiles")
            _share(tasks, ranks[0].result)


@dataclass(frozen=True)
class _Shared:
    """A load that the CTAs may share."""

    there: Sequence[SSAValue]
    """The place that the other CTA loads."""
    other: SSAValue
    """Its rank."""
    same: SSAValue
    """True where that is the own place."""


def _share(tasks: ttg.WarpSpecializeOp, rank: SSAValue) -> None:
    use_outer_values_in(tasks, but_own=(arith.ConstantOp, ttg.MemDescIndexOp))
    producer = tasks.default_region
    own = _following(producer, {rank}, lambda _: True)
    _check_turns(producer, own)
    # A quotient is the same for most neighbours.
    apart = _following(producer, {rank}, lambda op: not isinstance(op, arith.DivSIOp | arith.ShRSIOp))
    shared = {
        load: found
        for load in [op for op in producer.walk() if isinstance(op, TmaLoad)]
        if not any(each in apart for each in load.coord)
        if (found := _shared(tasks, load, rank, own)) is not None
    }
    if not shared:
        raise refusal_at(tasks, "tiles that follow each other load no block alike in a loop")
    waits = {load: _wait_before(load) for load in shared}
    far: dict[SSAValue, SSAValue] = {}
    for wait in dict.fromkeys(waits.values()):
        empty, stage = _element(wait.alloc)
        if empty not in far:
            far[empty] = _far_barriers(tasks, empty)
        owner = _owner(wait, stage)
        is_owner = insert_before(wait, CmpiOp("eq", owner, rank)).result
        is_owner.name_hint = "is_owner"
        after = wait.next_op
        assert after is not None, "a slot that is empty is filled"
        true = wait.pred
        end = _only_if(after, is_owner)
        insert_before(end, ttng.WaitBarrierOp(operands=[_at(end, far[empty], stage), wait.phase, true, []]))
        for load in [each for each, before in waits.items() if before is wait]:
            _load_for_both(load, shared[load], is_owner)
    for region in tasks.partitions.partition_regions:
        for arrival in [op for op in region.walk() if isinstance(op, ttng.ArriveBarrierOp)]:
            empty, stage = _element(arrival.alloc)
            if empty in far:
                _arrive_at_both(arrival, far[empty], stage, rank)
    tasks.partitions.operands = isolate(tasks.partitions.partition_regions)


# --- what depends on the CTA ------------------------------------------------------------------------------------------


def _following(region: Region, start: set[SSAValue], passes: Callable[[Operation], bool]) -> set[SSAValue]:
    """Return the values that depend on those of `start`, also by loops, and by operations that `passes` accepts."""
    ops = list(region.walk())
    around = region.parent_op()
    while around is not None and (block := around.parent_block()) is not None:
        ops = [*block.ops, *ops]
        around = block.parent_op()
    incoming = regions.incoming([edge for op in region.walk() for edge in regions.edges(op) or ()])
    found, before = set(start), 0
    while len(found) > before:
        before = len(found)
        for op in ops:
            if not op.regions and passes(op) and not found.isdisjoint(op.operands):
                found.update(op.results)
        found.update(value for value, given in incoming.items() if not found.isdisjoint(given))
    return found


def _check_turns(producer: Region, own: set[SSAValue]) -> None:
    """Raise WarpSpecializeRefusal where the CTAs may fill a ring in other orders."""
    for op in producer.walk():
        if op.regions and (
            isinstance(op, scf.WhileOp) or any(_decides(op, each) for each in op.operands if each in own)
        ):
            raise refusal_at(op, "the tiles of a cluster may turn in a loop, or take a branch, differently")


def _decides(op: Operation, value: SSAValue) -> bool:
    return not isinstance(op, scf.ForOp) or value in (op.lb, op.ub, op.step)


def _shared(tasks: Operation, load: TmaLoad, rank: SSAValue, own: set[SSAValue]) -> _Shared | None:
    """Insert the comparison of a load's place with that of the other CTA's load, before the loop around it."""
    path = [load, *_around(load, tasks)]
    # In a loop over tiles, and in one for each tile.
    if len(path) < 3 or load.desc in own or not isinstance(loop := path[-2], scf.ForOp):
        return None
    inside = set(loop.walk())
    if not all(_may_move(each, own, inside) for each in load.coord if each in own):
        return None
    one = insert_before(loop, constant(1, i32)).result
    other = insert_before(loop, arith.SubiOp(one, rank)).result
    other.name_hint = "other_rank"
    known: dict[SSAValue, SSAValue] = {rank: other}
    there = list[SSAValue](load.coord)
    same: SSAValue | None = None
    for number, each in enumerate(load.coord):
        if each in own:
            _move(each, loop, inside)
            there[number] = _with(each, loop, known, own)
            equal = insert_before(loop, CmpiOp("eq", each, there[number])).result
            same = equal if same is None else insert_before(loop, arith.AndIOp(same, equal, i1)).result
    if same is None:
        same = insert_before(loop, arith.ConstantOp(BoolAttr.from_bool(True), i1)).result
    same.name_hint = "is_same"
    return _Shared(there, other, same)


def _around(op: Operation, last: Operation) -> Iterator[Operation]:
    while (op_around := op.parent_op()) is not None and op_around is not last:
        yield (op := op_around)


def _may_move(value: SSAValue, own: set[SSAValue], inside: set[Operation]) -> bool:
    """True if a value can be computed before the loop, and what depends on the CTA also for another CTA."""
    op = value.owner
    if not isinstance(op, Operation):
        # A turn of a loop, or a value that it carries.
        return value not in own and op.parent_op() not in inside
    if op not in inside and value not in own:
        return True
    return is_side_effect_free(op) and not op.regions and all(_may_move(each, own, inside) for each in op.operands)


def _move(value: SSAValue, loop: Operation, inside: set[Operation]) -> None:
    """Compute a value before the loop."""
    if isinstance(op := value.owner, Operation) and op in inside:
        for operand in op.operands:
            _move(operand, loop, inside)
        op.detach()
        insert_before(loop, op, located_at=op)
        inside.discard(op)


def _with(value: SSAValue, loop: Operation, known: dict[SSAValue, SSAValue], own: set[SSAValue]) -> SSAValue:
    """Compute before the loop what a value is in the other CTA."""
    if value not in known and value in own and isinstance(op := value.owner, Operation):
        copy = op.clone({each: _with(each, loop, known, own) for each in op.operands})
        known.update(zip(op.results, insert_before(loop, copy, located_at=op).results, strict=True))
    return known.get(value, value)


# --- barriers and loads -----------------------------------------------------------------------------------------------


def _wait_before(load: TmaLoad) -> ttng.WaitBarrierOp:
    """Return the wait for the slot that a load fills."""
    op = load.prev_op
    while op is not None and not isinstance(op, ttng.WaitBarrierOp):
        op = op.prev_op
    assert op is not None, "a producer waits for a slot before it fills it"
    return op


def _element(barrier: SSAValue) -> tuple[SSAValue, SSAValue]:
    view = barrier.owner
    assert isinstance(view, ttg.MemDescIndexOp), "barriers of rings are elements of arrays"
    return view.src, view.index


def _at(anchor: Operation, array: SSAValue, index: SSAValue) -> SSAValue:
    type_ = memdesc_type(array.type)
    one = MemDescType.get(type_.shape[1:], type_.element_type, type_.encoding, type_.memory_space)
    return insert_before(anchor, ttg.MemDescIndexOp(operands=[array, index], result_types=[one])).result


def _far_barriers(tasks: Operation, empty: SSAValue) -> SSAValue:
    """Allocate the barriers of the other CTA's consumers, like those of the own ones."""
    views = [op for use in empty.uses if isinstance(op := use.operation, ttg.MemDescIndexOp)]
    found = [op for view in views for use in view.result.uses if isinstance(op := use.operation, ttng.InitBarrierOp)]
    array = insert_before(tasks, ttg.LocalAllocOp(operands=[None], result_types=[empty.type])).result
    array.owner.attributes[NOTE] = StringAttr("the other CTA's consumers arrive here: one CTA loads a slot for both")
    array.name_hint = (empty.name_hint or "empty").removesuffix("empty") + "far"
    for number, init in enumerate(found):
        one = _at(tasks, array, insert_before(tasks, constant(number, i32)).result)
        insert_before(tasks, ttng.InitBarrierOp(operands=[one], properties={"count": init.count}))
    return array


def _owner(anchor: Operation, stage: SSAValue) -> SSAValue:
    """Insert the rank of the CTA that fills a slot."""
    two = insert_before(anchor, constant(2, i32)).result
    owner = insert_before(anchor, arith.RemSIOp(stage, two)).result
    owner.name_hint = "owner"
    return owner


def _load_for_both(load: TmaLoad, shared: _Shared, is_owner: SSAValue) -> None:
    """Let the CTA whose turn it is load for both: once where both load the same, and else for each."""
    end = _only_if(load, is_owner)
    choice = insert_before(end, scf.IfOp(shared.same, [], _nothing(end), _nothing(end)))
    together, apart = (region.block.last_op for region in choice.regions)
    assert together is not None and apart is not None, "a region ends in an operation"
    _multicast(together, load, load.coord, insert_before(together, constant(3, i32)).result)
    one = insert_before(apart, constant(1, i32)).result
    _multicast(apart, load, shared.there, insert_before(apart, arith.ShLIOp(one, shared.other)).result)
    load.detach()
    insert_before(apart, load, located_at=load)


def _multicast(anchor: Operation, load: TmaLoad, place: Sequence[SSAValue], mask: SSAValue) -> None:
    operands = [load.desc, list(place), load.barrier, load.result, load.pred, mask]
    insert_before(anchor, tlx.AsyncTMALoadOp(operands=operands, properties={"cachePolicy": load.cache_policy}))


def _only_if(anchor: Operation, condition: SSAValue) -> Operation:
    """Insert a branch that does nothing yet, and return its end."""
    end = insert_before(anchor, scf.IfOp(condition, [], _nothing(anchor))).true_region.block.last_op
    assert end is not None, "a region ends in an operation"
    return end


def _nothing(anchor: Operation) -> Region:
    end = scf.YieldOp()
    end.location = anchor.location
    return Region(Block([end]))


def _arrive_at_both(arrival: ttng.ArriveBarrierOp, far: SSAValue, stage: SSAValue, rank: SSAValue) -> None:
    """Arrive first at the barrier of the CTA that fills the slot, where that is the other one."""
    anchor = arrival
    owner = _owner(anchor, stage)
    pred = insert_before(anchor, CmpiOp("ne", owner, rank)).result
    if arrival.pred is not None:
        pred = insert_before(anchor, arith.AndIOp(arrival.pred, pred, i1)).result
    end = _only_if(anchor, pred)
    view = _at(end, far, stage)
    there = tlx.MapToRemoteOp(
        operands=[view, owner], result_types=[tlx.MapToRemoteOp.remote_type(memdesc_type(view.type))]
    )
    properties = {"count": IntegerAttr(1, i32)}
    insert_before(end, there)
    insert_before(end, tlx.ArriveRemoteOp(operands=[there.result, None], properties=properties))
