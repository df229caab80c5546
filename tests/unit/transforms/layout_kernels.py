"""Kernels whose buffers and blocks have layouts that the user asks for, or that an operation after them needs.

Each takes arrays and writes `out`; `CASES` has what they are run with and what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def places(M: tl.constexpr, N: tl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


# --- Hopper ---------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def swizzled_copy(x, out, M: tl.constexpr, N: tl.constexpr):
    """Copy through a buffer with a swizzle in CuTe's terms."""
    buffer = tlx.local_alloc((M, N), tl.float32, 1, layout=tlx.swizzled_layout(3, 2, 4))
    tlx.local_store(buffer[0], tl.load(x + places(M, N)))
    turned = tlx.local_load(tlx.local_trans(buffer[0]))
    tl.store(out + places(N, M), turned)


@tlx_xdsl.jit
def required_swizzle(x, out, M: tl.constexpr, N: tl.constexpr):
    """A buffer of no layout in particular, of which a transposed view is asked for in another."""
    buffer = tlx.local_alloc((M, N), tl.float32, 2)
    tlx.local_store(buffer[1], tl.load(x + places(M, N)))
    turned = tlx.require_layout(tlx.local_trans(buffer[1]), tlx.swizzled_shared_layout_encoding(4, 1, 8, (0, 1)))
    tl.store(out + places(N, M), tlx.local_load(turned))


