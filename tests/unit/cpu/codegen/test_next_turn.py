"""Addresses that kernels ask the cache for ahead: a function in the place of the prefetch notes the addresses.

The oracle is where numpy says that the next row lies. Arrays end at a page that may not be touched.
"""

# covers: target.cpu

import ctypes

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.codegen.native import Guarded, Native, bufferized
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.codegen.llvm import load, optimized
from tlx_xdsl.cpu.codegen.module import CpuObject, llvm_module
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization


@tlx_xdsl.jit
def scaled(x, y, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * stride + i
    a = tl.load(x + at, mask=i < n, other=0.0)
    tl.store(y + at, a * tl.sum(a, 0), mask=i < n)


@tlx_xdsl.jit
def in_a_loop(x, y, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in range(1, 6, 2):
        a = tl.load(x + row * stride + i, mask=i < n, other=0.0)
        tl.store(y + row * stride + i, a * tl.sum(a, 0), mask=i < n)


@tlx_xdsl.jit
def read_once(x, y, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.program_id(0) * stride + i
    tl.store(y + at, 2.0 * tl.load(x + at, mask=i < n), mask=i < n)


@tlx_xdsl.jit
def the_same_row(x, y, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + tl.program_id(0) * stride + i, a * tl.sum(a, 0), mask=i < n)


@tlx_xdsl.jit
def squares(x, y, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + tl.program_id(0) * tl.program_id(0) * stride + i, mask=i < n, other=0.0)
    tl.store(y + tl.program_id(0) * stride + i, a * tl.sum(a, 0), mask=i < n)


ROWS = 6
PITCH = 100


def fetched(kernel, n, block=64):
    """The bytes from the beginning of x that each prefetch asks for, and the result, of a run on rows of ones."""
    module = plain_module(
        source_of(kernel),
        Specialization({"x": "*fp32", "y": "*fp32", "stride": "i32", "n": "i32"}, {"B": block}),
    )
    text, metadata = llvm_module(bufferized(module), host(), checks=False)
    code = optimized(text.replace("@llvm.prefetch.p0", "@note"), 2).object_code()
    found: list[int] = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int32] * 3)(lambda at, *_: found.append(at))
    pitch = max(PITCH, n)
    x, y = (Guarded(np.full((ROWS, pitch), value, np.float32).reshape(-1)) for value in (1, 0))
    native = Native(CpuObject(code, metadata), load(code, metadata.symbol, {"note": note}))
    programs = 1 if kernel is in_a_loop else 2 if kernel is squares else ROWS
    assert native.run((programs, 1, 1), [x.array, y.array, pitch, n]) is None
    x.check()
    y.check()
    return [at - x.array.ctypes.data for at in found], y.array.reshape(ROWS, pitch)


def test_the_second_walk_over_a_row_asks_for_the_row_of_the_next_program():
    found, result = fetched(scaled, 50)
    # Three whole vectors of 16 elements, each a line of the cache; the rest of the row has a mask.
    assert found == [4 * ((row + 1) * PITCH + 16 * line) for row in range(ROWS) for line in range(3)]
    assert (result[:, :50] == 50).all()
    assert not result[:, 50:].any()


def test_a_loop_asks_for_the_row_of_its_next_turn():
    found, result = fetched(in_a_loop, 64)
    assert found == [4 * ((row + 2) * PITCH + 16 * line) for row in (1, 3, 5) for line in range(4)]
    assert (result[1::2, :64] == 64).all()
    assert not result[::2].any()


@pytest.mark.parametrize("kernel", [read_once, the_same_row, squares])
def test_other_kernels_ask_for_nothing(kernel):
    found, result = fetched(kernel, 64)
    assert found == []
    assert (result[0, :64] == (2 if kernel is read_once else 64)).all()


@pytest.mark.parametrize(("block", "asks"), [(1 << 14, True), (1 << 15, False)])
def test_a_block_that_fills_the_second_cache_is_not_fetched(block, asks):
    found, result = fetched(scaled, block, block)
    assert bool(found) is asks
    assert (result == block).all()
