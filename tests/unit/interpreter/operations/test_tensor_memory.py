"""Tensor memory: where elements lie, what is written comes back, and what is not written is reported."""

# covers: tlx.memory, ttng.tmem

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, i8

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.dialects.base.layouts import layout_attr
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.interpreter.buffers import TMEM_COLUMN_BYTES, buffer_places
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.layouts.encodings import TensorMemoryLayout, TensorMemoryScalesLayout
from tlx_xdsl.runtime.simulate.interpret import interpret_text

BLACKWELL = {"target": "sm_100a", "jobs": 1}


# --- places ---------------------------------------------------------------------------------------------------------


def places(layout, shape, element):
    """Lane and column of each element (as a fraction of 32 bits), and where its copies are."""
    found = buffer_places(MemDescType.get(shape, element, layout_attr(layout), TensorMemorySpaceAttr()))
    columns, rest = np.divmod(found.offsets, TMEM_COLUMN_BYTES)
    return rest // 4, columns + rest % 4 / 4, found


def test_128_rows_are_the_lanes():
    lanes, columns, found = places(TensorMemoryLayout(128, 64, 1), (128, 64), f32)
    assert (lanes == np.arange(128)[:, None]).all()
    assert (columns == np.arange(64)[None, :]).all()
    assert found.size == 64 * TMEM_COLUMN_BYTES
    assert not found.copies


