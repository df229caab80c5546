"""A plain kernel with the launches that tests and benchmarks make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Shape = Mapping[str, Any]
"""Sizes of a problem, and what else tells problems apart, such as `causal`."""
Config = Mapping[str, Any]
"""Values of a kernel's compile-time arguments, with `num_warps` and `num_stages` among them."""
OPTIONS = ("num_warps", "num_stages")


def _same(array: Any) -> Any:
    return array


class Arrays(Protocol):
    """Maker of a launch's arrays: `numpy_arrays.NumpyArrays`, or torch's tensors on a GPU."""

    def normal(self, *shape: int, dtype: str = "fp16", scale: float = 1.0) -> Any:
        """An array of normal random numbers."""
        ...

    def uniform(self, *shape: int, low: float, high: float, then: Callable[[Any], Any] = _same) -> Any:
        """An array of random numbers of fp32 between two, and what `then` makes of them."""
        ...

    def poisoned(self, *shape: int, dtype: str = "fp16") -> Any:
        """An output: full of NaN."""
        ...

    def integers(self, values: Any, dtype: str = "i32") -> Any:
        """An array of these whole numbers."""
        ...

    def below(self, bound: int, *shape: int, dtype: str = "i32") -> Any:
        """An array of random whole numbers from 0."""
        ...

    def descriptor(self, array: Any, block: Sequence[int]) -> Any:
        """A tensor descriptor of an array."""
        ...


@dataclass
class Problem:
    """One launch: `kernel[grid](**arguments)`."""

    grid: tuple[int, ...]
    arguments: dict[str, Any]
    """The kernel's run-time arguments by name, in order; arrays, numbers and descriptors."""
    arrays: dict[str, Any]
    """The arrays of the arguments, by the names that the reference has for them."""
    outputs: tuple[str, ...]
    """Names in `arrays` of what the kernel writes."""
    reference: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
    """From the functions of numpy or torch, and the inputs as floats, to the outputs."""
    operations: float
    """Floating-point operations of the products."""


@dataclass(frozen=True, eq=False)
class Family:
    """A plain kernel, its problems, and what it is tuned over."""

    kernel: Any
    make: Callable[[Shape, Arrays, Config], Problem]
    """The launch of a shape with a configuration."""
    config: Config
    """The configuration of `TLX_COMPILE`, which is right for all shapes."""
    shapes: tuple[Shape, ...]
    """Small problems, odd ones among them: the first few are those of the interpreter's tests."""
    large: tuple[Shape, ...]
    """Four problems that fill a GPU, for its times."""
    configs: tuple[Config, ...] = ()
    """What stock Triton is tuned over."""
    tolerance: float = 1e-3
    """Of the norm of the difference from the reference, as a part of the reference's norm; 8 times that for bf16."""
    constants: Callable[[Shape], Mapping[str, Any]] = field(default=lambda _: {})
    """Values of compile-time arguments that follow from the shape."""
    fits: Callable[[Shape, Config], bool] = field(default=lambda _shape, _config: True)
    """Whether a configuration is one for a shape."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.__name__

    def constexprs(self, shape: Shape, config: Config | None = None) -> dict[str, Any]:
        """The values of all compile-time arguments."""
        chosen = {**self.config, **(config or {}), **self.constants(shape)}
        return {name: value for name, value in chosen.items() if name not in OPTIONS}

    def problem(self, shape: Shape, arrays: Arrays, config: Config | None = None) -> Problem:
        """The launch of a shape; `arguments` has the run-time arguments only."""
        return self.make(shape, arrays, self.constexprs(shape, config))


def options(config: Config) -> dict[str, Any]:
    """The launch options of a configuration."""
    return {name: config[name] for name in OPTIONS if name in config}


def tiles(BLOCK_M: Sequence[int], BLOCK_N: Sequence[int], BLOCK_K: Sequence[int], **more: Any) -> tuple[Config, ...]:
    """Configurations of tiles, with the warps and the stages that go with their size."""
    found: list[Config] = []
    for m in BLOCK_M:
        for n in BLOCK_N:
            for k in BLOCK_K:
                if m * n > 128 * 256:
                    continue
                warps = 8 if m * n > 128 * 128 else 4
                found += [
                    {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, **more, "num_warps": warps, "num_stages": stages}
                    for stages in (3, 4)
                ]
    return tuple(found)


def ceil(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)
