"""Distance of two arrays, relative to the largest value of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .arrays import Array, Dtype, is_float


@dataclass(frozen=True)
class Difference:
    """The result of a comparison of an array with what it should hold."""

    largest: float
    """The largest distance of two elements, divided by the largest finite value; NaN and infinity count as such."""
    wrong: int
    """Elements that are further apart than the limit."""
    other_bits: int | None
    """Elements whose bits are not the same; None where the types are not."""
    size: int
    at: tuple[int, ...] = ()
    """The first wrong element."""
    found: float = 0.0
    expected: float = 0.0


def wide(array: Array) -> Array:
    """The values in a type that numpy computes with, without a loss."""
    return array.astype(np.float64 if is_float(array.dtype) else np.int64)


TOLERANCES = {1: 0.1, 2: 1e-2, 4: 1e-4, 8: 1e-10}
"""How far results may be apart that were computed in different orders, by the bytes of a floating-point element."""


COMPUTED_IN = {
    "f32": 1e-4, "f16": 1e-2, "tf32": 1e-2, "bf16": 3e-2, "f8E4M3": 0.15, "f8E5M2": 0.3, "f8E8M0": 0.5,
    "f6E": 0.5, "f4E": 0.5,
}  # fmt: skip
"""How far results may be apart that were rounded to a type on their way, by how its name begins: a few of the steps
between its numbers."""


def tolerance_of(dtype: Dtype, computed_in: Iterable[str] = ()) -> float:
    """Return how far results of a type may be apart that were computed in different orders; 0 for integers.

    `computed_in` names the types to which they were rounded on their way, such as `bf16`; other names do not count.
    """
    if not is_float(dtype):
        return 0.0
    limits = [limit for each in computed_in for name, limit in COMPUTED_IN.items() if each.startswith(name)]
    return max([TOLERANCES[dtype.itemsize], *limits])


def difference(found: Array, expected: Array, limit: float) -> Difference:
    """Compare two arrays of one shape; NaN is as near to NaN as can be."""
    values, others = wide(found), wide(expected)
    same = values == others
    if is_float(found.dtype):
        same |= np.isnan(values) & np.isnan(others)
    finite = np.abs(others[np.isfinite(others)])
    scale = np.max(finite, initial=0.0) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(values - others) / scale)
    wrong = ~(errors <= limit)
    bits = int(np.count_nonzero(_bits(found) != _bits(expected))) if found.dtype == expected.dtype else None
    largest = float(np.max(errors, initial=0.0))
    if not wrong.any():
        return Difference(largest, 0, bits, found.size)
    at = tuple(int(each) for each in np.argwhere(wrong)[0])
    return Difference(largest, int(wrong.sum()), bits, found.size, at, float(values[at]), float(others[at]))


def _bits(array: Array) -> Array:
    plain = np.ascontiguousarray(array)
    return plain.view(f"u{plain.dtype.itemsize}") if plain.dtype.itemsize <= 8 else plain
