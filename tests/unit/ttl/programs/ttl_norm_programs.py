"""Normalisations and other programs that reduce rows or columns."""

from __future__ import annotations

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save, softmax


@ttl.operation(grid=(1, 1))
def layer_norm_kernel(x, gain, bias, out):
    """A row of three tiles at a time; gain and bias are rows that stay."""
    columns = x.shape[1]
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 3))
    gain_cb = ttl.make_dataflow_buffer_like(gain, shape=(1, 3), block_count=1)
    bias_cb = ttl.make_dataflow_buffer_like(bias, shape=(1, 3), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 3))

    @ttl.datamovement()
    def read():
        load(gain_cb, gain[0:1, 0:3])
        load(bias_cb, bias[0:1, 0:3])
        for row in range(2):
            load(x_cb, x[row : row + 1, 0:3])

    @ttl.compute()
    def compute():
        with gain_cb.wait() as g, bias_cb.wait() as b:
            for _ in range(2):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    mean = ttl.math.reduce_sum(blk, dims=[1]) * (1 / columns)
                    centred = blk - ttl.math.broadcast(mean, blk, dims=[1])
                    variance = ttl.math.reduce_sum(centred * centred, dims=[1]) * (1 / columns)
                    scale = ttl.math.broadcast(ttl.math.rsqrt(variance + 1e-5), blk, dims=[1])
                    o.store(centred * scale * ttl.math.broadcast(g, blk, dims=[0]) + ttl.math.broadcast(b, dims=[0]))

    @ttl.datamovement()
    def write():
        for row in range(2):
            save(out_cb, out[row : row + 1, 0:3])


def layer_norm(dtype: str) -> Case:
    def expected(x, gain, bias):
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gain + bias

    inputs = [numbers(dtype, 64, 96, low=-1, high=3), numbers(dtype, 1, 96, seed=1), numbers(dtype, 1, 96, seed=2)]
    return case(layer_norm_kernel, inputs, expected)


@ttl.operation(grid=(2, 1))
def rms_norm_kernel(x, gain, out):
    """Tile by tile, each row read twice: for its sum of squares and for its quotients. Core 0 has a row more."""
    tiles = x.shape[1] // 32
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    gain_cb = ttl.make_dataflow_buffer_like(gain, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for row in range(core, 3, 2):
            for j in range(tiles):
                load(x_cb, x[row, j])
            for j in range(tiles):
                load(x_cb, x[row, j])
                load(gain_cb, gain[0, j])

    @ttl.compute()
    def compute():
        for _ in range(core, 3, 2):
            total = ttl.block.fill(0, shape=(1, 1))
            for _ in range(tiles):
                with x_cb.wait() as blk:
                    total += blk * blk
            mean = ttl.math.reduce_sum(total, dims=[1]) * (1 / (32 * tiles))
            scale = ttl.math.rsqrt(mean + 1e-6)
            for _ in range(tiles):
                with x_cb.wait() as blk, gain_cb.wait() as g, out_cb.reserve() as o:
                    wide = ttl.math.broadcast(scale, blk, dims=[1])
                    o.store(blk * wide * ttl.math.broadcast(g, blk, dims=[0]))

    @ttl.datamovement()
    def write():
        for row in range(core, 3, 2):
            for j in range(tiles):
                save(out_cb, out[row, j])


def rms_norm(dtype: str) -> Case:
    inputs = [numbers(dtype, 96, 128), numbers(dtype, 1, 128, seed=1, low=0.5, high=2)]
    return case(rms_norm_kernel, inputs, lambda x, gain: x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) * gain)