def test_64_rows_have_16_lanes_of_each_warp():
    """PTX ISA, "tcgen05.mma", layout F: rows 16 w to 16 w + 15 are in the first 16 lanes of warp w."""
    lanes, columns, found = places(TensorMemoryLayout(64, 64, 1), (64, 64), f32)
    rows = np.arange(64)[:, None]
    assert (lanes == rows // 16 * 32 + rows % 16).all()
    assert (columns == np.arange(64)[None, :]).all()
    assert found.size == 64 * TMEM_COLUMN_BYTES


@pytest.mark.parametrize(("stride", "step"), [(1, 0.5), (2, 1)])
def test_small_elements_are_packed_or_not(stride, step):
    _, columns, found = places(TensorMemoryLayout(128, 64, stride), (128, 64), f16)
    assert (columns == np.arange(64)[None, :] * step).all()
    assert found.size == 64 * step * TMEM_COLUMN_BYTES


def test_scales_have_a_copy_for_each_warp():
    lanes, columns, found = places(TensorMemoryScalesLayout(), (128, 8), i8)
    row, column = np.indices((128, 8))
    assert (lanes == row % 32).all()
    assert (columns == row // 32 + column // 4 * 4 + column % 4 / 4).all()
    assert found.copies == (32 * 4, 64 * 4, 96 * 4)


# --- loads and stores -----------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def copy(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, PART: tl.constexpr):
    """Copy through tensor memory, in columns of PART."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    buffers = tlx.local_alloc((M, N), x_ptr.dtype.element_ty, 2, tlx.storage_kind.tmem)
    tlx.local_store(buffers[1], tl.load(x_ptr + at))
    part = tl.arange(0, M)[:, None] * N + tl.arange(0, PART)[None, :]
    for column in tl.static_range(0, N, PART):
        tl.store(y_ptr + part + column, tlx.local_load(tlx.subslice(buffers[1], column, PART)))


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "columns", "part"), [(128, 64, 64), (128, 128, 32), (64, 64, 16)])
def test_what_is_stored_is_loaded(rows, columns, part, dtype, stage):
    x = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    y = np.zeros_like(x)
    tlx_xdsl.interpret(copy, 1, x, y, rows, columns, part, stage=stage, **BLACKWELL)
    assert (x == y).all()


@tlx_xdsl.jit
def uninitialised(y_ptr, WRITTEN: tl.constexpr):
    buffer = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    tlx.local_store(tlx.subslice(buffer[0], 0, WRITTEN), tl.zeros((128, WRITTEN), tl.float32))
    at = tl.arange(0, 128)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(y_ptr + at, tlx.local_load(buffer[0]))


def test_uninitialized_columns_are_reported():
    y = np.zeros((128, 64), np.float32)
    with pytest.raises(Fault, match=r"'buffer\[0\]' is read before it is written: 4096 of its 8192 .* \[0, 32\] first"):
        tlx_xdsl.interpret(uninitialised, 1, y, 32, **BLACKWELL)
    tlx_xdsl.interpret(uninitialised, 1, y, 64, **BLACKWELL)


@tlx_xdsl.jit
def hand_over(y_ptr, ORDERED: tl.constexpr):
    buffer = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    written = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if ORDERED:
                tlx.barrier_wait(written[0], 0)
            at = tl.arange(0, 128)[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.store(y_ptr + at, tlx.local_load(buffer[0]))
        with tlx.async_task(num_warps=4):
            tlx.local_store(buffer[0], tl.zeros((128, 64), tl.float32))
            if ORDERED:
                tlx.barrier_arrive(written[0])


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_tasks_that_are_not_ordered_race(schedule):
    y = np.ones((128, 64), np.float32)
    with pytest.raises(Fault, match=r"'buffer\[0\]'.*(nothing orders it after|read before it is written)"):
        tlx_xdsl.interpret(hand_over, 1, y, False, schedule=schedule, **BLACKWELL)
    tlx_xdsl.interpret(hand_over, 1, y, True, schedule=schedule, **BLACKWELL)
    assert not y.any()


@tlx_xdsl.jit
def shared_region(y_ptr, OVERWRITE: tl.constexpr):
    region = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    wide = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem, reuse=region)
    small = tlx.local_alloc((128, 64), tl.float16, 1, tlx.storage_kind.tmem, reuse=region)
    region.set_buffer_overlap(tlx.reuse_group(wide, small, group_type=tlx.reuse_group_type.shared))
    tlx.local_store(wide[0], tl.full((128, 64), 3.0, tl.float32))
    if OVERWRITE:
        tlx.local_store(small[0], tl.zeros((128, 64), tl.float16))
    at = tl.arange(0, 128)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(y_ptr + at, tlx.local_load(wide[0]))


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
def test_a_buffer_that_another_one_overlaps_is_reported(stage):
    y = np.zeros((128, 64), np.float32)
    with pytest.raises(
        Fault, match=r"'wide.*' is read, but 'small.*', which lies at the same place, has overwritten it"
    ):
        tlx_xdsl.interpret(shared_region, 1, y, True, stage=stage, **BLACKWELL)
    tlx_xdsl.interpret(shared_region, 1, y, False, stage=stage, **BLACKWELL)
    assert (y == 3).all()


# --- reducing loads -------------------------------------------------------------------------------------------------

REDUCE = """
#b = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}}>
#rows = #ttg.slice<{{dim = 1, parent = #b}}>
#columns = #ttg.slice<{{dim = 0, parent = #b}}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 8, colStride = 1>
!buffer = !ttg.memdesc<128x8xf32, #t, #ttng.tensor_memory, mutable>
!pointers = tensor<128x8x!tt.ptr<f32>, #b>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
    %r = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32, #rows>
    %c = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32, #columns>
    %r2 = tt.expand_dims %r {{axis = 1 : i32}} : tensor<128xi32, #rows> -> tensor<128x1xi32, #b>
    %c2 = tt.expand_dims %c {{axis = 0 : i32}} : tensor<8xi32, #columns> -> tensor<1x8xi32, #b>
    %eight = arith.constant dense<8> : tensor<128x1xi32, #b>
    %r3 = arith.muli %r2, %eight : tensor<128x1xi32, #b>
    %r4 = tt.broadcast %r3 : tensor<128x1xi32, #b> -> tensor<128x8xi32, #b>
    %c4 = tt.broadcast %c2 : tensor<1x8xi32, #b> -> tensor<128x8xi32, #b>
    %at = arith.addi %r4, %c4 : tensor<128x8xi32, #b>
    %xs = tt.splat %x : !tt.ptr<f32> -> !pointers
    %xp = tt.addptr %xs, %at : !pointers, tensor<128x8xi32, #b>
    %v = tt.load %xp : !pointers
    %m = ttng.tmem_alloc %v : (tensor<128x8xf32, #b>) -> !buffer
    %w, %red = ttng.tmem_load %m {{{attributes}}} : !buffer -> tensor<128x8xf32, #b>, tensor<128xf32, #rows>
    ttng.tmem_wait load
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #rows>
    %yp = tt.addptr %ys, %r : tensor<128x!tt.ptr<f32>, #rows>, tensor<128xi32, #rows>
    tt.store %yp, %red : tensor<128x!tt.ptr<f32>, #rows>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("redOp = #ttng.redOp<min>", lambda x: np.fmin.reduce(x, 1)),
        ("redOp = #ttng.redOp<max>", lambda x: np.fmax.reduce(x, 1)),
        ("redOp = #ttng.redOp<max>, abs = true", lambda x: np.fmax.reduce(np.abs(x), 1)),
        ("redOp = #ttng.redOp<min>, NaN = true", lambda x: np.min(x, 1)),
    ],
)
def test_reducing_load(attributes, expected):
    x = np.random.default_rng(0).standard_normal((128, 8)).astype(np.float32)
    x[3, 4] = np.nan
    y = np.zeros(128, np.float32)
    interpret_text(REDUCE.format(attributes=attributes), 1, [x, y], jobs=1)
    np.testing.assert_array_equal(y, expected(x))


# --- warps ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def by_one_warp():
    buffer = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=1):
            tlx.local_store(buffer[0], tl.zeros((128, 64), tl.float32))


