"""Small scopes: a kernel at all combinations of small sizes, the smallest first.

What is wrong in the protocol of a ring or in the last tile of a loop mostly shows with two or three turns already: with
none, with one, with one less and one more than there are buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.base.effects import Kind, accesses_of
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.errors import InputError, InputTypeError

from ..simulate.options import SMALL
from .launches import Run

Sizes: TypeAlias = Mapping[str, int]
"""The value of each named size."""

MOST = 100_000
"""Combinations of sizes at most: all are listed before the first one is run."""


@dataclass(frozen=True)
class Launchable:
    """A launch at some sizes, and the arrays among its arguments by name."""

    run: Run
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Scope:
    """Sizes, and how to make the arguments for them."""

    sizes: Sizes
    make: Callable[[], Launchable]


def shown(sizes: Sizes) -> str:
    """The sizes as a report says them."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


MOST_LISTED = 8
"""Sizes that a line of a report names one by one."""


def listed(all_sizes: Sequence[Sizes]) -> str:
    """Several sizes in a line: each one, or where they are all combinations of some values, those."""
    values = {name: sorted({sizes[name] for sizes in all_sizes}) for name in all_sizes[0]}
    if len(all_sizes) > 1 and prod(map(len, values.values())) == len(all_sizes):
        return " ".join(f"{name}={_ranges(each)}" for name, each in values.items())
    more = f" and {len(all_sizes) - MOST_LISTED} more" if len(all_sizes) > MOST_LISTED else ""
    return ", ".join(map(shown, all_sizes[:MOST_LISTED])) + more


def _ranges(values: Sequence[int]) -> str:
    """Rising numbers as a command line may give them: `0..3,7`."""
    parts: list[tuple[int, int]] = []
    for value in values:
        if parts and value == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], value)
        else:
            parts.append((value, value))
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in parts)


def values_of(name: str, given: Any) -> tuple[int, ...]:
    """The values that a caller gives a size: an integer or several. Raises ValueError and TypeError for others."""
    values: tuple[Any, ...] = tuple(cast(Iterable[Any], given)) if isinstance(given, Iterable) else (given,)
    if not values or not all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in values):
        raise InputTypeError(f"sizes: '{name}' must be an integer, several, or '{SMALL}', found {given!r}")
    return tuple(dict.fromkeys(int(each) for each in values))


def combinations(values: Mapping[str, tuple[int, ...]], *, sweep: bool = True) -> list[dict[str, int]]:
    """All combinations of the values, the smallest first; without `sweep`, that of the first ones alone.

    Raises ValueError for too many.
    """
    if not sweep:
        return [{name: each[0] for name, each in values.items()}]
    if (count := prod(map(len, values.values()))) > MOST:
        raise InputError(f"sizes: there are {count:,} combinations, at most {MOST:,} can be listed")
    ranks = {name: {value: rank for rank, value in enumerate(sorted(each))} for name, each in values.items()}
    found = [dict(zip(values, each, strict=True)) for each in product(*map(sorted, values.values()))]
    # How far each value is from the smallest one of its size, together: one that is large alone comes early.
    return sorted(found, key=lambda sizes: sum(ranks[name][size] for name, size in sizes.items()))


def small_values(module: ModuleOp) -> tuple[int, ...]:
    """Numbers of turns with which a kernel's rings of buffers go wrong, if they do.

    None, one, two and three; one less and one more than a ring has buffers; all of them twice, and one more.
    """
    rings = {
        type_.shape[0]
        for op in module.walk()
        if any(Kind.ALLOC in access.kind for access in accesses_of(op) or ())
        for result in op.results
        if isinstance(type_ := result.type, MemDescType)
    }
    around = {number for ring in rings if ring > 1 for number in (ring - 1, ring, ring + 1, 2 * ring, 2 * ring + 1)}
    return tuple(sorted({0, 1, 2, 3, *(each for each in around if each <= MOST_SMALL)}))


MOST_SMALL = 64
"""The largest of the small values: longer rings are not gone round in a check that is to be quick."""
