"""Programs of elements: choices between values, steps of optimisers, integers, block floats, and mixed types."""

from __future__ import annotations

from typing import Annotated, Any

import ml_dtypes
import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save, wide
from tlx_xdsl.ttl.tiles import from_pages, to_pages


@ttl.operation(grid=(1, 1))
def huber_kernel(x, y, loss, slope):
    """Square of small differences and magnitude of large ones, and the derivative: two results of one value."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))
    loss_cb = ttl.make_dataflow_buffer_like(loss, shape=(1, 2))
    slope_cb = ttl.make_dataflow_buffer_like(slope, shape=(1, 2))

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(x_cb, x[i : i + 1, 0:2])
            load(y_cb, y[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as a, y_cb.wait() as b, loss_cb.reserve() as o, slope_cb.reserve() as s:
                difference = a - b
                size = abs(difference)
                o.store(ttl.block.where(ttl.math.relu(size - 1.0), size - 0.5, difference * difference * 0.5))
                s.store(ttl.math.clamp(difference, -1, 1))

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(loss_cb, loss[i : i + 1, 0:2])
            save(slope_cb, slope[i : i + 1, 0:2])


def huber(dtype: str) -> Case:
    def expected(x, y):
        size = abs(x - y)
        return np.where(size > 1, size - 0.5, size**2 / 2), np.clip(x - y, -1, 1)

    return case(huber_kernel, [numbers(dtype, 64, 64, high=2), numbers(dtype, 64, 64, seed=1, low=-2)], expected)


@ttl.operation(grid=(2, 1))
def dropout_kernel(x, dropped, residual, out):
    """Elements with a mark become zero, the others grow; then a residual is added."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    dropped_cb = ttl.make_dataflow_buffer_like(dropped, shape=(1, 1))
    residual_cb = ttl.make_dataflow_buffer_like(residual, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(x_cb, x[i, core])
            load(dropped_cb, dropped[i, core])
            load(residual_cb, residual[i, core])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as a, dropped_cb.wait() as d, residual_cb.wait() as r, out_cb.reserve() as o:
                o.store(ttl.block.mask(a * 1.25, d) + r)

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(out_cb, out[i, core])


def dropout(dtype: str) -> Case:
    x, residual = numbers(dtype, 64, 64), numbers(dtype, 64, 64, seed=1)
    dropped = (np.random.default_rng(0).random(x.shape) < 0.2).astype(x.dtype)
    return case(dropout_kernel, [x, dropped, residual], lambda x, d, r: np.where(d > 0, 0, 1.25 * x) + r)


@ttl.operation(grid=(1, 1))
def adam_kernel(weights, gradient, mean, square, new_weights, new_mean, new_square):
    """A step of Adam: three results, of which the first one reads the others."""
    weights_cb = ttl.make_dataflow_buffer_like(weights, shape=(1, 2))
    gradient_cb = ttl.make_dataflow_buffer_like(gradient, shape=(1, 2))
    mean_cb = ttl.make_dataflow_buffer_like(mean, shape=(1, 2))
    square_cb = ttl.make_dataflow_buffer_like(square, shape=(1, 2))
    w_cb = ttl.make_dataflow_buffer_like(weights, shape=(1, 2))
    m_cb = ttl.make_dataflow_buffer_like(mean, shape=(1, 2))
    s_cb = ttl.make_dataflow_buffer_like(square, shape=(1, 2))

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(weights_cb, weights[i : i + 1, 0:2])
            load(gradient_cb, gradient[i : i + 1, 0:2])
            load(mean_cb, mean[i : i + 1, 0:2])
            load(square_cb, square[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with weights_cb.wait() as w, gradient_cb.wait() as g, mean_cb.wait() as m, square_cb.wait() as s:
                first = m * 0.9 + g * 0.1
                second = s * 0.99 + g**2 * 0.01
                with m_cb.reserve() as o:
                    o.store(first)
                with s_cb.reserve() as o:
                    o.store(second)
                with w_cb.reserve() as o:
                    o.store(w - 0.1 * first / (ttl.math.sqrt(second) + 1e-3))

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(m_cb, new_mean[i : i + 1, 0:2])
            save(s_cb, new_square[i : i + 1, 0:2])
            save(w_cb, new_weights[i : i + 1, 0:2])


def adam(dtype: str) -> Case:
    def expected(w, g, m, s):
        first, second = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g**2
        return w - 0.1 * first / (np.sqrt(second) + 1e-3), first, second

    inputs = [numbers(dtype, 64, 64, seed=seed) for seed in range(3)]
    return case(adam_kernel, [*inputs, numbers(dtype, 64, 64, seed=3, low=0.2)], expected)


LEAVES = 12


@ttl.operation(grid=(1, 1))
def wide_tree_kernel(x, y, out):
    """Twelve values are alive at once, more than DST has registers of 32 bits: the compiler keeps some elsewhere."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))

    @ttl.datamovement()
    def read():
        load(x_cb, x[0:1, 0:2])
        load(y_cb, y[0:1, 0:2])

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, y_cb.wait() as b, out_cb.reserve() as o:
            values = [ttl.math.sigmoid(a * (0.25 * n) + b) for n in range(LEAVES)]
            products, total = values[0] * values[-1], values[0]
            for left, right in zip(values[1 : LEAVES // 2], values[-2 : LEAVES // 2 - 1 : -1], strict=True):
                products = products + left * right
            for value in values[1:]:
                total = total + value
            o.store(products / total)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:1, 0:2])


def wide_tree(dtype: str) -> Case:
    def expected(x, y):
        values = 1 / (1 + np.exp(-(np.arange(LEAVES)[:, None, None] * 0.25 * x + y)))
        return (values[: LEAVES // 2] * values[LEAVES // 2 :][::-1]).sum(axis=0) / values.sum(axis=0)

    return case(wide_tree_kernel, [numbers(dtype, 32, 64), numbers(dtype, 32, 64, seed=1)], expected)


@ttl.operation(grid=(1, 1))
def sorted_kernel(x, out):
    """Four tiles, sorted element by element with five pairs of minimum and maximum."""
    parts = [ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=1) for _ in range(4)]
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for number, part in enumerate(parts):
            load(part, x[number, 0])

    @ttl.compute()
    def compute():
        first, second, third, fourth = parts
        with first.wait() as a, second.wait() as b, third.wait() as c, fourth.wait() as d:
            low, high = ttl.math.min(a, b), ttl.math.max(a, b)
            lower, higher = ttl.math.min(c, d), ttl.math.max(c, d)
            left, right = ttl.math.max(low, lower), ttl.math.min(high, higher)
            for value in (
                ttl.math.min(low, lower),
                ttl.math.min(left, right),
                ttl.math.max(left, right),
                ttl.math.max(high, higher),
            ):
                with out_cb.reserve() as o:
                    o.store(value)

    @ttl.datamovement()
    def write():
        for number in range(4):
            save(out_cb, out[number, 0])


def sorted_tiles(dtype: str) -> Case:
    if dtype == "i32":
        x = np.random.default_rng(0).integers(-(2**31), 2**31, (128, 32)).astype(np.int32)
    else:
        x = numbers(dtype, 128, 32)
    types = [np.int32] if dtype == "i32" else ()
    return case(
        sorted_kernel, [x], lambda x: np.sort(x.reshape(4, 32, 32), axis=0).reshape(128, 32), tolerance=0,
        out_types=types,
    )  # fmt: skip


@ttl.operation(grid=(1, 1))
def mixed_product_kernel(a, b, scale, out):
    """A product of bf16, summed in f32, times a row of f32."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 2))
    scale_cb = ttl.make_dataflow_buffer_like(scale, shape=(1, 2))
    sum_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))

    @ttl.datamovement()
    def read():
        for k in range(4):
            load(a_cb, a[0:2, k : k + 1])
            load(b_cb, b[k : k + 1, 0:2])
        load(scale_cb, scale[0:1, 0:2])

    @ttl.compute()
    def compute():
        with sum_cb.reserve() as total:
            for _ in range(4):
                with a_cb.wait() as x, b_cb.wait() as y:
                    total += x @ y
        with sum_cb.wait() as total, scale_cb.wait() as row, out_cb.reserve() as o:
            o.store(total * ttl.math.broadcast(row, o, dims=[0]))

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:2])


