"""Addresses of the host's arrays in a kernel's memory."""

from types import SimpleNamespace

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.numerics.host_arrays import skew_of
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor


def allocated(address, owndata):
    """Return a stand-in for an array at any address: on machines of 64 bits numpy gives none a multiple of 8 alone."""
    return SimpleNamespace(
        base=None, ctypes=SimpleNamespace(data=address), flags=SimpleNamespace(owndata=owndata), nbytes=64
    )


@pytest.mark.parametrize("address", [0x1000, 0x1008, 0x1010])
def test_what_numpy_has_allocated_begins_aligned_as_on_a_gpu(address):
    assert skew_of(allocated(address, owndata=True)) == 0
    assert skew_of(allocated(address, owndata=False)) == address % 16


def test_a_view_begins_at_its_distance():
    whole = np.zeros((8, 8), np.float16)
    assert skew_of(whole) == 0
    assert skew_of(whole.reshape(64)[1:]) == 2
    assert skew_of(whole[1:, 3:]) == 6
    assert skew_of(whole[1:][1:]) == 0


def test_memory_from_elsewhere_keeps_its_address():
    held = bytearray(80)
    first = -np.frombuffer(held, np.uint8).ctypes.data % 16
    assert skew_of(np.frombuffer(held, np.uint8, 16, first)) == 0
    assert skew_of(np.frombuffer(held, np.uint8, 16, first + 5)) == 5


@tlx_xdsl.jit
def first_block(source, out):
    at = tl.arange(0, 16)
    tl.store(out + at[:, None] * 16 + at[None, :], source.load([0, 0]))


def test_tma_reads_an_array_but_not_a_view_of_it_that_is_skewed():
    whole, out = np.arange(272, dtype=np.float16), np.zeros((16, 16), np.float16)
    first_block.interpret((1,), TensorDescriptor.from_tensor(whole[:256].reshape(16, 16), [16, 16]), out)
    np.testing.assert_array_equal(out, whole[:256].reshape(16, 16))
    with pytest.raises(CompilationError, match="misaligned TMA: the tensor's address is 2 bytes past"):
        first_block.interpret((1,), TensorDescriptor.from_tensor(whole[1:257].reshape(16, 16), [16, 16]), out)
