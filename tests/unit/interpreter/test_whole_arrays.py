"""Arrays of buffers and barriers where one is meant: an array of one stands for it, all of one are one buffer."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

ROWS, COLUMNS = 4, 64


@tlx_xdsl.jit
def gather(x_desc, y_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One copy for all rows, each of which is a buffer of its own for the rest."""
    rows_in = tlx.local_alloc((1, COLUMNS), tl.int16, ROWS)
    rows_out = tlx.local_alloc((1, COLUMNS), tl.int16, ROWS)
    loaded = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(loaded, ROWS * COLUMNS * 2)
    tlx.async_descriptor_load(x_desc, tlx.local_reinterpret(rows_in, tl.int16, [1, ROWS * COLUMNS]), [0, 0], loaded)
    tlx.barrier_wait(loaded, 0)
    for row in range(ROWS):
        tlx.local_store(rows_out[row], tlx.local_load(rows_in[row]) + row.to(tl.int16))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(y_desc, tlx.local_reinterpret(rows_out, tl.int16, [1, ROWS * COLUMNS]), [0, 0])
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_all_buffers_of_an_array_are_one(stage):
    x = np.arange(ROWS * COLUMNS, dtype=np.int16).reshape(1, -1)
    y = np.full_like(x, -1)
    of = tlx_xdsl.TensorDescriptor.from_tensor
    tlx_xdsl.interpret(
        gather, 1, of(x, [1, ROWS * COLUMNS]), of(y, [1, ROWS * COLUMNS]), ROWS, COLUMNS, target="sm_90a", jobs=1,
        stage=stage,
    )  # fmt: skip
    assert np.array_equal(y, x + np.arange(ROWS, dtype=np.int16).repeat(COLUMNS))


@tlx_xdsl.jit
def sum_by_elements(x_ptr, y_ptr, SIZE: tl.constexpr):
    """An element of a buffer of one dimension is a buffer of one element."""
    x = tlx.local_alloc((SIZE,), tl.float32, 2)
    tlx.local_store(x[1], tl.load(x_ptr + tl.arange(0, SIZE)))
    total = tlx.local_load(x[1][0])
    for i in range(1, SIZE):
        total += tlx.local_load(x[1][i])
    tl.store(y_ptr + tl.arange(0, 1), total)


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_elements_of_a_row_are_buffers(stage):
    x = np.arange(32, dtype=np.float32)
    y = np.zeros(1, np.float32)
    tlx_xdsl.interpret(sum_by_elements, 1, x, y, 32, target="sm_90a", jobs=1, stage=stage)
    assert y[0] == x.sum()


@tlx_xdsl.jit
def element_past_the_last(y_ptr):
    x = tlx.local_alloc((16,), tl.float32, 1)
    tl.store(y_ptr + tl.arange(0, 1), tlx.local_load(x[0][16]))


def test_an_element_that_a_row_lacks_is_refused():
    with pytest.raises(tlx_xdsl.CompilationError, match=r"index 16 is outside of a buffer of type fp32\[16\]"):
        tlx_xdsl.interpret(element_past_the_last, 1, np.zeros(1, np.float32), jobs=1)
