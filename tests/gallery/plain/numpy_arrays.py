"""Arrays of a launch in numpy, for the interpreter: seeded, aligned to 128 bytes, with sentinels around each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tests.gallery.plain.family import Problem
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.runtime.driver.host_values import numpy_dtype

GUARD = 256
"""Bytes of sentinels on either side of an array."""
SENTINEL = 0x5A


class NumpyArrays:
    """Makes arrays, and remembers what lies around them."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.guards: list[np.ndarray] = []

    def normal(self, *shape: int, dtype: str = "fp16", scale: float = 1.0) -> np.ndarray:
        return self._placed(self.random.standard_normal(shape) * scale, dtype)

    def uniform(self, *shape: int, low: float, high: float, then: Callable[[Any], Any] = np.asarray) -> np.ndarray:
        return self._placed(then(self.random.uniform(low, high, shape)), "fp32")

    def poisoned(self, *shape: int, dtype: str = "fp16") -> np.ndarray:
        return self._placed(np.full(shape, np.nan), dtype)

    def integers(self, values: Any, dtype: str = "i32") -> np.ndarray:
        return self._placed(np.asarray(values), dtype)

    def below(self, bound: int, *shape: int, dtype: str = "i32") -> np.ndarray:
        return self._placed(self.random.integers(0, bound, shape), dtype)

    def descriptor(self, array: np.ndarray, block: Sequence[int]) -> TensorDescriptor:
        return TensorDescriptor.from_tensor(array, list(block))

    def check_guards(self) -> None:
        """Check that nothing was written beside an array."""
        for guard in self.guards:
            assert (guard == SENTINEL).all(), "written beside an array"

    def _placed(self, values: np.ndarray, dtype: str) -> np.ndarray:
        element = numpy_dtype(dtype)
        assert element is not None, f"no numpy type for {dtype}"
        size = prod(values.shape) * element.itemsize
        memory = np.full(size + 2 * GUARD + 128, SENTINEL, np.uint8)
        first = GUARD + -(memory.ctypes.data + GUARD) % 128
        array = memory[first : first + size].view(element).reshape(values.shape)
        array[...] = values.astype(element)
        self.guards += [memory[:first], memory[first + size :]]
        return array


class Numpy:
    """The functions of numpy that references use, by the names that torch has for them, too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def arange(self, count: int) -> np.ndarray:
        return np.arange(count)


def expected(problem: Problem) -> Mapping[str, np.ndarray]:
    """Compute the expected outputs of a launch, in float64."""
    inputs = {
        name: array if array.dtype.kind in "iu" else array.astype(np.float64)
        for name, array in problem.arrays.items()
        if name not in problem.outputs
    }
    return problem.reference(Numpy(), inputs)


def check(problem: Problem, wanted: Mapping[str, Any], tolerance: float) -> None:
    """Check what a launch has written: its norm, and each element by itself, since few may be wrong."""
    for name, reference in wanted.items():
        array = problem.arrays[name]
        found = array.astype(np.float64)
        assert found.shape == reference.shape, f"{name}: {found.shape}, expected {reference.shape}"
        allowed = tolerance * (8 if array.dtype.name == "bfloat16" else 1)
        size = np.sqrt((reference**2).mean()) or 1.0
        apart = np.abs(found - reference)
        error = np.sqrt((apart**2).mean()) / size
        assert error < allowed, f"{name}: relative error {error:.2e}, at most {allowed:.0e}"
        worst = (apart / (np.abs(reference) + 8 * size)).max()
        assert worst < 2 * allowed, f"{name}: an element is {worst:.2e} off, at most {2 * allowed:.0e}"
