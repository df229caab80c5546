"""`tlx-insert-cluster-barriers`: have the CTAs of a cluster wait for each other where they must.

Before another CTA's memory is used, that CTA must have started, and its mbarriers must be known to the cluster; and a
CTA must not end, or invalidate an mbarrier, while others may use its memory. Where the user has no barrier after the
last initialisation before the first use, or before an exit, one is inserted. After `tlx.async_tasks` the CTAs wait
for each other, unless `no_ending_cluster_sync` is given.

An mbarrier that other CTAs use may be allocated later: after the first use of another CTA, after a return, in a branch
or a task. Where the user has no barrier after it either, its initialisation moves to the kernel's beginning. A second
barrier there would not do: a CTA may wait for another one before it, which is past it. Buffers that other CTAs use move
as well: stock Triton gives the memory of one that is allocated later to what is used before, such as the exchange of a
reduction, and another CTA may have written it by then.

Before:
```mlir
%a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
ttng.init_barrier %a, 1 : ...
tlx.arrive_remote %a_there, 1 : ...
%b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
ttng.init_barrier %b, 1 : ...
tlx.arrive_remote %b_there, 1 : ...
tt.return
```
After:
```mlir
%b = ttg.local_alloc : ...
ttng.init_barrier %b, 1 : ...
%a = ttg.local_alloc : ...
ttng.init_barrier %a, 1 : ...
tlx.fence_mbarrier_init_cluster
ttng.cluster_arrive {relaxed = false}
ttng.cluster_wait
tlx.arrive_remote %a_there, 1 : ...
tlx.arrive_remote %b_there, 1 : ...
ttng.cluster_arrive {relaxed = false}
ttng.cluster_wait
tt.return
```
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BoolAttr, ModuleOp, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.analysis.buffer_users import accesses
from tlx_xdsl.analysis.cluster_reach import ClusterReach, is_reached
from tlx_xdsl.analysis.module_attrs import cluster_dims
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import enclosing, module_integer
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.text.diagnostics import error_at, location_of

from ..rewriting import Pass, insert_before, ops_of

NO_ENDING_SYNC = "tlx.no_ending_cluster_sync"
"""On `ttg.warp_specialize`: the CTAs of the cluster do not wait for each other after it."""


class InsertClusterBarriersPass(Pass):
    """Complete the barriers of the cluster."""

    name = "tlx-insert-cluster-barriers"

    def run(self, op: ModuleOp) -> None:
        """Handle every function of the module.

        Raises CompilationError for an mbarrier that other CTAs use and whose initialisation they can't wait for.
        """
        if (module_integer(op, "ttg.num-ctas") or 1) > 1:
            # Tensors span the cluster, and stock Triton puts the barriers.
            return
        reach, is_cluster = ClusterReach(op), cluster_dims(op) is not None
        has_tasks = bool(ops_of(op, ttg.WarpSpecializeOp))
        for func in ops_of(op, tt.FuncOp):
            if func.body.blocks:
                _complete(func, reach, is_cluster=is_cluster, has_tasks=has_tasks)


def _complete(func: tt.FuncOp, reach: ClusterReach, *, is_cluster: bool, has_tasks: bool) -> None:
    # What a function that is called reaches by its arguments has been waited for by the kernel.
    reaches = reach.concerns(func) and (func.is_kernel or _owns_what_is_reached(func, has_tasks=has_tasks))
    if reaches:
        _hoist_initialisations(func, reach)
        _complete_start(func, reach)
        _hoist_buffers(func, reach)
    if reaches or is_cluster or ops_of(func, ttng.ClusterWaitOp):
        for op in ops_of(func, ttg.WarpSpecializeOp):
            if NO_ENDING_SYNC not in op.attributes:
                _put_barrier(op, before=op.next_op)
                # It is said by an operation from here on.
                op.attributes[NO_ENDING_SYNC] = UnitAttr()
    if reaches:
        for block in func.body.blocks:
            if isinstance(exit_ := block.last_op, tt.ReturnOp) and not _waits_at_end(block, reach):
                _put_barrier(exit_, before=exit_)


def _owns_what_is_reached(func: tt.FuncOp, *, has_tasks: bool) -> bool:
    classes = ValueClasses.of(func, ttg.MemDescType)
    found = next((op for op in ops_of(func, ttg.LocalAllocOp) if is_reached(op, classes)), None)
    if found is not None and has_tasks:
        raise error_at(
            found,
            "other CTAs use this buffer of a function that is called, and in a kernel with tasks not all warps come "
            "here to wait for the cluster: allocate it in the kernel before tlx.async_tasks, and pass it",
        )
    return found is not None


# --- the start --------------------------------------------------------------------------------------------------------


def _complete_start(func: tt.FuncOp, reach: ClusterReach) -> None:
    """Fence and barrier after the initialisations before the first use in the entry block, if the user has none."""
    entry = list(func.body.blocks[0].ops)
    first_use = next((number for number, op in enumerate(entry) if reach.within(op)), len(entry) - 1)
    inits = [number for number, op in enumerate(entry[:first_use]) if isinstance(op, ttng.InitBarrierOp)]
    last_init = inits[-1] if inits else -1
    between = entry[last_init + 1 : first_use]
    arrives = [op for op in between if isinstance(op, ttng.ClusterArriveOp)]
    fenced = any(isinstance(op, tlx.FenceMBarrierInitClusterOp) for op in between)
    anchor = arrives[0] if arrives else entry[last_init + 1] if inits else entry[first_use]
    if inits and not fenced:
        insert_before(anchor, tlx.FenceMBarrierInitClusterOp())
    if not arrives:
        _put_barrier(anchor, before=anchor)


def _hoist_initialisations(func: tt.FuncOp, reach: ClusterReach) -> None:
    """Move the initialisations of mbarriers that other CTAs use before the cluster's first barrier."""
    classes = ValueClasses.of(func, ttg.MemDescType)
    for alloc in ops_of(func, ttg.LocalAllocOp):
        inits = [op for op in accesses(alloc.result, classes) if isinstance(op, ttng.InitBarrierOp)]
        late = [op for op in inits if not _is_before_first_use(op, reach) and not _waits_after(op, reach)]
        if not late or not is_reached(alloc, classes):
            continue
        if not _is_before_first_use(alloc, reach):
            _hoist_allocation(alloc)
        for op in late:
            _hoist(op, alloc)


