"""Small things: threads, votes, clocks, types and ring buffers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core import builtin, constexpr_function, float32, library
from ..creation import cast
from ..debug import static_assert
from ..matrix import inline_asm_elementwise

if TYPE_CHECKING:
    from ..arguments import Flag, Int, Type, Value
    from ..objects import element_type, tensor, tensor_descriptor_base
    from .types import buffered_tensor

    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from ..core import constexpr

__all__ = [
    "assume_uniform",
    "cast_preserve_layout",
    "clock64",
    "cuda_parse_arch",
    "dtype_of",
    "get_bufidx_phase",
    "get_fp8_format_name",
    "is_hip",
    "num_warps",
    "size_of",
    "stoch_round",
    "thread_id",
    "vote_ballot_sync",
    "warp_all",
    "warp_any",
    "warp_ballot",
    "warp_id",
    "warp_predicate",
    "warp_redux",
]

_tlx = builtin("tlx")


@_tlx
def thread_id(axis: Int) -> tensor:
    """The index of this thread in its block along `axis` (0, 1 or 2), an int32.

    Example: `thread = tlx.thread_id(0)`
    """
    ...


@_tlx
def clock64() -> tensor:
    """The cycle counter of the multiprocessor, an int64.

    Example: `began = tlx.clock64()`
    """
    ...


@_tlx
def stoch_round(src: tensor, dst_ty: Type, rand_bits: tensor) -> tensor:
    """Round an fp32 block to fp16, bf16 or an 8-bit float, up or down at random so that the mean stays (Blackwell).

    `rand_bits` is a block of the same shape with 32 random bits for each element.

    Example:
    ```python
    bits = tl.randint4x(n, tl.arange(0, 128)[:, None] * 128 + tl.arange(0, 128))[0]
    halves = tlx.stoch_round(acc, tl.float16, bits.to(tl.uint32, bitcast=True))
    ```
    """
    ...


@_tlx
def vote_ballot_sync(mask: Value, pred: Value) -> tensor:
    """A bit for each thread of the warp in `mask`: whether its `pred` holds.

    Of a block, a thread votes with whether any element that it holds is true, and the result is a block of the same
    shape: each element has the bits of the warp that holds it. Which threads hold what is the compiler's choice, so
    rely on no more than that an element's bits are not 0 where it is true. `mask` must name all threads: PTX leaves
    undefined the vote of one that it leaves out ("vote.sync").

    Example: `votes = tlx.vote_ballot_sync(0xFFFFFFFF, n > 3)`
    """
    ...


@_tlx
def warp_any(pred: tensor) -> tensor:
    """Say whether `pred` holds in any element of a block that this warp holds: an int1, the same in its 32 threads.

    Warps may get different answers, as their elements differ: a branch on it has no barrier inside. Which warp holds
    what is the layout's choice. Of numbers, those that are not 0 are true.

    Example: `some = tlx.warp_any(at < n)`
    """
    ...


@_tlx
def warp_all(pred: tensor) -> tensor:
    """Say whether `pred` holds in all elements of a block that this warp holds, as `warp_any` does.

    Example: `every = tlx.warp_all(at < n)`
    """
    ...


@_tlx
def warp_ballot(pred: tensor) -> tensor:
    """A bit for each thread of this warp, an int64: whether any element that it holds of the block `pred` is true.

    Example: `votes = tlx.warp_ballot(at < n)`
    """
    ...


@_tlx
def warp_predicate(predicate: Value, inits: Any, body: Any, args: Any = (), wave_uniform: Flag = False) -> Any:
    """Select what the jitted function `body(*inits, *args)` returns where `predicate` holds, else `inits`.

    `inits` is a block or a tuple of them, and so is the result; `predicate` is an int1, or a block of them for the
    first dimensions of `inits`. All threads compute the body, which has no effects. `wave_uniform` is for AMD GPUs.

    Example: `kept = tlx.warp_predicate(n > 3, (at,), double)`
    """
    ...


@_tlx
def num_warps() -> int:
    """The number of warps of the kernel, a compile-time integer; those of tasks beside it are not counted.

    Example: `threads: tl.constexpr = 32 * tlx.num_warps()`
    """
    ...


@library()
def warp_id() -> tensor:
    """The number of this thread's warp, `thread_id(0) // 32`.

    Example: `warp = tlx.warp_id()`
    """
    return thread_id(0) // 32


@library()
def cast_preserve_layout(
    src: tensor, dtype: constexpr, fp_downcast_rounding: constexpr = None, bitcast: constexpr = False
) -> tensor:
    """`src` with another element type, as of `tl.cast`, in the layout that it has: so is every cast here.

    Example: `wide = tlx.cast_preserve_layout(block, tl.float32)`
    """
    return cast(src, dtype, fp_downcast_rounding, bitcast)


@_tlx
def dtype_of(v: tensor | buffered_tensor | tensor_descriptor_base) -> element_type:
    """The element type of a tensor, buffer or descriptor.

    Example: `tl.static_assert(tlx.dtype_of(block) == tl.float16)`
    """
    ...


@_tlx
def size_of(dtype: Type) -> int:
    """Bytes of one element of `dtype`.

    Example: `size: tl.constexpr = 128 * 64 * tlx.size_of(tl.float16)`
    """
    ...


@_tlx
def get_fp8_format_name(dtype: Type) -> str:
    """The name that `async_dot_scaled` has for an 8-bit float: "e4m3" or "e5m2".

    Example: `name: tl.constexpr = tlx.get_fp8_format_name(tl.float8e5)`
    """
    ...


@_tlx
def get_bufidx_phase(accum_cnt: Value, NUM_BUFFERS: Int) -> tuple[tensor, tensor]:
    """The buffer and the parity of step `accum_cnt` through a ring: (accum_cnt % N, (accum_cnt // N) & 1).

    Example: `index, phase = tlx.get_bufidx_phase(n, 2)`
    """
    ...


@_tlx
def assume_uniform(value: tensor) -> tensor:
    """`value`, which is the same in all threads of a warp; NVIDIA's compiler finds that out itself.

    Example: `same = tlx.assume_uniform(n)`
    """
    ...


_REDUX = {
    "max": "redux.sync.max.f32 $0, $1, 0xFFFFFFFF;",
    "min": "redux.sync.min.f32 $0, $1, 0xFFFFFFFF;",
    "abs_max": "redux.sync.max.abs.f32 $0, $1, 0xFFFFFFFF;",
    "abs_min": "redux.sync.min.abs.f32 $0, $1, 0xFFFFFFFF;",
}
"""PTX ISA, "redux.sync": `.abs` takes the magnitudes."""


@constexpr_function
def _redux(op: str) -> Any:
    return _REDUX.get(op)


@library()
def warp_redux(x: tensor, op: constexpr) -> tensor:
    """The greatest or least of what the 32 threads of a warp hold at an element's place, in each of them (Blackwell).

    `x` is fp32; `op` is "max", "min", "abs_max" or "abs_min", the latter two of magnitudes. Which elements meet is the
    layout's choice.

    Example: `largest = tlx.warp_redux(at.to(tl.float32), "max")`
    """
    static_assert(_redux(op) is not None, "'op' must be 'max', 'min', 'abs_max' or 'abs_min'")
    return inline_asm_elementwise(_redux(op), "=f,f", [x], dtype=float32, is_pure=True, pack=1)


@constexpr_function
def is_hip() -> bool:
    """False: kernels are compiled for NVIDIA's GPUs.

    Example: `tl.static_assert(not tlx.is_hip())`
    """
    return False


@constexpr_function
def cuda_parse_arch(arch: str) -> int:
    """The number in the name of an architecture: 90 of `sm90`.

    Raises ValueError for anything else.

    Example: `tl.static_assert(tlx.cuda_parse_arch("sm90") == 90)`
    """
    match = re.fullmatch(r"sm_?(\d+)[af]?", arch)
    if match is None:
        raise ValueError(f"expected the name of an architecture such as sm90, got {arch!r}")
    return int(match[1])
