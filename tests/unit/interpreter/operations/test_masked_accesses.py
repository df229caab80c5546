"""Masked elements of a load: 0 where the kernel does not say what else, and poison for those who ask for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import Fault

pytestmark = pytest.mark.quick

STAGES = ("frontend", "ttgir")
DTYPES = [
    np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    np.int64, np.uint32, np.int16, np.uint8, np.bool_,
]  # fmt: skip
B = 16


def bits(array: np.ndarray[Any, Any]) -> list[int]:
    return array.view(f"u{array.itemsize}").ravel().tolist()


@tlx_xdsl.jit
def masked(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at, mask=at < n))


@tlx_xdsl.jit
def masked_number(x, out, n):
    tl.store(out, tl.load(x, mask=n > 0))
    tl.store(out + 1, tl.load(x, mask=n > 0, other=1.0))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_0(dtype: type, stage: str):
    x, out, number = np.ones(B, dtype), np.ones(B, dtype), np.full(2, 2, dtype)
    masked.interpret((1,), x, out, 5, stage=stage)
    assert out.tolist() == [1] * 5 + [0] * (B - 5)
    masked_number.interpret((1,), x, number, 0, stage=stage)
    assert number.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_has_every_bit_set_for_those_who_ask(dtype: type):
    x, out = np.ones(B, dtype), np.ones(B, dtype)
    masked.interpret((1,), x, out, 5, unwritten="poison")
    hidden = 1 if dtype is np.bool_ else 256 ** np.dtype(dtype).itemsize - 1
    assert bits(out)[5:] == [hidden] * (B - 5)
    # What the kernel says is not poison.
    number = np.zeros(2, dtype)
    masked_number.interpret((1,), x, number, 0, unwritten="poison")
    assert bits(number)[0] == hidden
    assert number[1] == 1


@pytest.mark.parametrize("stage", ["ptx", "linalg"])
def test_poison_is_refused_where_the_code_makes_it_0(stage: str):
    with pytest.raises(InputError, match=f"unwritten='poison' is not for the stage '{stage}'"):
        masked.interpret((1,), np.ones(B), np.ones(B), 5, unwritten="poison", stage=stage)


@tlx_xdsl.jit
def through_pointers(places, out, n):
    at = tl.arange(0, 16)
    found = tl.load(places + at, mask=at < n)
    tl.store(out + at, found)
    pointers = found.to(tl.pointer_type(tl.float32))
    tl.store(out + 16 + at, tl.load(pointers, mask=found != 0).to(tl.int64))


@pytest.mark.parametrize("stage", STAGES)
def test_a_pointer_is_null(stage: str):
    data = np.full(B, 7, np.float32)
    places, out = np.full(B, data.ctypes.data, np.int64), np.full(2 * B, 5)
    through_pointers.interpret((1,), places, out, 3, stage=stage, reachable=[data])
    assert out[3:16].tolist() == [0] * 13
    assert out[16:].tolist() == [7] * 3 + [0] * 13


@tlx_xdsl.jit
def atomics(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.atomic_add(x + at, 1, mask=at < n))
    tl.store(out + 16 + at, tl.atomic_load(x + at, mask=at < n))
    tl.store(out + 32, tl.atomic_load(x, mask=n < 0))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32, np.int64])
def test_atomic_operations_give_0(dtype: type, stage: str):
    x, out = np.full(B, 4, dtype), np.full(33, 9, dtype)
    atomics.interpret((1,), x, out, 3, stage=stage)
    assert out.tolist() == [4] * 3 + [0] * 13 + [5] * 3 + [0] * 13 + [0]
    assert x.tolist() == [5] * 3 + [4] * 13
    x[:] = 4
    atomics.interpret((1,), x, out, 3, unwritten="poison")
    assert bits(out[3:16]) == bits(out[19:32]) == [256**x.itemsize - 1] * 13


@tlx_xdsl.jit
def atomic_number(x, out, n):
    tl.store(out, tl.atomic_add(x, 1, mask=n > 0))


def test_a_masked_atomic_operation_on_a_number_may_give_anything():
    """One thread hands the number to the others in shared memory, where it writes nothing if the mask is false."""
    x, out = np.full(1, 4, np.int32), np.zeros(1, np.int32)
    atomic_number.interpret((1,), x, out, 0)
    assert (x[0], out[0]) == (4, -1)
    atomic_number.interpret((1,), x, out, 1)
    assert (x[0], out[0]) == (5, 4)


@tlx_xdsl.jit
def descriptors(zeros, nans, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + at, zeros.load([0, 0]))
    tl.store(out + 256 + at, nans.load([0, 0]))


@tlx_xdsl.jit
def block_pointers(x, out, n):
    at = tl.arange(0, 16)
    inside = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(out + at, tl.load(inside, boundary_check=(0,)))
    tl.store(out + 16 + at, tl.load(inside, boundary_check=(0,), padding_option="zero"))
    tl.store(out + 32 + at, tl.load(inside, boundary_check=(0,), padding_option="nan"))


@pytest.mark.parametrize("unwritten", ["error", "poison"])
def test_what_pads_a_block_is_no_mask(unwritten: str):
    """A descriptor says what lies beyond its tensor; a block pointer without padding does not."""
    x, out = np.ones((3, 16), np.float32), np.full((32, 16), 5, np.float32)
    zeros = tlx_xdsl.TensorDescriptor.from_tensor(x, [16, 16])
    nans = tlx_xdsl.TensorDescriptor.from_tensor(x, [16, 16], padding="nan")
    descriptors.interpret((1,), zeros, nans, out, unwritten=unwritten)
    assert (out[:3] == 1).all()
    assert (out[3:16] == 0).all()
    assert np.isnan(out[19:]).all()
    flat, found = np.ones(16, np.float32), np.full(48, 5, np.float32)
    block_pointers.interpret((1,), flat, found, 3, unwritten=unwritten)
    assert (found[19:32] == 0).all()
    assert np.isnan(found[35:]).all()
    assert np.isnan(found[3:16]).all() if unwritten == "poison" else (found[3:16] == 0).all()


@tlx_xdsl.jit
def copies(x, out, n):
    at = tl.arange(0, 16)
    buffers = tlx.local_alloc((16,), tl.float32, 2)
    first = tlx.async_load(x + at, buffers[0], mask=at < n)
    second = tlx.async_load(x + at, buffers[1], mask=at < n, other=3.0)
    tlx.async_load_commit_group([first, second])
    tlx.async_load_wait_group(0)
    tl.store(out + at, tlx.local_load(buffers[0]))
    tl.store(out + 16 + at, tlx.local_load(buffers[1]))


@pytest.mark.parametrize("unwritten", ["error", "poison"])
@pytest.mark.parametrize("stage", STAGES)
def test_copies_fill_with_0(stage: str, unwritten: str):
    """PTX's `cp.async` writes zeros for the bytes that it does not read."""
    x, out = np.ones(B, np.float32), np.full(2 * B, 5, np.float32)
    copies.interpret((1,), x, out, 3, stage=stage, unwritten=unwritten)
    assert out.tolist() == [1] * 3 + [0] * 13 + [1] * 3 + [3] * 13


@tlx_xdsl.jit
def gathered(x, places, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(places + at, mask=at < n), 0))


@pytest.mark.parametrize("stage", STAGES)
def test_an_index_is_0_and_minus_1_is_outside(stage: str):
    x, places, out = np.arange(16.0), np.full(16, 2, np.int32), np.zeros(16)
    gathered.interpret((1,), x, places, out, 5, stage=stage)
    assert out.tolist() == [2.0] * 5 + [0.0] * 11
    gathered.interpret((1,), x, places, out, 5, stage=stage, unwritten="poison")
    assert np.isnan(out[5:]).all()
    places[1] = -1
    with pytest.raises(Fault, match=r"index -1 \(element \[1\] of the indices\) is outside of the 16 elements"):
        gathered.interpret((1,), x, places, out, 5, stage=stage)
