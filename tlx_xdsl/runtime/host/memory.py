"""The memory that the arguments of a launch lie in, and the constants among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..driver.host_values import is_descriptor


def is_in_cpu_memory(value: Any) -> bool | None:
    """Return whether a value has its memory on the CPU, or on another device; None where it has none, or does not say.

    Of a tuple and a descriptor, what they hold decides.
    """
    if isinstance(value, np.ndarray):
        return True
    if value is None or isinstance(value, int | float | str | np.generic):
        return None
    if isinstance(value, tuple):
        found = {is_in_cpu_memory(item) for item in cast("tuple[Any, ...]", value)}
        return False if False in found else True if True in found else None
    if is_descriptor(value):
        return is_in_cpu_memory(value.base)
    if getattr(value, "is_cuda", False) or hasattr(value, "__cuda_array_interface__"):
        return False
    kind = getattr(getattr(value, "device", None), "type", None)
    return None if kind is None else kind == "cpu"


def are_in_cpu_memory(values: Iterable[Any]) -> bool:
    """Return whether some of the values of a launch have their memory on the CPU, and none has it elsewhere."""
    found = False
    for value in values:
        here = is_in_cpu_memory(value)
        if here is False:
            return False
        found = found or here is True
    return found
