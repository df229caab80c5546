"""The error function of f32."""

from __future__ import annotations

from ..builder import Builder
from ..features import Features
from ..values import Value
from .arithmetic import absolute, clamped, multiply_add, number, polynomial, with_sign

_CENTER, _END = 2.25, 3.93
"""From the last one on the result is 1."""
_SMALL = (0.12837917, -0.37612626, 0.112835854, -0.026853811, 0.005188315, -0.0008010146, 7.8543744e-05)
"""Of `erf(x) / x - 1` as a polynomial of `x**2` up to 1: error 2**-29, relative to `erf(x) / x`."""
_LARGE = (
    0.001462711, -0.007142364, 0.016070517, -0.02172376, 0.01908055, -0.0106615005, 0.0029147503, 0.000677801,
    -0.0010183663, 0.00036362777, 2.9893803e-05, -6.462906e-05, 1.3096509e-05, 3.0450124e-06, -1.0656768e-06,
)  # fmt: skip
"""Of `1 - erf(center + t)` from 1 to the end: error 2**-27."""


def erf(b: Builder, _features: Features, x: Value) -> Value:
    """Of f32; error: 0.99 ulp."""
    size = absolute(b, x)
    small = multiply_add(b, x, polynomial(b, b.binary("fmul", x, x), _SMALL), x)
    moved = b.binary("fsub", clamped(b, size, 0.0, _END), number(_CENTER, x))
    large = b.binary("fsub", number(1.0, x), polynomial(b, moved, _LARGE))
    return with_sign(b, b.select(b.compare("fcmp ogt", size, number(1.0, x)), large, small), x)
