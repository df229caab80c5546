"""Arguments of the kernels, for any number of ranks."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tlx_xdsl

Of = Callable[[int], Any]
"""Makes an argument for a number of ranks."""


def shared(count: int, dtype: str = "float32", start: int = 0, *, for_each: int = 0) -> Of:
    """Memory that all ranks reach: `count` elements, and `for_each` more for each rank, all of them `start`."""
    return lambda ranks: tlx_xdsl.symmetric(
        [np.full(count + for_each * ranks, start, dtype) for _ in range(ranks)]
    )  # fmt: skip


def own(count: int, *, for_each: int = 0) -> Of:
    """An array of each rank alone."""
    return lambda ranks: [
        np.arange(count + for_each * ranks, dtype=np.float32) + 100 * rank for rank in range(ranks)
    ]  # fmt: skip


def epochs(*values: int) -> Of:
    """A number that differs between launches."""
    return lambda _ranks: tlx_xdsl.per_launch(values)


def arguments(*each: Of) -> Callable[[int], tuple[Any, ...]]:
    """All arguments, in the order of the kernel's parameters."""
    return lambda ranks: tuple(of(ranks) for of in each)