def _is_before_first_use(op: Operation, reach: ClusterReach) -> bool:
    """True in the entry block of a function, before anything there that uses other CTAs' memory."""
    func = op.parent_op()
    if not isinstance(func, tt.FuncOp):
        return False
    for other in func.body.blocks[0].ops:
        if other is op or reach.within(other):
            return other is op
    return False


def _hoist_buffers(func: tt.FuncOp, reach: ClusterReach) -> None:
    """Allocate what other CTAs use before the first barrier of the cluster."""
    entry = list(func.body.blocks[0].ops)
    first = next(number for number, op in enumerate(entry) if isinstance(op, ttng.ClusterArriveOp))
    early = set(entry[:first])
    classes = ValueClasses.of(func, ttg.MemDescType)
    for op in ops_of(func, ttg.LocalAllocOp, tlx.StorageAliasLocalAllocOp):
        is_late = op not in early and not _waits_after(op, reach)
        if is_late and not (isinstance(op, ttg.LocalAllocOp) and op.src is not None) and is_reached(op, classes):
            _hoist_allocation(op)


def _waits_after(op: Operation, reach: ClusterReach) -> bool:
    """True if the cluster has a barrier in the block after `op`, and no use of other CTAs' memory before that."""
    following = op.next_op
    while following is not None and not reach.within(following):
        if isinstance(following, ttng.ClusterArriveOp):
            return True
        following = following.next_op
    return False


def _hoist_allocation(alloc: Operation) -> None:
    """Move an allocation without an initial value to the beginning of its function, after that of its region."""
    func, partitions = enclosing(alloc, tt.FuncOp), enclosing(alloc, ttg.WarpSpecializePartitionsOp)
    assert func is not None
    entry = func.body.blocks[0]
    anchor = entry.first_op
    if isinstance(alloc, tlx.StorageAliasLocalAllocOp):
        spec = alloc.storage_alias.owner
        assert isinstance(spec, Operation)
        if spec.parent is not entry:
            _move(spec, anchor)
        anchor = spec.next_op
    _move(alloc, anchor)
    if partitions is not None:
        _capture(alloc.results[0], partitions)


