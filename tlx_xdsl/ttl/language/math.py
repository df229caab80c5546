"""Functions of blocks. They compute with the elements; shapes are (rows, columns) in tiles.

An operand is a block that was waited for, or the result of another function or operator.
"""

from __future__ import annotations

from typing import Any

from .kernel import builtin

__all__ = [
    "abs",
    "add",
    "broadcast",
    "div",
    "exp",
    "fill",
    "gelu",
    "log",
    "matmul",
    "max",
    "min",
    "mul",
    "neg",
    "recip",
    "reduce_max",
    "reduce_sum",
    "relu",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "transpose",
    "typecast",
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
def exp(x: Any) -> Any:
    """Exponential to the base e."""


@_math
def log(x: Any) -> Any:
    """Natural logarithm."""


@_math
def sqrt(x: Any) -> Any:
    """Square root."""


@_math
def rsqrt(x: Any) -> Any:
    """Reciprocal of the square root."""


@_math
def recip(x: Any) -> Any:
    """Reciprocal, `1 / x`."""


@_math
def relu(x: Any) -> Any:
    """The larger of the element and 0."""


@_math
def gelu(x: Any) -> Any:
    """Gaussian error linear unit."""


@_math
def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""


@_math
def sigmoid(x: Any) -> Any:
    """Logistic function, `1 / (1 + exp(-x))`."""


@_math
def neg(x: Any) -> Any:
    """The element with the other sign."""


@_math
def abs(x: Any) -> Any:
    """The element without its sign."""


@_math
def square(x: Any) -> Any:
    """The element times itself."""


@_math
def fill(like: Any, value: Any) -> Any:
    """A block of the shape and element type of the block `like`, every element of which is the number `value`."""


@_math
def broadcast(x: Any, shape: Any, dims: Any) -> Any:
    """Repeat `x` along `dims` until it has `shape`, a pair of tiles or a block that has it.

    Along each of `dims`, `x` has one tile, of which only the first row (`dims=[0]`), the first column (`dims=[1]`) or
    the first element (`dims=[0, 1]`) counts: a reduction along the same dimensions leaves its result there.
    """


@_math
def reduce_sum(x: Any, dims: Any, shape: Any = None) -> Any:
    """Sums along `dims`: of columns with 0, of rows with 1. The result has one tile in each of these dimensions.

    The sums of columns are the first row of their tile, those of rows the first column; all else of it is 0. `shape` is
    that of the result, and need not be said.
    """


@_math
def reduce_max(x: Any, dims: Any, shape: Any = None) -> Any:
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
