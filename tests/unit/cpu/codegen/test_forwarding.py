"""Loads that need no copy, and the ones that do."""

# covers: target.cpu

import functools

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.codegen.native import Guarded, bufferized, compiled, compiled_buffers
from tlx_xdsl.cpu.codegen.forwarding import buffer_of, forwarding
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.codegen.module import llvm_module
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization


@tlx_xdsl.jit
def add(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)


@tlx_xdsl.jit
def swap(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@tlx_xdsl.jit
def normalise(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=-float("inf"))
    tl.store(y + i, tl.exp(a - tl.max(a, axis=0)))


@tlx_xdsl.jit
def softmax(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=-float("inf"))
    e = tl.exp(a - tl.max(a, axis=0))
    tl.store(y + i, e / tl.sum(e, axis=0))


@tlx_xdsl.jit
def count(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.atomic_add(y, 1.0)
    tl.store(y + 1 + i, a + 1.0)


@tlx_xdsl.jit
def repeat(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    for _ in range(n):
        tl.store(x + i, tl.load(y + i))
    tl.store(y + i, a + 1.0)


@tlx_xdsl.jit
def sums_of_rows(x, y, n, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, 8)
    a = tl.load(x + j[:, None] * B + i[None, :], mask=(i[None, :] < n) & (j[:, None] < 5), other=2.0)
    tl.store(y + j, tl.sum(a, axis=1))


@tlx_xdsl.jit
def sums_of_columns(x, y, n, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, 8)
    a = tl.load(x + j[:, None] * B + i[None, :], mask=(i[None, :] < n) & (j[:, None] < 5), other=2.0)
    tl.store(y + i, tl.sum(a, axis=0))


def module_of(kernel):
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32"}
    return plain_module(source_of(kernel), Specialization(signature, {"B": 64}))


@pytest.mark.parametrize(("kernel", "copies", "left_out"), [
    (add, 1, 1),
    # What is loaded first is stored last, after another store.
    (swap, 2, 0),
    # What a nest that writes the user's memory reads beside the mask is no element of it.
    (normalise, 1, 0),
    (softmax, 1, 1),
    (count, 1, 0),
    (repeat, 2, 0),
    (sums_of_rows, 1, 1),
])  # fmt: skip
def test_copies_that_are_left_out(kernel, copies, left_out):
    module = bufferized(module_of(kernel))
    loads = [op for op in module.walk() if isinstance(op, memref.CopyOp) and buffer_of(op.source) is None]
    found = [op for op in forwarding(module).skipped if isinstance(op, memref.CopyOp)]
    assert (len(loads), len(found)) == (copies, left_out)


@functools.cache
def native(kernel):
    return compiled(module_of(kernel))


def run(kernel, x, y, n):
    """The arrays after it, in memory that begins and ends where they do."""
    held = [Guarded(each).array for each in (x, y)]
    assert native(kernel).run((1, 1, 1), [*held, n]) is None
    return held


RANDOM = np.random.default_rng(0).standard_normal(8 * 64, dtype=np.float32)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 64])
def test_elements_beside_the_mask_are_not_touched(n):
    _, y = run(add, RANDOM[:n], np.zeros(n, np.float32), n)
    assert (y == RANDOM[:n] + np.float32(1)).all()


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 64])
def test_masked_elements_are_the_other_value(n):
    _, y = run(normalise, RANDOM[:n], np.zeros(64, np.float32), n)
    expected = np.exp(RANDOM[:n] - RANDOM[:n].max(initial=-np.inf))
    np.testing.assert_allclose(y[:n], expected, rtol=2e-7)
    assert not y[n:].any() if n else np.isnan(y).all()


@pytest.mark.parametrize("n", [1, 16, 40, 64])
@pytest.mark.parametrize(("kernel", "axis"), [(sums_of_rows, 1), (sums_of_columns, 0)])
def test_masks_of_both_dimensions(kernel, axis, n):
    x = RANDOM.reshape(8, 64)
    whole = np.full((8, 64), 2, np.float32)
    whole[:5, :n] = x[:5, :n]
    expected = whole.sum(axis)
    _, y = run(kernel, RANDOM[: 4 * 64 + n], np.zeros(expected.shape, np.float32), n)
    np.testing.assert_allclose(y, expected, rtol=1e-5)


@tlx_xdsl.jit
def sums_of_a_tile(x, y, z, m, n, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, 8)
    a = tl.load(x + j[:, None] * B + i[None, :], mask=(i[None, :] < n) & (j[:, None] < m), other=2.0)
    tl.store(y + i, tl.sum(a, axis=0))
    tl.store(z + j, tl.sum(a, axis=1))


SUMS = {"x": "*fp32", "y": "*fp32", "z": "*fp32", "m": "i32", "n": "i32"}


