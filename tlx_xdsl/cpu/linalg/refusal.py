"""The error for what has no lowering."""

from __future__ import annotations

from xdsl.ir import Operation

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at


def refuse(op: Operation, reason: str) -> CompilationError:
    """Return the error for an operation that cannot be lowered, at its line."""
    return error_at(op, f"'{op.name}' cannot be lowered to linalg: {reason}")