@ttl.operation(grid=(1, 1))
def three_readings_kernel(x, out):
    """Softmax of rows that do not fit: one reading for the maximum, one for the sum, one for the result."""
    tiles = x.shape[1] // 64
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))

    @ttl.datamovement()
    def read():
        for _ in range(3):
            for j in range(tiles):
                load(x_cb, x[0:1, 2 * j : 2 * j + 2])

    @ttl.compute()
    def compute():
        most = ttl.block.fill(-1e4, shape=(1, 1))
        for _ in range(tiles):
            with x_cb.wait() as blk:
                most = ttl.math.max(most, ttl.math.reduce_max(blk, dims=[1]))
        total = ttl.block.fill(0, shape=(1, 1))
        for _ in range(tiles):
            with x_cb.wait() as blk:
                total += ttl.math.reduce_sum(ttl.math.exp(blk - ttl.math.broadcast(most, blk, dims=[1])), dims=[1])
        scale = ttl.math.recip(total)
        for _ in range(tiles):
            with x_cb.wait() as blk, out_cb.reserve() as o:
                weights = ttl.math.exp(blk - ttl.math.broadcast(most, blk, dims=[1]))
                o.store(weights * ttl.math.broadcast(scale, blk, dims=[1]))

    @ttl.datamovement()
    def write():
        for j in range(tiles):
            save(out_cb, out[0:1, 2 * j : 2 * j + 2])


def three_readings(dtype: str) -> Case:
    return case(three_readings_kernel, [numbers(dtype, 32, 192, low=-5, high=5)], softmax)