def mixed_product(_dtype: str) -> Case:
    inputs = [numbers("bf16", 64, 128), numbers("bf16", 128, 64, seed=1), numbers("f32", 1, 64, seed=2)]
    return case(mixed_product_kernel, inputs, lambda a, b, scale: a @ b * scale, tolerance=1e-6, out_types=[np.float32])


WEIGHTS = ttl.tensor((96, 64), ttl.bfloat8_b)


@ttl.operation(grid=(1, 1))
def block_float_kernel(x: Any, weights: Annotated[Any, WEIGHTS], bias: Any, out: Any):
    """Activations of bf16 with weights of eight bits: silu(x @ weights + bias)."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 3))
    weights_cb = ttl.make_dataflow_buffer_like(weights, shape=(3, 2), block_count=1)
    bias_cb = ttl.make_dataflow_buffer_like(bias, shape=(1, 2), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))

    @ttl.datamovement()
    def read():
        load(weights_cb, weights[0:3, 0:2])
        load(bias_cb, bias[0:1, 0:2])
        for i in range(2):
            load(x_cb, x[i : i + 1, 0:3])

    @ttl.compute()
    def compute():
        with weights_cb.wait() as w, bias_cb.wait() as b:
            for _ in range(2):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    o.store(ttl.math.silu(blk @ w + ttl.math.broadcast(b, o, dims=[0])))

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(out_cb, out[i : i + 1, 0:2])


def block_float(_dtype: str) -> Case:
    inputs = [numbers("bf16", 64, 96), numbers("f32", 96, 64, seed=1), numbers("bf16", 1, 64, seed=2)]
    x, weights, bias = inputs
    held = from_pages(to_pages(weights, "bfp8_b"), weights.shape, "bfp8_b")
    assert (held != weights).any()
    before, row = wide(x, bias)
    sums = before @ held.astype(np.float64) + row
    return Case(
        block_float_kernel, inputs, [sums / (1 + np.exp(-sums))], tolerance=0.015, out_types=[ml_dtypes.bfloat16]
    )


@ttl.operation(grid=(1, 1))
def counted_kernel(x, limit, out):
    """Count the tiles above the limit at each place of a tile, in int32."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    limit_cb = ttl.make_dataflow_buffer_like(limit, shape=(1, 1), block_count=1)
    count_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        load(limit_cb, limit[0, 0])
        for i in range(5):
            load(x_cb, x[i, 0])

    @ttl.compute()
    def compute():
        with limit_cb.wait() as most:
            with count_cb.reserve() as count:
                count.store(ttl.math.fill(most, 0))
            for _ in range(5):
                with x_cb.wait() as blk, count_cb.wait() as before, count_cb.reserve() as after:
                    after.store(before + ttl.math.min(ttl.math.relu(blk - most), ttl.math.fill(most, 1)))
        with count_cb.wait() as count, out_cb.reserve() as o:
            o.store(count)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0, 0])


