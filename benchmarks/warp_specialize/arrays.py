"""Arrays of launches: torch's on a GPU, with sentinels around each, and untouched ones for what compiles ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.gallery.plain.family import Problem
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.runtime.driver.host_values import numpy_dtype

GUARD = 512
"""Bytes of sentinels on either side of an array."""
SENTINEL = 0x5A


class UntouchedArrays:
    """Arrays of the right types and shapes whose memory is not used."""

    def normal(self, *shape: int, dtype: str = "fp16", scale: float = 1.0) -> Any:
        return np.empty(shape, numpy_dtype(dtype))

    def uniform(self, *shape: int, low: float, high: float, then: Any = None) -> Any:
        return np.empty(shape, np.float32)

    def poisoned(self, *shape: int, dtype: str = "fp16") -> Any:
        return np.empty(shape, numpy_dtype(dtype))

    def integers(self, values: Any, dtype: str = "i32") -> Any:
        return np.array(values, numpy_dtype(dtype))

    def below(self, bound: int, *shape: int, dtype: str = "i32") -> Any:
        return np.empty(shape, numpy_dtype(dtype))

    def joined(self, *arrays: Any) -> Any:
        rows, columns = arrays[0].shape
        return np.empty((rows, columns * len(arrays)), arrays[0].dtype)

    def descriptor(self, array: Any, block: Sequence[int]) -> Any:
        return TensorDescriptor.from_tensor(array, list(block))


class TorchArrays:
    """Random arrays on a GPU. After `again` the same ones are given out in the same order."""

    def __init__(self, seed: int = 0, device: str = "cuda"):
        import torch

        self.torch, self.device = torch, device
        self.random = torch.Generator(device=device).manual_seed(seed)
        self._made: list[Any] = []
        self._next = 0
        self._guards: list[Any] = []

    def again(self) -> TorchArrays:
        """Begin anew: what is asked for next are the arrays of the first time."""
        self._next = 0
        return self

    def normal(self, *shape: int, dtype: str = "fp16", scale: float = 1.0) -> Any:
        return self._given(lambda: self.torch.randn(shape, generator=self.random, device=self.device) * scale, dtype)

    def uniform(self, *shape: int, low: float, high: float, then: Any = None) -> Any:
        def make() -> Any:
            values = self.torch.rand(shape, generator=self.random, device=self.device) * (high - low) + low
            return values if then is None else then(values)

        return self._given(make, "fp32")

    def poisoned(self, *shape: int, dtype: str = "fp16") -> Any:
        array = self._given(lambda: self.torch.full(shape, float("nan"), device=self.device), dtype)
        array.fill_(float("nan"))
        return array

    def integers(self, values: Any, dtype: str = "i32") -> Any:
        return self._given(lambda: self.torch.tensor(values, device=self.device), dtype)

    def below(self, bound: int, *shape: int, dtype: str = "i32") -> Any:
        return self._given(lambda: self.torch.randint(bound, shape, generator=self.random, device=self.device), dtype)

    def joined(self, *arrays: Any) -> Any:
        return self.torch.cat(arrays, 1)

    def descriptor(self, array: Any, block: Sequence[int]) -> Any:
        return TensorDescriptor.from_tensor(array, list(block))

    def written_beside(self) -> bool:
        """Return whether a sentinel has changed."""
        return any(bool((each != SENTINEL).any()) for each in self._guards)

    def _given(self, make: Any, dtype: str) -> Any:
        if self._next == len(self._made):
            self._made.append(self._placed(make(), dtype))
        self._next += 1
        return self._made[self._next - 1]

    def _placed(self, values: Any, dtype: str) -> Any:
        name = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "i32": "int32", "fp8e4nv": "float8_e4m3fn"}
        element = getattr(self.torch, name[dtype])
        values = values.to(element).contiguous()
        size = values.numel() * values.element_size()
        memory = self.torch.full((size + 2 * GUARD,), SENTINEL, dtype=self.torch.uint8, device=self.device)
        array = memory[GUARD : GUARD + size].view(element).view(values.shape)
        array.view(self.torch.uint8).copy_(values.view(self.torch.uint8))
        self._guards += [memory[:GUARD], memory[GUARD + size :]]
        return array


class Torch:
    """The functions of torch that references use, with ranges on the GPU."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def arange(self, count: int) -> Any:
        import torch

        return torch.arange(count, device="cuda")


def expected(problem: Problem, *, double: bool = False) -> Mapping[str, Any]:
    """Compute the expected outputs of a launch, in float32 or float64, by torch."""
    inputs = {
        name: (array if array.dtype.is_floating_point is False else array.double() if double else array.float())
        for name, array in problem.arrays.items()
        if name not in problem.outputs
    }
    return problem.reference(Torch(), inputs)


def error_of(problem: Problem, wanted: Mapping[str, Any], tolerance: float) -> str:
    """Say by how much an output exceeds the tolerance around the reference; empty where none does."""
    for name, reference in wanted.items():
        array = problem.arrays[name]
        allowed = tolerance * (8 if str(array.dtype).endswith("bfloat16") else 1)
        found = array.float()
        size = float(reference.square().mean().sqrt()) or 1.0
        apart = (found - reference).abs()
        error = float(apart.square().mean().sqrt()) / size
        if not error < allowed:
            return f"{name}: relative error {error:.2e}, at most {allowed:.0e}"
        worst = float((apart / (reference.abs() + 8 * size)).max())
        if not worst < 2 * allowed:
            return f"{name}: an element is {worst:.2e} off, at most {2 * allowed:.0e}"
    return ""
