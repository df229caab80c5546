"""The protocol of circular buffers, as far as the text of threads says what happens: verifiers of threads and kernels.

Reserve, write, push; wait, read, pop. A step back without the step before it, and a result that is never written, are
wrong in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.ttl.buffers import AcquireOp, CreateCBOp, steps


class ProtocolFault(VerifyException):
    """A fault with the operation where it shows."""

    def __init__(self, op: Operation, message: str) -> None:
        super().__init__(message)
        self.op = op


def verify_thread(thread: Operation) -> None:
    """Check that each push follows a reserve, and each pop a wait, of at least as many blocks of the same buffer.

    A branch is counted as if it were taken, a loop's body as if it ran once.

    Raises ProtocolFault.
    """
    held: dict[tuple[SSAValue, bool], int] = {}
    for op in steps(thread):
        key = op.cb, op.PRODUCES
        before = held.get(key, 0)
        if isinstance(op, AcquireOp):
            held[key] = before + op.num_blocks
        else:
            if before < op.num_blocks:
                needed = "cb_reserve" if op.PRODUCES else "cb_wait"
                verb = "push" if op.PRODUCES else "pop"
                raise ProtocolFault(
                    op, f"circular buffer protocol violation: {verb} without a matching ttl.{needed} before it"
                )
            held[key] = before - op.num_blocks


def verify_kernel(kernel: Operation, threads: Sequence[Operation]) -> None:
    """Check that each circular buffer has one thread that produces and one that consumes, at most.

    Raises ProtocolFault.
    """
    owners: dict[tuple[SSAValue, bool], Operation] = {}
    for thread in threads:
        for op in steps(thread):
            owner = owners.setdefault((op.cb, op.PRODUCES), thread)
            if owner is not thread:
                role = "producer" if op.PRODUCES else "consumer"
                raise ProtocolFault(op, f"a circular buffer has one {role}, found a second thread that is its {role}")


def is_internal(cb: SSAValue) -> bool:
    """Whether the compiler made the buffer, for the compute thread alone."""
    return isinstance(cb.owner, CreateCBOp) and cb.owner.internal is not None