def test_a_warp_reaches_a_quarter_of_the_lanes():
    with pytest.raises(Fault, match=r"it takes whole warp groups, 4 warps each.*: partition 0 has 1"):
        tlx_xdsl.interpret(by_one_warp, 1, **BLACKWELL)


# --- copies from shared memory --------------------------------------------------------------------------------------


@tlx_xdsl.jit
def copied(x_ptr, y_ptr, DROP: tl.constexpr):
    source = tlx.local_alloc((128, 32), tl.float32, 1)
    target = tlx.local_alloc((128, 32), tl.float32, 1, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    at = tl.arange(0, 128)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tlx.local_store(source[0], tl.load(x_ptr + at))
    if DROP != "fence":
        tlx.fence_async_shared()
    tlx.tmem_copy(source[0], target[0])
    tlx.tcgen05_commit(done[0])
    if DROP != "wait":
        tlx.barrier_wait(done[0], 0)
    tl.store(y_ptr + at, tlx.local_load(target[0]))


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_copy_from_shared_memory(schedule):
    x = np.random.default_rng(0).standard_normal((128, 32)).astype(np.float32)
    y = np.zeros_like(x)
    tlx_xdsl.interpret(copied, 1, x, y, "", schedule=schedule, **BLACKWELL)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(Fault, match=r"the tcgen05.cp of the default task reads 'source.*without a proxy fence"):
        tlx_xdsl.interpret(copied, 1, x, y, "fence", schedule=schedule, **BLACKWELL)
    with pytest.raises(Fault, match=r"'target\[0\]'.*(nothing orders it after the tcgen05.cp|read before it is)"):
        tlx_xdsl.interpret(copied, 1, x, y, "wait", schedule=schedule, **BLACKWELL)


# --- room -----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def crowded(COUNT: tl.constexpr):
    buffers = tlx.local_alloc((128, 128), tl.float32, COUNT, tlx.storage_kind.tmem)
    tlx.local_store(buffers[COUNT - 1], tl.zeros((128, 128), tl.float32))
    others = tlx.local_alloc((128, 64), tl.float16, 1, tlx.storage_kind.tmem)
    tlx.local_store(others[0], tl.zeros((128, 64), tl.float16))


def test_there_are_512_columns():
    tlx_xdsl.interpret(crowded, 1, 3, **BLACKWELL)
    with pytest.raises(Fault, match="tensor memory is exhausted: 16384 bytes from byte 262144 on, there are 262144"):
        tlx_xdsl.interpret(crowded, 1, 4, **BLACKWELL)
