"""The error that says why a kernel can't be warp-specialised."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at


class WarpSpecializeRefusal(CompilationError):
    """A reason, located in the kernel, why it is compiled as it is; nothing is wrong with the kernel."""

    reason: str = ""
    """What stands in the way, alone."""
    place: Operation | SSAValue | None = None
    """Where it stands."""


def refusal_at(place: Operation | SSAValue, reason: str) -> WarpSpecializeRefusal:
    """Make the refusal, located at an operation or a value."""
    found = error_at(place, f"not warp-specialised: {reason}")
    refusal = WarpSpecializeRefusal(found.message, found.location, source_line=found.source_line, notes=found.notes)
    refusal.reason, refusal.place = reason, place
    return refusal
