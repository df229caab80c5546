"""Values of arguments on several ranks, as a command line writes them.

Beside those of one GPU there are `symmetric:zeros:i32[4]`, an array on each rank that all of them reach, and
`per_launch(1, 2)`, a value for each launch. Other arrays are one for each rank, which no other one reaches. Expressions
may name `rank` and `ranks`, the number of the rank and how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from tlx_xdsl.errors import CompilationError, InputTypeError
from tlx_xdsl.runtime.driver.host_values import is_descriptor
from tlx_xdsl.runtime.ranks.simulated import per_launch, symmetric

Read: TypeAlias = Callable[[str, Mapping[str, int], tuple[int, ...]], Any]
"""Reads a text, over these names beside the sizes; what is drawn at random depends on the numbers after them."""

SYMMETRIC, PER_LAUNCH = "symmetric:", "per_launch("


def value_on_ranks(name: str, text: str, ranks: int, read: Read, items: Callable[[str], Sequence[str]]) -> Any:
    """The value of an argument on that many ranks; `items` are what stands between commas.

    Raises CompilationError for a text that means nothing.
    """
    if text.startswith(PER_LAUNCH) and text.endswith(")"):
        given = items(text[len(PER_LAUNCH) : -1])
        return per_launch([_of_ranks(name, each, ranks, read, number) for number, each in enumerate(given)])
    return _of_ranks(name, text, ranks, read, 0)


def check_for_one(name: str, text: str) -> None:
    """Raise CompilationError for what is written for several ranks."""
    for each in (SYMMETRIC, PER_LAUNCH):
        if text.startswith(each):
            raise CompilationError(f"--arg {name}: '{each.rstrip(':(')}' is of several ranks, add --ranks N")


def _of_ranks(name: str, text: str, ranks: int, read: Read, launch: int) -> Any:
    own = text.removeprefix(SYMMETRIC)
    values = [read(own, {"rank": rank, "ranks": ranks}, (rank, launch)) for rank in range(ranks)]
    if own != text:
        try:
            return symmetric(values)
        except InputTypeError as error:
            raise CompilationError(f"--arg {name}: {error}") from error
    return values if _is_array(values[0]) or any(each != values[0] for each in values) else values[0]


def _is_array(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_array, cast(tuple[Any, ...], value)))
    return isinstance(value, np.ndarray) or is_descriptor(value)
