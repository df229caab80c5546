"""Arrays after a run: what they hold in a line, and whether that is what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.numerics.difference import difference, tolerance_of, wide

from ..launch_line.expressions import evaluate


@dataclass(frozen=True)
class Expected:
    """Value that an array must hold, and the expression for it."""

    expression: str
    value: NDArray[Any]
    """Of the array's shape, or one value for all of it."""


def expected_array(name: str, array: NDArray[Any], expression: str, names: Mapping[str, Any]) -> Expected:
    """Return what an expression over `names` says of an array: before a run, which may take its time.

    Raises CompilationError for a wrong expression.
    """
    value = np.asarray(evaluate("--check", expression, dict(names)))
    if value.shape not in ((), array.shape):
        raise CompilationError(
            f"--check {name}: the expression has the shape {list(value.shape)}, the array {list(array.shape)}"
        )
    return Expected(expression, value)


def check_array(name: str, found: NDArray[Any], wanted: Expected, tolerance: float | None = None) -> str:
    """Compare an array with what it must hold, and return a line with the largest error.

    `tolerance` is relative to the largest value; by default it follows from the type.

    Raises CompilationError for an array that does not hold what it should.
    """
    expression = wanted.expression
    limit = tolerance_of(found.dtype) if tolerance is None else tolerance
    result = difference(found, np.broadcast_to(wanted.value, found.shape), limit)
    if result.wrong:
        raise CompilationError(
            f"--check {name}: {result.wrong} of {result.size} elements differ from {expression} by more than "
            f"{limit:g} of the largest value: element {list(result.at)} is {result.found:g}, expected "
            f"{result.expected:g}"
        )
    return f"{name} = {expression}: largest error {result.largest:.1e} of the largest value"


def summary(array: NDArray[Any]) -> str:
    """One line about an array: type, shape, range and mean of the finite numbers, and how many others there are."""
    text = f"{array.dtype}{list(array.shape)}"
    values = wide(array)
    finite = values[np.isfinite(values)]
    if finite.size:
        text += f", {finite.min():g} to {finite.max():g}, mean {finite.mean():g}"
    infinite = int(np.isinf(values).sum())
    return f"{text}, {int(np.isnan(values).sum())} NaN" + (f", {infinite} infinite" if infinite else "")
