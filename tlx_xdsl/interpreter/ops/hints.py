"""Operations that advise the compiler, or that order grids: within one launch they do nothing."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import gpu, tlx, tt
from tlx_xdsl.dialects.llvm import AssumeOp
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.numbers import Array
from tlx_xdsl.interpreter.registry import Run, effect
from tlx_xdsl.interpreter.task import Task


@effect(AssumeOp)
def assume(op: AssumeOp) -> Run:
    """What the user promises is checked.

    Raises Fault where it does not hold.
    """

    def run(_task: Task, condition: Array) -> None:
        if not np.all(condition):
            raise fault_at(op, "what tl.assume promises here does not hold")

    return run


@effect(
    gpu.BarrierOp,
    tt.GridDependencyWaitOp, tt.GridDependencyLaunchDependentsOp,
    tlx.DumpLayoutOp, tlx.AssertSameLayoutOp, tlx.AssertSameLayoutExpectedOp,
)  # fmt: skip
def nothing(_op: Operation) -> Run:
    """Notes to the compiler; barriers among the warps of a task, which here is one; waits for grids that are over."""
    return lambda *_: None
