"""Arguments that the clock needs no contents of: memory that is zero, and that nothing has touched yet.

Contents count only where addresses, branches or lengths depend on them. So what is in the CPU's memory is taken as it
is; integers in a GPU's memory are copied; and all else that has a shape and an element type becomes zeros, which the
system maps when they are first touched: an array as large as a GPU's memory costs nothing.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tlx_xdsl.errors import InputTypeError

from ..driver.host_values import is_descriptor, numpy_dtype, on_host
from ..launch.tensor_descriptor import SYMBOLIC_TENSORS, TensorDescriptor

_NO_RESERVE = 0x4000
"""Of `mmap`: no swap space is set aside (Linux, "mmap(2)", MAP_NORESERVE)."""

MOST_COPIED = 64 << 20
"""Bytes of an array of integers that are copied from a GPU: tables of groups and pages are far smaller."""


def standing_in(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by name with memory of this process in the place of every tensor, which nothing may write.

    Raises TypeError for elements of a type that kernels do not have.
    """
    return {name: _stand_in(name, value) for name, value in arguments.items()}


def _stand_in(name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        given = cast("tuple[Any, ...]", value)
        items = [_stand_in(f"{name}[{at}]", item) for at, item in enumerate(given)]
        return cast(Any, type(given))(*items) if hasattr(given, "_fields") else tuple(items)
    if is_descriptor(value):
        base = _stand_in(name, value.base)
        if isinstance(value, TensorDescriptor):
            return replace(value, base=base)
        padding, rounds = getattr(value, "padding", "zero"), bool(getattr(value, "round_f32_to_tf32", False))
        return TensorDescriptor(
            base, list(value.shape), list(value.strides), list(value.block_shape), padding, rounds
        )  # fmt: skip
    if isinstance(value, np.ndarray | np.generic) or not (hasattr(value, "dtype") and hasattr(value, "shape")):
        return cast(Any, value)
    is_symbolic = type(value).__name__ in SYMBOLIC_TENSORS
    kind = "meta" if is_symbolic else getattr(getattr(value, "device", None), "type", "cpu")
    if kind == "cpu" and callable(getattr(value, "data_ptr", None)):
        return on_host(name, value)
    dtype = numpy_dtype(value.dtype)
    if dtype is None:
        raise InputTypeError(f"'{name}' has elements of the type {value.dtype}, which kernels do not have")
    shape = tuple(int(extent) for extent in value.shape)
    if kind not in ("cpu", "meta") and dtype.kind in "iu" and prod(shape) * dtype.itemsize <= MOST_COPIED:
        return on_host(name, value.cpu())
    return _zeros(shape, tuple(map(int, value.stride())) if callable(getattr(value, "stride", None)) else None, dtype)


def _zeros(shape: Sequence[int], strides: Sequence[int] | None, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros; `strides` are in elements."""
    if not prod(shape):
        return np.zeros(shape, dtype)
    if strides is None:
        return np.frombuffer(_memory(prod(shape) * dtype.itemsize), dtype).reshape(shape)
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = np.frombuffer(_memory(reach * dtype.itemsize), dtype)
    return as_strided(flat, shape, [stride * dtype.itemsize for stride in strides])


def _memory(size: int) -> mmap.mmap:
    """Memory that may be larger than what this machine has, as long as little of it is touched."""
    if sys.platform != "linux":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
