"""The smaller or the larger of two numbers, lane by lane."""

from __future__ import annotations

from .builder import Builder
from .values import Value

_INTRINSICS = {
    "maximumf": "llvm.maximum",
    "minimumf": "llvm.minimum",
    "maxnumf": "llvm.maximumnum",
    "minnumf": "llvm.minimumnum",
    "maxsi": "llvm.smax",
    "maxui": "llvm.umax",
    "minsi": "llvm.smin",
    "minui": "llvm.umin",
}


def minmax(b: Builder, name: str, x: Value, y: Value) -> Value:
    """What the operation `arith.<name>` gives, floats being `float` or `double`.

    NaN spreads in `maximumf` and `minimumf`, and gives way to a number in `maxnumf` and `minnumf`. Everywhere -0 is
    less than 0.
    """
    return b.intrinsic(_INTRINSICS[name], x, y)
