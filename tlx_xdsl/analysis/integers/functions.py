"""The integer functions that operations compute, by name, on numbers and on numpy arrays.

numpy is imported where an array is given: passes compute with numbers alone, and run where there is no numpy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def _truncated_quotient(a: Any, b: Any) -> Any:
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def _shifted(a: Any, b: Any) -> Any:
    # numpy takes a negative number of bits for a large one, which Python refuses.
    return a >> b if not isinstance(b, int) or b >= 0 else a >> 63


def _extreme(of_numbers: Callable[[int, int], int], of_arrays: str) -> Callable[[Any, Any], Any]:
    def chosen(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return of_numbers(a, b)
        import numpy as np

        return getattr(np, of_arrays)(a, b)

    return chosen


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "truncdiv": _truncated_quotient,
    "mod": lambda a, b: a % b,
    "truncmod": lambda a, b: a - b * _truncated_quotient(a, b),
    "shr": _shifted,
    "min": _extreme(min, "minimum"),
    "max": _extreme(max, "maximum"),
    # A truth value beside a zero of the arguments' type is of that type.
    "less": lambda a, b: (a < b) | (a & 0),
    "equal": lambda a, b: (a == b) | (a & 0),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
"""`floordiv` and `mod` round down, `ceildiv` rounds up, `truncdiv` and `truncmod` round towards zero; `less` and
`equal` give 0 or 1."""

DIVISIONS = {"floordiv", "ceildiv", "truncdiv", "mod", "truncmod"}

PIECEWISE = {*DIVISIONS, "min", "max", "less", "equal"}
"""Those that are affine in pieces where their arguments are and divisors do not change."""


def apply(function: str, arguments: list[Any]) -> Any:
    """Return the value of a function; a divisor of 0, which no program that goes on has met, counts as 1.

    Numbers give a number, with as many bits as it needs. Anything else is taken for arrays of 64-bit integers.

    >>> apply("truncdiv", [-7, 2]), apply("floordiv", [-7, 2]), apply("mod", [7, 0])
    (-3, -4, 0)
    """
    if all(isinstance(argument, int) for argument in arguments):
        if function in DIVISIONS:
            arguments = [arguments[0], arguments[1] or 1]
        return FUNCTIONS[function](*arguments)
    import numpy as np

    arguments = [np.asarray(argument, np.int64) for argument in arguments]
    if function in DIVISIONS:
        arguments[1] = np.where(arguments[1] == 0, 1, arguments[1])
    return FUNCTIONS[function](*arguments)
