"""Runs `python -m tlx_xdsl.compat` with a stand-in for torch, made of numpy: just what the script in examples needs.

python -m tests.unit.compat.numpy_torch --interpret script.py ...
"""

from __future__ import annotations

import sys
import types
from typing import Any

import ml_dtypes
import numpy as np


class DType:
    """An element type with torch's name."""

    def __init__(self, name: str, numpy: Any):
        self.name, self.numpy = name, np.dtype(numpy)
        self.itemsize, self.is_floating_point = self.numpy.itemsize, True

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Device:
    """Device of a tensor: the CPU."""

    def __init__(self, type: str):
        self.type = type


float16, float32, bfloat16 = (
    DType("float16", np.float16),
    DType("float32", np.float32),
    DType("bfloat16", ml_dtypes.bfloat16),
)


class Tensor:
    """A numpy array that answers like a tensor of torch."""

    def __init__(self, array: Any, dtype: DType):
        self.array, self.dtype = np.asarray(array, dtype.numpy), dtype
        self.device = Device("cpu")
        self.shape = self.array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def element_size(self) -> int:
        return self.array.itemsize

    def numel(self) -> int:
        return self.array.size

    def dim(self) -> int:
        return self.array.ndim

    ndim = property(dim)

    def float(self) -> Tensor:
        return Tensor(self.array, float32)

    def norm(self) -> Tensor:
        return Tensor(np.linalg.norm(self.array), self.dtype)

    def item(self) -> Any:
        return self.array.item()

    def __matmul__(self, other: Tensor) -> Tensor:
        return Tensor(self.array @ other.array, self.dtype)

    def __add__(self, other: Tensor) -> Tensor:
        return Tensor(self.array + other.array, self.dtype)

    def __sub__(self, other: Tensor) -> Tensor:
        return Tensor(self.array - other.array, self.dtype)

    def __truediv__(self, other: Tensor) -> Tensor:
        return Tensor(self.array / other.array, self.dtype)


def module() -> types.ModuleType:
    """The stand-in, to be put into `sys.modules`."""
    torch: Any = types.ModuleType("torch")
    random = np.random.default_rng(0)
    torch.device, torch.Tensor = Device, Tensor
    torch.float16, torch.bfloat16, torch.float32 = float16, bfloat16, float32
    torch.manual_seed = lambda seed: None
    torch.empty = lambda shape, device, dtype: Tensor(np.full(shape, np.nan), dtype)
    torch.randn = lambda shape, device, dtype: Tensor(random.standard_normal(shape), dtype)
    torch.relu = lambda x: Tensor(np.maximum(x.array, 0), x.dtype)
    return torch


if __name__ == "__main__":
    sys.modules["torch"] = module()
    from tlx_xdsl.compat.__main__ import main

    sys.exit(main())
