"""The asynchronous operations of Blackwell's tensor cores that one task issues (PTX ISA, "tcgen05").

They take effect in the order of their issue, but little of that order may be relied on. By default these pairs may
(PTX ISA 9.2, 9.7.16.6.2, "Pipelined tcgen05 Instructions"), where one task issues both:

- tcgen05.mma, then tcgen05.mma with the same accumulator. PTX wants the same shape and kind, too: the shape is that
  of the accumulator, at the same place; the kind is not looked at.
- tcgen05.cp, then tcgen05.mma.
- tcgen05.shift, then tcgen05.mma, and the other way round.
- any of them, then the tcgen05.commit that completes on it.

(PTX has one more, with a form of tcgen05.cp that neither TLX nor Triton issues; a later PTX may promise more.) All else
needs a commit and the wait for its barrier, for instance a product whose accumulator lies where an earlier one reads
its operand.

With `tensor_core_order="issue"` all pairs count in which both are tcgen05.mma, block-scaled or not, or tcgen05.cp, and
one task of one CTA issues both, for itself or for its pair. Attention kernels that are in use on Blackwell GPUs rely
on that, as if a tensor core had one queue, but PTX does not promise it. What other tasks issue, and tcgen05.ld and
tcgen05.st, are as unordered as ever.

So the clocks know the products of each accumulator, and the copies, as agents of their own; the step of such an agent
is the number of the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from .engine import TensorCore, Transfer
from .machine import Task
from .memory import View
from .races import Actor

_HINT = (
    'one task issues both: with --tensor-core-order issue (in Python tensor_core_order="issue") that orders them, as '
    "on today's GPUs, but PTX does not promise it"
)


def tensor_core(task: Task) -> TensorCore:
    """Return what the task has issued."""
    if task.tensor_core is None:
        cluster = task.cluster
        queue = task.queue("tcgen05 operation", in_order=True)
        queue.hint = _HINT
        task.tensor_core = TensorCore(queue, task.block.rank, cluster.launch.in_issue_order)
        cluster.tensor_cores.append(task.tensor_core)
    return task.tensor_core


def issue(
    task: Task,
    op: Operation,
    where: View | str,
    reads: Sequence[View],
    writes: Sequence[View],
    finish: Callable[[Transfer], None],
) -> Transfer:
    """Issue a product to the accumulator `where`, or what the word says, which reads and writes those buffers.

    Raises Fault for a race.
    """
    core = tensor_core(task)
    key = where if isinstance(where, str) else where.footprint
    if (agent := core.agents.get(key)) is None:
        agent = core.agents[key] = task.cluster.new_engine()
    number = core.queue.issued + 1
    clock = task.clock.copy()
    for follows in core.followed(agent):
        clock.observe(follows, core.queue.issued)
    kind = where if isinstance(where, str) else f"tcgen05.mma to '{where.name}'"
    what = f"the {kind} of {core.queue.owner}"
    core.last[agent] = (number, op)
    for view in (*reads, *writes):
        # Tensor memory has no proxies.
        in_shared = view.memory is not task.cluster.blocks[view.memory.rank].tensor
        actor = Actor(agent, number, op, what, is_async=in_shared, queue=core.queue)
        task.reach(op, view, agent, number)
        if view in writes:
            view.cell.overwrite(actor, clock, view.name)
        else:
            view.cell.read(actor, clock, view.name)
    return task.issue(core.queue, op, finish)