def counted(_dtype: str) -> Case:
    chance = np.random.default_rng(0)
    inputs = [chance.integers(-1000, 1000, (rows, 32)).astype(np.int32) for rows in (160, 32)]
    return case(
        counted_kernel, inputs, lambda x, limit: (x.reshape(5, 32, 32) > limit).sum(axis=0), tolerance=0,
        out_types=[np.int32],
    )  # fmt: skip


@ttl.operation(grid=(2, 1))
def histogram_kernel(x, out):
    """Count the numbers of each column in each of four ranges: sums of int32 that a loop carries."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for _ in range(4):
            for i in range(3):
                load(x_cb, x[i, core])

    @ttl.compute()
    def compute():
        for number in (0, 1, 2, 3):
            count = ttl.block.fill(0, shape=(1, 1))
            for _ in range(3):
                with x_cb.wait() as blk:
                    one = ttl.math.fill(blk, 1)
                    above = ttl.math.min(ttl.math.relu(blk - ttl.math.fill(blk, 250 * number - 501)), one)
                    count += above - ttl.math.min(ttl.math.relu(blk - ttl.math.fill(blk, 250 * number - 251)), one)
            with out_cb.reserve() as o:
                o.store(count)

    @ttl.datamovement()
    def write():
        for number in range(4):
            save(out_cb, out[number, core])


def histogram(_dtype: str) -> Case:
    x = np.random.default_rng(0).integers(-500, 500, (96, 64)).astype(np.int32)

    def expected(x):
        tiles = x.reshape(3, 32, 64)
        return np.concatenate([(tiles // 250 == number - 2).sum(axis=0) for number in range(4)])

    return case(histogram_kernel, [x], expected, tolerance=0, out_types=[np.int32])


@ttl.operation(grid=(1, 1))
def quantised_kernel(x, scale, whole, back):
    """Numbers over a scale of each row, as whole numbers of int32 in [-127, 127], and what they stand for."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    scale_cb = ttl.make_dataflow_buffer_like(scale, shape=(1, 1))
    whole_cb = ttl.make_dataflow_buffer_like(whole, shape=(1, 2))
    back_cb = ttl.make_dataflow_buffer_like(back, shape=(1, 2))

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(x_cb, x[i : i + 1, 0:2])
            load(scale_cb, scale[i, 0])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as blk, scale_cb.wait() as s, whole_cb.reserve() as w, back_cb.reserve() as b:
                step = ttl.math.broadcast(s, blk, dims=[1])
                steps = ttl.math.floor(ttl.math.clamp(blk / step, -127, 127) + 0.5)
                w.store(ttl.math.typecast(steps, ttl.int32))
                b.store(steps * step)

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(whole_cb, whole[i : i + 1, 0:2])
            save(back_cb, back[i : i + 1, 0:2])


def quantised(dtype: str) -> Case:
    """Inputs whose quotients are exact, and far from halves: a step that is a power of two, and quarters of it."""
    chance = np.random.default_rng(0)
    x = chance.integers(-150, 150, (64, 64)) + chance.choice([0, 0.25], (64, 64))
    step = 2.0 ** chance.integers(-3, 3, (64, 1))
    inputs = [each.astype(numbers(dtype, 1).dtype) for each in (np.trunc(x) * step, step)]

    def expected(x, step):
        steps = np.floor(np.clip(x / step, -127, 127) + 0.5)
        return steps, steps * step

    return case(quantised_kernel, inputs, expected, tolerance=0, out_types=[np.int32, inputs[0].dtype])


PROGRAMS = [huber, dropout, adam, wide_tree, quantised, sorted_tiles]
OF_ONE_TYPE = [mixed_product, block_float, counted, histogram]
