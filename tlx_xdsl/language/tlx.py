"""The `tlx` language of kernels: `import tlx_xdsl.language.tlx as tlx`.

Names and meaning are those of Meta's TLX. A *buffered tensor* is an array of buffers in shared memory; `buf[i]` is
buffer `i` of it. An *mbarrier array* holds barriers; `bars[i]` is barrier `i`. Sizes are in elements unless a name
or a sentence says bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tlx_xdsl.language.core import builtin, dtype

_tlx = builtin("tlx")


class storage_kind(Enum):
    """Where a buffer lives."""

    smem = "smem"
    """Shared memory of the thread block."""
    tmem = "tmem"
    """Tensor memory (Blackwell)."""
    smemCluster = "smemCluster"
    """Shared memory of the thread-block cluster."""


class reuse_group_type(Enum):
    """How the members of a `reuse_group` lie in memory."""

    shared = "shared"
    """Members occupy the same region at each buffer index."""
    distinct = "distinct"
    """Members never overlap."""


# --- buffers --------------------------------------------------------------------------------------------------------


@_tlx
def local_alloc(
    shape: Sequence[int],
    dtype: dtype,
    num: int,
    storage: storage_kind = storage_kind.smem,
    reuse: Any = None,
    layout: Any = None,
) -> Any:
    """Allocate `num` buffers of `shape` elements; with `reuse` a spec, inside the region that it names."""


@_tlx
def storage_alias_spec(storage: storage_kind = storage_kind.smem, buffer_size_bytes: int | None = None) -> Any:
    """Name a region that several allocations share; its `set_buffer_overlap(group)` says how they overlap.

    `buffer_size_bytes` is the size of the whole region; without it the compiler computes the smallest one.
    """


@_tlx
def reuse_group(*args: Any, group_type: reuse_group_type = reuse_group_type.shared, group_size: int = 1) -> Any:
    """A node of an overlap tree over allocations and other groups.

    With `group_size` K, K consecutive buffers of a member count as one.
    """


@_tlx
def local_view(local_allocated_buffers: Any, buffer_idx: Any) -> Any:
    """Buffer or barrier `buffer_idx`: what `buf[i]` means."""


@_tlx
def local_load(src: Any) -> Any:
    """Read a buffer from shared memory into registers."""


@_tlx
def local_store(dst: Any, src: Any) -> Any:
    """Write a block from registers to a buffer in shared memory."""


@_tlx
def local_trans(input: Any, dims: Sequence[int] = (1, 0)) -> Any:
    """The same buffer with its dimensions permuted; no data moves."""


# --- barriers and fences --------------------------------------------------------------------------------------------


@_tlx
def alloc_barriers(num_barriers: int, arrive_count: int = 1) -> Any:
    """Allocate and initialise mbarriers whose phases complete after `arrive_count` arrivals."""


@_tlx
def barrier_expect_bytes(bar: Any, size: int, pred: Any = None) -> Any:
    """Arrive once, and make the current phase also wait for `size` bytes of asynchronous copies."""


@_tlx
def barrier_wait(bar: Any, phase: Any, pred: Any = None) -> Any:
    """Block until the barrier's phase of parity `phase` (0 or 1) has completed."""


@_tlx
def barrier_arrive(bar: Any, arrive_count: int = 1, pred: Any = None) -> Any:
    """Arrive `arrive_count` times; once per call, not per thread."""


@_tlx
def fence_async_shared() -> Any:
    """Make this thread's shared-memory accesses visible to TMA and wgmma (PTX: fence.proxy.async)."""


# --- TMA ------------------------------------------------------------------------------------------------------------


@_tlx
def async_descriptor_load(desc: Any, result: Any, offsets: Sequence[Any], barrier: Any, pred: Any = None) -> Any:
    """Copy the block at `offsets` (elements) to the buffer `result` by TMA; its bytes complete on `barrier`.

    Elements outside the tensor arrive as zeros, and count as bytes.
    """


@_tlx
def async_descriptor_store(desc: Any, source: Any, offsets: Sequence[Any]) -> Any:
    """Copy the buffer `source` to the block at `offsets` (elements) by TMA, clipped to the tensor."""


@_tlx
def async_descriptor_store_wait(pendings: int) -> Any:
    """Wait until at most `pendings` TMA stores of this task are in flight."""


# --- wgmma ----------------------------------------------------------------------------------------------------------


@_tlx
def async_dot(A: Any, B: Any, acc: Any = None, use_acc: Any = None) -> Any:
    """Issue acc + A @ B as wgmma: A of M x K in shared memory or registers, B of K x N in shared memory.

    With `use_acc` false, or without `acc`, the accumulator counts as zero. The result is in flight until
    `async_dot_wait`.
    """


@_tlx
def async_dot_wait(pendings: int, inp: Any) -> Any:
    """Wait until at most `pendings` wgmma groups are in flight; the result is `inp`, now safe to read."""


# --- tasks ----------------------------------------------------------------------------------------------------------


@_tlx
def async_tasks() -> Any:
    """`with tlx.async_tasks():` holds the tasks of a warp-specialised kernel, which run at the same time."""


@_tlx
def async_task(
    task: str | None = None,
    num_warps: int | None = None,
    num_regs: int | None = None,
    registers: int | None = None,
    replicate: int = 1,
) -> Any:
    """`with tlx.async_task("default"):` runs on the kernel's own warps, any other task on `num_warps` of its own.

    `replicate` makes that many copies of the task; `num_regs` (or `registers`) is the number of registers per
    thread, a multiple of 8.
    """


@_tlx
def async_task_replica_id() -> Any:
    """Which copy of a replicated task this is, a compile-time integer."""


# --- types ----------------------------------------------------------------------------------------------------------


@_tlx
def dtype_of(v: Any) -> Any:
    """The element type of a tensor, buffer or descriptor."""


@_tlx
def size_of(dtype: dtype) -> Any:
    """Bytes of one element of `dtype`."""
