"""The tensor cores: wgmma (Hopper) and tcgen05 (Blackwell)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from ..arguments import Flag, Int, Text, Type, Value
from ..core import builtin, float32
from ..objects import tensor
from .types import buffered_tensor, mbarrier

__all__ = ["async_dot", "async_dot_scaled", "async_dot_wait", "dot", "dot_scaled", "tcgen05_commit"]

_tlx = builtin("tlx")


@overload
def async_dot(
    A: tensor | buffered_tensor,
    B: buffered_tensor,
    acc: tensor | None = None,
    use_acc: Value | None = None,
    pred: Value | None = None,
    mBarriers: Sequence[mbarrier] = (),
    two_ctas: Flag = False,
    force_async: Flag = False,
    input_precision: Text | None = None,
    out_dtype: Type = float32,
) -> tensor: ...
@overload
def async_dot(
    A: buffered_tensor,
    B: buffered_tensor,
    acc: buffered_tensor,
    use_acc: Value | None = None,
    pred: Value | None = None,
    mBarriers: Sequence[mbarrier] = (),
    two_ctas: Flag = False,
    force_async: Flag = False,
    input_precision: Text | None = None,
    out_dtype: Type = float32,
) -> None: ...
@_tlx
def async_dot(
    A: tensor | buffered_tensor,
    B: buffered_tensor,
    acc: tensor | buffered_tensor | None = None,
    use_acc: Value | None = None,
    pred: Value | None = None,
    mBarriers: Sequence[mbarrier] = (),
    two_ctas: Flag = False,
    force_async: Flag = False,
    input_precision: Text | None = None,
    out_dtype: Type = float32,
) -> tensor | None:
    """Issue acc + A @ B: A of M x K, B of K x N in shared memory. With `use_acc` false the accumulator counts as zero.

    Hopper: A may be a block; `acc` is a block (zeros without it), and the result is in flight until `async_dot_wait`.
    Blackwell: A may be in tensor memory; `acc` is a buffer in tensor memory, which the result goes to where `pred`
    holds. It is in flight until `mBarriers` complete, or a `tcgen05_commit` with `force_async`; without both the call
    waits. With `two_ctas` a pair of CTAs works on one MMA: each gives its half of the rows of A and of the columns
    of B, and gets its half of the rows of the result.

    Example: `product = tlx.async_dot_wait(0, tlx.async_dot(a[0], b[0]))`
    """


@_tlx
def async_dot_scaled(
    A: buffered_tensor,
    B: buffered_tensor,
    acc: buffered_tensor,
    A_scale: buffered_tensor,
    A_format: Text,
    B_scale: buffered_tensor,
    B_format: Text,
    use_acc: Value | None = None,
    pred: Value | None = None,
    mBarriers: Sequence[mbarrier] = (),
    two_ctas: Flag = False,
    force_async: Flag = False,
    out_dtype: Type = float32,
) -> None:
    """Issue acc + (A * A_scale) @ (B * B_scale) on Blackwell, with the scales in tensor memory.

    Formats are "e2m1" (two in a byte), "e4m3" and "e5m2"; M is 128. The rest is as for `async_dot`.

    Example: `tlx.async_dot_scaled(a8[0], b8[0], total[0], a_scale[0], "e4m3", b_scale[0], "e4m3", False)`
    """


@_tlx
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
    tiles_per_warp: Any = None,
) -> tensor:
    """`tl.dot_scaled`, a product of blocks in registers; `tiles_per_warp` is for AMD GPUs.

    Example: `product = tlx.dot_scaled(bytes, scales, "e4m3", bytes.T, scales, "e4m3")`
    """
    ...


@_tlx
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: Text | None = None,
    allow_tf32: Flag | None = None,
    max_num_imprecise_acc: Int | None = None,
    out_dtype: Type | None = None,
    tiles_per_warp: Any = None,
) -> tensor:
    """`tl.dot`, a product of blocks in registers; `tiles_per_warp` is for AMD GPUs.

    Example: `product = tlx.dot(block, tlx.local_load(b[0]))`
    """
    ...


@_tlx
def async_dot_wait(pendings: Int, inp: tensor) -> tensor:
    """Wait until at most `pendings` wgmma groups are in flight; the result is `inp`, now safe to read.

    Example: `product = tlx.async_dot_wait(0, tlx.async_dot(a[0], b[0]))`
    """
    ...


@_tlx
def tcgen05_commit(mBarrier: mbarrier, two_ctas: Flag = False) -> None:
    """Let an mbarrier track all tcgen05 operations that this thread has issued so far.

    With `two_ctas` the even CTA of a pair does so for both.

    Example: `tlx.tcgen05_commit(full[0])`
    """
