"""Programs around products of matrices: layers, iterations, distances, and sums over K."""

from __future__ import annotations

import math

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save


@ttl.operation(grid=(2, 1))
def mlp_kernel(x, w1, b1, w2, b2, out):
    """gelu(x @ w1 + b1) @ w2 + b2; a core has a row of tiles, the hidden layer stays on it."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2), block_count=1)
    w1_cb = ttl.make_dataflow_buffer_like(w1, shape=(2, 3), block_count=1)
    b1_cb = ttl.make_dataflow_buffer_like(b1, shape=(1, 3), block_count=1)
    w2_cb = ttl.make_dataflow_buffer_like(w2, shape=(3, 1), block_count=1)
    b2_cb = ttl.make_dataflow_buffer_like(b2, shape=(1, 1), block_count=1)
    hidden_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 3), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1)
    row = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        load(x_cb, x[row : row + 1, 0:2])
        load(w1_cb, w1[0:2, 0:3])
        load(b1_cb, b1[0:1, 0:3])

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, w1_cb.wait() as w, b1_cb.wait() as b, hidden_cb.reserve() as h:
            h.store(ttl.math.gelu(a @ w + ttl.math.broadcast(b, h, dims=[0])))
        with hidden_cb.wait() as h, w2_cb.wait() as w, b2_cb.wait() as b, out_cb.reserve() as o:
            o.store(h @ w + ttl.math.broadcast(b, o, dims=[0]))

    @ttl.datamovement()
    def write():
        load(w2_cb, w2[0:3, 0:1])
        load(b2_cb, b2[0:1, 0:1])
        save(out_cb, out[row, 0])


def mlp(dtype: str) -> Case:
    def expected(x, w1, b1, w2, b2):
        h = x @ w1 + b1
        return h * (1 + np.vectorize(math.erf)(h / 2**0.5)) / 2 @ w2 + b2

    shapes = ((64, 64), (64, 96), (1, 96), (96, 32), (1, 32))
    return case(mlp_kernel, [numbers(dtype, *shape, seed=n) for n, shape in enumerate(shapes)], expected)


@ttl.operation(grid=(1, 1))
def onto_bias_kernel(a, b, bias, out):
    """The result's block begins with the bias; each step of K is added to it."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 2))
    bias_cb = ttl.make_dataflow_buffer_like(bias, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))
    steps = a.shape[1] // 32

    @ttl.datamovement()
    def read():
        for column in range(2):
            load(bias_cb, bias[0:1, 2 * column : 2 * column + 2])
            for k in range(steps):
                load(a_cb, a[0:2, k : k + 1])
                load(b_cb, b[k : k + 1, 2 * column : 2 * column + 2])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with out_cb.reserve() as o:
                with bias_cb.wait() as blk:
                    o.store(ttl.math.broadcast(blk, o, dims=[0]))
                for _ in range(steps):
                    with a_cb.wait() as x, b_cb.wait() as y:
                        o += x @ y

    @ttl.datamovement()
    def write():
        for column in range(2):
            save(out_cb, out[0:2, 2 * column : 2 * column + 2])


def onto_bias(dtype: str) -> Case:
    shapes = ((64, 128), (128, 128), (1, 128))
    inputs = [numbers(dtype, *shape, seed=n) for n, shape in enumerate(shapes)]
    return case(onto_bias_kernel, inputs, lambda a, b, bias: a @ b + bias)


