"""Reductions and scans of blocks along a dimension ("axis").

An axis is constexpr; a negative one counts from the end. The named functions are written in the language itself over
`reduce` and `associative_scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from .compile_time import constexpr_function
from .core import to_tensor
from .creation import arange
from .dtypes import bfloat16, dtype as element_type, float32, int32, uint32
from .marks import builtin, library
from .math import maximum, minimum, where
from .shape import broadcast_to, expand_dims

if TYPE_CHECKING:
    from .arguments import Flag, Int, Value
    from .objects import tensor

    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from .compile_time import constexpr

__all__ = [
    "argmax",
    "argmin",
    "associative_scan",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "reduce",
    "reduce_or",
    "sum",
    "xor_sum",
]

_member = builtin("tl", member=True)


@overload
def reduce(input: tensor, axis: Int | None, combine_fn: Callable[..., Any], keep_dims: Flag = False) -> tensor: ...
@overload
def reduce(
    input: Sequence[tensor], axis: Int | None, combine_fn: Callable[..., Any], keep_dims: Flag = False
) -> tuple[tensor, ...]: ...
@_member
def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """Combine the elements of a block, or of a tuple of blocks of one shape, along `axis`; None is all of them.

    `combine_fn` is a jitted function from two elements (for n blocks: from n elements and n others) to one (to n);
    it must be associative and commutative. The axis vanishes, or has size 1 with `keep_dims`; reducing the only
    dimension gives a scalar. For a tuple, the result is a tuple.
    """


@overload
def associative_scan(input: tensor, axis: Int, combine_fn: Callable[..., Any], reverse: Flag = False) -> tensor: ...
@overload
def associative_scan(
    input: Sequence[tensor], axis: Int, combine_fn: Callable[..., Any], reverse: Flag = False
) -> tuple[tensor, ...]: ...
@_member
def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:
    """All partial results of combining elements along `axis`, from its start or, with `reverse`, from its end.

    `input` and `combine_fn` are as in `reduce`; the function need not be commutative. Each result includes its own
    element, and has the shape of `input`.
    """


# --- what the named functions share ---------------------------------------------------------------------------------


@constexpr_function
def _other_axes(rank: int, axis: int) -> tuple[int, ...]:
    """The dimensions of a block of `rank` dimensions but one."""
    return tuple(dim for dim in range(rank) if dim != axis % rank)


@builtin("tl")
def sums_bfloat16() -> bool:
    """Return whether the Triton that is compiled for sums bf16 in bf16, as from 3.9 on; constexpr."""
    ...


@constexpr_function
def _summed_type(element: element_type, wanted: element_type | None, in_bfloat16: bool) -> element_type:
    """The type in which elements are summed: `wanted`, else at least 32 bits for integers, and for bf16 of old."""
    if wanted is not None:
        return wanted
    if element == bfloat16 and not in_bfloat16:
        return float32
    if element.is_int() and element.primitive_bitwidth < 32:
        return int32 if element.is_int_signed() else uint32
    return element


@constexpr_function
def _compared_type(element: element_type) -> element_type:
    """The type in which a largest or smallest element is found: at least 32 bits."""
    if element.primitive_bitwidth >= 32:
        return element
    return float32 if element.is_floating() else int32


@constexpr_function
def is_axis(axis: Any, rank: int) -> bool:
    """Say whether `axis` is a dimension of blocks with `rank` dimensions."""
    return isinstance(axis, int) and -rank <= axis < rank


@library()
def positions_along(size: constexpr, rank: constexpr, axis: constexpr) -> tensor:
    """0, ..., `size` - 1 along dimension `axis` of a block of `rank` dimensions; the others have size 1."""
    return expand_dims(arange(0, size), _other_axes(rank, axis))


@library()
def _add(a: tensor, b: tensor) -> tensor:
    return a + b


@library()
def _multiply(a: tensor, b: tensor) -> tensor:
    return a * b


@library()
def _xor(a: tensor, b: tensor) -> tensor:
    return a ^ b


@library()
def _or(a: tensor, b: tensor) -> tensor:
    return a | b


@library()
def _larger(a: tensor, b: tensor) -> tensor:
    return maximum(a, b)


@library()
def _smaller(a: tensor, b: tensor) -> tensor:
    return minimum(a, b)


@library()
def _larger_and_first(a: tensor, i: tensor, b: tensor, j: tensor) -> tuple[tensor, tensor]:
    keep = (a > b) | ((a == b) & (i < j))
    return where(keep, a, b), where(keep, i, j)


@library()
def _smaller_and_first(a: tensor, i: tensor, b: tensor, j: tensor) -> tuple[tensor, tensor]:
    keep = (a < b) | ((a == b) & (i < j))
    return where(keep, a, b), where(keep, i, j)


@library()
def _larger_and_any(a: tensor, i: tensor, b: tensor, j: tensor) -> tuple[tensor, tensor]:
    keep = a > b
    return where(keep, a, b), where(keep, i, j)


@library()
def _smaller_and_any(a: tensor, i: tensor, b: tensor, j: tensor) -> tuple[tensor, tensor]:
    keep = a < b
    return where(keep, a, b), where(keep, i, j)


@library()
def _with_positions(
    input: tensor, axis: constexpr, combine_fn: Callable[..., Any], keep_dims: Flag
) -> tuple[tensor, tensor]:
    """Reduce the elements together with their positions along `axis`, as int32."""
    rank: constexpr = len(input.shape)
    assert rank, f"'input' must be a block, found a scalar {input.dtype}"
    assert axis is not None, "positions are counted along one axis: 'axis' can't be None"
    assert is_axis(axis, rank), f"'axis' must be at least {-rank} and less than {rank}, found {axis}"
    position = broadcast_to(positions_along(input.shape[axis], rank, axis), input.shape)
    return reduce((input, position), axis, combine_fn, keep_dims=keep_dims)  # pyright: ignore[reportReturnType]


# --- reductions -----------------------------------------------------------------------------------------------------


@library(member=True)
def sum(input: Value, axis: Int | None = None, keep_dims: Flag = False, dtype: constexpr = None) -> tensor:
    """The sum of the elements along `axis`, or of all; `keep_dims` keeps the axis, with size 1.

    The elements are converted to `dtype` first; without it, integers of less than 32 bits to int32, or to uint32 when
    they are unsigned, and bf16 to fp32 where Triton is older than 3.9.
    """
    input = to_tensor(input)
    return reduce(input.to(_summed_type(input.dtype, dtype, sums_bfloat16())), axis, _add, keep_dims=keep_dims)


@overload
def max(
    input: Value,
    axis: Int | None = None,
    return_indices: Literal[False] = False,
    return_indices_tie_break_left: Flag = True,
    keep_dims: Flag = False,
) -> tensor: ...
@overload
def max(
    input: Value,
    axis: Int | None,
    return_indices: Literal[True],
    return_indices_tie_break_left: Flag = True,
    keep_dims: Flag = False,
) -> tuple[tensor, tensor]: ...
@library(member=True)
def max(
    input: Value,
    axis: Any = None,
    return_indices: constexpr = False,
    return_indices_tie_break_left: constexpr = True,
    keep_dims: Any = False,
) -> Any:
    """The largest element along `axis`, or of all; NaN counts only when there is nothing else.

    Elements of less than 32 bits become float32 or int32. With `return_indices`, the result is the largest element,
    in its own type, and its position along `axis`, an int32: of several the first, or with
    `return_indices_tie_break_left=False` any, which is faster.
    """
    input = to_tensor(input)
    if return_indices:
        combine_fn: constexpr = _larger_and_first if return_indices_tie_break_left else _larger_and_any
        return _with_positions(input, axis, combine_fn, keep_dims)
    return reduce(input.to(_compared_type(input.dtype)), axis, _larger, keep_dims=keep_dims)


@overload
def min(
    input: Value,
    axis: Int | None = None,
    return_indices: Literal[False] = False,
    return_indices_tie_break_left: Flag = True,
    keep_dims: Flag = False,
) -> tensor: ...
@overload
def min(
    input: Value,
    axis: Int | None,
    return_indices: Literal[True],
    return_indices_tie_break_left: Flag = True,
    keep_dims: Flag = False,
) -> tuple[tensor, tensor]: ...
@library(member=True)
def min(
    input: Value,
    axis: Any = None,
    return_indices: constexpr = False,
    return_indices_tie_break_left: constexpr = True,
    keep_dims: Any = False,
) -> Any:
    """The smallest element along `axis`, or of all; arguments and result as for `max`."""
    input = to_tensor(input)
    if return_indices:
        combine_fn: constexpr = _smaller_and_first if return_indices_tie_break_left else _smaller_and_any
        return _with_positions(input, axis, combine_fn, keep_dims)
    return reduce(input.to(_compared_type(input.dtype)), axis, _smaller, keep_dims=keep_dims)


@library(member=True)
def argmax(input: Value, axis: Int | None, tie_break_left: constexpr = True, keep_dims: Flag = False) -> tensor:
    """The position along `axis` of the largest element, an int32: of several the first, or any (faster)."""
    return max(input, axis, True, tie_break_left, keep_dims)[1]


@library(member=True)
def argmin(input: Value, axis: Int | None, tie_break_left: constexpr = True, keep_dims: Flag = False) -> tensor:
    """The position along `axis` of the smallest element, an int32: of several the first, or any (faster)."""
    return min(input, axis, True, tie_break_left, keep_dims)[1]


@library(member=True)
def xor_sum(input: Value, axis: Int | None = None, keep_dims: Flag = False) -> tensor:
    """The exclusive or of the integers along `axis`, or of all."""
    input = to_tensor(input)
    assert input.dtype.is_int(), f"'input' must hold integers, found {input.dtype}"
    return reduce(input, axis, _xor, keep_dims=keep_dims)


@library(member=True)
def reduce_or(input: Value, axis: Int | None, keep_dims: Flag = False) -> tensor:
    """The bitwise or of the integers along `axis`; None is all of them."""
    input = to_tensor(input)
    assert input.dtype.is_int(), f"'input' must hold integers, found {input.dtype}"
    return reduce(input, axis, _or, keep_dims=keep_dims)


# --- scans ----------------------------------------------------------------------------------------------------------


@library(member=True)
def cumsum(input: Value, axis: Int = 0, reverse: Flag = False, dtype: constexpr = None) -> tensor:
    """The sums of the elements up to each one along `axis`, from its start or its end; `dtype` as for `sum`."""
    input = to_tensor(input)
    return associative_scan(input.to(_summed_type(input.dtype, dtype, sums_bfloat16())), axis, _add, reverse)


@library(member=True)
def cumprod(input: Value, axis: Int = 0, reverse: Flag = False, dtype: constexpr = None) -> tensor:
    """The products of the elements up to each one along `axis`, from its start or its end; `dtype` as for `sum`."""
    input = to_tensor(input)
    return associative_scan(input.to(_summed_type(input.dtype, dtype, sums_bfloat16())), axis, _multiply, reverse)
