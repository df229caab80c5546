"""`tlx-ws-issue-products`: products of sums in a task of one warp, ahead of the task that uses the sums.

Where a loop makes a sum in each turn, the products of the next turn need not wait until threads have used this turn's
sum: there are two buffers in tensor memory. The consumer becomes two tasks. One waits for blocks and issues products,
the other one waits for sums. A barrier more for each buffer says that threads have loaded it.

Before, in Python:
```python
for tile in range(first, tiles, programs):
    i, phase = tlx.get_bufidx_phase(count, 2)
    for k in range(n):
        ...
        tlx.async_dot(a[stage], b[stage], acc_sum[i], use_acc=k > 0, mBarriers=[empty[stage]])
    tlx.tcgen05_commit(acc_done[i])
    tlx.barrier_wait(acc_done[i], phase)
    acc = tlx.local_load(acc_sum[i])
    c_desc.store([m, n], acc.to(tl.float16))
    count += 1
```
After, one task and the other:
```python
for tile in range(first, tiles, programs):
    i, phase = tlx.get_bufidx_phase(count, 2)
    tlx.barrier_wait(acc_free[i], phase ^ 1)
    for k in range(n):
        ...
        tlx.async_dot(a[stage], b[stage], acc_sum[i], use_acc=k > 0, mBarriers=[empty[stage]])
    tlx.tcgen05_commit(acc_done[i])
    count += 1

for tile in range(first, tiles, programs):
    i, phase = tlx.get_bufidx_phase(count, 2)
    tlx.barrier_wait(acc_done[i], phase)
    acc = tlx.local_load(acc_sum[i])
    tlx.barrier_arrive(acc_free[i])
    c_desc.store([m, n], acc.to(tl.float16))
    count += 1
```
In the IR, what issues and what uses become partitions of their own:
```mlir
ttg.warp_specialize(%a, %b, %sum, %done, %free)
default { ... }
partition0(...) num_warps(4) { ... ttng.tmem_load ... ttng.arrive_barrier %free_1, 1 ... }
partition1(...) num_warps(1) { ... ttng.wait_barrier %free_2, %phase ... ttng.tc_gen5_mma ... }
```
A task that stores operands or sums for the tensor cores stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import effects_of
from tlx_xdsl.dialects.ttg import memdesc_type

from ...rewriting import Pass, insert_before, ops_of
from ..copying import Code, Copier, same
from ..products.dot_operands import root_of
from ..products.numbers import number
from ..products.products_in_flight import in_block
from ..slices import Slice, drop_idle, writes_memory
from ..tasks_of import NOTE, REPLICAS, copies_of
from .accumulators import lies_in
from .memory import barriers_before, capture
from .operands import WARP_GROUP

REGISTERS = 48
"""Registers of a thread of the tasks that issue products and loads: they have a few numbers."""
REGISTERS_OF_LANES = 65536 // 32
"""Registers of all warps together, for one lane (CUDA C++ Programming Guide, "Technical Specifications")."""
MOST_REGISTERS = 232
"""What a thread is given at most: the compiler keeps some back of 255."""


class IssueProductsPass(Pass):
    """Issue products in a task of their own."""

    name = "tlx-ws-issue-products"

    def run(self, op: ModuleOp) -> None:
        """Handle each partition by itself."""
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for index in range(len(tasks.partitions.partition_regions)):
                sums = _sums_of(tasks.partitions.partition_regions[index])
                if sums and any(isinstance(each.block.parent_op(), scf.ForOp) for each in sums):
                    _split(tasks, index, sums)


@dataclass(frozen=True)
class _Sum:
    """A place where a task waits for a sum."""

    commit: ttng.TCGen5CommitOp
    wait: ttng.WaitBarrierOp
    first: Operation
    """The operation of the block that makes the first product."""
    last: Operation
    """The operation of the block that loads the sum last."""

    @property
    def block(self) -> Block:
        """The block of code."""
        block = self.commit.parent
        assert block is not None
        return block


def _sums_of(region: Region) -> list[_Sum]:
    """Find the sums of a task; none where not all of its products are of sums that only the tensor cores write."""
    products = [op for op in region.walk() if isinstance(op, ttng.TCGen5MMAOp)]
    if not products:
        return []
    used = {root_of(operand) for product in products for operand in (product.a, product.b, product.d)}
    for op in region.walk():
        if isinstance(op, ttng.TMEMStoreOp | ttg.LocalStoreOp) and root_of(op.dst) in used:
            return []
    sums: list[_Sum] = []
    for commit in [op for op in region.walk() if isinstance(op, ttng.TCGen5CommitOp)]:
        found = _sum(commit, products)
        if found is None:
            continue
        sums.append(found)
    covered = {op for each in sums for op in each.first.walk()}
    return sums if all(product in covered for product in products) else []


def _sum(commit: ttng.TCGen5CommitOp, products: Sequence[ttng.TCGen5MMAOp]) -> _Sum | None:
    """The sum that a commit reports to its own task; None for a commit that gives a slot of a ring back."""
    block = commit.parent
    assert block is not None
    wait = _next(commit, ttng.WaitBarrierOp)
    if not isinstance(wait, ttng.WaitBarrierOp) or root_of(wait.alloc) is not root_of(commit.barrier):
        return None
    holder = _next(wait, ttng.TMEMLoadOp)
    if holder is None:
        return None
    load = next(op for op in holder.walk() if isinstance(op, ttng.TMEMLoadOp))
    array = root_of(load.src)
    adding = [product for product in products if root_of(product.d) is array and lies_in(product, block)]
    makers = {in_block(product, block) for product in adding}
    order = {op: position for position, op in enumerate(block.ops)}
    maker = next(iter(makers), None)
    if len(makers) != 1 or not isinstance(maker, scf.ForOp) or order[maker] > order[commit]:
        return None
    if not all(_overwrites_first(product, maker) for product in adding):
        return None
    view = wait.alloc.owner
    if not isinstance(view, ttg.MemDescIndexOp):
        return None
    for value in (view.index, wait.phase):
        if isinstance(value.owner, Operation) and order.get(value.owner, -1) > order[maker]:
            return None
    return _Sum(commit, wait, maker, holder)


def _overwrites_first(product: ttng.TCGen5MMAOp, loop: scf.ForOp) -> bool:
    """True if a product of the loop's body adds to its buffer in all turns but the first."""
    adds = product.use_d.owner
    return product.parent is loop.body.block and isinstance(adds, CmpiOp) and adds.lhs is loop.body.block.args[0]


