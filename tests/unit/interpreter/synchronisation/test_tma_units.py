"""Units of 16 bytes, at which TMA copies begin, and in which they write rows, along the contiguous dimension.

The cases are those that were tried on an H200 on 2026-11-23: what is a fault here was an illegal instruction there, and
what is written here past the end of a row was written there.
"""

# covers: tlx.copies, ttng.tensormap

from types import SimpleNamespace

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.reports import expect_fault, fault, run
from tlx_xdsl.interpreter.faults import Fault

F16, F32, I8 = np.float16, np.float32, np.int8
of = tlx_xdsl.TensorDescriptor


def counted(rows, columns, dtype):
    """A matrix of numbers of which neighbours differ, none of them 0."""
    return (1 + np.arange(rows * columns) % 100).reshape(rows, columns).astype(dtype)


def padded(array, columns, block):
    """A descriptor of the first columns of an array whose rows go on after them."""
    return of(array, [len(array), columns], [array.shape[1], 1], list(block))


# Where a copy begins -------------------------------------------------------------------------------------------------


@tlx_xdsl.jit(do_not_specialize=["column"])
def load(src, dst, column):
    tile = tlx.local_alloc(src.block_shape, tlx.dtype_of(src), 1)
    full = tlx.alloc_barriers(1)
    size: tl.constexpr = src.block_shape[0] * src.block_shape[1] * tlx.size_of(tlx.dtype_of(src))
    tlx.barrier_expect_bytes(full[0], size)
    tlx.async_descriptor_load(src, tile[0], [1, column], full[0])  # load
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


SMALL, SWIZZLED, BYTES = (8, 8), (64, 64), (32, 64)
STARTS = [
    *((F16, SMALL, at, at % 8 == 0) for at in (0, 8, -8, 56, 1, 2, 4, -4, -1, 60)),
    *((F16, SWIZZLED, at, at % 8 == 0) for at in (8, -8, 1, 4, -4)),
    *((F32, SMALL, at, at % 4 == 0) for at in (4, 1, 2, -2)),
    *((I8, BYTES, at, at % 16 == 0) for at in (16, 4, 8)),
]


@pytest.mark.parametrize(("dtype", "block", "column", "is_right"), STARTS)
def test_where_a_load_begins(dtype, block, column, is_right):
    source, target = counted(80, 128, dtype), np.zeros(block, dtype)
    arguments = padded(source, 60, block), of(target, list(block), [block[1], 1], list(block)), column
    if not is_right:
        start = column * source.itemsize
        message = f"a multiple of 16 bytes, found element {column}, which is byte {start}"
        expect_fault(load, message, *arguments, mark="load")
        return
    assert not run(load, *arguments).warnings
    expected = np.zeros((block[0], block[1] + 16), dtype)
    low, high = max(column, 0), min(column + block[1], 60)
    expected[:, low - column : high - column] = source[1 : 1 + block[0], low:high]
    np.testing.assert_array_equal(target, expected[:, : block[1]])


@tlx_xdsl.jit
def store(src, dst, column, REDUCE: tl.constexpr):
    tile = tlx.local_alloc(src.block_shape, tlx.dtype_of(src), 1)
    full = tlx.alloc_barriers(1)
    size: tl.constexpr = src.block_shape[0] * src.block_shape[1] * tlx.size_of(tlx.dtype_of(src))
    tlx.barrier_expect_bytes(full[0], size)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [1, column], store_reduce=REDUCE)  # store
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize(
    ("dtype", "columns", "column", "reduce"),
    [
        (F16, 60, 36, ""), (F16, 60, 33, ""), (F32, 60, 34, ""), (I8, 60, 24, ""), (F32, 60, 34, "add"),
        # Also where nothing would be written.
        (F16, 20, 36, ""), (F16, 60, -20, "add"),
    ],
)  # fmt: skip
def test_a_store_begins_nowhere_else(dtype, columns, column, reduce):
    block = BYTES if dtype is I8 else SMALL
    tile = of(counted(*block, dtype), list(block), [block[1], 1], list(block))
    report = expect_fault(
        store, f"found element {column}, which is byte", tile, padded(np.zeros((40, 128), dtype), columns, block),
        column, reduce, mark="store",
    )  # fmt: skip
    assert "on the GPU that is an illegal instruction" in report.notes


