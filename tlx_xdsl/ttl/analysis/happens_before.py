"""The order in which a kernel's circular buffers are used.

`ordered_lifetimes(kernel) -> frozenset[tuple[SSAValue, SSAValue]]`: all pairs (A, B) of circular buffers, by the
results of their `ttl.create_cb`, such that on every core every use of A happens before every use of B. B may have the
memory of A then. The threads of a core run at the same time, so the order of two operations in the text says nothing
unless they are in one thread; across threads, the k-th push comes before the k-th wait, and the pop of a block before
the reserve that gets its place again (`analysis.ttl.protocol_run`).

Uses are the steps of the protocol: the first one is a reserve or a wait, and the block may be touched until the push or
pop that follows. Where trip counts or branches are unknown, where the kernel is too long to be followed, or where it
does not finish, no pair is ordered.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ..dialects.ttl import CoreOp, CreateCBOp, GetShardIdOp, IfDstOp, IfSrcOp, KernelOp, SemaphoreOp
from .core_values import Core, cores_of
from .protocol_run import LEAST_STEPS, MOST_STEPS, End, ThreadRun, run_of
from .thread_steps import with_steps


def ordered_lifetimes(kernel: KernelOp) -> frozenset[tuple[SSAValue, SSAValue]]:
    """The pairs (A, B) of circular buffers of which A is used for the last time before B is for the first time.

    A buffer that a core never uses is ordered with all others there.
    """
    buffers = [op.result for op in kernel.body.block.ops if isinstance(op, CreateCBOp)]
    found = {(a, b) for a in buffers for b in buffers if a is not b}
    groups = core_groups(kernel)
    for group in groups:
        run = run_of(kernel, group, max(LEAST_STEPS, MOST_STEPS // len(groups)))
        if run.end is not End.FINISHED:
            return frozenset()
        for core in group:
            threads = [each for each in run.threads if each.core == core]
            found = {(a, b) for a, b in found if _is_before(threads, a, b)}
    return frozenset(found)


def core_groups(kernel: KernelOp) -> list[list[Core]]:
    """The cores that must be run together: all with semaphores, else each for itself.

    One stands for all where neither loops nor branches around steps depend on the core.
    """
    cores = cores_of(kernel.grid)
    if any(isinstance(op, SemaphoreOp) for op in kernel.walk()):
        return [cores]
    return [[core] for core in cores] if differs_by_core(kernel) else [[cores[0]]]


def differs_by_core(kernel: KernelOp) -> bool:
    """Whether the steps of a thread may depend on the core that runs it."""
    for thread in kernel.threads:
        for op in with_steps(thread):
            if isinstance(op, IfSrcOp | IfDstOp) or (op.regions and _depends_on_core(op)):
                return True
    return False


def _depends_on_core(op: Operation) -> bool:
    """Whether an operand, or what a region yields, comes from the coordinates of the core."""
    pending = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            last = block.last_op
            pending.extend(() if last is None else last.operands)
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, CoreOp | GetShardIdOp):
            return True
        around = owner if isinstance(owner, Operation) else owner.parent_op()
        # The arguments of a block, and the results of what has one, depend on all that goes into it.
        if around is not None and not isinstance(around, KernelOp):
            pending.extend(around.operands)
            pending.extend(operand for inner in around.walk() for operand in inner.operands if inner is not around)
    return False


def _is_before(threads: list[ThreadRun], a: SSAValue, b: SSAValue) -> bool:
    """Whether each thread that uses `b` knows, at its first use, of all uses of `a`."""
    return all(
        user.first[b][other.place] >= other.last[a]
        for user in threads
        if b in user.first
        for other in threads
        if a in other.last
    )
