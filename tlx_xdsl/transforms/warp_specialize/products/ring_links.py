"""Rings as their producer shows them: which buffers and which barriers belong together.

A task that fills a buffer waits before for the barrier that says that it is empty, and its copy completes on the one
that says that it is full. What is linked so is one ring; buffers that a task fills after one wait are in one ring.
"""

from __future__ import annotations

from xdsl.ir import BlockArgument, Region, SSAValue

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import Kind, Space, accesses_of

from .dot_operands import root_of

HELD_OVER = "tlx.held_over"
"""Mark of a load whose slot is given back in the next turn of the loop; only until `tlx-ws-async-dots`."""


class RingLinks:
    """The rings that the tasks of a kernel have."""

    def __init__(self, tasks: ttg.WarpSpecializeOp):
        self._classes = ValueClasses()
        for region in (tasks.default_region, *tasks.partitions.partition_regions):
            self._follow(region)
        self._linked = set(self._classes.values())

    def ring_of(self, view: SSAValue) -> SSAValue | None:
        """Return the same value for all buffers and barriers of a ring; None of what is in no ring."""
        root = _outer_root(view)
        return self._classes.representative(root) if root in self._linked else None

    def _follow(self, region: Region) -> None:
        waits: list[SSAValue] = []
        filled: list[SSAValue] = []
        for op in region.walk():
            found = accesses_of(op) or ()
            # What threads store themselves is theirs.
            copies = [each for each in found if each.completes_on is not None]
            written = [each.value for each in copies if each.space is Space.SHARED and each.kind & Kind.WRITE]
            arrived = [each.value for each in found if each.kind & (Kind.COMPLETE | Kind.ARRIVE)]
            if isinstance(op, ttng.WaitBarrierOp):
                waits = [] if filled else waits
                filled = []
                waits.append(_outer_root(op.alloc))
            elif written:
                filled += [_outer_root(each) for each in (*written, *arrived)]
                self._classes.join(*filled, *waits)
            elif arrived and filled:
                # What threads have copied, they report themselves.
                self._classes.join(*filled, *map(_outer_root, arrived))


def _outer_root(view: SSAValue) -> SSAValue:
    """Return the array of a view as the code around the tasks knows it."""
    root = root_of(view)
    if isinstance(root, BlockArgument):
        parent = root.block.parent_op()
        if isinstance(parent, ttg.WarpSpecializePartitionsOp):
            return root_of(parent.explicit_captures[root.index])
    return root
