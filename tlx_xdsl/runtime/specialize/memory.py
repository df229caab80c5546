"""Memory of a launch whose programs hand sums on to each other: made beside the arrays of the launch, for it alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..driver.host_values import is_descriptor, numpy_dtype


def memory_beside(values: Iterable[Any], count: int, dtype: str, *, is_zero: bool) -> Any:
    """Return an array of `count` elements that a launch with these arguments may use: a tensor beside tensors.

    None where the arrays are neither torch's nor numpy's.
    """
    bases: list[Any] = [value.base if is_descriptor(value) else value for value in values]
    array = next((base for base in bases if hasattr(base, "ctypes") or hasattr(base, "data_ptr")), None)
    element = numpy_dtype(dtype)
    assert element is not None, "a pass has written the type"
    if hasattr(array, "ctypes"):
        return np.zeros(count, element)
    make = getattr(array, "new_zeros" if is_zero else "new_empty", None)
    return None if make is None else make(count, dtype=getattr(sys.modules["torch"], element.name))