@ttl.operation(grid=(2, 1))
def batch_norm_kernel(x, out):
    """Each core has a column of tiles: its sums and sums of squares, then the normalised numbers."""
    rows = x.shape[0]
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for _ in range(2):
            for i in range(rows // 32):
                load(x_cb, x[i, core])

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(1, 1))
        squares = ttl.block.fill(0, shape=(1, 1))
        for _ in range(rows // 32):
            with x_cb.wait() as blk:
                total += blk
                squares += blk * blk
        mean = ttl.math.reduce_sum(total, dims=[0]) * (1 / rows)
        variance = ttl.math.reduce_sum(squares, dims=[0]) * (1 / rows) - mean * mean
        scale = ttl.math.rsqrt(variance + 1e-5)
        for _ in range(rows // 32):
            with x_cb.wait() as blk, out_cb.reserve() as o:
                centred = blk - ttl.math.broadcast(mean, blk, dims=[0])
                o.store(centred * ttl.math.broadcast(scale, blk, dims=[0]))

    @ttl.datamovement()
    def write():
        for i in range(rows // 32):
            save(out_cb, out[i, core])


def batch_norm(dtype: str) -> Case:
    def expected(x):
        return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)

    return case(batch_norm_kernel, [numbers(dtype, 96, 64)], expected)


@ttl.operation(grid=(1, 1))
def cross_entropy_kernel(scores, chosen, out):
    """Take the logarithm of each row's sum of exponentials, minus the score that a row of one 1 chooses."""
    scores_cb = ttl.make_dataflow_buffer_like(scores, shape=(1, 2))
    chosen_cb = ttl.make_dataflow_buffer_like(chosen, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for row in range(2):
            load(scores_cb, scores[row : row + 1, 0:2])
            load(chosen_cb, chosen[row : row + 1, 0:2])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with scores_cb.wait() as s, chosen_cb.wait() as c, out_cb.reserve() as o:
                most = ttl.math.reduce_max(s, dims=[1])
                total = ttl.math.reduce_sum(ttl.math.exp(s - ttl.math.broadcast(most, s, dims=[1])), dims=[1])
                loss = ttl.math.log(total) + most - ttl.math.reduce_sum(s * c, dims=[1])
                o.store(ttl.block.broadcast(loss, dims=[1], shape=(1, 1)))

    @ttl.datamovement()
    def write():
        for row in range(2):
            save(out_cb, out[row, 0])


def cross_entropy(dtype: str) -> Case:
    def expected(scores, chosen):
        loss = np.log(np.exp(scores).sum(axis=1)) - (scores * chosen).sum(axis=1)
        return np.repeat(loss[:, None], 32, axis=1)

    scores = numbers(dtype, 64, 64, low=-3, high=3)
    chosen = np.eye(64)[np.random.default_rng(0).integers(0, 64, 64)].astype(scores.dtype)
    return case(cross_entropy_kernel, [scores, chosen], expected)


@ttl.operation(grid=(1, 1))
def running_maximum_kernel(x, out):
    """The maximum of each element and all before it in its column of tiles, kept in a buffer of the kernel's own."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    state_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    rows = x.shape[0] // 32

    @ttl.datamovement()
    def read():
        for i in range(rows):
            load(x_cb, x[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        with state_cb.reserve() as state:
            state.store(ttl.block.fill(-100, shape=(1, 2)))
        for _ in range(rows):
            with x_cb.wait() as blk, state_cb.wait() as before:
                most = ttl.math.max(blk, before)
                with state_cb.reserve() as after, out_cb.reserve() as o:
                    after.store(most)
                    o.store(most)
        with state_cb.wait() as last, out_cb.reserve() as o:
            o.store(last + last)

    @ttl.datamovement()
    def write():
        for i in range(rows + 1):
            save(out_cb, out[i : i + 1, 0:2])


def running_maximum(dtype: str) -> Case:
    def expected(x):
        most = np.maximum.accumulate(x.reshape(4, 32, 64), axis=0)
        return np.concatenate([*most, 2 * most[-1]])

    return case(running_maximum_kernel, [numbers(dtype, 128, 64)], expected, tolerance=0)


@ttl.operation(grid=(1, 1))
def prefix_sums_kernel(x, triangle, out):
    """Sums down to each row: a product with ones below the diagonal, plus what all tiles above have."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    triangle_cb = ttl.make_dataflow_buffer_like(triangle, shape=(1, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))

    @ttl.datamovement()
    def read():
        load(triangle_cb, triangle[0, 0])
        for i in range(3):
            load(x_cb, x[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        above = ttl.block.fill(0, shape=(1, 2))
        with triangle_cb.wait() as ones:
            for _ in range(3):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    o.store(ones @ blk + ttl.math.broadcast(above, blk, dims=[0]))
                    above = above + ttl.math.reduce_sum(blk, dims=[0])

    @ttl.datamovement()
    def write():
        for i in range(3):
            save(out_cb, out[i : i + 1, 0:2])


def prefix_sums(dtype: str) -> Case:
    x = numbers(dtype, 96, 64)
    return case(prefix_sums_kernel, [x, np.tri(32).astype(x.dtype)], lambda x, _: np.cumsum(x, axis=0))


@ttl.operation(grid=(1, 2))
def twice_kernel(x, out):
    """A residual between two normalisations, a function of the kernel's; nine tiles are more than DST has."""
    columns = x.shape[1]
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 9))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 9))
    _, core = ttl.node(dims=2)

    def normalised(value):
        mean = ttl.math.reduce_sum(value * value, dims=[1]) * (1 / columns)
        return value * ttl.math.broadcast(ttl.math.rsqrt(mean), value, dims=[1])

    @ttl.datamovement()
    def read():
        load(x_cb, x[core : core + 1, 0:9])

    @ttl.compute()
    def compute():
        with x_cb.wait() as blk, out_cb.reserve() as o:
            o.store(normalised(normalised(blk) + blk))

    @ttl.datamovement()
    def write():
        save(out_cb, out[core : core + 1, 0:9])


def twice(dtype: str) -> Case:
    def normalised(value):
        return value / np.sqrt((value**2).mean(axis=1, keepdims=True))

    return case(twice_kernel, [numbers(dtype, 64, 288)], lambda x: normalised(normalised(x) + x))


PROGRAMS = [
    layer_norm,
    rms_norm,
    three_readings,
    batch_norm,
    cross_entropy,
    running_maximum,
    prefix_sums,
    twice,
]
