"""Arrays that a kernel reaches by addresses that it loads."""

# covers: tlx run

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Fault


@tlx_xdsl.jit
def double_each(pointers, sizes, BLOCK: tl.constexpr):
    x = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    inside = at < tl.load(sizes + tl.program_id(0))
    tl.store(x + at, 2 * tl.load(x + at, mask=inside), mask=inside)


def test_addresses_of_the_process_lead_to_the_arrays_that_are_said_to_be_reachable():
    arrays = [np.arange(size, dtype=np.float32) for size in (100, 64, 7)]
    pointers = np.array([array.ctypes.data for array in arrays], np.int64)
    sizes = np.array([len(array) for array in arrays], np.int32)
    tlx_xdsl.interpret(double_each, 3, pointers, sizes, 128, reachable=[*arrays, arrays[0][10:]])
    for array in arrays:
        np.testing.assert_array_equal(array, 2 * np.arange(len(array)))


def test_no_other_address_of_the_process_is_memory():
    x, y = np.zeros(4, np.float32), np.zeros(4096, np.float32)
    pointers = np.array([y.ctypes.data], np.int64)
    with pytest.raises(Fault, match="load out of bounds"):
        tlx_xdsl.interpret(double_each, 1, pointers, np.array([4], np.int32), 128, reachable=[x])
