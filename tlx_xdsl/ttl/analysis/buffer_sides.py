"""Producers and consumers of the blocks of each circular buffer of a kernel, and the buffers that go in lockstep.

Passes that change the order of steps on different circular buffers must not make two threads wait for each other. What
they rely on is lockstep: buffers whose other ends are all in one block of operations of one thread, the partner, which
acquires and releases one block of each in each of its runs, as this thread does. Then run n of the partner is about the
n-th block of each buffer, and it comes after run n - 1 as a whole. So

- the release of a producer's n-th block is needed by run n of the partner, and by nothing before it;
- the acquisition of a producer's n-th block needs no more than run n - 1 (n - buffer_factor, to be exact);
- the acquisition of a consumer's n-th block needs no more than run n, and its release is needed by run
  n + buffer_factor and by nothing before it.

An order of this thread's steps in which no release is made to wait for an acquisition that needs a run which needs that
release is as free of deadlock as the order before, on one core and on many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.ttl import AcquireOp, CBOp, KernelOp, ReleaseOp, steps


@dataclass(frozen=True)
class Side:
    """All that one thread does with a circular buffer: one acquisition and one release of a block, in this order, in
    the same block of operations.
    """

    thread: Operation
    block: Block
    acquire: AcquireOp
    release: ReleaseOp


class BufferSides:
    """The producers and the consumers of a kernel's circular buffers."""

    def __init__(self, kernel: KernelOp) -> None:
        self.steps: dict[tuple[SSAValue, bool], list[tuple[Operation, CBOp]]] = {}
        """The steps of the producer (True) and of the consumer of each buffer, with their threads."""
        for thread in kernel.threads:
            for step in steps(thread):
                self.steps.setdefault((step.cb, step.PRODUCES), []).append((thread, step))

    def side(self, cb: SSAValue, *, produces: bool) -> Side | None:
        """The steps of the producer or the consumer, if they are no more than one acquisition and one release."""
        match self.steps.get((cb, produces), []):
            case [(thread, AcquireOp() as acquire), (_, ReleaseOp() as release)]:
                block = acquire.parent
                if block is None or release.parent is not block or max(acquire.num_blocks, release.num_blocks) > 1:
                    return None
                return Side(thread, block, acquire, release)
            case _:
                return None

    def threads_of(self, cb: SSAValue, *, produces: bool) -> set[Operation]:
        """The threads that produce or consume: one, or none."""
        return {thread for thread, _ in self.steps.get((cb, produces), [])}

    def partners(self, own: Iterable[CBOp]) -> list[Side] | None:
        """The other sides of the buffers of some steps; None if one is more than an acquisition and a release."""
        keys = dict.fromkeys((step.cb, not step.PRODUCES) for step in own)
        found = [self.side(cb, produces=produces) for cb, produces in keys]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def partner(self, own: Sequence[CBOp]) -> Block | None:
        """The one block of operations with the other sides of the buffers of some steps, if there is one.

        It also takes that these steps are all that this thread does with the buffers, one acquisition and release each.
        """
        if any(self.side(step.cb, produces=step.PRODUCES) is None for step in own):
            return None
        sides = self.partners(own)
        blocks = {each.block for each in sides or ()}
        return blocks.pop() if len(blocks) == 1 else None
