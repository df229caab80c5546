"""Functions of blocks that are written in the language itself: normalising, sorting, reversing, swizzling."""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from .compile_time import constexpr_function
from .core import static_range, to_tensor
from .dtypes import dtype, get_int_dtype
from .marks import library
from .math import exp, fdiv, minimum, where
from .matrix import gather
from .reduction import is_axis, max, min, positions_along, sum, xor_sum
from .shape import broadcast_to, reshape

if TYPE_CHECKING:
    from .arguments import Flag, Value
    from .objects import tensor

    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from .compile_time import constexpr

__all__ = ["bitonic_merge", "flip", "sigmoid", "softmax", "sort", "swizzle2d", "topk"]

# --- normalising ----------------------------------------------------------------------------------------------------


@library(member=True)
def sigmoid(x: Value) -> tensor:
    """1 / (1 + exp(-x)) of floats, element by element."""
    return 1 / (1 + exp(-x))


@constexpr_function
def _warn_of_keep_dims(keep_dims: Any) -> None:
    if keep_dims is not None:
        warnings.warn("tl.softmax: 'keep_dims' is ignored, a softmax has the shape of its input", stacklevel=2)


@library(member=True)
def softmax(x: Value, dim: constexpr = None, *, keep_dims: Any = None, ieee_rounding: Flag = False) -> tensor:
    """The softmax of a block along `dim`, by default the first: exp(x) divided by its sum, in the shape of `x`.

    The largest element is subtracted first, so that nothing overflows; elements of less than 32 bits become float32.
    `ieee_rounding` divides with the rounding of IEEE 754. `keep_dims` has no effect but a warning.
    """
    _warn_of_keep_dims(keep_dims)
    x = to_tensor(x)
    rank: constexpr = len(x.shape)
    assert rank, f"'x' must be a block, found a scalar {x.dtype}"
    axis: constexpr = 0 if dim is None else dim
    assert is_axis(axis, rank), f"'dim' must be at least {-rank} and less than {rank}, found {axis}"
    weights = exp(x - max(x, axis, keep_dims=True))
    return fdiv(weights, sum(weights, axis, keep_dims=True), ieee_rounding)


# --- sorting --------------------------------------------------------------------------------------------------------
#
# Batcher's bitonic sort (K. E. Batcher, "Sorting networks and their applications", AFIPS 1968). A row of 2**n elements
# is seen as n dimensions of size 2, one per bit of an element's index: what the network compares differs in one bit,
# and stands side by side along that bit's dimension.


@constexpr_function
def _log2(size: int) -> int:
    """The number of bits of the index of `size` elements; kernels that sort reach for it by stock's name."""
    return size.bit_length() - 1


@constexpr_function
def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, int) and number > 0 and number & (number - 1) == 0


@constexpr_function
def _bitwise_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """One dimension for all rows, and one of size 2 for each bit of the index into a row, the highest first."""
    return (prod(shape[:-1]), *(2 for _ in range(_log2(shape[-1]))))


@constexpr_function
def _unsigned_bits_of(element: dtype) -> dtype:
    """The integer type whose bits the elements are moved as."""
    return element if element.is_int() else get_int_dtype(element.primitive_bitwidth, False)


@library()
def _bit(x: tensor, bit: constexpr) -> tensor:
    """Say whether `bit` of the index into a row is set, for each element of `x` in its bitwise shape."""
    rank: constexpr = len(x.shape)
    return positions_along(2, rank, rank - 1 - bit) != 0


@library()
def _compare_and_exchange(x: tensor, bit: constexpr, descending: Value) -> tensor:
    """Order the two elements of each pair that differs in `bit` of its index.

    A pair is exchanged by the exclusive or of both, so that nothing is lost or doubled, NaN included.
    """
    bits = x.to(_unsigned_bits_of(x.dtype), bitcast=True)
    partner = (xor_sum(bits, -1 - bit, keep_dims=True) ^ bits).to(x.dtype, bitcast=True)
    lower_is_larger = where(_bit(x, bit), partner > x, x > partner)
    return where(lower_is_larger ^ descending, partner, x)


@library()
def _merge(x: tensor, bits: constexpr, descending: Value) -> tensor:
    """Sort each bitonic run of 2**`bits` elements; `descending` may differ from run to run."""
    for step in static_range(bits):
        x = _compare_and_exchange(x, bits - 1 - step, descending)
    return x


