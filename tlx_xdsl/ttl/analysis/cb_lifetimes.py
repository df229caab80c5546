"""Circular buffers that are in use together, so that they can't share memory.

The threads of a core run at the same time: a buffer is in use during the whole kernel, unless it is known that all
that happens to it happens before anything happens to another one (`happens_before`). Of the compiler's own buffers,
which the compute thread fills and empties itself, the order of its operations says more, for two of them can take
turns. An operation in a loop happens as often as the loop's body runs, so the order is that in the innermost block
around all uses of both buffers, of the operations there; it is one in time only if whatever a block pushes to a
buffer it also pops.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.ttl.buffers import AcquireOp, CBOp, CreateCBOp
from ..dialects.ttl.kernel import KernelOp
from ..dialects.ttl.protocol import steps
from .protocol_run import ordered_lifetimes


def conflicts_of(kernel: KernelOp, buffers: list[CreateCBOp]) -> list[set[int]]:
    """Return the numbers of the buffers that are in use together with each one."""
    uses: dict[SSAValue, list[CBOp]] = {buffer.result: [] for buffer in buffers}
    for op in steps(kernel):
        uses[op.cb].append(op)
    ordered = ordered_lifetimes(kernel)
    conflicts: list[set[int]] = [set() for _ in buffers]
    for one, other in combinations(range(len(buffers)), 2):
        pair = buffers[one].result, buffers[other].result
        own = buffers[one].internal is not None and buffers[other].internal is not None
        in_thread = own and _is_ordered(uses[pair[0]], uses[pair[1]], kernel.body.block)
        if not (in_thread or pair in ordered or pair[::-1] in ordered):
            conflicts[one].add(other)
            conflicts[other].add(one)
    return conflicts


def _is_ordered(first: list[CBOp], second: list[CBOp], kernel: Block) -> bool:
    """Return whether all uses of one buffer come before those of the other, in a thread of `kernel` that has all."""
    if not first or not second:
        return True
    if not (_is_balanced(first) and _is_balanced(second)):
        return False
    home = _innermost_block([*first, *second])
    if home is None or home is kernel:
        return False
    places = {op: number for number, op in enumerate(home.ops)}
    spans = [[places[_lifted(op, home)] for op in uses] for uses in (first, second)]
    return max(spans[0]) < min(spans[1]) or max(spans[1]) < min(spans[0])


def _is_balanced(uses: list[CBOp]) -> bool:
    """Return whether a buffer is empty before and after each block that has to do with it.

    It is filled before it is emptied, and whatever a block pushes it pops.
    """
    if not isinstance(uses[0], AcquireOp) or not uses[0].PRODUCES or uses[-1].PRODUCES:
        return False
    pages = Counter[tuple[Block | None, bool]]()
    for op in uses:
        if not isinstance(op, AcquireOp):
            pages[op.parent, op.PRODUCES] += op.num_pages
    return all(pages[block, True] == pages[block, False] for block in {op.parent for op in uses})


def _blocks_around(op: Operation) -> list[Block]:
    """The blocks around an operation, from the outermost one."""
    found: list[Block] = []
    block = op.parent
    while block is not None:
        found.append(block)
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return found[::-1]


def _innermost_block(ops: list[CBOp]) -> Block | None:
    """The innermost block that is around all of the operations."""
    chains = [_blocks_around(op) for op in ops]
    common = None
    for blocks in zip(*chains, strict=False):
        if any(block is not blocks[0] for block in blocks):
            break
        common = blocks[0]
    return common


def _lifted(op: Operation, home: Block) -> Operation:
    """The operation of `home` that is `op` or around it."""
    while op.parent is not home:
        parent = op.parent_op()
        assert parent is not None, "the block is around the operation"
        op = parent
    return op
