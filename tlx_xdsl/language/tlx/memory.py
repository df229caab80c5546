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

    Example: `a = tlx.local_alloc((128, 64), tl.float16, 2)`
    """
    ...


@_tlx
def local_view(local_allocated_buffers: B, buffer_idx: Value) -> B:
    """Buffer or barrier `buffer_idx`: what `buf[i]` means.

    Example: `first = tlx.local_view(a, 0)`
    """
    ...


@_tlx
def subslice(local_allocated_buffer: buffered_tensor, offset: Int, size: Int) -> buffered_tensor:
    """Columns `offset` to `offset + size` of a buffer in tensor memory; no data moves.

    Example: `half = tlx.subslice(total[0], 0, 64)`
    """
    ...


@_tlx
def local_slice(buffer: buffered_tensor, offset: Values, shape: Shape) -> buffered_tensor:
    """The part of a buffer that starts at `offset` and has `shape`; no data moves.

    Each offset is a multiple of the part's size. In shared memory it may be known at run time only.

    Example: `top = tlx.local_slice(a[0], [0, 0], [64, 64])`
    """
    ...


@_tlx
def local_trans(input: buffered_tensor, dims: Shape = (1, 0)) -> buffered_tensor:
    """The same buffer with its dimensions permuted; no data moves.

    Example: `transposed = tlx.local_trans(a[0])`
    """
    ...


@_tlx
def local_reshape(src: buffered_tensor, shape: Shape) -> buffered_tensor:
    """The same elements, in row-major order, under another shape; no data moves.

    Example: `flat = tlx.local_reshape(a[0], (64, 128))`
    """
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

    Example: `bits = tlx.local_reinterpret(a[0], tl.int16)`
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

    Example: `tile = tlx.local_load(a[0])`
    """
    ...


@_tlx
def local_store(dst: buffered_tensor, src: tensor) -> None:
    """Write a block from registers to a buffer of the same shape and type.

    Between this and a TMA copy or an MMA that reads the buffer there must be a `fence_async_shared`.

    Example: `tlx.local_store(a[0], block)`
    """


@_tlx
def local_gather(src: buffered_tensor, indices: tensor, axis: Int, token: async_token | None = None) -> tensor:
    """Pick from a buffer along `axis`: for axis 0, `result[i, j] = src[indices[i, j], j]`.

    Example: `picked = tlx.local_gather(a[0], tl.zeros((128, 64), tl.int32), axis=0)`
    """
    ...


@_tlx
def local_scatter(
    dst: buffered_tensor, src: tensor, indices: tensor, axis: Int, token: async_token | None = None
) -> None:
    """Put a block into a buffer along `axis`: for axis 0, `dst[indices[i, j], j] = src[i, j]`.

    Example:
    ```python
    rows_of = tl.arange(0, 128)[:, None] + tl.zeros((128, 64), tl.int32)
    tlx.local_scatter(a[0], block, rows_of, axis=0)
    ```
    """


@_tlx
def tmem_copy(src: buffered_tensor, dst: buffered_tensor) -> None:
    """Start to copy a buffer in shared memory to one in tensor memory; `tcgen05_commit` signals its end.

    Example: `tlx.tmem_copy(words[0], columns[0])`
    """


@_tlx
def tmem_shift(src: buffered_tensor) -> None:
    """Start to move the rows of a buffer in tensor memory; `tcgen05_commit` signals the end.

    Row r gets what row r + 1 holds, in each group of 32 rows, whose last one stays. The buffer has 128 rows.

    Example: `tlx.tmem_shift(columns[0])`
    """


@_tlx
def zeros(shape: Shape, dtype: Type, layout: layout_encoding | constexpr | None = None) -> tensor:
    """A block of `shape` zeros, in `layout`.

    Example: `empty = tlx.zeros((128, 64), tl.float16)`
    """
    ...
