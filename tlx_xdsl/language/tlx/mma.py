"""The tensor cores: wgmma (Hopper) and tcgen05 (Blackwell)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlx_xdsl.language.core import builtin, dtype, float32

__all__ = ["async_dot", "async_dot_scaled", "async_dot_wait", "dot_scaled", "tcgen05_commit"]

_tlx = builtin("tlx")


@_tlx
def async_dot(
    A: Any,
    B: Any,
    acc: Any = None,
    use_acc: Any = None,
    pred: Any = None,
    mBarriers: Sequence[Any] = (),
    two_ctas: bool = False,
    force_async: bool = False,
    input_precision: str | None = None,
    out_dtype: dtype = float32,
) -> Any:
    """Issue acc + A @ B: A of M x K, B of K x N in shared memory. With `use_acc` false the accumulator counts as zero.

    Hopper: A may be a block; `acc` is a block (zeros without it), and the result is in flight until `async_dot_wait`.
    Blackwell: A may be in tensor memory; `acc` is a buffer in tensor memory, which the result goes to where `pred`
    holds. It is in flight until `mBarriers` complete, or a `tcgen05_commit` with `force_async`; without both the call
    waits. With `two_ctas` a pair of CTAs works on one MMA: each gives its half of the rows of A and of the columns
    of B, and gets its half of the rows of the result.
    """


@_tlx
def async_dot_scaled(
    A: Any,
    B: Any,
    acc: Any,
    A_scale: Any,
    A_format: str,
    B_scale: Any,
    B_format: str,
    use_acc: Any = None,
    pred: Any = None,
    mBarriers: Sequence[Any] = (),
    two_ctas: bool = False,
    force_async: bool = False,
    out_dtype: dtype = float32,
) -> Any:
    """Issue acc + (A * A_scale) @ (B * B_scale) on Blackwell, with the scales in tensor memory.

    Formats are "e2m1" (two in a byte), "e4m3" and "e5m2"; M is 128. The rest is as for `async_dot`.
    """


@_tlx
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = float32,
    tiles_per_warp: Any = None,
) -> Any:
    """`tl.dot_scaled`, a product of blocks in registers; `tiles_per_warp` is for AMD GPUs."""


@_tlx
def async_dot_wait(pendings: int, inp: Any) -> Any:
    """Wait until at most `pendings` wgmma groups are in flight; the result is `inp`, now safe to read."""


@_tlx
def tcgen05_commit(mBarrier: Any, two_ctas: bool = False) -> Any:
    """Let an mbarrier track all tcgen05 operations that this thread has issued so far.

    With `two_ctas` the even CTA of a pair does so for both.
    """
