"""Small things: threads, votes, clocks, types and ring buffers."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.core import builtin, dtype

__all__ = [
    "assume_uniform",
    "clock64",
    "dtype_of",
    "get_bufidx_phase",
    "get_fp8_format_name",
    "size_of",
    "stoch_round",
    "thread_id",
    "vote_ballot_sync",
]

_tlx = builtin("tlx")


@_tlx
def thread_id(axis: int) -> Any:
    """The index of this thread in its block along `axis` (0, 1 or 2), an int32."""


@_tlx
def clock64() -> Any:
    """The cycle counter of the multiprocessor, an int64."""


@_tlx
def stoch_round(src: Any, dst_ty: dtype, rand_bits: Any) -> Any:
    """Round an fp32 block to fp16, bf16 or an 8-bit float, up or down at random so that the mean stays (Blackwell).

    `rand_bits` is a block of the same shape with 32 random bits for each element.
    """


@_tlx
def vote_ballot_sync(mask: Any, pred: Any) -> Any:
    """A bit for each thread of the warp in `mask`: whether its `pred` holds.

    Of a block, a thread votes with whether any element that it holds is true, and the result is a block of the same
    shape: each element has the bits of the warp that holds it. Which threads hold what is the compiler's choice, so
    rely on no more than that an element's bits are not 0 where it is true and `mask` names all threads.
    """


@_tlx
def dtype_of(v: Any) -> Any:
    """The element type of a tensor, buffer or descriptor."""


@_tlx
def size_of(dtype: dtype) -> Any:
    """Bytes of one element of `dtype`."""


@_tlx
def get_fp8_format_name(dtype: dtype) -> Any:
    """The name that `async_dot_scaled` has for an 8-bit float: "e4m3" or "e5m2"."""


@_tlx
def get_bufidx_phase(accum_cnt: Any, NUM_BUFFERS: int) -> Any:
    """The buffer and the parity of step `accum_cnt` through a ring: (accum_cnt % N, (accum_cnt // N) & 1)."""


@_tlx
def assume_uniform(value: Any) -> Any:
    """`value`, which is the same in all threads of a warp; NVIDIA's compiler finds that out itself."""
