"""Copies between global memory and buffers: by the threads, in bulk, and by TMA with its descriptors."""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import Flag, Int, Shape, Text, Type, Value, Values
from ..core import builtin
from ..objects import tensor, tensor_descriptor, tensor_descriptor_base
from .types import async_token, buffered_tensor, mbarrier, tensor_descriptor_ptr

__all__ = [
    "allocate_tensor_descriptor",
    "async_descriptor_gather",
    "async_descriptor_load",
    "async_descriptor_prefetch_tensor",
    "async_descriptor_scatter",
    "async_descriptor_store",
    "async_descriptor_store_wait",
    "async_load",
    "async_load_commit_group",
    "async_load_wait_group",
    "async_store",
    "make_tensor_descriptor",
    "prefetch",
    "reinterpret_tensor_descriptor",
]

_tlx = builtin("tlx")


@_tlx
def async_load(
    src: tensor,
    result: buffered_tensor,
    mask: Value | None = None,
    other: Value | None = None,
    cache_modifier: Text = "",
    eviction_policy: Text = "",
    is_volatile: Flag = False,
    bulk: Flag = False,
    bulk_size: Value | None = None,
    barrier: mbarrier | None = None,
) -> async_token:
    """Start to copy what the block of pointers `src` points at to a buffer; where `mask` is false, `other` or zero.

    The result is a token for `async_load_commit_group`. With `bulk` one thread copies `bulk_size` bytes (the whole
    buffer without it) from the pointer `src`, and they complete on `barrier`; there is no token.

    Example: `token = tlx.async_load(pointers, a[0])`
    """
    ...


@_tlx
def async_load_commit_group(tokens: Sequence[async_token] = ()) -> async_token:
    """Close the group of the copies started so far; the result is a token of the group.

    Example: `group = tlx.async_load_commit_group([tlx.async_load(pointers, a[0])])`
    """
    ...


@_tlx
def async_load_wait_group(pendings: Int, tokens: Sequence[async_token] = ()) -> async_token:
    """Wait until at most `pendings` groups are in flight; the result is a token for `local_load`.

    Example: `done = tlx.async_load_wait_group(0)`
    """
    ...


@_tlx
def async_store(dst_global_ptr: tensor, src_smem: buffered_tensor, size: Value) -> None:
    """Start to copy the first `size` bytes of a buffer to global memory; `async_descriptor_store_wait` waits for it.

    Example: `tlx.async_store(h, a[0], 16384)`
    """


@_tlx
def async_descriptor_load(
    desc: tensor_descriptor_base,
    result: buffered_tensor,
    offsets: Values,
    barrier: mbarrier,
    pred: Value | None = None,
    cache_modifier: Text = "",
    eviction_policy: Text = "",
    multicast_targets: Values = (),
    two_ctas: Flag = False,
) -> None:
    """Copy the block at `offsets` (elements) to the buffer `result` by TMA; its bytes complete on `barrier`.

    A `barrier_expect_bytes` for them comes before, a `barrier_wait` before the first use. Elements outside the
    tensor arrive as zeros, and count as bytes. `multicast_targets` are the ranks of the CTAs whose buffers
    and barriers get the block; with `two_ctas` the bytes count on the barrier of the even CTA of a pair.

    Example:
    ```python
    tlx.barrier_expect_bytes(full[0], 16384)
    tlx.async_descriptor_load(a_desc, a[0], [0, 0], full[0])
    ```
    """


@_tlx
def async_descriptor_store(
    desc: tensor_descriptor_base,
    source: buffered_tensor,
    offsets: Values,
    eviction_policy: Text = "",
    store_reduce: Text = "",
) -> None:
    """Copy the buffer `source` to the block at `offsets` (elements) by TMA, clipped to the tensor.

    The buffer may be written again after `async_descriptor_store_wait`, and the kernel may not end before.
    `store_reduce` combines instead: "add", "min", "max", "and", "or" or "xor".

    Example: `tlx.async_descriptor_store(a_desc, a[0], [0, 0])`
    """


