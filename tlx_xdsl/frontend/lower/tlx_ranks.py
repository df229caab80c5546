"""Lowering of what kernels on several GPUs know of themselves; the rest of `tlx.ranks` is written in the language."""

from __future__ import annotations

from ..calls import Call, lowers
from ..values import Value


@lowers("tlx._symmetric")
def _symmetric(call: Call) -> Value:
    if (found := call.visitor.unit.symmetric) is None:
        call.fail(None, "the function has no symmetric tensor among its arguments, such as 'x' of tlx.rank(x)")
    return found
