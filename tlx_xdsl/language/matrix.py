"""Functions over whole blocks: matrix products, gathering, and code for each element.

Dimensions ("axis") count from 0 and are constexpr.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from .arguments import Flag, Int, Text, Type, Value
from .dtypes import float32
from .marks import builtin
from .objects import tensor

R = TypeVar("R")

__all__ = ["dot", "dot_scaled", "gather", "histogram", "inline_asm_elementwise", "map_elementwise"]

_tl = builtin("tl")
_member = builtin("tl", member=True)


@_tl
def dot(
    input: tensor,
    other: tensor,
    acc: Value | None = None,
    input_precision: Text | None = None,
    allow_tf32: Flag | None = None,
    max_num_imprecise_acc: Int | None = None,
    out_dtype: Type | None = None,
    *,
    attrs: Any = None,
    two_ctas: Flag = False,
) -> tensor:
    """`input` @ `other` (+ `acc`) for matrices (M x K, K x N), or batches of them with a common first dimension.

    `input_precision` is how float32 is multiplied: "tf32", "tf32x3", "bf16x3", "bf16x6" or "ieee"; `allow_tf32` is
    its older form. `max_num_imprecise_acc` is after how many products of an fp8 dot the partial sum is added in
    float32. The result has type `out_dtype`, by default float32 for floats and int32 for int8.

    `attrs` and `two_ctas` are hints for Meta's compiler, which change no result and nothing here: each CTA of a pair
    multiplies by itself, what `tlx.async_dot(two_ctas=True)` lets the pair do together.
    """
    ...


@_tl
def dot_scaled(
    lhs: tensor,
    lhs_scale: Value | None,
    lhs_format: Text,
    rhs: tensor,
    rhs_scale: Value | None,
    rhs_format: Text,
    acc: Value | None = None,
    fast_math: Flag = False,
    lhs_k_pack: Flag = True,
    rhs_k_pack: Flag = True,
    out_dtype: Type = float32,
) -> tensor:
    """The product of matrices in microscaling formats (OCP MX specification): elements times scales, per block of K.

    Formats are "e2m1", "e4m3", "e5m2", "bf16" and "fp16"; two e2m1 share a byte, along K when `*_k_pack` holds. A scale
    is e8m0 in a uint8; None is 1.
    """
    ...


@_member
def gather(src: tensor, index: tensor, axis: Int) -> tensor:
    """Pick along `axis`: element i of the result is `src` at `index[i]`."""
    ...


@_member
def histogram(input: tensor, num_bins: Int, mask: Value | None = None) -> tensor:
    """Count the integers 0 to `num_bins` - 1 in `input`: an int32 block; elements count where `mask` is true."""
    ...


@_tl
def map_elementwise(scalar_fn: Callable[..., R], *args: Value, pack: Int = 1) -> R:
    """Call the jitted `scalar_fn` for each element of the blocks; with `pack`, for that many elements at once."""
    ...


@overload
def inline_asm_elementwise(
    asm: Text, constraints: Text, args: Sequence[Value], dtype: Type, is_pure: Flag, pack: Int
) -> tensor: ...
@overload
def inline_asm_elementwise(
    asm: Text, constraints: Text, args: Sequence[Value], dtype: Sequence[Type], is_pure: Flag, pack: Int
) -> tuple[tensor, ...]: ...
@_tl
def inline_asm_elementwise(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any) -> Any:
    """Run the PTX text `asm` for each `pack` elements of the blocks `args`.

    `constraints` are LLVM's, the outputs first ("=r,r,r"); `dtype` is the element type of the result, or a tuple of
    them for several results.
    """
