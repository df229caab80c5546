"""The fences of these tests find what is read or written beside an array, and temporary values that nothing wrote."""

# covers: target.cpu

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.fences import Region, Scratch


@tlx_xdsl.jit
def copied(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at), mask=at < n)


def test_a_write_beside_an_array_is_an_error():
    x, out = np.ones(8, np.float32), np.zeros(4, np.float32)
    copied[(1,)](x, out, 4, B=8)
    with pytest.raises(AssertionError, match=r"writes beside an array of 16 bytes, at \[16, 17, 18, 19\]"):
        copied[(1,)](x, out, 5, B=8)
    bound = copied.bind(1, x, out, 4, B=8)
    x[:] = 3
    bound()
    assert out.tolist() == [3] * 4


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_lies_beside_an_array_is_nan(dtype: Any):
    out = np.zeros(4, dtype)
    copied[(1,)](np.ones(2, dtype), out, 4, B=4)
    assert np.isnan(out).tolist() == [False, False, True, True]


def test_parts_of_one_array_keep_their_places():
    memory = np.arange(12, dtype=np.float32)
    copied[(1,)](memory[:8], memory[4:], 8, B=8)
    assert memory.tolist() == [0, 1, 2, 3, *range(8)]


def test_an_array_that_is_not_written_may_be_read_only():
    array = np.arange(4)
    array.flags.writeable = False
    region = Region(array.ctypes.data, array.ctypes.data + array.nbytes)
    region.enter()
    region.leave()
    assert region.moved(array).tolist() == [0, 1, 2, 3]


def test_temporary_values_begin_as_nan():
    from tlx_xdsl.cpu.runtime import program

    size, address, owner = program._new_block(64)
    blocks = Scratch().blocks
    assert np.isnan(np.frombuffer(owner, np.float32, 16, 64)).all()
    blocks.append((size, address, owner))
    owner[address + size - 1 - _start(owner)] = b"\0"
    with pytest.raises(AssertionError, match="beside its temporary values"):
        blocks.append((size, address, owner))


def _start(owner: Any) -> int:
    return np.frombuffer(owner, np.uint8).ctypes.data