@pytest.mark.parametrize("m", [-3, 0, 1, 7, 8, 20])
def test_rows_of_a_tile_up_to_a_limit(m):
    made = compiled(plain_module(source_of(sums_of_a_tile), Specialization(SUMS, {"B": 64})))
    for n in (-1, 0, 1, 40, 63, 64, 99):
        rows, columns = np.clip(m, 0, 8), np.clip(n, 0, 64)
        whole = np.full((8, 64), 2, np.float32)
        whole[:rows, :columns] = RANDOM.reshape(8, 64)[:rows, :columns]
        # Nothing lies after the last element that is read.
        last = (rows - 1) * 64 + columns if rows and columns else 0
        x, y, z = (Guarded(each).array for each in (RANDOM[:last], np.zeros(64, np.float32), np.zeros(8, np.float32)))
        assert made.run((1, 1, 1), [x, y, z, m, n]) is None
        np.testing.assert_allclose(y, whole.sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(z, whole.sum(1), rtol=1e-5, atol=1e-5)


@tlx_xdsl.jit
def sums_of_columns_up_to(x, y, m, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, 8)
    a = tl.load(x + j[:, None] * B + i[None, :], mask=(j < m)[:, None], other=2.0)
    tl.store(y + i, tl.sum(a, axis=0))


def test_rows_within_a_limit_have_no_mask():
    signature = {"x": "*fp32", "y": "*fp32", "m": "i32"}
    module = bufferized(plain_module(source_of(sums_of_columns_up_to), Specialization(signature, {"B": 64})))
    text, _ = llvm_module(module, host(), checks=False)
    # Four vectors of sums at a time: an addition waits for the one before.
    assert "= load <64 x float>, ptr" in text


@tlx_xdsl.jit
def decay(x, y, z, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(x + i, a + b, mask=i < n)
    tl.store(y + i, a - b, mask=i < n)


@tlx_xdsl.jit
def decay_of_all(x, y, z, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n, other=0.0), tl.load(y + i, mask=i < n, other=5.0)
    tl.store(x + i, a + b, mask=i < n)
    tl.store(z, tl.sum(b, 0))


@pytest.mark.parametrize(("kernel", "fills"), [(decay, 0), (decay_of_all, 1)])
def test_fills_that_nothing_reads_are_left_out(kernel, fills):
    signature = {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}
    module = bufferized(plain_module(source_of(kernel), Specialization(signature, {"B": 64})))
    skipped = forwarding(module).skipped
    copied = [
        op for op in module.walk() if isinstance(op, memref.CopyOp) and buffer_of(op.target) and op not in skipped
    ]
    kept = {buffer_of(op.target) for op in copied}
    left = [op for op in module.walk() if isinstance(op, linalg.FillOp) and op not in skipped]
    assert copied
    assert sum(buffer_of(op.outputs[0]) in kept for op in left) == fills
    made = compiled_buffers(module)
    for n in (0, 3, 16, 50, 64):
        given = [Guarded(each).array for each in (RANDOM[:n], RANDOM[64 : 64 + n], np.zeros(1, np.float32))]
        assert made.run((1, 1, 1), [*given, n]) is None
        a, b = RANDOM[:n], RANDOM[64 : 64 + n]
        assert (given[0] == a + b).all()
        if kernel is decay:
            assert (given[1] == a - b).all()
        else:
            np.testing.assert_allclose(given[2], b.sum() + 5 * (64 - n), rtol=1e-5)


@tlx_xdsl.jit
def product_of_two_lengths(x, y, out, n, m):
    i = tl.arange(0, 512)
    a, b = tl.load(x + i, mask=i < n, other=2.0), tl.load(y + i, mask=i < m, other=3.0)
    tl.store(out, tl.sum(a * b, axis=0))


@tlx_xdsl.jit
def extremum_of_two_lengths(x, y, out, n, m):
    i, j = tl.arange(0, 512), tl.arange(0, 4)
    a = tl.load(x + j[:, None] * 0 + i[None, :], mask=(i[None, :] < n) & (j[:, None] < 3), other=2.0)
    b = tl.load(y + i, mask=i < m, other=3.0)
    tl.store(out + j, tl.max(tl.exp2(a) - b[None, :], axis=1))


LENGTHS = [-3, 0, 1, 63, 64, 65, 200, 448, 511, 512, 700]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kernel", [product_of_two_lengths, extremum_of_two_lengths])
def test_vectors_without_a_mask_end_where_the_shorter_load_does(kernel, n):
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "m": "i32"}
    made = compiled(plain_module(source_of(kernel), Specialization(signature, {})))
    for m in LENGTHS:
        a, b = np.full(512, 2, np.float32), np.full(512, 3, np.float32)
        given = [np.arange(max(min(each, 512), 0), dtype=np.float32) % 7 for each in (n, m)]
        # Nothing lies after the last element.
        x, y, out = (Guarded(each).array for each in (*given, np.zeros(4, np.float32)))
        assert made.run((1, 1, 1), [x, y, out, n, m]) is None
        a[: len(x)], b[: len(y)] = x, y
        if kernel is product_of_two_lengths:
            assert out[0] == (a * b).sum()
        else:
            assert out.tolist() == [(2**a - b).max()] * 3 + [(4 - b).max()]


def test_where_both_loads_have_elements_there_is_no_mask():
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "m": "i32"}
    module = bufferized(plain_module(source_of(product_of_two_lengths), Specialization(signature, {})))
    text, _ = llvm_module(module, host(), checks=False)
    # One loop of each kind.
    assert (text.count("= load <64 x float>"), text.count("= call <64 x float> @llvm.masked.load")) == (2, 2)


