"""Attention: in one block, over blocks of keys, with later keys left out, and with rotated positions."""

from __future__ import annotations

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save, softmax

WIDTH = 64
SCALE = WIDTH**-0.5


@ttl.operation(grid=(1, 1))
def one_block_kernel(q, k, v, out):
    """All queries, keys and values are a block each."""
    q_cb = ttl.make_dataflow_buffer_like(q, shape=(1, 2), block_count=1)
    k_cb = ttl.make_dataflow_buffer_like(k, shape=(3, 2), block_count=1)
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(3, 2), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=1)

    @ttl.datamovement()
    def read():
        load(q_cb, q[0:1, 0:2])
        load(k_cb, k[0:3, 0:2])
        load(v_cb, v[0:3, 0:2])

    @ttl.compute()
    def compute():
        with q_cb.wait() as qs, k_cb.wait() as ks, v_cb.wait() as vs, out_cb.reserve() as o:
            scores = qs @ ttl.math.transpose(ks) * SCALE
            most = ttl.math.reduce_max(scores, dims=[1])
            weights = ttl.math.exp(scores - ttl.math.broadcast(most, scores, dims=[1]))
            total = ttl.math.broadcast(ttl.math.reduce_sum(weights, dims=[1]), dims=[1])
            o.store(weights @ vs / total)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:1, 0:2])


def attended(q, k, v, mask=0.0):
    return softmax(q @ k.T * SCALE + mask) @ v


def one_block(dtype: str) -> Case:
    inputs = [numbers(dtype, rows, WIDTH, seed=seed, low=-2, high=2) for seed, rows in enumerate((32, 96, 96))]
    return case(one_block_kernel, inputs, attended)


@ttl.operation(grid=(1, 1))
def online_kernel(q, k, v, out):
    """Blocks of 64 keys; maximum, sum and result so far are corrected with each of them."""
    q_cb = ttl.make_dataflow_buffer_like(q, shape=(1, 2))
    k_cb = ttl.make_dataflow_buffer_like(k, shape=(2, 2))
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(2, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    blocks = k.shape[0] // 64

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(q_cb, q[i : i + 1, 0:2])
            for j in range(blocks):
                load(k_cb, k[2 * j : 2 * j + 2, 0:2])
                load(v_cb, v[2 * j : 2 * j + 2, 0:2])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with q_cb.wait() as qs, out_cb.reserve() as o:
                most = ttl.block.fill(-1e4, shape=(1, 1))
                total = ttl.block.fill(0, shape=(1, 1))
                result = ttl.block.fill(0, shape=(1, 2))
                for _ in range(blocks):
                    with k_cb.wait() as ks, v_cb.wait() as vs:
                        scores = qs @ ttl.math.transpose(ks) * SCALE
                        larger = ttl.math.max(most, ttl.math.reduce_max(scores, dims=[1]))
                        weights = ttl.math.exp(scores - ttl.math.broadcast(larger, scores, dims=[1]))
                        correction = ttl.math.exp(most - larger)
                        total = total * correction + ttl.math.reduce_sum(weights, dims=[1])
                        result = result * ttl.math.broadcast(correction, result, dims=[1]) + weights @ vs
                        most = larger
                o.store(result / ttl.math.broadcast(total, dims=[1]))

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(out_cb, out[i : i + 1, 0:2])


def online(dtype: str) -> Case:
    shapes = ((64, WIDTH), (192, WIDTH), (192, WIDTH))
    inputs = [numbers(dtype, *shape, seed=n, low=-3, high=3) for n, shape in enumerate(shapes)]
    # Scores reach 12 here: to round one to bf16 changes its weight by up to 3 %.
    return case(online_kernel, inputs, attended, tolerance=2e-6 if dtype == "f32" else 0.03)


@ttl.operation(grid=(2, 1))
def causal_kernel(q, k, v, mask, out):
    """A query sees the keys up to its own. Blocks of later keys are not read; two cores take rows in turns."""
    q_cb = ttl.make_dataflow_buffer_like(q, shape=(1, 2))
    k_cb = ttl.make_dataflow_buffer_like(k, shape=(1, 2))
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(1, 2))
    mask_cb = ttl.make_dataflow_buffer_like(mask, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for i in range(core, 3, 2):
            load(q_cb, q[i : i + 1, 0:2])
            for j in range(i + 1):
                load(k_cb, k[j : j + 1, 0:2])
                load(v_cb, v[j : j + 1, 0:2])
                load(mask_cb, mask[i, j])

    @ttl.compute()
    def compute():
        for i in range(core, 3, 2):
            with q_cb.wait() as qs, out_cb.reserve() as o:
                most = ttl.block.fill(-1e4, shape=(1, 1))
                total = ttl.block.fill(0, shape=(1, 1))
                result = ttl.block.fill(0, shape=(1, 2))
                for _ in range(i + 1):
                    with k_cb.wait() as ks, v_cb.wait() as vs, mask_cb.wait() as seen:
                        products = qs @ ttl.math.transpose(ks)
                        scores = ttl.block.where(seen, products * SCALE, ttl.math.fill(products, -1e3))
                        larger = ttl.math.max(most, ttl.math.reduce_max(scores, dims=[1]))
                        weights = ttl.math.exp(scores - ttl.math.broadcast(larger, scores, dims=[1]))
                        correction = ttl.math.exp(most - larger)
                        total = total * correction + ttl.math.reduce_sum(weights, dims=[1])
                        result = result * ttl.math.broadcast(correction, result, dims=[1]) + weights @ vs
                        most = larger
                o.store(result / ttl.math.broadcast(total, dims=[1]))

    @ttl.datamovement()
    def write():
        for i in range(core, 3, 2):
            save(out_cb, out[i : i + 1, 0:2])


def causal(dtype: str) -> Case:
    inputs = [numbers(dtype, 96, WIDTH, seed=seed, low=-2, high=2) for seed in range(3)]
    seen = np.tri(96).astype(inputs[0].dtype)
    return case(causal_kernel, [*inputs, seen], lambda q, k, v, mask: attended(q, k, v, np.where(mask > 0, 0, -np.inf)))


@ttl.operation(grid=(2, 2))
def grouped_kernel(q, k, v, out):
    """Four heads of queries, [head, position, width]; two heads share keys and values. A core has one head."""
    q_cb = ttl.make_dataflow_buffer_like(q, shape=(1, 2, 1), block_count=1)
    k_cb = ttl.make_dataflow_buffer_like(k, shape=(1, 2, 1), block_count=1)
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(1, 2, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2, 1), block_count=1)
    member, group = ttl.node(dims=2)
    head = 2 * group + member

    @ttl.datamovement()
    def read():
        load(q_cb, q[head, 0:2, 0:1])
        load(k_cb, k[group, 0:2, 0:1])
        load(v_cb, v[group, 0:2, 0:1])

    @ttl.compute()
    def compute():
        with q_cb.wait() as qs, k_cb.wait() as ks, v_cb.wait() as vs, out_cb.reserve() as o:
            weights = ttl.math.exp(qs @ ttl.math.transpose(ks) * 32**-0.5)
            total = ttl.math.reduce_sum(weights, dims=[-1])
            o.store(weights @ vs / ttl.math.broadcast(total, dims=[-1]))

    @ttl.datamovement()
    def write():
        save(out_cb, out[head, 0:2, 0:1])


