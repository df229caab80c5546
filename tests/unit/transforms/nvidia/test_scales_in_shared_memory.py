"""Block-scaled products whose scales the kernel leaves in shared memory: the compiler copies them to tensor memory."""

# covers: tlx-lower-scale-copies, tlx-lower-scale-arrays

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

M, N = 128, 128


@tlx_xdsl.jit
def scaled(
    a_desc, b_desc, a_scale_desc, b_scale_desc, c_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr,
    IN_TASK: tl.constexpr,
):  # fmt: skip
    BLOCKS: tl.constexpr = K // 128
    a = tlx.local_alloc((ROWS, K), tlx.dtype_of(a_desc), 1)
    b = tlx.local_alloc((K, COLUMNS), tlx.dtype_of(b_desc), 1)
    a_scale = tlx.local_alloc((1, ROWS // 128, BLOCKS, 2, 256), tl.uint8, 1)
    b_scale = tlx.local_alloc((1, COLUMNS // 128, BLOCKS, 2, 256), tl.uint8, 1)
    acc = tlx.local_alloc((ROWS, COLUMNS), tl.float32, 1, tlx.storage_kind.tmem)
    c = tlx.local_alloc((ROWS, COLUMNS), tl.float32, 1)
    # An array of one barrier or buffer stands for that one.
    loaded = tlx.alloc_barriers(1)
    done = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(loaded, ROWS * K + K * COLUMNS + (ROWS + COLUMNS) * K // 32)
    tlx.async_descriptor_load(a_desc, a, [0, 0], loaded)
    tlx.async_descriptor_load(b_desc, b, [0, 0], loaded)
    tlx.async_descriptor_load(a_scale_desc, a_scale, [0, 0, 0, 0, 0], loaded)
    tlx.async_descriptor_load(b_scale_desc, b_scale[0], [0, 0, 0, 0, 0], loaded[0])
    if IN_TASK:
        with tlx.async_tasks():
            with tlx.async_task("default"):
                tlx.barrier_wait(done, 0)
                tlx.local_store(c[0], tlx.local_load(acc))
            with tlx.async_task(num_warps=1):
                tlx.barrier_wait(loaded, 0)
                tlx.async_dot_scaled(
                    a, b, acc, a_scale, "e4m3", b_scale[0], "e5m2", use_acc=False, mBarriers=[done]
                )  # fmt: skip
    else:
        tlx.barrier_wait(loaded, 0)
        tlx.async_dot_scaled(a, b, acc, a_scale, "e4m3", b_scale[0], "e5m2", use_acc=False)
        tlx.local_store(c[0], tlx.local_load(acc))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(c_desc, c, [0, 0])
    tlx.async_descriptor_store_wait(0)


def lines(scales: np.ndarray) -> np.ndarray:
    """A matrix of scales in the order of the hardware: blocks of 128 x 4, a line of 16 bytes for rows 32 apart."""
    rows, columns = scales.shape
    blocks = scales.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(blocks).reshape(1, rows // 128, columns // 4, 2, 256)


@pytest.mark.parametrize("in_task", [False, True])
@pytest.mark.parametrize(("k", "stage"), [(128, "frontend"), (256, "ttgir")])
def test_scales_in_shared_memory_scale_the_product(k, stage, in_task):
    rng = np.random.default_rng(k)
    a = rng.standard_normal((M, k)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((k, N)).astype(ml_dtypes.float8_e5m2)
    a_scale = rng.integers(120, 134, (M, k // 32), dtype=np.uint8)
    b_scale = rng.integers(120, 134, (N, k // 32), dtype=np.uint8)
    c = np.full((M, N), np.nan, np.float32)
    blocks = [1, 1, k // 128, 2, 256]
    tlx_xdsl.interpret(
        scaled, 1, TensorDescriptor.from_tensor(a, [M, k]), TensorDescriptor.from_tensor(b, [k, N]),
        TensorDescriptor.from_tensor(lines(a_scale), blocks), TensorDescriptor.from_tensor(lines(b_scale), blocks),
        TensorDescriptor.from_tensor(c, [M, N]), M, N, k, in_task, target="sm_100a", jobs=1, stage=stage,
    )  # fmt: skip
    left = a.astype(np.float64) * np.exp2(a_scale.astype(np.float64) - 127).repeat(32, 1)
    right = b.astype(np.float64) * np.exp2(b_scale.astype(np.float64) - 127).repeat(32, 1).T
    expected = left @ right
    assert np.abs(c - expected).max() < 1e-5 * np.abs(expected).max()


@tlx_xdsl.jit
def scales_of_another_shape():
    a = tlx.local_alloc((128, 128), tl.float8e4nv, 1)
    b = tlx.local_alloc((128, 128), tl.float8e4nv, 1)
    scales = tlx.local_alloc((32, 16), tl.int16, 1)
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    tlx.async_dot_scaled(a, b, acc, scales, "e4m3", scales, "e4m3")


def test_scales_that_are_no_bytes_are_refused():
    with pytest.raises(tlx_xdsl.CompilationError, match="'A_scale' must hold a byte for every 32 elements of 128 rows"):
        tlx_xdsl.interpret(scales_of_another_shape, 1, target="sm_100a", jobs=1)


@tlx_xdsl.jit
def first_quarter(a_desc, b_desc, lines_ptr, ones_ptr, c_ptr, K: tl.constexpr):
    """The lines of two blocks fill the first 8 of the 32 scales of each row; the product takes these."""
    a = tlx.local_alloc((128, K), tlx.dtype_of(a_desc), 1)
    b = tlx.local_alloc((K, 128), tlx.dtype_of(b_desc), 1)
    stored = tlx.local_alloc((64, 16), tl.uint8, 1)
    a_scale = tlx.local_alloc((128, 32), tl.uint8, 1, tlx.storage_kind.tmem)
    b_scale = tlx.local_alloc((128, 8), tl.uint8, 1, tlx.storage_kind.tmem)
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    loaded = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(loaded, 256 * K)
    tlx.async_descriptor_load(a_desc, a, [0, 0], loaded)
    tlx.async_descriptor_load(b_desc, b, [0, 0], loaded)
    tlx.local_store(stored, tl.load(lines_ptr + tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :]))
    tlx.local_store(b_scale, tl.load(ones_ptr + tl.arange(0, 128)[:, None] * 8 + tl.arange(0, 8)[None, :]))
    tlx.fence_async_shared()
    tlx.barrier_wait(loaded, 0)
    tlx.tmem_copy(stored[0], a_scale[0])
    tlx.async_dot_scaled(a, b, acc, tlx.subslice(a_scale[0], 0, 8), "e4m3", b_scale[0], "e4m3", use_acc=False)
    tl.store(c_ptr + tl.arange(0, 128)[:, None] * 128 + tl.arange(0, 128)[None, :], tlx.local_load(acc))


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_lines_for_a_buffer_of_as_many_bytes_for_each_warp(stage):
    # 16 bytes of a line in each of 128 rows are 4 of a row's scales, once for each of the four warps.
    k, rng = 256, np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((M, k), (k, N)))
    a_scale = rng.integers(124, 130, (M, k // 32), dtype=np.uint8)
    c = np.full((M, N), np.nan, np.float32)
    tlx_xdsl.interpret(
        first_quarter, 1, TensorDescriptor.from_tensor(a, [M, k]), TensorDescriptor.from_tensor(b, [k, N]),
        lines(a_scale).reshape(64, 16), np.full((N, k // 32), 127, np.uint8), c, k, target="sm_100a", jobs=1,
        stage=stage,
    )  # fmt: skip
    left = a.astype(np.float32) * np.exp2(a_scale.astype(np.float32) - 127).repeat(32, 1)
    np.testing.assert_array_equal(c, left @ b.astype(np.float32))
