"""Functions of the vector unit on one tile: one row each, which the dialects, the machines and the C++ read.

A row gives `ttl.math.NAME` its meaning in numpy, and the functions of TT-Metalium that do it in a destination register:
`CALL(register, parameters...)` after `INIT()`. `ttl.NAME`, `ttl.tile_NAME`, `ttkernel.CALL` and `ttkernel.INIT` are
operations. The headers of our own (`metalium/include`) declare the same names; a test compares them, and runs each
function in C++ and here. Another test finds the names in the headers of ttnn's wheel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tlx_xdsl.numerics.arrays import Array

_KERNEL = "/compute_kernel_api.h"
_ROUNDING = "eltwise_unary/rounding.h"
_TRIGONOMETRY = "eltwise_unary/trigonometry.h"
_ACTIVATIONS = "eltwise_unary/activations.h"
_COMPARISON = "eltwise_unary/comp.h"


Compute: TypeAlias = (
    Callable[[Array], Any]
    | Callable[[Array, float], Any]
    | Callable[[Array, float, float], Any]
    | Callable[[Array, float, float, float], Any]
)
"""Takes a tile of f32, and the parameters."""


@dataclass(frozen=True)
class Function:
    """A function of each element of a tile, and of numbers that are known at compile time."""

    name: str
    meaning: str
    """What it gives for each element, for documentation."""
    compute: Compute
    header: str
    """That of TT-Metalium's compute headers; with `/` that of all functions, which was beside their folder in 2025."""
    call: str = ""
    init: str = ""
    parameters: tuple[str, ...] = ()
    """Names of the numbers that the call takes after the register, as the bits of an f32."""
    integers: bool = False
    """Whether the parameters are integers instead."""
    template: tuple[str, ...] = ()
    """Template arguments of both functions."""
    is_idempotent: bool = False
    """Whether doing it twice is doing it once."""
    has_int32: bool = False
    """Whether there is `CALL_int32`, too, for integers of 32 bits."""

    @property
    def callee(self) -> str:
        """The function of TT-Metalium."""
        return self.call or f"{self.name}_tile"

    @property
    def int32_callee(self) -> str:
        """The function of TT-Metalium for integers of 32 bits, where there is one."""
        return f"{self.callee}_int32"

    @property
    def preparation(self) -> str:
        """The function that prepares the vector unit for it."""
        return self.init or f"{self.callee}_init"

    def arguments(self, numbers: tuple[float, ...]) -> tuple[int, ...]:
        """The numbers as the call takes them."""
        if self.integers:
            return tuple(int(each) for each in numbers)
        return tuple(int(np.float32(each).view(np.uint32)) for each in numbers)


_HALF_ROOT = np.float32(math.sqrt(0.5))
_ERF: Any = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + _ERF(x * _HALF_ROOT))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array, beta: float, beta_reciprocal: float, threshold: float) -> Array:
    return np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) * beta_reciprocal)


def _unary(name: str, meaning: str, compute: Compute, **more: Any) -> Function:
    """A row whose header has the name of the function."""
    return Function(name, meaning, compute, f"eltwise_unary/{name}.h", **more)


def _rounding(name: str, meaning: str, compute: Compute, **more: Any) -> Function:
    return Function(name, meaning, compute, _ROUNDING, init="rounding_op_tile_init", **more)


def _comparison(name: str, sign: str, compute: Compute) -> Function:
    meaning = f"1 where the element is {sign} `value`, and 0 elsewhere."
    return Function(f"unary_{name}", meaning, compute, _COMPARISON, parameters=("value",))