@_tlx
def async_descriptor_gather(
    desc: tensor_descriptor_base,
    result: buffered_tensor,
    x_offsets: tensor,
    y_offset: Value,
    barrier: mbarrier,
    pred: Value | None = None,
    multicast: Flag = False,
) -> None:
    """Copy rows to the buffer `result` by TMA: row `x_offsets[i]`, from column `y_offset` on, becomes its row i.

    The block of `desc` is one row, `x_offsets` a 1-D block of int32 or int16. Rows outside of the tensor arrive as
    zeros. The bytes complete on `barrier`, as of `async_descriptor_load`. `multicast` means nothing where a buffer
    belongs to one CTA, as each does here.

    Example: `tlx.async_descriptor_gather(rows, gathered[0], tl.arange(0, 32), 0, full[0])`
    """


@_tlx
def async_descriptor_scatter(
    desc: tensor_descriptor_base, source: buffered_tensor, x_offsets: tensor, y_offset: Value
) -> None:
    """Copy the rows of the buffer `source` by TMA: row i goes to row `x_offsets[i]`, from column `y_offset` on.

    Rows outside of the tensor are dropped. `async_descriptor_store_wait` waits for it, as for `async_descriptor_store`.

    Example: `tlx.async_descriptor_scatter(rows, gathered[0], tl.arange(0, 32), 0)`
    """


@builtin("tlx", spellings={"read_only": "read"})
def async_descriptor_store_wait(pendings: Int, read: Flag = True) -> None:
    """Wait until at most `pendings` TMA stores of this task are in flight.

    What is over then are their reads of the buffers, which may be written again; with `read=False` their writes to
    global memory are, too, and a release after it covers them (PTX: cp.async.bulk.wait_group, `.read`).

    Example: `tlx.async_descriptor_store_wait(0)`
    """


@_tlx
def async_descriptor_prefetch_tensor(
    desc: tensor_descriptor_base, offsets: Values, pred: Value | None = None, eviction_policy: Text = ""
) -> None:
    """Start to bring the block at `offsets` (elements) into the L2 cache.

    Example: `tlx.async_descriptor_prefetch_tensor(a_desc, [0, 0])`
    """


@_tlx
def prefetch(
    pointer: tensor | tensor_descriptor_base, level: Text = "L2", mask: Value | None = None, tensormap: Flag = False
) -> None:
    """Start to bring what `pointer` points at into a cache, "L1" or "L2"; with `tensormap` it is a TMA descriptor.

    Example: `tlx.prefetch(pointers)`
    """


@_tlx
def allocate_tensor_descriptor(num: Int) -> tensor_descriptor_ptr:
    """Room in global memory for `num` TMA descriptors of 128 bytes; `ptr[i]` is the i-th.

    Example: `room = tlx.allocate_tensor_descriptor(1)`
    """
    ...


@_tlx
def make_tensor_descriptor(
    desc_ptr: tensor_descriptor_ptr | None,
    base: tensor,
    shape: Values,
    strides: Values,
    block_shape: Shape,
    padding_option: Text = "zero",
) -> tensor_descriptor:
    """A TMA descriptor of the tensor at `base`, written to `desc_ptr` (to memory of the compiler's, without it).

    Shape and strides are in elements, the last stride is 1. Loads yield `padding_option`, "zero" or "nan", outside.

    Example: `desc = tlx.make_tensor_descriptor(room[0], h, [n, 64], [64, 1], [128, 64])`
    """
    ...


@_tlx
def reinterpret_tensor_descriptor(
    desc_ptr: tensor_descriptor_ptr, block_shape: Shape, dtype: Type
) -> tensor_descriptor_base:
    """The TMA descriptor that lies at `desc_ptr`, which has blocks of `block_shape` elements.

    Example: `desc = tlx.reinterpret_tensor_descriptor(room[0], [128, 64], tl.float16)`
    """
    ...