@tlx_xdsl.jit
def transposed_operand(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """B is N x K in memory; the dot reads a transposed view of it."""
    a_tile = tlx.local_alloc(
        (M, K), tl.float16, 1, layout=tlx.nv_mma_shared_layout_encoding.make_default((M, K), tl.float16)
    )
    b_tile = tlx.local_alloc((N, K), tl.float16, 1)
    tlx.local_store(a_tile[0], tl.load(a + places(M, K)))
    tlx.local_store(b_tile[0], tl.load(b + places(N, K)))
    tlx.fence_async_shared()
    acc = tlx.async_dot(a_tile[0], tlx.local_trans(b_tile[0]))
    acc = tlx.async_dot_wait(0, acc)
    tl.store(out + places(M, N), acc)


@tlx_xdsl.jit
def columns_first(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """wgmma of 8-bit floats reads B along K only: the tile of K x N, of which no layout is asked for, is turned."""
    a_tile = tlx.local_alloc((M, K), tl.float8e4nv, 1)
    b_tile = tlx.local_alloc((K, N), tl.float8e4nv, 1)
    tlx.local_store(a_tile[0], tl.load(a + places(M, K)))
    tlx.local_store(b_tile[0], tl.load(b + places(K, N)))
    tlx.fence_async_shared()
    acc = tlx.async_dot_wait(0, tlx.async_dot(a_tile[0], b_tile[0]))
    tl.store(out + places(M, N), acc)


@tlx_xdsl.jit
def either_buffer(a, b, out, which, M: tl.constexpr, N: tl.constexpr):
    """Two arrays, of which a branch picks one; the layout that is asked for after it is that of both."""
    first = tlx.local_alloc((M, N), tl.float16, 1)
    second = tlx.local_alloc((M, N), tl.float16, 2)
    tlx.local_store(first[0], tl.load(a + places(M, N)))
    tlx.local_store(second[1], tl.load(b + places(M, N)))
    chosen = first[0]
    if which > 0:
        chosen = second[1]
    asked = tlx.require_layout(chosen, tlx.swizzled_layout(2, 3, 4))
    tl.store(out + places(M, N), tlx.local_load(asked))


@tlx_xdsl.jit
def turning(x, out, steps, M: tl.constexpr, N: tl.constexpr):
    """Two buffers that change places in a loop."""
    buffers = tlx.local_alloc((M, N), tl.float32, 2)
    current, other = buffers[0], buffers[1]
    tlx.local_store(current, tl.load(x + places(M, N)))
    for _ in range(steps):
        asked = tlx.require_layout(current, tlx.swizzled_layout(3, 2, 5))
        tlx.local_store(other, tlx.local_load(asked) * 2)
        current, other = other, current
    tl.store(out + places(M, N), tlx.local_load(current))


@tlx_xdsl.jit
def captured(x, out, M: tl.constexpr, N: tl.constexpr):
    """A partition asks for a layout of the buffer that it captures."""
    buffer = tlx.local_alloc((M, N), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(buffer[0], tl.load(x + places(M, N)))
            tlx.barrier_arrive(full[0])
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(full[0], 0)
            asked = tlx.require_layout(buffer[0], tlx.swizzled_layout(3, 2, 4))
            tl.store(out + places(M, N), tlx.local_load(asked) + 1)


@tlx_xdsl.jit
def row_threads(x, out, M: tl.constexpr, N: tl.constexpr):
    """A load in which a thread has a row, what is computed of it, and a sum along the row, all pinned."""
    buffer = tlx.local_alloc((M, N), tl.float32, 1)
    tlx.local_store(buffer[0], tl.load(x + places(M, N)))
    rows = tlx.local_load(buffer[0], layout=tlx.layout(shape=((32, 4), 16), stride=((16, 512), 1)))
    total = rows
    for _ in range(3):
        total = total + rows * 2
    mean = tl.sum(total, 1) / N
    centred = total - mean[:, None]
    free = tlx.release_layout(centred)
    tl.store(out + places(M, N), free)


@tlx_xdsl.jit
def row_halves(x, out, TMEM: tl.constexpr, ROWS: tl.constexpr):
    """The halves of rows that a thread has in all, in place of a load of each, joined again as pairs."""
    buffer = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem if TMEM else tlx.storage_kind.smem)
    tlx.local_store(buffer[0], tl.load(x + places(128, 64)))
    rows = tlx.local_load(buffer[0], layout=ROWS)
    low, high = rows.reshape(128, 2, 32).permute(0, 2, 1).split()
    most = tl.max(tl.maximum(low, high), 1)
    pairs = tl.join(low - most[:, None], high * 2)
    tl.store(out + places(128, 64), pairs.permute(0, 2, 1).reshape(128, 64))


@tlx_xdsl.jit
def joined_with_another(x, out, ROWS: tl.constexpr):
    """Pairs of which one element is pinned and the other one is not, either way, and of both transposed."""
    buffer = tlx.local_alloc((128, 64), tl.float32, 1)
    tlx.local_store(buffer[0], tl.load(x + places(128, 64)))
    rows = tlx.local_load(buffer[0], layout=ROWS)
    free = tl.load(x + places(128, 64))
    first, second = tl.join(rows, free + 1).split()
    third, fourth = tl.join(free * 2, rows).split()
    turned = tl.trans(first + second) + tl.trans(third - fourth)
    tl.store(out + places(64, 128), turned)


@tlx_xdsl.jit
def pinned_branch(x, out, which, M: tl.constexpr, N: tl.constexpr):
    """One branch gives a pinned block, the other one that is not; a transposition follows."""
    block = tl.load(x + places(M, N))
    pinned = tlx.require_layout(block, tlx.layout(shape=((32, 4), 16), stride=((16, 512), 1)))
    if which > 0:  # noqa: SIM108
        result = tl.exp2(pinned)
    else:
        result = block - 1
    tl.store(out + places(N, M), tl.trans(result))


@tlx_xdsl.jit
def sliced(x, out, M: tl.constexpr, N: tl.constexpr):
    """A part of a tile, and the tile in another shape, with a layout that is asked for."""
    buffer = tlx.local_alloc((M, N), tl.float16, 1)
    tlx.local_store(buffer[0], tl.load(x + places(M, N)))
    flat = tlx.local_reshape(buffer[0], (M * 2, N // 2))
    wanted = tlx.require_layout(flat, tlx.swizzled_shared_layout_encoding(1, 1, 1, (1, 0)))
    tl.store(out + places(M * 2, N // 2), tlx.local_load(wanted))
    half = tlx.local_slice(buffer[0], (0, N // 2), (M, N // 2))
    tl.store(out + M * N + places(M, N // 2), tlx.local_load(half))


@tlx_xdsl.jit
def shared_storage(x, out, M: tl.constexpr, N: tl.constexpr):
    """Buffers that share memory, one with a layout of the user's, one with one that is asked for."""
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    words = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.smem, spec, layout=tlx.swizzled_layout(3, 2, 4))
    halves = tlx.local_alloc((M, N), tl.float16, 1, tlx.storage_kind.smem, spec)
    spec.set_buffer_overlap(tlx.reuse_group(words, halves))
    tlx.local_store(words[0], tl.load(x + places(M, N)))
    values = tlx.local_load(words[0])
    tlx.local_store(halves[0], values.to(tl.float16))
    asked = tlx.require_layout(halves[0], tlx.swizzled_layout(3, 3, 3))
    tl.store(out + places(M, N), tlx.local_load(asked).to(tl.float32))


# --- Blackwell ------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def half_accumulator(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """An accumulator of 16 bits is not packed, which its allocation can't know."""
    a_tile = tlx.local_alloc((M, K), tl.float16, 1)
    b_tile = tlx.local_alloc((K, N), tl.float16, 1)
    acc = tlx.local_alloc((M, N), tl.float16, 2, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    tlx.local_store(a_tile[0], tl.load(a + places(M, K)))
    tlx.local_store(b_tile[0], tl.load(b + places(K, N)))
    tlx.fence_async_shared()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(done[0], 0)
            tl.store(out + places(M, N), tlx.local_load(acc[1]).to(tl.float32))
        with tlx.async_task(num_warps=1):
            tlx.async_dot(a_tile[0], b_tile[0], acc[1], use_acc=False, mBarriers=[done[0]], out_dtype=tl.float16)


@tlx_xdsl.jit
def tmem_in_tasks(x, out, M: tl.constexpr, N: tl.constexpr):
    """Tensor memory is stored by 4 warps and loaded by 8, each with the layout of its warps."""
    buffer = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(buffer[0], tl.load(x + places(M, N)))
            tlx.barrier_arrive(full[0])
        with tlx.async_task(num_warps=8):
            tlx.barrier_wait(full[0], 0)
            tl.store(out + places(M, N), tlx.local_load(buffer[0]) * 2)


@tlx_xdsl.jit
def like_tensor_memory(x, out, M: tl.constexpr, N: tl.constexpr):
    """A block in a layout that tensor memory takes, pinned, and what is computed of it."""
    buffer = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.tmem)
    block = tlx.require_layout(
        tl.load(x + places(M, N)), tlx.DummyRegisterLayoutEncoding((M, N), tl.float32, tmem_compatible=True)
    )
    tlx.local_store(buffer[0], block + 1)
    tl.store(out + places(M, N), tlx.local_load(tlx.subslice(buffer[0], 0, N)))


@tlx_xdsl.jit
def bytes_in_tensor_memory(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Bytes in tensor memory that are an operand, and no scales."""
    packed = tlx.local_alloc((M, K), tl.float8e4nv, 1, tlx.storage_kind.tmem)
    b_tile = tlx.local_alloc((K, N), tl.float8e4nv, 1)
    acc = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.tmem)
    tlx.local_store(packed[0], tl.load(a + places(M, K)))
    tlx.local_store(b_tile[0], tl.load(b + places(K, N)))
    tlx.fence_async_shared()
    tlx.async_dot(packed[0], b_tile[0], acc[0], use_acc=False)
    tl.store(out + places(M, N), tlx.local_load(acc[0]))


@tlx_xdsl.jit
def mixed_formats(a, b, a_scales, b_scales, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """fp4 beside 8-bit floats takes two bytes for each pair; scales come through registers."""
    a_tile = tlx.local_alloc((M, K // 2), tl.uint8, 1)
    b_tile = tlx.local_alloc((N, K), tl.float8e4nv, 1)
    acc = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.tmem)
    a_scale = tlx.local_alloc((M, K // 32), tl.uint8, 1, tlx.storage_kind.tmem)
    b_scale = tlx.local_alloc((N, K // 32), tl.uint8, 1, tlx.storage_kind.tmem)
    tlx.local_store(a_tile[0], tl.load(a + places(M, K // 2)))
    tlx.local_store(b_tile[0], tl.load(b + places(N, K)))
    tlx.local_store(a_scale[0], tl.load(a_scales + places(M, K // 32)))
    tlx.local_store(b_scale[0], tl.load(b_scales + places(N, K // 32)))
    tlx.fence_async_shared()
    tlx.async_dot_scaled(
        a_tile[0], tlx.local_trans(b_tile[0]), acc[0], a_scale[0], "e2m1", b_scale[0], "e4m3", use_acc=False
    )
    tl.store(out + places(M, N), tlx.local_load(acc[0]))


@tlx_xdsl.jit
def scale_matrix(a, b, a_scales, b_scales, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Scales that are stored as a matrix and copied: the buffer gets the blocks of the hardware."""
    a_tile = tlx.local_alloc((M, K), tl.float8e4nv, 1)
    b_tile = tlx.local_alloc((N, K), tl.float8e4nv, 1)
    acc = tlx.local_alloc((M, N), tl.float32, 1, tlx.storage_kind.tmem)
    a_rows = tlx.local_alloc((M, K // 32), tl.uint8, 1)
    b_rows = tlx.local_alloc((N, K // 32), tl.uint8, 1)
    a_scale = tlx.local_alloc((M, K // 32), tl.uint8, 2, tlx.storage_kind.tmem)
    b_scale = tlx.local_alloc((N, K // 32), tl.uint8, 1, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    tlx.local_store(a_tile[0], tl.load(a + places(M, K)))
    tlx.local_store(b_tile[0], tl.load(b + places(N, K)))
    tlx.local_store(a_rows[0], tl.load(a_scales + places(M, K // 32)))
    tlx.local_store(b_rows[0], tl.load(b_scales + places(N, K // 32)))
    tlx.fence_async_shared()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(done[0], 0)
            tl.store(out + places(M, N), tlx.local_load(acc[0]))
        with tlx.async_task(num_warps=1):
            tlx.tmem_copy(a_rows[0], a_scale[1])
            tlx.tmem_copy(b_rows[0], b_scale[0])
            tlx.async_dot_scaled(
                a_tile[0], tlx.local_trans(b_tile[0]), acc[0], a_scale[1], "e4m3", b_scale[0], "e4m3",
                use_acc=False, mBarriers=[done[0]],
            )  # fmt: skip


# --- what they are run with -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A kernel with arguments; `expected` computes what `out` must hold."""

    kernel: Any
    arguments: dict[str, Any]
    expected: Callable[..., Any]
    target: str = "sm_90a"
    tolerance: float = 0.0
    since: tuple[int, int] = (3, 6)
    """The first version of Triton that compiles it."""
    constexprs: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kernel.source.name


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def wide(x: Any) -> Any:
    return x.astype(np.float64)


def fp4(pairs: Any) -> Any:
    """The values of pairs of fp4, the lower half of each byte first."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    nibbles = np.stack([pairs & 15, pairs >> 4], -1).reshape(pairs.shape[0], -1)
    return values[nibbles & 7] * np.where(nibbles & 8, -1, 1)


def scaled(values: Any, scales: Any) -> Any:
    return values * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=1)


def centred(x: Any) -> Any:
    total = 7 * wide(x)
    return total - total.mean(1, keepdims=True)


def halves(x: Any) -> Any:
    low, high = wide(x)[:, :32], wide(x)[:, 32:]
    return np.concatenate([low - x.max(1, keepdims=True), high * 2], 1)


def both_parts(x: Any) -> Any:
    return np.concatenate([x.ravel(), x[:, x.shape[1] // 2 :].ravel()])


BYTES = ml_dtypes.float8_e4m3fn
TILE = {"M": 128, "N": 16}
ROW_EACH = tlx.layout(shape=((32, 4), 64), stride=((64, 2048), 1))
"""128 x 64 elements over 4 warps: a thread has a row."""
ROW_OF_FOUR = tlx.layout(shape=((4, 8, 4), (4, 4, 4)), stride=((4, 64, 512), (1, 16, 2048)))
"""Four threads share a row, by 4 elements in turn, so that each has the pairs that are half a row apart."""
QUARTERS = tlx.layout(shape=((4, 8, 4), (16, 4)), stride=((16, 64, 512), (1, 2048)))
"""Four threads have a quarter of a row each: the elements of such pairs must move."""
PRODUCT = {"M": 128, "N": 64, "K": 64}

CASES = [
    Case(swizzled_copy, {"x": normal(64, 64), "out": zeros(64, 64)}, lambda x: x.T, constexprs={"M": 64, "N": 64}),
    Case(required_swizzle, {"x": normal(64, 32), "out": zeros(32, 64)}, lambda x: x.T, constexprs={"M": 64, "N": 32}),
    Case(
        transposed_operand,
        {"a": normal(128, 64, dtype=np.float16), "b": normal(64, 64, dtype=np.float16), "out": zeros(128, 64)},
        lambda a, b: wide(a) @ wide(b).T,
        tolerance=1e-5,
        constexprs=PRODUCT,
    ),
    Case(
        columns_first,
        {"a": normal(128, 64, dtype=BYTES), "b": normal(64, 64, dtype=BYTES), "out": zeros(128, 64)},
        lambda a, b: wide(a) @ wide(b),
        tolerance=1e-5,
        constexprs=PRODUCT,
    ),
    Case(
        either_buffer,
        {
            "a": normal(64, 128, dtype=np.float16),
            "b": normal(128, 64, dtype=np.float16).reshape(64, 128),
            "out": np.zeros((64, 128), np.float16),
            "which": 1,
        },
        lambda a, b, which: b if which > 0 else a,
        # Older ones make a select of buffers of the branch, and die of it.
        since=(3, 8),
        constexprs={"M": 64, "N": 128},
    ),
    Case(
        turning,
        {"x": normal(64, 128), "out": zeros(64, 128), "steps": 3},
        lambda x, steps: x * 2**steps,
        constexprs={"M": 64, "N": 128},
    ),
    Case(captured, {"x": normal(64, 64), "out": zeros(64, 64)}, lambda x: x + 1, constexprs={"M": 64, "N": 64}),
    *(
        Case(
            row_halves,
            {"x": normal(128, 64), "out": zeros(128, 64)},
            halves,
            target=target,
            tolerance=1e-6,
            constexprs={"TMEM": target != "sm_90a", "ROWS": rows},
        )
        for target, rows in (("sm_90a", ROW_EACH), ("sm_90a", ROW_OF_FOUR), ("sm_90a", QUARTERS), ("sm_100a", ROW_EACH))
    ),
    *(
        Case(
            joined_with_another,
            {"x": normal(128, 64), "out": zeros(64, 128)},
            lambda x: (3 * wide(x) + 1).T,
            tolerance=1e-6,
            constexprs={"ROWS": rows},
        )
        for rows in (ROW_EACH, QUARTERS)
    ),
    Case(row_threads, {"x": normal(128, 16), "out": zeros(128, 16)}, centred, tolerance=1e-5, constexprs=TILE),
    Case(
        pinned_branch,
        {"x": normal(128, 16), "out": zeros(16, 128), "which": 1},
        lambda x, which: np.exp2(wide(x)).T if which > 0 else (x - 1).T,
        tolerance=1e-5,
        constexprs=TILE,
    ),
    Case(
        sliced,
        {"x": normal(64, 64, dtype=np.float16), "out": np.zeros(64 * 96, np.float16)},
        both_parts,
        constexprs={"M": 64, "N": 64},
    ),
    Case(
        shared_storage,
        {"x": normal(64, 64, dtype=np.float16).astype(np.float32), "out": zeros(64, 64)},
        lambda x: x,
        constexprs={"M": 64, "N": 64},
    ),
    Case(
        half_accumulator,
        {"a": normal(128, 64, dtype=np.float16), "b": normal(64, 64, dtype=np.float16), "out": zeros(128, 64)},
        lambda a, b: wide(a) @ wide(b),
        target="sm_100a",
        tolerance=1e-2,
        constexprs=PRODUCT,
    ),
    Case(
        tmem_in_tasks,
        {"x": normal(128, 64), "out": zeros(128, 64)},
        lambda x: 2 * x,
        target="sm_100a",
        constexprs={"M": 128, "N": 64},
    ),
    Case(
        like_tensor_memory,
        {"x": normal(128, 64), "out": zeros(128, 64)},
        lambda x: x + 1,
        target="sm_100a",
        constexprs={"M": 128, "N": 64},
    ),
    Case(
        bytes_in_tensor_memory,
        {"a": normal(128, 64, dtype=BYTES), "b": normal(64, 64, dtype=BYTES), "out": zeros(128, 64)},
        lambda a, b: wide(a) @ wide(b),
        target="sm_100a",
        tolerance=1e-5,
        constexprs=PRODUCT,
    ),
    Case(
        mixed_formats,
        {
            "a": np.random.default_rng(0).integers(0, 256, (128, 64), np.uint8),
            "b": normal(128, 128, dtype=BYTES),
            "a_scales": np.random.default_rng(1).integers(125, 130, (128, 4), np.uint8),
            "b_scales": np.random.default_rng(2).integers(125, 130, (128, 4), np.uint8),
            "out": zeros(128, 128),
        },
        lambda a, b, a_scales, b_scales: scaled(fp4(a), a_scales) @ scaled(wide(b), b_scales).T,
        target="sm_100a",
        tolerance=1e-5,
        constexprs={"M": 128, "N": 128, "K": 128},
    ),
    Case(
        scale_matrix,
        {
            "a": normal(128, 256, dtype=BYTES),
            "b": normal(256, 128, dtype=BYTES).reshape(128, 256),
            "a_scales": np.random.default_rng(1).integers(125, 130, (128, 8), np.uint8),
            "b_scales": np.random.default_rng(2).integers(125, 130, (128, 8), np.uint8),
            "out": zeros(128, 128),
        },
        lambda a, b, a_scales, b_scales: scaled(wide(a), a_scales) @ scaled(wide(b), b_scales).T,
        target="sm_100a",
        tolerance=1e-5,
        constexprs={"M": 128, "N": 128, "K": 256},
    ),
]
