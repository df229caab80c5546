"""Spellings of scripts for Meta's Triton beyond stock's language."""

# covers: tl.matrix

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl import CompilationError


@tlx_xdsl.jit
def halves(x, PARTS: tl.constexpr):
    if PARTS == 1:
        return (x,)
    left, right = tl.split(tl.trans(tl.reshape(x, (2, x.shape[0] // 2))))
    return halves(left, PARTS // 2) + halves(right, PARTS // 2)


@tlx_xdsl.jit
def sums_of_parts(x_ptr, out_ptr, PARTS: tl.constexpr):
    parts = halves(tl.load(x_ptr + tl.arange(0, 64)), PARTS)
    for i in tl.static_range(PARTS):
        tl.store(out_ptr + i, tl.sum(parts[i]))


@pytest.mark.parametrize("parts", [1, 4])
def test_recursion_over_compile_time_values(parts):
    x, out = np.arange(64, dtype=np.float32), np.zeros(parts, np.float32)
    tlx_xdsl.interpret(sums_of_parts, 1, x, out, parts)
    np.testing.assert_array_equal(out, x.reshape(parts, -1).sum(1))


@tlx_xdsl.jit
def forever(x, N: tl.constexpr):
    return forever(x, N + 1)


@tlx_xdsl.jit
def never_ends(x_ptr):
    tl.store(x_ptr, forever(1.0, 0))


def test_recursion_that_does_not_end():
    with pytest.raises(CompilationError, match="recursion is not possible in a kernel"):
        tlx_xdsl.interpret(never_ends, 1, np.zeros(1, np.float32))


@tlx_xdsl.jit
def add_rows(x_ptr, out_ptr, n, WIDTH: tl.constexpr, STORES: tl.constexpr):
    at = tl.arange(0, WIDTH)
    acc = tl.zeros((WIDTH,), tl.float32)
    for i in tl.range(0, n, WIDTH, multi_cta=True):
        acc += tl.load(x_ptr + i + at, mask=i + at < n, other=0.0)
    total = tl.sum(acc)
    for i in tl.range(0, n, WIDTH, multi_cta=True, data_partition_factor=2):
        x = tl.load(x_ptr + i + at, mask=i + at < n)
        tl.store(x_ptr + i + at, x / total, mask=i + at < n)
        if STORES:
            tl.atomic_add(out_ptr, 1.0)


@pytest.mark.parametrize("ctas", [1, 2, 4])
def test_loops_of_all_ctas_of_a_cluster(ctas):
    x = np.arange(1, 1001, dtype=np.float32)
    expected = x / x.sum()
    tlx_xdsl.interpret(
        add_rows, (1, ctas), x, np.zeros(1, np.float32), 1000, 64, False,
        cluster=(1, ctas, 1), schedule="random", stage="ttgir",
    )  # fmt: skip
    np.testing.assert_allclose(x, expected, rtol=1e-5)


@tlx_xdsl.jit
def greatest_and_product(x_ptr, out_ptr, n, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    greatest, product = tl.full((WIDTH,), float("-inf"), tl.float32), tl.full((WIDTH,), 1.0, tl.float32)
    for i in tl.range(0, n, WIDTH, multi_cta=True):
        x = tl.load(x_ptr + i + at, mask=i + at < n, other=1.0)
        greatest = tl.maximum(greatest, x)
        product *= x
    rank = tlx.cluster_cta_rank()
    tl.store(out_ptr + 2 * rank, tl.max(greatest, axis=0))
    tl.store(out_ptr + 2 * rank + 1, tl.reduce(product, 0, multiply))


@tlx_xdsl.jit
def multiply(a, b):
    return a * b


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_loops_of_all_ctas_that_do_not_add(stage):
    # Each CTA has the whole result, whatever joins the iterations; Meta's compiler divides them, and takes sums only.
    x = np.full(200, 1, np.float32)
    x[[3, 77, 199]] = 2, 4, 0.5
    out = np.zeros((4, 2), np.float32)
    tlx_xdsl.interpret(greatest_and_product, (4,), x, out, 200, 32, cluster=(4, 1, 1), stage=stage)
    np.testing.assert_array_equal(out, [[4, 4]] * 4)


def test_a_loop_of_all_ctas_has_no_other_effects():
    x = np.ones(64, np.float32)
    with pytest.raises(CompilationError, match=r"computes, loads and stores, .* found 'tt.atomic_rmw'"):
        tlx_xdsl.interpret(add_rows, 1, x, x, 64, 64, True)


@tlx_xdsl.jit
def reduce_tile(x_ptr, out_ptr):
    out = tl.make_tensor_descriptor(out_ptr, [16, 32], [32, 1], [16, 32])
    x = tl.make_tensor_descriptor(x_ptr, [16, 32], [32, 1], [16, 32]).load([0, 0])
    out.store([0, 0], x, store_reduce="add")
    out.store([0, 0], x, store_reduce="max")


def test_reducing_stores_by_their_argument():
    x, out = np.full((16, 32), 3, np.float16), np.full((16, 32), -5, np.float16)
    tlx_xdsl.interpret(reduce_tile, 1, x, out)
    assert (out == 3).all()


@tlx_xdsl.jit
def product(x_ptr, out_ptr, TF32: tl.constexpr):
    tf32 = TF32
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x, allow_tf32=tf32, two_ctas=True, attrs=None))


@pytest.mark.parametrize("tf32", [False, True])
def test_hints_of_dots_and_a_flag_that_was_assigned(tf32):
    text = product.compile_text({"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"TF32": tf32}, stage="ttir")
    assert ("inputPrecision = tf32" in text) == tf32


ROWS = tlx.layout(shape=((32, 4), (16,)), stride=((16, 512), (1,)))


@tlx_xdsl.jit
def copy_rows(x_ptr):
    at = tl.arange(0, 128)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tile = tlx.local_alloc((128, 16), tl.float32, 1)
    tlx.local_store(tile[0], tl.load(x_ptr + at))
    tl.store(x_ptr + at, tlx.local_load(tile[0], layout=ROWS) + 1)


def test_a_layout_is_a_constant_of_the_module():
    x = np.zeros((128, 16), np.float32)
    tlx_xdsl.interpret(copy_rows, 1, x)
    assert (x == 1).all()
