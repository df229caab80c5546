"""Functions of blocks. They compute with the elements; shapes are (rows, columns) in tiles.

An operand is a block that was waited for, or the result of another function or operator.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ..elementwise import FUNCTIONS, Function
from .kernel import builtin

__all__: list[str] = [
    "add",
    "broadcast",
    "div",
    "exp",
    "fill",
    "floor_div",
    "hardtanh",
    "mask",
    "mask_posinf",
    "matmul",
    "max",
    "min",
    "mul",
    "pow",
    "prelu",
    "reduce_max",
    "reduce_sum",
    "relu_max",
    "relu_min",
    "remainder",
    "rsub",
    "sub",
    "threshold",
    "transpose",
    "typecast",
    "where",
]

_math = builtin("ttl.math")


@_math
def add(a: Any, b: Any) -> Any:
    """Sum: `a + b`; a number on one side counts for each element."""


@_math
def sub(a: Any, b: Any) -> Any:
    """Difference: `a - b`."""


@_math
def mul(a: Any, b: Any) -> Any:
    """Product of the elements: `a * b`."""


@_math
def div(a: Any, b: Any) -> Any:
    """Quotient of the elements: `a / b`."""


@_math
def max(a: Any, b: Any) -> Any:
    """The larger one of each two elements."""


@_math
def min(a: Any, b: Any) -> Any:
    """The smaller one of each two elements."""


@_math
def matmul(a: Any, b: Any) -> Any:
    """Product of matrices: `a @ b`, blocks of (m, k) and (k, n) tiles."""


@_math
def exp(x: Any, *, approx: Any = False, scale: Any = None, skip_clamp_check: Any = False, iterations: Any = 8) -> Any:
    """Exponential to the base e, of `scale * x` if there is a scale.

    There is the precise form only: `approx`, `skip_clamp_check` and `iterations` are those of tt-lang.
    """


@_math
def pow(x: Any, exponent: Any) -> Any:
    """The element to the power of the number `exponent`: `x ** exponent`."""


@_math
def remainder(a: Any, b: Any) -> Any:
    """Remainder of the elements, with the sign of that of `b`: `a % b`."""


@_math
def floor_div(a: Any, b: Any) -> Any:
    """Largest integer that is not above the quotient of the elements: `a // b`."""


@_math
def rsub(a: Any, b: Any) -> Any:
    """The number `b` minus the element."""


@_math
def relu_max(x: Any, upper_limit: Any) -> Any:
    """The smaller of the element and `upper_limit`, or 0 if that is negative."""


@_math
def relu_min(x: Any, lower_limit: Any) -> Any:
    """The larger of the element and `lower_limit`, or 0 if that is negative."""


@_math
def prelu(x: Any, alpha: Any) -> Any:
    """The element, or `alpha * x` where it is negative."""


@_math
def hardtanh(x: Any, min: Any = -1.0, max: Any = 1.0) -> Any:
    """The element within `min` and `max`."""


@_math
def threshold(x: Any, threshold: Any, value: Any) -> Any:
    """The element, or `value` where it is above `threshold`."""


def _vector_function(function: Function, defaults: dict[str, float]) -> Any:
    """The function of the language for a row of `ttl.elementwise`."""

    def stub(*args: Any) -> None: ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("x", kind)]
    parameters += [
        inspect.Parameter(each, kind, default=defaults.get(each, inspect.Parameter.empty))
        for each in function.parameters
    ]
    stub.__name__ = stub.__qualname__ = function.name
    stub.__doc__ = function.meaning
    stub.__dict__["__signature__"] = inspect.Signature(parameters)
    return _math(stub)


_DEFAULTS: dict[str, dict[str, float]] = {
    "selu": {"scale": 1.0507009873554805, "alpha": 1.6732632423543772},
    "softplus": {"beta": 1.0, "beta_reciprocal": 1.0, "threshold": 20.0},
    "elu": {"slope": 1.0},
    "celu": {"alpha": 1.0, "alpha_recip": 1.0},
    "leaky_relu": {"slope": 0.01},
    "round": {"decimals": 0},
}
"""Numbers that need not be said."""

VECTOR_FUNCTIONS = tuple(each for each in FUNCTIONS if each.name not in ("exp", "power", "unary_gt"))
"""Those that are a function of the language as they are."""
for _row in VECTOR_FUNCTIONS:
    globals()[_row.name] = _vector_function(_row, _DEFAULTS.get(_row.name, {}))
__all__ += [each.name for each in VECTOR_FUNCTIONS]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


@_math
def fill(like: Any = None, value: Any = None, shape: Any = None, dtype: Any = None) -> Any:
    """A block every element of which is the number `value`: like the block `like`, `ttl.math.fill(like, 0.0)`.

    Or of `shape`, in tiles: `ttl.math.fill(0.0, shape=(2, 2))` is `ttl.block.fill`.
    """


@_math
def broadcast(x: Any, shape: Any = None, dims: Any = None) -> Any:
    """Repeat `x` along `dims` until it has `shape`, a pair of tiles or a block that has it.

    Along each of `dims`, `x` has one tile, of which only the first row (`dims=[0]`), the first column (`dims=[1]`) or
    the first element (`dims=[0, 1]`) counts: a reduction along the same dimensions leaves its result there.

    Without `shape`, the result has that of the block that it is combined with, or stored to.
    """


@_math
def mask(x: Any, mask: Any) -> Any:
    """`ttl.block.mask(x, mask)`."""


@_math
def mask_posinf(x: Any, mask: Any) -> Any:
    """`ttl.block.mask_posinf(x, mask)`."""


@_math
def where(condition: Any, a: Any, b: Any) -> Any:
    """`ttl.block.where(condition, a, b)`."""


@_math
def reduce_sum(x: Any, scaler: Any = None, dims: Any = None, shape: Any = None) -> Any:
    """Sums along `dims`: of columns with 0, of rows with 1. The result has one tile in each of these dimensions.

    The sums of columns are the first row of their tile, those of rows the first column; all else of it is 0. `shape` is
    that of the result, and need not be said. With `scaler`, a block of one tile, each element is multiplied by the
    first one of it. `dims` may stand in its place: `ttl.math.reduce_sum(x, [1])`.
    """


@_math
def reduce_max(x: Any, scaler: Any = None, dims: Any = None, shape: Any = None) -> Any:
    """Largest elements along `dims`: see `reduce_sum`."""


@_math
def transpose(x: Any) -> Any:
    """The block with rows and columns exchanged: of (r, c) tiles, one of (c, r)."""


@_math
def typecast(x: Any, dtype: Any) -> Any:
    """The elements in another type, such as `ttl.float32` or `ttl.int32`.

    A store converts floats by itself. Floats become integers by truncation, but those of 16 bits by rounding to
    nearest; what is out of an integer's range becomes its largest or smallest number.
    """