@ttl.operation(grid=(1, 1))
def gated_kernel(x, gate, up, out):
    """silu(x @ gate) * (x @ up): one loop over K carries both sums."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 1))
    gate_cb = ttl.make_dataflow_buffer_like(gate, shape=(1, 2))
    up_cb = ttl.make_dataflow_buffer_like(up, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))

    @ttl.datamovement()
    def read():
        for k in range(3):
            load(x_cb, x[0:2, k : k + 1])
            load(gate_cb, gate[k : k + 1, 0:2])
            load(up_cb, up[k : k + 1, 0:2])

    @ttl.compute()
    def compute():
        gated = ttl.block.fill(0, shape=(2, 2))
        product = ttl.block.fill(0, shape=(2, 2))
        for _ in range(3):
            with x_cb.wait() as a, gate_cb.wait() as g, up_cb.wait() as u:
                gated += a @ g
                product += a @ u
        with out_cb.reserve() as o:
            o.store(ttl.math.silu(gated) * product)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:2])


def gated(dtype: str) -> Case:
    def expected(x, gate, up):
        left = x @ gate
        return left / (1 + np.exp(-left)) * (x @ up)

    shapes = ((64, 96), (96, 64), (96, 64))
    return case(gated_kernel, [numbers(dtype, *shape, seed=n) for n, shape in enumerate(shapes)], expected)


@ttl.operation(grid=(1, 1))
def gram_kernel(x, out):
    """The products of all columns of `x`, summed over its rows."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))

    @ttl.datamovement()
    def read():
        for i in range(3):
            load(x_cb, x[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(2, 2))
        for _ in range(3):
            with x_cb.wait() as blk:
                total += ttl.math.transpose(blk) @ blk
        with out_cb.reserve() as o:
            o.store(total * (1 / 96))

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:2])


def gram(dtype: str) -> Case:
    return case(gram_kernel, [numbers(dtype, 96, 64)], lambda x: x.T @ x / 96)


@ttl.operation(grid=(1, 1))
def newton_schulz_kernel(x, out):
    """Five steps x = 1.5 x - 0.5 x x^T x, towards a matrix whose rows are orthogonal."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))

    @ttl.datamovement()
    def read():
        load(x_cb, x[0:1, 0:2])

    @ttl.compute()
    def compute():
        with x_cb.wait() as first, out_cb.reserve() as o:
            current = first * 1.0
            for _ in range(5):
                square = current @ ttl.math.transpose(current)
                current = current * 1.5 - square @ current * 0.5
            o.store(current)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:1, 0:2])


def newton_schulz(dtype: str) -> Case:
    def expected(x):
        for _ in range(5):
            x = 1.5 * x - 0.5 * (x @ x.T @ x)
        return x

    return case(newton_schulz_kernel, [numbers(dtype, 32, 64, low=-0.2, high=0.2)], expected)


@ttl.operation(grid=(1, 1))
def reflection_kernel(a, v, out):
    """a - 2 v (v^T a), of a column `v` of length 1: products come as broadcasts and a sum down the columns."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=1)
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(2, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=1)

    @ttl.datamovement()
    def read():
        load(a_cb, a[0:2, 0:2])
        load(v_cb, v[0:2, 0:1])

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, v_cb.wait() as column, out_cb.reserve() as o:
            wide = ttl.math.broadcast(column, x, dims=[1])
            sums = ttl.math.reduce_sum(wide * x, dims=[0])
            o.store(x - 2.0 * wide * ttl.math.broadcast(sums, x, dims=[0]))

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:2])


def reflection(dtype: str) -> Case:
    a, v = numbers(dtype, 64, 64), numbers(dtype, 64, 1, seed=1)
    v = (v / np.linalg.norm(v.astype(np.float64))).astype(a.dtype)
    return case(reflection_kernel, [a, v], lambda a, v: a - 2 * v * (v * a).sum(axis=0))


@ttl.operation(grid=(1, 1))
def distances_kernel(x, y, out):
    """Distances of all rows of `x` to all of `y`: |x|^2 + |y|^2 - 2 x y^T, and its root."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 1))
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(2, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))

    @ttl.datamovement()
    def read():
        load(x_cb, x[0:2, 0:1])
        load(y_cb, y[0:2, 0:1])

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, y_cb.wait() as b, out_cb.reserve() as o:
            of_x = ttl.math.reduce_sum(a * a, dims=[1])
            of_y = ttl.math.transpose(ttl.math.reduce_sum(b * b, dims=[1]))
            squares = ttl.math.broadcast(of_x, o, dims=[1]) + ttl.math.broadcast(of_y, o, dims=[0])
            o.store(ttl.math.sqrt(squares - 2.0 * (a @ ttl.math.transpose(b))))

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:2])


def distances(dtype: str) -> Case:
    def expected(x, y):
        return np.linalg.norm(x[:, None] - y[None], axis=2)

    return case(distances_kernel, [numbers(dtype, 64, 32), numbers(dtype, 64, 32, seed=1)], expected)


PROGRAMS = [mlp, onto_bias, gated, gram, newton_schulz, reflection, distances]