@tlx_xdsl.jit
def at_a_known_place(src, COLUMN: tl.constexpr):
    tile = tlx.local_alloc((8, 8), tl.float16, 1)
    tlx.local_store(tile[0], tl.zeros((8, 8), tl.float16))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(src, tile[0], [3, COLUMN])  # here
    tlx.async_descriptor_store_wait(0)


def test_a_constant_place_is_refused_before_the_kernel_runs():
    array = np.ones((16, 64), F16)
    run(at_a_known_place, padded(array, 64, SMALL), 8)
    report = fault(at_a_known_place, padded(array, 64, SMALL), 4, kind=tlx_xdsl.CompilationError)
    assert not isinstance(report, Fault)
    assert report.message.endswith("the last offset must be a multiple of 8 elements (16 bytes), found 4")


# What a store writes -------------------------------------------------------------------------------------------------


ENDS = [
    *((F16, (16, 16), *ends) for ends in ((43, 48), (35, 40), (48, 48))),
    *((F32, (16, 16), *ends) for ends in ((41, 44), (30, 32))),
    (I8, BYTES, 35, 48),
]


@pytest.mark.parametrize(
    ("dtype", "block", "columns", "end", "reduce"),
    # TMA adds no int8.
    [(*case, reduce) for case in ENDS for reduce in ("", "add") if not reduce or case[0] is not I8],
)
@pytest.mark.parametrize("column", [0, 32, 48])
def test_rows_are_written_in_units(dtype, block, columns, end, column, reduce):
    """The rest of a row's last unit is written; rows past the last one, and the part before the box, are not."""
    values, target = counted(*block, dtype), np.full((24, 128), 3, dtype)
    tile = of(values, list(block), [block[1], 1], list(block))
    tensor = of(target, [10, columns], [128, 1], list(block))
    run(store, tile, tensor, column, reduce)
    expected = np.full((24, 128), 3, dtype)
    high = min(column + block[1], end)
    if high > column:
        written = values[:9, : high - column]
        expected[1:10, column:high] = written + 3 if reduce else written
    np.testing.assert_array_equal(target, expected)


def test_a_box_after_the_last_unit_writes_nothing():
    target = np.zeros((16, 64), F16)
    run(store, of(counted(8, 8, F16), [8, 8], [8, 1], [8, 8]), padded(target, 35, SMALL), 40, "")
    assert not target.any()


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_rows_of_more_dimensions(stage):
    """The last dimension is the contiguous one; the others begin anywhere and end where they end."""
    source, target = counted(6, 16, F16).reshape(2, 3, 16), np.zeros((4, 5, 24), F16)
    tlx_xdsl.interpret(
        in_three, 1, of(source, [2, 3, 16], [48, 16, 1], [2, 4, 16]), of(target, [3, 4, 11], [120, 24, 1], [2, 4, 16]),
        jobs=1, stage=stage,
    )  # fmt: skip
    expected = np.zeros_like(target)
    expected[1:3, 1:4, :16] = source
    np.testing.assert_array_equal(target, expected)


