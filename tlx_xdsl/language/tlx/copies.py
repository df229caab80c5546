"""Copies between global memory and buffers: by the threads, in bulk, and by TMA with its descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlx_xdsl.language.core import builtin, dtype

__all__ = [
    "allocate_tensor_descriptor",
    "async_descriptor_load",
    "async_descriptor_prefetch_tensor",
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
    src: Any,
    result: Any,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str = "",
    eviction_policy: str = "",
    is_volatile: bool = False,
    bulk: bool = False,
    bulk_size: Any = None,
    barrier: Any = None,
) -> Any:
    """Start to copy what the block of pointers `src` points at to a buffer; where `mask` is false, `other` or zero.

    The result is a token for `async_load_commit_group`. With `bulk` one thread copies `bulk_size` bytes (the whole
    buffer without it) from the pointer `src`, and they complete on `barrier`; there is no token.
    """


@_tlx
def async_load_commit_group(tokens: Sequence[Any] = ()) -> Any:
    """Close the group of the copies started so far; the result is a token of the group."""


@_tlx
def async_load_wait_group(pendings: int, tokens: Sequence[Any] = ()) -> Any:
    """Wait until at most `pendings` groups are in flight; the result is a token for `local_load`."""


@_tlx
def async_store(dst_global_ptr: Any, src_smem: Any, size: Any) -> Any:
    """Start to copy the first `size` bytes of a buffer to global memory; `async_descriptor_store_wait` waits for it."""


@_tlx
def async_descriptor_load(
    desc: Any,
    result: Any,
    offsets: Sequence[Any],
    barrier: Any,
    pred: Any = None,
    cache_modifier: str = "",
    eviction_policy: str = "",
    multicast_targets: Sequence[Any] = (),
    two_ctas: bool = False,
) -> Any:
    """Copy the block at `offsets` (elements) to the buffer `result` by TMA; its bytes complete on `barrier`.

    A `barrier_expect_bytes` for them comes before, a `barrier_wait` before the first use. Elements outside the
    tensor arrive as zeros, and count as bytes. `multicast_targets` are the ranks of the CTAs whose buffers
    and barriers get the block; with `two_ctas` the bytes count on the barrier of the even CTA of a pair.
    """


@_tlx
def async_descriptor_store(
    desc: Any, source: Any, offsets: Sequence[Any], eviction_policy: str = "", store_reduce: str = ""
) -> Any:
    """Copy the buffer `source` to the block at `offsets` (elements) by TMA, clipped to the tensor.

    The buffer may be written again after `async_descriptor_store_wait`, and the kernel may not end before.
    `store_reduce` combines instead: "add", "min", "max", "and", "or" or "xor".
    """


@_tlx
def async_descriptor_store_wait(pendings: int, read: bool = True) -> Any:
    """Wait until at most `pendings` TMA stores of this task are in flight.

    What is over then are their reads of the buffers, which may be written again; with `read=False` their writes to
    global memory are, too, and a release after it covers them (PTX: cp.async.bulk.wait_group, `.read`).
    """


@_tlx
def async_descriptor_prefetch_tensor(
    desc: Any, offsets: Sequence[Any], pred: Any = None, eviction_policy: str = ""
) -> Any:
    """Start to bring the block at `offsets` (elements) into the L2 cache."""


@_tlx
def prefetch(pointer: Any, level: str = "L2", mask: Any = None, tensormap: bool = False) -> Any:
    """Start to bring what `pointer` points at into a cache, "L1" or "L2"; with `tensormap` it is a TMA descriptor."""


@_tlx
def allocate_tensor_descriptor(num: int) -> Any:
    """Room in global memory for `num` TMA descriptors of 128 bytes; `ptr[i]` is the i-th."""


@_tlx
def make_tensor_descriptor(
    desc_ptr: Any,
    base: Any,
    shape: Sequence[Any],
    strides: Sequence[Any],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> Any:
    """A TMA descriptor of the tensor at `base`, written to `desc_ptr` (to memory of the compiler's, without it).

    Shape and strides are in elements, the last stride is 1. Loads yield `padding_option`, "zero" or "nan", outside.
    """


@_tlx
def reinterpret_tensor_descriptor(desc_ptr: Any, block_shape: Sequence[int], dtype: dtype) -> Any:
    """The TMA descriptor that lies at `desc_ptr`, which has blocks of `block_shape` elements."""