def _next(op: Operation, wanted: type[Operation]) -> Operation | None:
    """The next operation of a block that is, or holds, one of a class."""
    following = op.next_op
    while following is not None:
        if any(isinstance(inner, wanted) for inner in following.walk()):
            return following
        following = following.next_op
    return None


def _split(tasks: ttg.WarpSpecializeOp, index: int, sums: Sequence[_Sum]) -> None:
    """Make two tasks of one."""
    copies = copies_of(tasks, index)
    for array in dict.fromkeys(root_of(each.wait.alloc) for each in sums):
        _say_when_loaded(tasks, index, [each for each in sums if root_of(each.wait.alloc) is array])
    region = tasks.partitions.partition_regions[index]
    issued = _issued(region, {each.wait for each in sums})
    others = [op for op in region.walk() if op not in issued and _has_effect(op)]
    issuing, using = _copied(region, issued), _copied(region, others)
    first_loop = next((op for op in issuing.block.ops if isinstance(op, scf.ForOp)), None)
    if first_loop is not None:
        first_loop.attributes[NOTE] = StringAttr("one warp issues the products, ahead of the task that uses the sums")
    old = region.block
    region.detach_block(old)
    block = using.block
    using.detach_block(block)
    region.add_block(block)
    old.erase(safe_erase=False)
    tasks.partitions.add_region(issuing)
    tasks.partition_num_warps = DenseArrayBase.from_list(i32, [*tasks.num_warps, 1])
    replicas = tasks.attributes.get(REPLICAS)
    if isinstance(replicas, DenseArrayBase):
        tasks.attributes[REPLICAS] = DenseArrayBase.from_list(i32, [*map(int, replicas.get_values()), copies])
    _give_registers(tasks)