FUNCTIONS = (
    _unary("exp", "Exponential to the base e.", np.exp),
    Function("exp2", "Exponential to the base 2.", np.exp2, _KERNEL),
    Function("expm1", "Exponential to the base e, minus 1.", np.expm1, _KERNEL),
    Function("log", "Natural logarithm.", np.log, _KERNEL),
    Function("logp1", "Natural logarithm of the element plus 1.", np.log1p, "eltwise_unary/log1p.h", "log1p_tile"),
    _unary("sqrt", "Square root.", np.sqrt),
    _unary("rsqrt", "Reciprocal of the square root.", lambda x: 1 / np.sqrt(x)),
    _unary("recip", "Reciprocal, `1 / x`.", lambda x: 1 / x),
    Function("square", "The element times itself.", np.square, _KERNEL),
    Function("power", "The element to the power of `exponent`.", np.power, _KERNEL, parameters=("exponent",)),
    Function(
        "neg",
        "The element with the other sign.",
        np.negative,
        "eltwise_unary/negative.h",
        "negative_tile",
        has_int32=True,
    ),
    Function("abs", "The element without its sign.", np.abs, _KERNEL, is_idempotent=True, has_int32=True),
    Function("sign", "1, -1 or 0: the sign of the element.", np.sign, _KERNEL),
    Function("signbit", "1 where the sign bit is set, and 0 elsewhere.", np.signbit, _KERNEL),
    # Trigonometry.
    *(
        Function(name, f"{meaning}.", compute, _TRIGONOMETRY)
        for name, meaning, compute in (
            ("sin", "Sine", np.sin),
            ("cos", "Cosine", np.cos),
            ("tan", "Tangent", np.tan),
            ("asin", "Arcsine", np.arcsin),
            ("acos", "Arccosine", np.arccos),
            ("atan", "Arctangent", np.arctan),
            ("asinh", "Hyperbolic arcsine", np.arcsinh),
            ("acosh", "Hyperbolic arccosine", np.arccosh),
            ("atanh", "Hyperbolic arctangent", np.arctanh),
        )
    ),
    Function("tanh", "Hyperbolic tangent.", np.tanh, _KERNEL),
    # Activations.
    _unary(
        "relu",
        "The larger of the element and 0.",
        lambda x: np.maximum(x, np.float32(0)),
        is_idempotent=True,
        has_int32=True,
    ),
    # The fast approximation is what TT-Metalium takes where nothing is said.
    _unary("gelu", "Gaussian error linear unit.", _gelu, template=("false",)),
    Function("sigmoid", "Logistic function, `1 / (1 + exp(-x))`.", _sigmoid, _KERNEL),
    Function("silu", "The element times its logistic function.", lambda x: x * _sigmoid(x), _KERNEL),
    Function("softsign", "`x / (1 + abs(x))`.", lambda x: x / (1 + np.abs(x)), _ACTIVATIONS),
    Function("hardsigmoid", "`x / 6 + 1 / 2`, within 0 and 1.", lambda x: np.clip(x / 6 + 0.5, 0, 1), _ACTIVATIONS),
    Function(
        "celu",
        "The element, or `alpha * (exp(x / alpha) - 1)` where it is negative; `alpha_recip` is `1 / alpha`.",
        lambda x, alpha, alpha_recip: np.where(x > 0, x, alpha * np.expm1(x * alpha_recip)),
        _ACTIVATIONS,
        parameters=("alpha", "alpha_recip"),
    ),
    _unary(
        "elu",
        "The element, or `slope * (exp(x) - 1)` where it is negative.",
        lambda x, slope: np.where(x > 0, x, slope * np.expm1(x)),
        parameters=("slope",),
    ),
    _unary(
        "selu",
        "`scale * x`, or `scale * alpha * (exp(x) - 1)` where the element is negative.",
        lambda x, scale, alpha: scale * np.where(x > 0, x, alpha * np.expm1(x)),
        parameters=("scale", "alpha"),
    ),
    Function(
        "leaky_relu",
        "The element, or `slope * x` where it is negative.",
        lambda x, slope: np.where(x > 0, x, slope * x),
        "eltwise_unary/relu.h",
        parameters=("slope",),
    ),
    _unary(
        "softplus",
        "`log(1 + exp(beta * x)) / beta`, or the element where `beta * x` is above `threshold`.",
        _softplus,
        parameters=("beta", "beta_reciprocal", "threshold"),
    ),
    _unary(
        "clamp",
        "The element within `min` and `max`.",
        lambda x, least, most: np.clip(x, least, most),
        parameters=("min", "max"),
    ),
    # Rounding.
    _rounding("floor", "The largest integer that is not above the element.", np.floor, is_idempotent=True),
    _rounding("ceil", "The smallest integer that is not below the element.", np.ceil, is_idempotent=True),
    _rounding("trunc", "The element without its fraction.", np.trunc, is_idempotent=True),
    _rounding("frac", "The fraction of the element, with its sign.", lambda x: x - np.trunc(x)),
    _rounding(
        "round",
        "The element with `decimals` decimal places, ties to even.",
        lambda x, decimals: np.round(x, int(decimals)),
        parameters=("decimals",),
        integers=True,
    ),
    # Comparisons, of which other functions are made.
    _comparison("gt", "above", lambda x, value: x > value),
)
"""The functions of one block, in the order of their documentation."""

BY_NAME = {each.name: each for each in FUNCTIONS}
BY_CALL = {each.callee: each for each in FUNCTIONS}


def evaluate(function: Function, tile: Array, numbers: tuple[float, ...] = ()) -> Array:
    """A function of a tile, as f32 where it is not of integers."""
    compute: Any = function.compute
    dtype = tile.dtype if tile.dtype.kind == "i" else np.float32
    return np.asarray(compute(tile, *(np.float32(each) for each in numbers)), dtype)
