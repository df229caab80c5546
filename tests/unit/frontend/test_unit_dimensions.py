"""TMA copies of buffers through descriptors whose blocks have dimensions of size 1 before those of the buffer."""

# covers: tlx.copies

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl import CompilationError
from tlx_xdsl.interpreter.scheduler import POLICIES


@tlx_xdsl.jit
def through_four_dimensions(x_ptr, y_ptr, ADD: tl.constexpr, ROWS: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [2, 3, 64, 64], [12288, 4096, 64, 1], [1, 1, ROWS, 64])
    target = tl.make_tensor_descriptor(y_ptr, [2, 3, 64, 64], [12288, 4096, 64, 1], [1, 1, ROWS, 64])
    tile = tlx.local_alloc((32, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 32 * 64 * 2)
    tlx.async_descriptor_load(source, tile[0], [1, 2, 32, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.local_store(tile[0], tlx.local_load(tile[0]) * 2)
    tlx.fence("async_shared")
    if ADD:
        tlx.async_descriptor_store(target, tile[0], [0, 1, 0, 0], store_reduce="add")
    else:
        tlx.async_descriptor_store(target, tile[0], [0, 1, 0, 0])
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("add", [False, True])
def test_a_buffer_of_two_dimensions_through_a_descriptor_of_four(add, schedule):
    x = np.arange(2 * 3 * 64 * 64, dtype=np.float32).reshape(2, 3, 64, 64) % 251
    x, y = x.astype(np.float16), np.ones((2, 3, 64, 64), np.float16)
    result = tlx_xdsl.interpret(
        through_four_dimensions, 1, x, y, add, 32, target="sm_90a", schedule=schedule, stage="ttgir"
    )
    assert not result.warnings
    expected = np.ones_like(y)
    expected[0, 1, :32] = 2 * x[1, 2, 32:] + (1 if add else 0)
    np.testing.assert_array_equal(y, expected)


def test_other_dimensions_must_agree():
    x = np.zeros((2, 3, 64, 64), np.float16)
    with pytest.raises(
        CompilationError, match=r"must match .* fp16\[1, 1, 64, 64\], found a buffer of type fp16\[32, 64"
    ):
        tlx_xdsl.interpret(through_four_dimensions, 1, x, x, False, 64, target="sm_90a")