def _give_registers(tasks: ttg.WarpSpecializeOp) -> None:
    """State registers for each task: those that a producer and the issuing task don't need are the consumers'."""
    warps = tasks.num_warps
    counts = [count * copies_of(tasks, index) for index, count in enumerate(warps)]
    if tasks.requested_registers is not None:
        given = [int(each) for each in tasks.requested_registers.get_values()]
        tasks.requested_registers = DenseArrayBase.from_list(i32, [*given, REGISTERS])
        return
    consuming = sum(counts[:-1])
    few = -(-counts[-1] // WARP_GROUP) * WARP_GROUP + WARP_GROUP
    all_warps = consuming + few
    launched = REGISTERS_OF_LANES // all_warps // 8 * 8 * all_warps
    each = min((launched - few * REGISTERS) // consuming // 8 * 8, MOST_REGISTERS)
    tasks.requested_registers = DenseArrayBase.from_list(i32, [each] * (len(warps) - 1) + [REGISTERS])


def _say_when_loaded(tasks: ttg.WarpSpecializeOp, index: int, sums: Sequence[_Sum]) -> None:
    """Let products wait until threads have loaded what the buffer had before."""
    done = root_of(sums[0].wait.alloc)
    assert isinstance(done, BlockArgument)
    name = (done.name_hint or "sum_done").removesuffix("_done")
    count = memdesc_type(done.type).shape[0]
    free = capture(tasks, index, barriers_before(tasks, count, f"{name}_free", sums[0].commit))
    for each in sums:
        view = each.wait.alloc.owner
        assert isinstance(view, ttg.MemDescIndexOp), "a barrier is one of an array"

        def barrier(place: Operation, view: ttg.MemDescIndexOp = view) -> SSAValue:
            made = ttg.MemDescIndexOp(operands=[free, view.index], result_types=[view.result.type])
            return insert_before(place, made).result

        before = insert_before(each.first, arith.XOrIOp(each.wait.phase, number(each.first, 1))).result
        true = each.wait.pred
        assert true is not None
        always = insert_before(each.first, true.owner.clone() if isinstance(true.owner, Operation) else each.commit)
        insert_before(each.first, ttng.WaitBarrierOp(operands=[barrier(each.first), before, always.results[0], []]))
        following = each.last.next_op
        assert following is not None, "a block ends in an operation"
        properties = {"count": IntegerAttr(1, i32)}
        insert_before(following, ttng.ArriveBarrierOp(operands=[barrier(following), None], properties=properties))


def _has_effect(op: Operation) -> bool:
    return writes_memory(op) or bool(effects_of(op).sync)


def _issued(region: Region, done: set[ttng.WaitBarrierOp]) -> list[Operation]:
    """The operations of the task that issues products: these, commits, and waits for what they read and write."""
    found: list[Operation] = []
    for op in region.walk():
        match op:
            case ttng.TCGen5MMAOp() | ttng.TCGen5CommitOp():
                found.append(op)
            case ttng.WaitBarrierOp() if op not in done and not _is_for_threads(op):
                found.append(op)
            case _:
                pass
    return found


def _is_for_threads(wait: ttng.WaitBarrierOp) -> bool:
    """True if threads load the slot that a wait is for: before the next wait of the block."""
    op = wait.next_op
    while op is not None and not isinstance(op, ttng.WaitBarrierOp):
        if isinstance(op, ttg.LocalLoadOp):
            return True
        op = op.next_op
    return False


def _copied(region: Region, roots: Sequence[Operation]) -> Region:
    """Copy what some operations of a task need."""
    source = region.block
    block = Block(arg_types=[argument.type for argument in source.args])
    values: dict[SSAValue, SSAValue] = {}
    same(source.args, block.args, values)
    code = Code(block)
    Copier(Slice(roots), {}).block(source, code, values, {})
    end = source.last_op
    assert end is not None, "a task ends in an operation"
    code.at = end
    code.add(end.clone(values))
    drop_idle(block)
    return Region(block)
