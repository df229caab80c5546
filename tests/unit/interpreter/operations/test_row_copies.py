"""Rows that TMA gathers into a buffer, and scatters from one; numpy is the oracle."""

# covers: tlx.copies

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.stages import STAGES, at
from tlx_xdsl.interpreter.faults import Fault


@tlx_xdsl.jit
def move_rows(x_ptr, rows_ptr, y_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WAITS: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[1, COLUMNS])
    target = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[1, COLUMNS])
    buffer, bars = tlx.local_alloc((ROWS, COLUMNS), tl.float16, 1), tlx.alloc_barriers(1)
    # Eight rows for each warp, the same ones in all of its threads.
    layout: tl.constexpr = tlx.layout(shape=((32, 4), 8), stride=((0, 8), 1))
    rows = tl.load(rows_ptr + tlx.require_layout(tl.arange(0, ROWS), layout))
    tlx.barrier_expect_bytes(bars[0], ROWS * COLUMNS * 2)
    tlx.async_descriptor_gather(source, buffer[0], rows, 64, bars[0], multicast=True)
    if WAITS:
        tlx.barrier_wait(bars[0], 0)
    tlx.async_descriptor_scatter(target, buffer[0], rows, 0)
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("number", [np.int16, np.int32])
def test_rows_at_any_numbers(stage, number):
    x = np.arange(40 * 192).reshape(40, 192).astype(np.float16)
    y = np.zeros_like(x)
    rows = np.random.default_rng(0).permutation(40)[:32]
    # Of a row outside of the tensor nothing is read and nothing written.
    numbers = np.where(rows == rows[5], 77, rows).astype(number)
    tlx_xdsl.interpret(move_rows, 1, x, numbers, y, 40, 192, 32, 128, True, target="sm_100a", jobs=1, **at(stage))
    expected = np.zeros_like(x)
    inside = rows[rows != rows[5]]
    expected[inside, :128] = x[inside, 64:]
    np.testing.assert_array_equal(y, expected)


def test_rows_that_nothing_has_waited_for():
    x, rows = np.zeros((40, 192), np.float16), np.arange(32, dtype=np.int32)
    with pytest.raises(Fault, match="nothing orders it after the TMA load"):
        tlx_xdsl.interpret(move_rows, 1, x, rows, x.copy(), 40, 192, 32, 128, False, target="sm_100a", jobs=1)
