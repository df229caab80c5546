"""The asynchronous operations of Blackwell's tensor cores that one task issues (PTX ISA, "tcgen05").

They take effect in the order of their issue, but little of that order may be relied on. By default these pairs may
(PTX ISA 9.2, 9.7.16.6.2, "Pipelined tcgen05 Instructions"), where one task issues both:

- tcgen05.mma, then tcgen05.mma with the same accumulator. PTX wants the same shape and kind, too: the shape is that
  of the accumulator, at the same place; the kind is not looked at.
- tcgen05.cp, then tcgen05.mma.
- either, then the tcgen05.commit that tells of it.

(PTX has three more, with tcgen05.shift, which neither TLX nor Triton issues; a later PTX may promise more.) All else
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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.races import Actor, Footprint

if TYPE_CHECKING:
    from tlx_xdsl.interpreter.task import Task

COPIES = None
"""The key of the agent of copies, among footprints of accumulators."""
_HINT = (
    'one task issues both: with --tensor-core-order issue (in Python tensor_core_order="issue") that orders them, as '
    "on today's GPUs, but PTX does not promise it"
)


@dataclass(eq=False, slots=True)
class TensorCore:
    """The tensor core as one task sees it."""

    queue: Queue
    rank: int
    """The thread block of the task in its cluster."""
    in_issue_order: bool
    """Whether each operation follows all that were issued before, as with `tensor_core_order="issue"`."""
    agents: dict[Footprint | None, int] = field(default_factory=dict[Footprint | None, int])
    last: dict[int, tuple[int, Operation]] = field(default_factory=dict[int, tuple[int, Operation]])
    """The last operation of each agent, with its number."""

    def issue(
        self,
        task: Task,
        op: Operation,
        accumulator: View | None,
        reads: Sequence[View],
        writes: Sequence[View],
        finish: Callable[[Transfer], None],
    ) -> Transfer:
        """Issue a product to `accumulator`, or a copy where there is none, which reads and writes those buffers.

        Raises Fault for a race.
        """
        key = COPIES if accumulator is None else accumulator.footprint
        if (agent := self.agents.get(key)) is None:
            agent = self.agents[key] = task.block.cluster.new_engine()
        number = self.queue.issued + 1
        clock = task.clock.copy()
        for follows in self._followed(agent):
            clock.learn(follows, self.queue.issued)
        kind = "tcgen05.cp" if accumulator is None else f"tcgen05.mma to '{accumulator.name}'"
        what = f"the {kind} of {self.queue.owner}"
        self.last[agent] = (number, op)
        for view in (*reads, *writes):
            # Tensor memory has no proxies.
            in_shared = view.memory is not task.block.cluster.blocks[view.memory.rank].tensor
            actor = Actor(agent, number, op, what, is_async=in_shared, queue=self.queue)
            task.reach(op, view, agent, number)
            if view in writes:
                view.cell.overwrite(actor, clock, view.name)
            else:
                view.cell.read(actor, clock, view.name)
        return task.issue(self.queue, op, finish)

    def _followed(self, agent: int) -> Iterable[int]:
        """The agents behind whose operations so far the next one of `agent` comes."""
        if self.in_issue_order:
            return self.agents.values()
        copies = self.agents.get(COPIES)
        if agent == copies:
            return ()
        return (agent,) if copies is None else (agent, copies)

    def over(self, number: int) -> Clock:
        """The knowledge that all operations up to `number` are complete."""
        known = Clock()
        for agent in (self.queue.agent, *self.agents.values()):
            known.learn(agent, number)
        return known


def tensor_core(task: Task) -> TensorCore:
    """What the task has issued."""
    if task.tensor_core is None:
        cluster = task.block.cluster
        queue = task.queue("tcgen05 operation", in_order=True)
        queue.hint = _HINT
        task.tensor_core = TensorCore(queue, task.block.rank, cluster.launch.in_issue_order)
        cluster.tensor_cores.append(task.tensor_core)
    return task.tensor_core