def _move(op: Operation, anchor: Operation | None) -> None:
    assert anchor is not None, "a block ends in a terminator"
    if op is not anchor:
        op.detach()
        insert_before(anchor, op, located_at=op)


def _capture(value: SSAValue, partitions: ttg.WarpSpecializePartitionsOp) -> None:
    """Let the partitions, which see nothing else of what is around them, have an allocation as an argument."""
    for region in partitions.partition_regions:
        block = region.blocks[0]
        argument = block.insert_arg(value.type, len(block.args), location_of(value))
        argument.name_hint = value.name_hint
        inside = set(region.walk())
        value.replace_uses_with_if(argument, lambda use, inside=inside: use.operation in inside)
    partitions.operands = [*partitions.operands, value]


def _hoist(init: ttng.InitBarrierOp, alloc: ttg.LocalAllocOp) -> None:
    """Initialise an mbarrier right after its allocation."""
    _check_runs_once(init)
    after, barrier = alloc.next_op, init.operands[0]
    assert after is not None, "a block ends in a terminator"
    view = barrier.owner
    if isinstance(view, ttg.MemDescIndexOp) and isinstance(index := view.operands[1].owner, ConstantOp):
        barrier = view.operands[0]
        number = insert_before(after, index.clone(), located_at=init)
        here = ttg.MemDescIndexOp(operands=[alloc.result, number.result], result_types=[view.result.type])
        initialised = insert_before(after, here, located_at=init).result
    else:
        initialised = alloc.result
    if _captured(barrier) is not alloc.result:
        raise _not_known(init)
    init.detach()
    init.operands = [initialised]
    insert_before(after, init, located_at=init)


def _captured(value: SSAValue) -> SSAValue:
    """The value that a partition has as its argument `value`; else the value itself."""
    if isinstance(value, BlockArgument) and isinstance(op := value.block.parent_op(), ttg.WarpSpecializePartitionsOp):
        return op.explicit_captures[value.index]
    return value


def _check_runs_once(init: ttng.InitBarrierOp) -> None:
    """Raise CompilationError for an initialisation that a loop repeats."""
    func = enclosing(init, tt.FuncOp)
    assert func is not None
    if enclosing(init, *LOOPS) is not None or _follows_itself(_block_in(func, init)):
        raise _not_known(init)


def _block_in(func: tt.FuncOp, op: Operation) -> Block:
    """The block of a function that `op` is in."""
    block = op.parent_block()
    assert block is not None
    while block.parent_op() is not func:
        parent = block.parent_op()
        assert parent is not None
        block = parent.parent_block()
        assert block is not None
    return block


def _follows_itself(block: Block) -> bool:
    pending, seen = [block], set[Block]()
    for each in pending:
        following = () if each.last_op is None else each.last_op.successors
        pending += [other for other in following if other not in seen]
        seen.update(following)
    return block in seen


def _not_known(init: ttng.InitBarrierOp) -> Exception:
    return error_at(
        init,
        "other CTAs use this mbarrier, and nothing says that they wait for its initialisation: allocate it before "
        "the loop, or put a tlx.cluster_barrier() after it, before the first use",
    )


# --- the end ----------------------------------------------------------------------------------------------------------


def _waits_at_end(block: Block, reach: ClusterReach) -> bool:
    """True if the cluster has a barrier in this block after everything that may use other CTAs' memory."""
    for op in reversed(list(block.ops)):
        if isinstance(op, ttng.ClusterArriveOp | ttg.WarpSpecializeOp):
            # Where the cluster waits after partitions, the wait stands there; else the user has said that it must not.
            return True
        if reach.within(op):
            return False
    return False


def _put_barrier(source: Operation, *, before: Operation | None) -> None:
    """The CTAs wait for each other before an operation, at the location of `source`."""
    assert before is not None, "a block ends in a terminator"
    insert_before(before, ttng.ClusterArriveOp(properties={"relaxed": BoolAttr.from_bool(False)}), located_at=source)
    insert_before(before, ttng.ClusterWaitOp(), located_at=source)