def grouped(dtype: str) -> Case:
    def expected(q, k, v):
        k, v = k.repeat(2, axis=0), v.repeat(2, axis=0)
        return softmax(q @ k.swapaxes(1, 2) * 32**-0.5) @ v

    inputs = [numbers(dtype, heads, 64, 32, seed=seed) for seed, heads in enumerate((4, 2, 2))]
    return case(grouped_kernel, inputs, expected)


@ttl.operation(grid=(1, 2))
def rotary_kernel(x, cosines, sines, out):
    """The first half of each row and the second one are turned together; a core has one row of tiles."""
    half = x.shape[1] // 64
    low_cb = ttl.make_dataflow_buffer_like(x, shape=(1, half))
    high_cb = ttl.make_dataflow_buffer_like(x, shape=(1, half))
    cosine_cb = ttl.make_dataflow_buffer_like(cosines, shape=(1, half))
    sine_cb = ttl.make_dataflow_buffer_like(sines, shape=(1, half))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, half))
    _, row = ttl.node(dims=2)

    @ttl.datamovement()
    def read():
        load(low_cb, x[row : row + 1, 0:half])
        load(high_cb, x[row : row + 1, half : 2 * half])
        load(cosine_cb, cosines[row : row + 1, 0:half])
        load(sine_cb, sines[row : row + 1, 0:half])

    @ttl.compute()
    def compute():
        with low_cb.wait() as low, high_cb.wait() as high, cosine_cb.wait() as cosine, sine_cb.wait() as sine:
            with out_cb.reserve() as o:
                o.store(low * cosine - high * sine)
            with out_cb.reserve() as o:
                o.store(high * cosine + low * sine)

    @ttl.datamovement()
    def write():
        save(out_cb, out[row : row + 1, 0:half])
        save(out_cb, out[row : row + 1, half : 2 * half])


def rotary(dtype: str) -> Case:
    x = numbers(dtype, 64, 128)
    angles = np.arange(64)[:, None] * 100.0 ** -(np.arange(64) / 64)

    def expected(x, cosines, sines):
        low, high = np.split(x, 2, axis=1)
        return np.concatenate([low * cosines - high * sines, high * cosines + low * sines], axis=1)

    return case(rotary_kernel, [x, np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)], expected)


PROGRAMS = [one_block, online, causal, grouped, rotary]
