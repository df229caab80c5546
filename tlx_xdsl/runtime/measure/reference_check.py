"""Comparison of what a launch has computed, arrays of numpy and tensors of torch, with a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.numerics.arrays import is_float
from tlx_xdsl.numerics.difference import TOLERANCES, difference as apart, tolerance_of

Reference: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Takes the arguments of a launch by name; gives what some of them must hold after it, by name."""


def expected_of(reference: Reference, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the reference says of these arguments.

    Raises TypeError where it gives no mapping, ValueError for a name that is no argument or no array.
    """
    found = cast(Any, reference(arguments))
    if not isinstance(found, Mapping) or not found:
        kind = type(cast(Any, found)).__name__
        raise InputTypeError(f"the reference must give the expected arrays by the names of arguments, found {kind}")
    wanted = dict(cast("Mapping[str, Any]", found))
    for name in wanted:
        if name not in arguments or not hasattr(array_of(arguments[name]), "dtype"):
            known = ", ".join(each for each, value in arguments.items() if hasattr(array_of(value), "dtype"))
            raise InputError(f"the reference names '{name}', the arrays among the arguments are {known or 'none'}")
    return wanted


def array_of(argument: Any) -> Any:
    """The array or tensor of an argument, also that of a tensor descriptor."""
    return getattr(argument, "base", argument) if not isinstance(argument, np.ndarray) else cast(Any, argument)


def poison(arrays: Mapping[str, Any]) -> None:
    """Fill arrays with what no result is, so that what is not written differs from what should be there."""
    for array in map(array_of, arrays.values()):
        if isinstance(array, np.ndarray):
            array.fill(np.nan if is_float(cast(Any, array).dtype) else 85)
        else:
            array.fill_(float("nan") if array.is_floating_point() else 85)


def difference(arguments: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float | None = None) -> str | None:
    """Return how the arguments differ from what they should hold, in words; None where they agree.

    `tolerance` is relative to the largest value that is expected; it follows from the type of the result by default.
    """
    for name, wanted in expected.items():
        found = array_of(arguments[name])
        limit = _limit(found) if tolerance is None else tolerance
        if tuple(found.shape) != tuple(wanted.shape):
            raise InputError(
                f"the reference of '{name}' has the shape {list(wanted.shape)}, the array {list(found.shape)}"
            )
        error = _numpy_error(found, wanted) if isinstance(found, np.ndarray) else _torch_error(found, wanted)
        if not error <= limit:
            return f"{name} differs from the reference by {error:.1e} of its largest value, {limit:g} are allowed"
    return None


def _limit(array: Any) -> float:
    if isinstance(array, np.ndarray):
        return tolerance_of(cast(Any, array).dtype)
    return TOLERANCES[array.element_size()] if array.is_floating_point() else 0.0


def _numpy_error(found: Any, wanted: Any) -> float:
    return apart(found, np.asarray(wanted), np.inf).largest


def _torch_error(found: Any, wanted: Any) -> float:
    values, reference = found.double(), wanted.to(found.device).double()
    same = (values == reference) | (values.isnan() & reference.isnan())
    finite = reference[reference.isfinite()].abs()
    scale = (finite.max().item() if finite.numel() else 0.0) or 1.0
    errors = ((values - reference).abs() / scale).masked_fill(same, 0.0)
    return float(errors.max().item()) if errors.numel() else 0.0