@tlx_xdsl.jit
def in_three(src, dst):
    tile = tlx.local_alloc((2, 4, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 2 * 4 * 16 * 2)
    tlx.async_descriptor_load(src, tile[0], [0, 0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [1, 1, 0])
    tlx.async_descriptor_store_wait(0)


def test_two_programs_write_the_same_unit():
    """The columns belong to a descriptor each; the last unit of the first holds columns of the second."""
    target = np.zeros((8, 64), F16)
    tlx_xdsl.interpret(in_two_parts, 2, target, 43, jobs=1)
    np.testing.assert_array_equal(target[:, :48], np.full((8, 48), 1))
    np.testing.assert_array_equal(target[:, 48:], np.full((8, 16), 2))
    tlx_xdsl.interpret(in_two_parts, 2, target, 40, jobs=1)
    np.testing.assert_array_equal(target[:, :40], np.full((8, 40), 1))
    np.testing.assert_array_equal(target[:, 40:], np.full((8, 24), 2))


@tlx_xdsl.jit
def in_two_parts(dst, first):
    """Program 0 writes the columns from `first` on by threads, program 1 those before them by TMA."""
    tile = tlx.local_alloc((8, 64), tl.float16, 1)
    if tl.program_id(0) == 0:
        row, column = tl.arange(0, 8)[:, None], tl.arange(0, 64)[None, :]
        tl.store(dst + row * 64 + column, tl.full((8, 64), 2, tl.float16), mask=column >= first)
    else:
        desc = tlx.make_tensor_descriptor(tlx.allocate_tensor_descriptor(1), dst, [8, first], [64, 1], [8, 64])
        tlx.local_store(tile[0], tl.full((8, 64), 1, tl.float16))
        tlx.fence_async_shared()
        tlx.async_descriptor_store(desc, tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0)


# Where there is no memory after the last row --------------------------------------------------------------------------


def test_a_store_past_the_end_of_the_memory():
    target = np.zeros(7 * 48 + 43, F16)
    tile = of(counted(8, 16, F16), [8, 16], [16, 1], [8, 16])
    report = fault(store, tile, of(target, [8, 43], [48, 1], [8, 16]), 32, "")
    assert "store out of bounds: 608 bytes at byte 160 of 'dst', which has 758" in report.message
    assert "TMA writes rows in units of 16 bytes, here the 10 bytes after the last column, too" in report.notes
    run(store, tile, of(target, [8, 43], [48, 1], [8, 16]), 16, "")


def test_the_last_row_of_a_part_of_an_array_is_followed_by_the_array():
    target = np.zeros((9, 48), F16)
    values = counted(8, 16, F16)
    part = target[:, :43]
    run(store, of(values, [8, 16], [16, 1], [8, 16]), of.from_tensor(part, [8, 16]), 32, "")
    np.testing.assert_array_equal(target[1:, 32:], values)


class Tensor:
    """The first columns of an array, as torch has them."""

    def __init__(self, array: np.ndarray, columns: int):
        self.array, self.dtype, self.shape = array, "torch.float16", (len(array), columns)
        self.device = SimpleNamespace(type="cpu")

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self, axis: int | None = None):
        strides = (self.array.shape[1], 1)
        return strides if axis is None else strides[axis]

    def element_size(self) -> int:
        return 2

    def untyped_storage(self):
        return SimpleNamespace(data_ptr=self.data_ptr, nbytes=lambda: self.array.nbytes)


def test_the_last_row_of_a_part_of_a_tensor_is_followed_by_the_tensor():
    target = np.zeros((9, 48), F16)
    values = counted(8, 16, F16)
    described = of(Tensor(target, 43), [9, 43], [48, 1], [8, 16])
    run(store, of(values, [8, 16], [16, 1], [8, 16]), described, 32, "")
    np.testing.assert_array_equal(target[1:, 32:], values)


# Other ways to copy ---------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def multicast(src, dst, column):
    """Both CTAs of a cluster get what the first one loads."""
    tile = tlx.local_alloc((8, 8), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 128)
    tlx.cluster_barrier()
    if tlx.cluster_cta_rank() == 0:
        tlx.async_descriptor_load(src, tile[0], [0, column], full[0], multicast_targets=[0, 1])  # here
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [8 * tlx.cluster_cta_rank(), 0])
    tlx.async_descriptor_store_wait(0)
    tlx.cluster_barrier()


