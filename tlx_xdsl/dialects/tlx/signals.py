"""Signals between GPUs: a wait until a counter in memory is reached, and the end of a thread block that gives up."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import i64
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from ..base import ORDERED, Effects, EnumNumber, Keyword, Kind, TritonOp, keyword_directive, pointer_type
from ..tt import MemSemantic, MemSyncScope, Polls
from ..tt.atomic import ORDERING, AtomicOp


class Reached(Keyword):
    """The comparison of a counter with the value that is waited for."""

    GE = 0
    EQ = 1


@irdl_op_definition
class WaitSignalOp(Polls, AtomicOp):
    """Let one thread of the task read a counter until it is reached, or until `limit` nanoseconds are over.

    What it acquires the other threads have after their next barrier. PTX: a loop of `ld.acquire`, and %globaltimer.
    Example: `tlx.wait_signal ge, acquire, sys, %p, %v limit %ns : i32`
    """

    name = "tlx.wait_signal"
    KIND: ClassVar = Kind.READ | Kind.ATOMIC

    ptr = operand_def()
    value = operand_def()
    limit = opt_operand_def(i64)
    reached = prop_def(EnumNumber(Reached))
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))

    custom_directives = (keyword_directive(Reached), *ORDERING)
    assembly_format = (
        "custom<Reached>($reached) `,` custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` "
        "$ptr `,` $value (`limit` $limit^)? attr-dict `:` type($ptr) `,` type($value)"
    )

    def verify_(self) -> None:
        """The pointer points to a counter of 32 or 64 bits, and a wait does not release."""
        if self.ptr.type != (wanted := pointer_type(self.value.type)):
            raise VerifyException(f"the pointer must be {wanted}, found {self.ptr.type}")
        if str(self.value.type) not in ("i32", "i64"):
            raise VerifyException(f"a counter has 32 or 64 bits, found {self.value.type}")
        if self.sem.value.data not in (MemSemantic.RELAXED, MemSemantic.ACQUIRE):
            raise VerifyException("a wait for a signal must be relaxed or acquire")


@irdl_op_definition
class LeaveOp(TritonOp):
    """End the thread block at once: `tlx.leave`. In a kernel with tasks, which would wait for it, end the launch.

    PTX: exit, or trap.
    """

    name = "tlx.leave"
    EFFECTS: ClassVar[Effects] = ORDERED

    assembly_format = "attr-dict"
