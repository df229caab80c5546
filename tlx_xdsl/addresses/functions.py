"""The functions that forms call where they are no polynomials, on numbers and on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _quotient(a: Any, b: Any) -> Any:
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    return a % b


def _truncated_quotient(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _truncated_remainder(a: Any, b: Any) -> Any:
    return a - b * _truncated_quotient(a, b)


def _less(a: Any, b: Any) -> Any:
    return np.less(a, b).astype(np.int64)


def _equal(a: Any, b: Any) -> Any:
    return np.equal(a, b).astype(np.int64)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": _quotient,
    "mod": _remainder,
    "truncdiv": _truncated_quotient,
    "truncmod": _truncated_remainder,
    "min": np.minimum,
    "max": np.maximum,
    "less": _less,
    "equal": _equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""By name. `floordiv` and `mod` round down, `truncdiv` and `truncmod` towards zero; comparisons give 0 or 1."""

PIECEWISE = {"floordiv", "mod", "truncdiv", "truncmod", "min", "max", "less", "equal"}
"""Those that are affine in pieces where their arguments are and divisors do not change."""


def apply(function: str, arguments: list[Any]) -> Any:
    """The value of a function; a divisor of 0, which no program that goes on has met, counts as 1."""
    arguments = [np.asarray(argument, np.int64) for argument in arguments]
    if function in ("floordiv", "mod", "truncdiv", "truncmod"):
        arguments[1] = np.where(arguments[1] == 0, 1, arguments[1])
    return FUNCTIONS[function](*arguments)
