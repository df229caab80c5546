"""A program with its inputs and what numpy computes from them in float64, and the comparison of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import tlx_xdsl.language.ttl as ttl

from tlx_xdsl.ttl.runtime import Options, Prepared

Array = np.ndarray
DTYPES = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCES = {"f32": 1e-6, "bf16": 1.2e-2}
"""The largest error, in units of a result's largest number: sixteen roundings to f32, or six to bf16."""


@dataclass
class Case:
    """A kernel with its arrays: inputs as the kernel gets them, then the results as they should be."""

    kernel: Any
    inputs: Sequence[Array]
    results: Sequence[Array]
    tolerance: float | None = None
    """Other than that of the type."""
    out_types: Sequence[Any] = ()
    """The types of results that are not of the inputs' type."""
    places: dict[int, Any] = field(default_factory=dict)
    """Where an argument lies in memory, by its position."""


def numbers(dtype: str, *shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Array:
    """Numbers from a range, in a type; they are seldom exact in a shorter one."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(DTYPES[dtype])


def wide(*arrays: Array) -> list[Array]:
    return [each.astype(np.float64) for each in arrays]


def case(
    kernel: Any, inputs: Sequence[Array], expected: Callable[..., Array | tuple[Array, ...]], **others: Any
) -> Case:
    """The case whose results are those of a function of the inputs in float64."""
    found = expected(*wide(*inputs))
    return Case(kernel, inputs, found if isinstance(found, tuple) else (found,), **others)


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def outputs(made: Case, dtype: str) -> list[Array]:
    """Results before a run: NaN, or a number that no result has where there is none."""
    types = made.out_types or [DTYPES[dtype]] * len(made.results)
    return [
        np.full(each.shape, -77777 if np.dtype(type_).kind in "iu" else np.nan, type_)
        for each, type_ in zip(made.results, types, strict=True)
    ]


def error_of(made: Case, found: Sequence[Array]) -> float:
    """The largest error of any result, in units of its largest number. NaN where a number is missing."""
    errors = [
        np.abs(array.astype(np.float64) - expected).max() / np.abs(expected).max()
        for array, expected in zip(found, made.results, strict=True)
    ]
    return float(np.max(errors))


def run_case(made: Case, dtype: str, machine: str, seeds: Sequence[int] = (1,)) -> float:
    """Run a case on a machine, with threads in a random order for each seed, and give its largest error.

    Raises CompilationError for what it does wrong, and for what it leaves to the compiler.
    """
    prepared: Prepared | None = None
    errors: list[float] = []
    for seed in seeds if machine != "cpp" else seeds[:1]:
        found = outputs(made, dtype)
        given: list[Any] = [*(each.copy() for each in made.inputs), *found]
        for position, place in made.places.items():
            given[position] = place(given[position])
        prepared = prepared or Prepared(made.kernel, given, machine, Options(strict=True))
        prepared.run(given, **({} if machine == "cpp" else {"schedule": "random", "seed": seed}))
        errors.append(error_of(made, found))
    return float(np.max(errors))


def tolerance_of(made: Case, dtype: str) -> float:
    return TOLERANCES[dtype] if made.tolerance is None else made.tolerance


def load(cb: Any, source: Any) -> None:
    """Copy a piece of a tensor into the next block of a circular buffer."""
    with cb.reserve() as block:
        ttl.copy(source, block).wait()


def save(cb: Any, target: Any) -> None:
    """Copy the next block of a circular buffer to a piece of a tensor."""
    with cb.wait() as block:
        ttl.copy(block, target).wait()
