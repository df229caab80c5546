"""The integer functions that operations compute, by name, on numbers and on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _truncated_quotient(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "truncdiv": _truncated_quotient,
    "mod": lambda a, b: a % b,
    "truncmod": lambda a, b: a - b * _truncated_quotient(a, b),
    "shr": np.right_shift,
    "min": np.minimum,
    "max": np.maximum,
    "less": lambda a, b: np.less(a, b).astype(np.int64),
    "equal": lambda a, b: np.equal(a, b).astype(np.int64),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""`floordiv` and `mod` round down, `ceildiv` rounds up, `truncdiv` and `truncmod` round towards zero; `less` and
`equal` give 0 or 1."""

DIVISIONS = {"floordiv", "ceildiv", "truncdiv", "mod", "truncmod"}

PIECEWISE = {*DIVISIONS, "min", "max", "less", "equal"}
"""Those that are affine in pieces where their arguments are and divisors do not change."""


def apply(function: str, arguments: list[Any]) -> Any:
    """The value of a function; a divisor of 0, which no program that goes on has met, counts as 1."""
    arguments = [np.asarray(argument, np.int64) for argument in arguments]
    if function in DIVISIONS:
        arguments[1] = np.where(arguments[1] == 0, 1, arguments[1])
    return FUNCTIONS[function](*arguments)