@library()
def _sort_runs(x: tensor, bits: constexpr) -> tensor:
    """Sort the runs of 2**`bits` elements, by turns ascending and descending: two make a bitonic run."""
    for merged in static_range(1, bits + 1):
        x = _merge(x, merged, _bit(x, merged))
    return x


@library()
def _rows(x: Value, dim: constexpr) -> tensor:
    """`x`, if its last dimension can be sorted, and is `dim`."""
    x = to_tensor(x)
    rank: constexpr = len(x.shape)
    assert rank, f"'x' must be a block, found a scalar {x.dtype}"
    assert dim is None or dim == -1 or dim == rank - 1, f"'dim' can be the last dimension only, found {dim}"
    return x


@library(member=True)
def sort(x: Value, dim: constexpr = None, descending: constexpr = False) -> tensor:
    """The elements of each row of `x` in ascending or `descending` order; `dim` can be the last dimension only.

    The order of rows with NaN is undefined, but no element is lost.
    """
    x = _rows(x, dim)
    bits: constexpr = _log2(x.shape[-1])
    if bits == 0:
        return x
    runs = _sort_runs(reshape(x, _bitwise_shape(x.shape)), bits - 1)
    return reshape(_merge(runs, bits, descending != 0), x.shape)


@library()
def bitonic_merge(x: Value, dim: constexpr = None, descending: constexpr = False) -> tensor:
    """Sort rows that are bitonic: ascending first and descending then, or rotated from that."""
    x = _rows(x, dim)
    merged = _merge(reshape(x, _bitwise_shape(x.shape)), _log2(x.shape[-1]), descending != 0)
    return reshape(merged, x.shape)


@library()
def topk(x: Value, k: constexpr, dim: constexpr = None, descending: constexpr = True) -> tensor:
    """The `k` largest elements of each row, the largest first; without `descending`, the smallest, ascending.

    `k` is a power of two, at most the size of the last dimension, which is the only one that `dim` can be. Elements of
    less than 32 bits become float32 or int32 as in `max`, unless `k` is the whole row.
    """
    x = _rows(x, dim)
    size: constexpr = x.shape[-1]
    assert _is_power_of_two(k) and k <= size, f"'k' must be a power of two of at most {size}, found {k}"
    bits: constexpr = _log2(k)
    best = _sort_runs(reshape(x, _bitwise_shape(x.shape)), bits - 1)
    for _ in static_range(_log2(size) - bits):
        # Of an ascending and a descending run, the better elements place by place are the k best, and bitonic.
        runs = _merge(best, bits, _bit(best, bits))
        best = max(runs, -1 - bits) if descending else min(runs, -1 - bits)
    return reshape(_merge(best, bits, descending != 0), (*x.shape[:-1], k))


# --- moving ---------------------------------------------------------------------------------------------------------


@library(member=True)
def flip(x: Value, dim: constexpr = None) -> tensor:
    """`x` in reverse order along `dim`, by default the last dimension."""
    x = to_tensor(x)
    rank: constexpr = len(x.shape)
    assert rank, f"'x' must be a block, found a scalar {x.dtype}"
    axis: constexpr = -1 if dim is None else dim
    assert is_axis(axis, rank), f"'dim' must be at least {-rank} and less than {rank}, found {axis}"
    size: constexpr = x.shape[axis]
    mirrored = size - 1 - positions_along(size, rank, axis)
    return gather(x, broadcast_to(mirrored, x.shape), axis)


@library()
def swizzle2d(i: Value, j: Value, size_i: Value, size_j: Value, size_g: Value) -> tuple[tensor, tensor]:
    """The place that the cell (`i`, `j`) of a `size_i` x `size_j` matrix gets when groups of `size_g` rows are
    walked column by column: a tuple of row and column.

    Cells are numbered row by row; the n-th becomes the n-th of that walk. The last group may have fewer rows.
    """
    cell = i * size_j + j
    group = cell // (size_g * size_j)
    place = cell % (size_g * size_j)
    first = group * size_g
    height = minimum(size_i - first, size_g)
    return first + place % height, place // height  # pyright: ignore[reportReturnType]
