"""Buffers in shared and tensor memory: allocation, views, loads and stores. Sizes and offsets are in elements."""

from __future__ import annotations

from ..arguments import Flag, Int, Shape, Type, Value, Values
from ..compile_time import constexpr
from ..core import builtin
from ..objects import tensor
from .layouts import layout_encoding
from .types import B, async_token, buffered_tensor, storage_alias_spec_type_class, storage_kind

__all__ = [
    "local_alloc",
    "local_gather",
    "local_load",
    "local_reinterpret",
    "local_reshape",
    "local_scatter",
    "local_slice",
    "local_store",
    "local_trans",
    "local_view",
    "subslice",
    "tmem_copy",
    "tmem_shift",
    "zeros",
]

_tlx = builtin("tlx")


@_tlx
def local_alloc(
    shape: Shape,
    dtype: Type,
    num: Int,
    storage: storage_kind | constexpr = storage_kind.smem,
    reuse: storage_alias_spec_type_class | buffered_tensor | None = None,
    layout: layout_encoding | constexpr | None = None,
) -> buffered_tensor:
    """Allocate `num` buffers of `shape` elements; with `reuse` a spec, inside the region that it names.

    The result is an array: `buf[i]` is one buffer, which can be loaded, stored, copied, viewed and multiplied. Sizes
    are powers of two and, like `num`, known at compile time. `storage` is shared memory, or tensor memory on GPUs that
    have it. What a buffer holds at first is undefined. Without `layout` the compiler picks the one that TMA, the tensor
    cores or threads want. With `reuse` another allocation, the new one starts at its first byte.
    """
    ...


@_tlx
def local_view(local_allocated_buffers: B, buffer_idx: Value) -> B:
    """Buffer or barrier `buffer_idx`: what `buf[i]` means."""
    ...


@_tlx
def subslice(local_allocated_buffer: buffered_tensor, offset: Int, size: Int) -> buffered_tensor:
    """Columns `offset` to `offset + size` of a buffer in tensor memory; no data moves."""
    ...


@_tlx
def local_slice(buffer: buffered_tensor, offset: Values, shape: Shape) -> buffered_tensor:
    """The part of a buffer that starts at `offset` and has `shape`; no data moves.

    Each offset is a multiple of the part's size. In shared memory it may be known at run time only.
    """
    ...


@_tlx
def local_trans(input: buffered_tensor, dims: Shape = (1, 0)) -> buffered_tensor:
    """The same buffer with its dimensions permuted; no data moves."""
    ...


@_tlx
def local_reshape(src: buffered_tensor, shape: Shape) -> buffered_tensor:
    """The same elements, in row-major order, under another shape; no data moves."""
    ...


@_tlx
def local_reinterpret(
    src: buffered_tensor,
    dtype: Type,
    shape: Shape | None = None,
    layout: layout_encoding | constexpr | None = None,
    num: Int = 0,
    pin: Flag = True,
) -> buffered_tensor:
    """The same bytes as elements of another type, shape or layout; no data moves.

    With a `shape`, `src` may be a whole array, whose buffers are contiguous. With `num` the result is an array of so
    many buffers of that shape, in shared memory. With `pin` no pass may change the layout.
    """
    ...


@_tlx
def local_load(
    src: buffered_tensor,
    token: async_token | None = None,
    layout: layout_encoding | constexpr | None = None,
    relaxed: Flag = False,
    rematerialize_coordinates: Flag = False,
    rematerialize_coordinates_group: Int | None = None,
) -> tensor:
    """Read a buffer into registers, after the copy that `token` stands for, in `layout`.

    The result is a block of the buffer's shape and type. Data of TMA copies is there after a `barrier_wait`, data of
    other tasks after a barrier. `relaxed` and the last two are hints for AMD GPUs and mean nothing here.
    """
    ...


@_tlx
def local_store(dst: buffered_tensor, src: tensor) -> None:
    """Write a block from registers to a buffer of the same shape and type.

    Between this and a TMA copy or an MMA that reads the buffer there must be a `fence_async_shared`.
    """


@_tlx
def local_gather(src: buffered_tensor, indices: tensor, axis: Int, token: async_token | None = None) -> tensor:
    """Pick from a buffer along `axis`: for axis 0, `result[i, j] = src[indices[i, j], j]`."""
    ...


@_tlx
def local_scatter(
    dst: buffered_tensor, src: tensor, indices: tensor, axis: Int, token: async_token | None = None
) -> None:
    """Put a block into a buffer along `axis`: for axis 0, `dst[indices[i, j], j] = src[i, j]`."""


@_tlx
def tmem_copy(src: buffered_tensor, dst: buffered_tensor) -> None:
    """Start to copy a buffer in shared memory to one in tensor memory; `tcgen05_commit` signals its end."""


@_tlx
def tmem_shift(src: buffered_tensor) -> None:
    """Start to move the rows of a buffer in tensor memory; `tcgen05_commit` signals the end.

    Row r gets what row r + 1 holds, in each group of 32 rows, whose last one stays. The buffer has 128 rows.
    """


@_tlx
def zeros(shape: Shape, dtype: Type, layout: layout_encoding | constexpr | None = None) -> tensor:
    """A block of `shape` zeros, in `layout`."""
    ...