@pytest.mark.parametrize("shift", [-64, -20, -16, -1, 0, 1, 16, 20, 64])
def test_a_load_comes_before_a_store_that_overlaps_it(shift):
    memory = np.arange(64 * 3, dtype=np.float32)
    x, y = memory[64:128], memory[64 + shift : 128 + shift]
    expected = x + 1
    assert native(add).run((1, 1, 1), [x, y, 64]) is None
    assert (y == expected).all()


def test_what_is_exchanged_is_read_first():
    x, y = run(swap, RANDOM[:64], RANDOM[64:128], 64)
    assert (x == RANDOM[64:128]).all()
    assert (y == RANDOM[:64]).all()


@tlx_xdsl.jit
def turned(x, y, n, B: tl.constexpr):
    i = tl.arange(0, 8)
    at = i[:, None] * 8 + i[None, :]
    tl.store(y + at, tl.trans(tl.load(x + at, mask=i[:, None] < n)) + 1.0)


def test_what_is_transposed_in_place_is_read_first():
    memory = RANDOM[:64].copy()
    expected = memory.reshape(8, 8).T + 1
    assert native(turned).run((1, 1, 1), [memory, memory, 8]) is None
    assert (memory.reshape(8, 8) == expected).all()


def test_a_buffer_that_two_copies_write_is_no_forwarded_load():
    kernel = compiled_buffers("""func.func @k(%a: memref<*xf32>, %x: i32, %y: i32, %z: i32)
    attributes {tt.program_ids = 3 : i32, arena.bytes = 128 : i64} {
  %b = memref.alloc() {arena.offset = 0 : i64} : memref<32xf32>
  %high = memref.reinterpret_cast %a to offset: [32], sizes: [16], strides: [1]
      : memref<*xf32> to memref<16xf32, strided<[1], offset: 32>>
  %upper = memref.subview %b[16] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 16>>
  memref.copy %high, %upper : memref<16xf32, strided<[1], offset: 32>> to memref<16xf32, strided<[1], offset: 16>>
  %low = memref.reinterpret_cast %a to offset: [0], sizes: [16], strides: [1]
      : memref<*xf32> to memref<16xf32, strided<[1]>>
  %lower = memref.subview %b[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
  memref.copy %low, %lower : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%b : memref<32xf32>) outs(%b : memref<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %one : f32
    linalg.yield %sum : f32
  }
  %to = memref.reinterpret_cast %a to offset: [64], sizes: [32], strides: [1]
      : memref<*xf32> to memref<32xf32, strided<[1], offset: 64>>
  memref.copy %b, %to : memref<32xf32> to memref<32xf32, strided<[1], offset: 64>>
  func.return
}""")
    a = np.arange(96, dtype=np.float32)
    assert kernel.run((1, 1, 1), [a]) is None
    assert a[64:].tolist() == [*range(1, 17), *range(33, 49)]


def test_what_a_body_gathers_from_is_copied():
    kernel = compiled_buffers("""func.func @k(%a: memref<*xf32>, %x: i32, %y: i32, %z: i32)
    attributes {tt.program_ids = 3 : i32, arena.bytes = 128 : i64} {
  %b = memref.alloc() {arena.offset = 0 : i64} : memref<16xf32>
  %g = memref.alloc() {arena.offset = 64 : i64} : memref<16xf32>
  %from = memref.reinterpret_cast %a to offset: [0], sizes: [16], strides: [1]
      : memref<*xf32> to memref<16xf32, strided<[1]>>
  memref.copy %from, %b : memref<16xf32, strided<[1]>> to memref<16xf32>
  %last = arith.constant 15 : index
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%g : memref<16xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = arith.subi %last, %i : index
    %there = memref.load %b[%j] : memref<16xf32>
    linalg.yield %there : f32
  }
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%b : memref<16xf32>) outs(%b : memref<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %one : f32
    linalg.yield %sum : f32
  }
  %to = memref.reinterpret_cast %a to offset: [16], sizes: [16], strides: [1]
      : memref<*xf32> to memref<16xf32, strided<[1], offset: 16>>
  memref.copy %g, %to : memref<16xf32> to memref<16xf32, strided<[1], offset: 16>>
  %then = memref.reinterpret_cast %a to offset: [32], sizes: [16], strides: [1]
      : memref<*xf32> to memref<16xf32, strided<[1], offset: 32>>
  memref.copy %b, %then : memref<16xf32> to memref<16xf32, strided<[1], offset: 32>>
  func.return
}""")
    a = np.arange(48, dtype=np.float32)
    assert kernel.run((1, 1, 1), [a]) is None
    assert a[16:32].tolist() == [*reversed(range(16))]
    assert a[32:].tolist() == [*range(1, 17)]
