"""Blocks in parts: what scripts for Meta's Triton import from its module of this name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..core import static_range
from ..marks import library
from ..shape import join, permute, reshape, split

if TYPE_CHECKING:
    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from ..compile_time import constexpr

__all__ = ["_join_n_2D", "_split_n_2D"]


@library()
def _split_n_2D(x: Any, SPLIT_FACTOR: constexpr) -> Any:
    """The columns of a block in SPLIT_FACTOR equal parts, a power of two, as a tuple from left to right."""
    assert SPLIT_FACTOR > 0, f"'SPLIT_FACTOR' must be a power of two, found {SPLIT_FACTOR}"
    assert SPLIT_FACTOR & (SPLIT_FACTOR - 1) == 0, f"'SPLIT_FACTOR' must be a power of two, found {SPLIT_FACTOR}"
    parts: Any = (x,)
    for _ in static_range(SPLIT_FACTOR.bit_length() - 1):
        halved: Any = ()
        for i in static_range(len(parts)):
            whole = parts[i]
            # Which half a column is in goes to the end, where `split` takes it apart.
            left, right = split(permute(reshape(whole, (whole.shape[0], 2, whole.shape[1] // 2)), (0, 2, 1)))
            halved = (*halved, left, right)
        parts = halved
    return parts


@library()
def _join_n_2D(xs: Any) -> Any:
    """One block of the columns of a tuple of blocks, from left to right: the reverse of `_split_n_2D`."""
    parts: Any = xs
    assert len(parts) & (len(parts) - 1) == 0, f"'xs' must have a power of two of blocks, found {len(parts)}"
    for _ in static_range(len(xs).bit_length() - 1):
        paired: Any = ()
        for i in static_range(len(parts) // 2):
            left = parts[2 * i]
            both = permute(join(left, parts[2 * i + 1]), (0, 2, 1))
            paired = (*paired, reshape(both, (left.shape[0], 2 * left.shape[1])))
        parts = paired
    return parts[0]
