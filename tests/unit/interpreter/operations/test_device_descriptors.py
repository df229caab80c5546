"""Tensor descriptors that a kernel makes in memory of its own, and takes from there."""

# covers: tlx.copies, ttng.tensormap

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Fault

HOPPER = {"target": "sm_90a", "jobs": 1}


@tlx_xdsl.jit
def through(x_ptr, y_ptr, M, N, STRIDE, USE: tl.constexpr):
    """One block of x to y, by a descriptor that is made, or by one that lies in memory."""
    room = tlx.allocate_tensor_descriptor(2)
    x_desc = tlx.make_tensor_descriptor(room[0], x_ptr, [M, N], [STRIDE, 1], [32, 64])
    tlx.make_tensor_descriptor(room[1], y_ptr, [M, N], [STRIDE, 1], [32, 64])
    if USE == "other type":
        y_desc = tlx.reinterpret_tensor_descriptor(room[1], [32, 64], tl.float32)
    else:
        y_desc = tlx.reinterpret_tensor_descriptor(room[1], [32, 64], y_ptr.dtype.element_ty)
    if USE == "memory":
        x_desc = tlx.reinterpret_tensor_descriptor(room[0], [32, 64], x_ptr.dtype.element_ty)
    buffer = tlx.local_alloc((32, 64), x_ptr.dtype.element_ty, 1)
    full = tlx.alloc_barriers(1)
    for row in range(0, M, 32):
        tlx.barrier_expect_bytes(full[0], 4096)
        tlx.async_descriptor_load(x_desc, buffer[0], [row, 0], full[0])
        tlx.barrier_wait(full[0], row // 32 % 2)
        if USE != "other type":
            tlx.async_descriptor_store(y_desc, buffer[0], [row, 0])
            tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize("use", ["", "memory"])
def test_descriptors_in_memory(use):
    x = np.random.default_rng(0).standard_normal((70, 56)).astype(np.float16)
    y = np.zeros_like(x)
    tlx_xdsl.interpret(through, 1, x, y, 70, 50, 56, use, **HOPPER)
    np.testing.assert_array_equal(y[:, :50], x[:, :50])
    assert not y[:, 50:].any()


@pytest.mark.parametrize(
    ("use", "stride", "message"),
    [
        ("other type", 56, "has elements of 2 bytes, expected 4"),
        ("", 50, "the stride of dimension 0 is 100 bytes, no multiple of 16"),
    ],
)
def test_descriptors_that_do_not_fit(use, stride, message):
    x, y = np.zeros((70, 56), np.float16), np.zeros((70, 56), np.float16)
    with pytest.raises(Fault, match=message):
        tlx_xdsl.interpret(through, 1, x, y, 70, 50, stride, use, **HOPPER)
