"""The protocol of circular buffers, as far as the text of threads says what happens: verifiers of threads and kernels.

Reserve, write, push; wait, read, pop. A step back without the step before it, and a result that is never written, are
wrong in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, Region, SSAValue

from tlx_xdsl.dialects.base.operation import FaultAt

from .buffers import CBOp, steps

_Held = dict[tuple[SSAValue, bool], int]
"""Blocks that a thread holds as the producer (True) or the consumer of a buffer."""


def verify_thread(thread: Operation) -> None:
    """Check that each push follows a reserve, and each pop a wait, of at least as many blocks of the same buffer.

    A loop's body counts as if it ran once; after a branch, the most that one side holds is held.

    Raises FaultAt, a VerifyException.
    """
    _verify_region(thread.regions[0], {})


def _verify_region(region: Region, held: _Held) -> _Held:
    for block in region.blocks:
        for op in block.ops:
            if isinstance(op, CBOp):
                _verify_step(op, held)
            elif op.regions:
                after = [_verify_region(each, dict(held)) for each in op.regions]
                keys = {key for each in after for key in each}
                held.update({key: max(each.get(key, 0) for each in after) for key in keys})
    return held


def _verify_step(op: CBOp, held: _Held) -> None:
    key = op.cb, op.PRODUCES
    before = held.get(key, 0)
    if op.ACQUIRES:
        held[key] = before + op.num_blocks
        return
    if before < op.num_blocks:
        verb, needed = ("push", "cb_reserve") if op.PRODUCES else ("pop", "cb_wait")
        raise FaultAt(op, f"circular buffer protocol violation: {verb} without a matching ttl.{needed} before it")
    held[key] = before - op.num_blocks


def verify_kernel(kernel: Operation, threads: Sequence[Operation]) -> None:
    """Check that each circular buffer has one thread that produces and one that consumes on every core, at most.

    What stands in a branch or a loop may be for other cores: `analysis.protocol.check_roles` knows which.

    Raises FaultAt, a VerifyException.
    """
    owners: dict[tuple[SSAValue, bool], CBOp] = {}
    for thread in threads:
        for op in steps(thread):
            if op.parent_op() is not thread:
                continue
            first = owners.setdefault((op.cb, op.PRODUCES), op)
            if first.parent_op() is not thread:
                raise FaultAt(op, second_owner(op), first, f"the first {role_of(op)} is")


def role_of(op: CBOp) -> str:
    """Return what the thread of a step is to the buffer."""
    return "producer" if op.PRODUCES else "consumer"


def second_owner(op: CBOp) -> str:
    """The error for a step of a thread where another one has the same role."""
    return f"a circular buffer has one {role_of(op)}, found a second thread that is its {role_of(op)}"
