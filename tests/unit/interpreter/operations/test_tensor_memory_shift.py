"""Rows of tensor memory that move by one; the oracle is what Meta's test of the instruction expects of the hardware."""

# covers: tlx.memory

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.stages import STAGES, at
from tlx_xdsl.interpreter.faults import Fault


@tlx_xdsl.jit
def shift(x_ptr, y_ptr, COLUMNS: tl.constexpr, DTYPE: tl.constexpr, TIMES: tl.constexpr, WAITS: tl.constexpr):
    at = tl.arange(0, 128)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    rows, bars = tlx.local_alloc((128, COLUMNS), DTYPE, 1, tlx.storage_kind.tmem), tlx.alloc_barriers(1)
    tlx.local_store(rows[0], tl.load(x_ptr + at))
    for i in tl.static_range(TIMES):
        tlx.tmem_shift(rows[0])
        tlx.tcgen05_commit(bars[0])
        if WAITS:
            tlx.barrier_wait(bars[0], i & 1)
    tl.store(y_ptr + at, tlx.local_load(rows[0]))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("columns", "dtype", "times"), [(16, np.float32, 1), (64, np.float16, 2)])
def test_each_row_gets_the_next_one(stage, columns, dtype, times):
    x = np.arange(128 * columns).reshape(128, columns).astype(dtype)
    y, expected = np.zeros_like(x), x.reshape(4, 32, columns)
    for _ in range(times):
        # The last row of each 32 stays.
        expected = np.concatenate([expected[:, 1:], expected[:, -1:]], axis=1)
    element = tl.float32 if dtype is np.float32 else tl.float16
    tlx_xdsl.interpret(shift, 1, x, y, columns, element, times, True, target="sm_100a", jobs=1, **at(stage))
    np.testing.assert_array_equal(y, expected.reshape(x.shape))


@pytest.mark.parametrize(("times", "what"), [(1, "tmem_load|reads"), (2, "tcgen05.shift of the default task writes")])
def test_a_shift_is_waited_for(times, what):
    """A load or another shift must not come before its end."""
    x = np.zeros((128, 16), np.float32)
    with pytest.raises(Fault, match=what):
        tlx_xdsl.interpret(shift, 1, x, x.copy(), 16, tl.float32, times, False, target="sm_100a", jobs=1)
