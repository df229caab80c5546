"""Operations that advise the compiler, or that order grids: within one launch they do nothing."""

from __future__ import annotations

from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt
from tlx_xdsl.interpreter.registry import Run, effect


@effect(
    tt.GridDependencyWaitOp, tt.GridDependencyLaunchDependentsOp,
    tlx.DumpLayoutOp, tlx.AssertSameLayoutOp, tlx.AssertSameLayoutExpectedOp,
)  # fmt: skip
def nothing(_op: Operation) -> Run:
    """Notes to the compiler, and waits for grids that are over."""
    return lambda *_: None
