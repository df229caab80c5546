"""Values of arguments as Python: numbers as they are, arrays as files beside the script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.language.core import constexpr, dtype

from ..driver.host_values import is_descriptor, numpy_dtype
from ..launch.tensor_descriptor import dtype_name
from ..ranks.simulated import PerLaunch, SymmetricArray

LARGEST = 64 << 20
"""Bytes of an array that is stored; a larger one is random numbers of its shape and type."""


class NoPython(Exception):
    """A value that can't be written as Python."""


def load_array(path: Path, element: str) -> NDArray[Any]:
    """An array that was stored as bytes: its last dimension is that of the element of this type, such as `bf16`."""
    wanted = numpy_dtype(element)
    assert wanted is not None, "the writer of the file knows the type"
    stored: NDArray[Any] = np.load(path)
    return np.ascontiguousarray(stored).view(wanted)[..., 0]


class Values:
    """Writes values as Python, and what they hold into files below `folder`."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.notes: list[str] = []

    def python(self, name: str, value: Any) -> str:
        """An expression for a value, over `array` and `TensorDescriptor`. Raises NoPython."""
        if isinstance(value, constexpr):
            return self.python(name, value.value)
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, np.generic):
            return repr(cast("np.generic[Any]", value).item())
        if isinstance(value, dtype):
            return f"tl.{value.name}" if hasattr(value, "name") else str(value)
        if isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            return f"({self._listed(name, items)}{',' * (len(items) == 1)})"
        if is_descriptor(value):
            parts = [list(map(int, each)) for each in (value.shape, value.strides, value.block_shape)]
            rest = ", ".join(map(str, parts))
            return f"TensorDescriptor({self.python(name, value.base)}, {rest}, {getattr(value, 'padding', 'zero')!r})"
        if isinstance(value, np.ndarray):
            return self._array(name, cast(Any, value))
        if isinstance(value, Orders):
            return f"Orders({value.text!r})"
        if isinstance(value, list):
            return f"[{self._listed(name, cast('list[Any]', value))}]"
        if isinstance(value, SymmetricArray):
            return f"tlx_xdsl.symmetric([{self._listed(name, value.arrays)}])"
        if isinstance(value, PerLaunch):
            return f"tlx_xdsl.per_launch([{self._listed(name, value.values)}])"
        raise NoPython(f"'{name}' is {type(value).__name__}, which can't be written down")

    def _listed(self, name: str, items: Sequence[Any]) -> str:
        return ", ".join(self.python(f"{name}_{at}", item) for at, item in enumerate(items))

    def _array(self, name: str, array: NDArray[Any]) -> str:
        element = dtype_name(array.dtype)
        if element is None:
            raise NoPython(f"'{name}' has elements of {array.dtype}")
        if array.nbytes > LARGEST:
            self.notes.append(f"{name}: {array.nbytes:,} bytes are too many to store: random numbers of seed 0")
            return f"random_array({array.shape}, {element!r})"
        file = f"{name}.npy".replace("[", "_").replace("]", "")
        bytes_ = np.ascontiguousarray(array)[..., None].view(np.uint8)
        np.save(self._folder / file, bytes_)
        return f"array({file!r}, {element!r})"