def test_a_load_for_several_ctas():
    source, target = counted(8, 64, F16), np.zeros((16, 8), F16)
    arguments = of.from_tensor(source, [8, 8]), of.from_tensor(target, [8, 8])
    run(multicast, *arguments, 16, grid=(2,), cluster=(2, 1, 1))
    np.testing.assert_array_equal(target, np.vstack([source[:, 16:24]] * 2))
    expect_fault(multicast, "found element 12, which is byte 24", *arguments, 12, grid=(2,), cluster=(2, 1, 1))


@tlx_xdsl.jit
def blocks(x_ptr, y_ptr, columns, column, ADD: tl.constexpr):
    """Blocks of plain Triton through descriptors, which TMA copies on GPUs that have it."""
    source = tl.make_tensor_descriptor(x_ptr, [8, 64], [64, 1], [8, 16])
    target = tl.make_tensor_descriptor(y_ptr, [8, columns], [64, 1], [8, 16])
    block = source.load([0, column])  # load
    if ADD:
        target.atomic_add([0, column], block)
    else:
        target.store([0, column], block)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("target", "end"), [("sm_90a", 24), ("sm_100a", 24), ("sm_80", 19)])
def test_blocks_of_plain_triton_are_written_in_units_by_tma(target, end, add):
    x, y = counted(8, 64, F16), np.zeros((8, 64), F16)
    run(blocks, x, y, 19, 16, add, target=target)
    expected = np.zeros_like(y)
    expected[:, 16:end] = x[:, 16:end]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("add", [False, True])
def test_blocks_of_plain_triton_begin_anywhere_without_tma(add):
    x, y = counted(8, 64, F16), np.zeros((8, 64), F16)
    run(blocks, x, y, 19, 3, add, target="sm_80")
    expected = np.zeros_like(y)
    expected[:, 3:19] = x[:, 3:19]
    np.testing.assert_array_equal(y, expected)
    expect_fault(
        blocks, "found element 3, which is byte 6", x, y, 19, 3, add, mark="load", text="source.load", target="sm_90a"
    )


@tlx_xdsl.jit
def store_block(y_ptr, column):
    target = tl.make_tensor_descriptor(y_ptr, [8, 64], [64, 1], [8, 16])
    target.store([0, column], tl.zeros((8, 16), tl.float16))  # here


def test_a_store_of_plain_triton_begins_at_a_unit():
    expect_fault(store_block, "found element 3, which is byte 6", np.ones((8, 64), F16), 3, text="target.store")


TEXT = """
module{attributes} {{
  tt.func public @kernel(%y: !tt.ptr<f16>, %column: i32) {{
    %zero = arith.constant 0 : i32
    %eight = arith.constant 8 : i32
    %columns = arith.constant 19 : i32
    %row = arith.constant 64 : i64
    %one = arith.constant 1 : i64
    %d = tt.make_tensor_descriptor %y, [%eight, %columns], [%row, %one] : !tt.ptr<f16>, !tt.tensordesc<8x16xf16>
    %v = arith.constant dense<1.0> : tensor<8x16xf16>
    tt.descriptor_store %d[%zero, %column], %v : !tt.tensordesc<8x16xf16>, tensor<8x16xf16>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize("attributes", ["", ' attributes {ttg.target = "hip:gfx942"}'])
def test_text_that_is_for_no_gpu_with_tma_has_no_units(attributes):
    y = np.zeros((8, 64), F16)
    tlx_xdsl.interpret_text(TEXT.format(attributes=attributes), 1, [y, 3], jobs=1)
    np.testing.assert_array_equal(y, np.repeat([[0, 1, 0]], 8, 0).repeat([3, 16, 45], 1))


def test_text_for_hopper_has_units():
    text, y = TEXT.format(attributes=' attributes {ttg.target = "cuda:90"}'), np.zeros((8, 64), F16)
    tlx_xdsl.interpret_text(text, 1, [y, 16], jobs=1)
    np.testing.assert_array_equal(y, np.repeat([[0, 1, 0]], 8, 0).repeat([16, 8, 40], 1))
    with pytest.raises(Fault, match="found element 3, which is byte 6"):
        tlx_xdsl.interpret_text(text, 1, [y, 3], jobs=1)
