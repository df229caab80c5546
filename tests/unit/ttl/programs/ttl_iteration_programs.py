"""Programs whose loops carry blocks: recurrences, solvers, and cellular automata."""

from __future__ import annotations

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save


@ttl.operation(grid=(1, 1))
def life_kernel(x, neighbours, out):
    """Generations of Life on a torus of a tile: sums of three rows and columns are products with a band matrix."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    band_cb = ttl.make_dataflow_buffer_like(neighbours, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        load(x_cb, x[0, 0])
        load(band_cb, neighbours[0, 0])

    @ttl.compute()
    def compute():
        with x_cb.wait() as first, band_cb.wait() as band:
            alive = first * 1.0
            for _ in range(4):
                around = band @ alive @ band
                # Three around a dead cell; three or four, with itself, around a live one.
                exact = ttl.math.relu(1.0 - abs(around - 3.0))
                alive = exact + alive * ttl.math.relu(1.0 - abs(around - 4.0))
                with out_cb.reserve() as o:
                    o.store(alive)

    @ttl.datamovement()
    def write():
        for i in range(4):
            save(out_cb, out[i, 0])


def life(dtype: str) -> Case:
    def expected(x, band):
        generations = []
        for _ in range(4):
            around = band @ x @ band
            x = (around == 3) | ((around == 4) & (x == 1))
            generations.append(x)
        return np.concatenate(generations).astype(np.float64)

    cells = (np.random.default_rng(0).random((32, 32)) < 0.4).astype(numbers(dtype, 1).dtype)
    band = sum(np.roll(np.eye(32), shift, axis=0) for shift in (-1, 0, 1)).astype(cells.dtype)
    return case(life_kernel, [cells, band], expected, tolerance=0)


@ttl.operation(grid=(1, 1))
def conjugate_gradient_kernel(a, b, out):
    """Six steps towards the x of a @ x = b, for each column of `b` with numbers of its own."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=1)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(2, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1), block_count=1)

    @ttl.datamovement()
    def read():
        load(a_cb, a[0:2, 0:2])
        load(b_cb, b[0:2, 0:1])

    @ttl.compute()
    def compute():
        with a_cb.wait() as matrix, b_cb.wait() as right, out_cb.reserve() as o:
            result = ttl.block.fill(0, shape=(2, 1))
            residual = right * 1.0
            direction = right * 1.0
            for _ in range(6):
                moved = matrix @ direction
                size = ttl.math.reduce_sum(residual * residual, dims=[0])
                step = size / ttl.math.reduce_sum(direction * moved, dims=[0])
                result = result + direction * ttl.math.broadcast(step, right, dims=[0])
                residual = residual - moved * ttl.math.broadcast(step, right, dims=[0])
                turn = ttl.math.reduce_sum(residual * residual, dims=[0]) / size
                direction = residual + direction * ttl.math.broadcast(turn, right, dims=[0])
            o.store(result)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0:2, 0:1])


def conjugate_gradient(dtype: str) -> Case:
    half = numbers(dtype, 64, 64, low=-0.05, high=0.05).astype(np.float64)
    a = (np.eye(64) + half + half.T).astype(numbers(dtype, 1).dtype)
    return case(conjugate_gradient_kernel, [a, numbers(dtype, 64, 32, seed=1)], _six_steps)


def _six_steps(a, b):
    x, residual, direction = np.zeros_like(b), b, b
    for _ in range(6):
        moved, size = a @ direction, (residual**2).sum(axis=0)
        step = size / (direction * moved).sum(axis=0)
        x, residual = x + step * direction, residual - step * moved
        direction = residual + direction * (residual**2).sum(axis=0) / size
    return x


@ttl.operation(grid=(2, 1))
def escape_kernel(x, y, out):
    """Count the squarings of x + iy, of eight, each plus itself, that stay within radius 2: a choice each time."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        load(x_cb, x[0, core])
        load(y_cb, y[0, core])

    @ttl.compute()
    def compute():
        with x_cb.wait() as real, y_cb.wait() as imaginary, out_cb.reserve() as o:
            a, b = real * 1.0, imaginary * 1.0
            count = ttl.math.fill(real, 0)
            for _ in range(8):
                inside = ttl.math.relu(4.0 - a * a - b * b)
                count = ttl.block.where(inside, count + 1.0, count)
                c = ttl.block.where(inside, a * a - b * b + real, a)
                b = ttl.block.where(inside, a * b * 2.0 + imaginary, b)
                a = c
            o.store(count)

    @ttl.datamovement()
    def write():
        save(out_cb, out[0, core])


def escape(dtype: str) -> Case:
    """Points whose orbits never are near the circle: multiples of 1/8, where all of them are far from 2."""
    grid = np.arange(-16, 9) / 8
    real, imaginary = (each.ravel() for each in np.meshgrid(grid, grid))
    counts, distance = _orbits(real, imaginary)
    safe = np.flatnonzero(distance > 0.35)
    chosen = np.random.default_rng(0).choice(safe, (32, 64))
    x, y = (each[chosen].astype(numbers(dtype, 1).dtype) for each in (real, imaginary))
    assert counts[chosen].min() < 3 < counts[chosen].max() == 8
    return case(escape_kernel, [x, y], lambda x, y: _orbits(x, y)[0], tolerance=0)


def _orbits(x, y):
    a, b, count, distance = x, y, np.zeros(x.shape), np.full(x.shape, np.inf)
    for step in range(8):
        size = a * a + b * b
        distance = np.where(count == step, np.minimum(distance, abs(size - 4)), distance)
        inside = size < 4
        count = count + inside
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, 2 * a * b + y, b)
    return count, distance


@ttl.operation(grid=(1, 1))
def state_space_kernel(x, decay, gain, out):
    """A state for each channel decays and takes in the next block: h = decay * h + x, of which each step is written."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    decay_cb = ttl.make_dataflow_buffer_like(decay, shape=(1, 2))
    gain_cb = ttl.make_dataflow_buffer_like(gain, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    steps = x.shape[0] // 32

    @ttl.datamovement()
    def read():
        load(decay_cb, decay[0:1, 0:2])
        load(gain_cb, gain[0:1, 0:2])
        for i in range(steps):
            load(x_cb, x[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        with decay_cb.wait() as d, gain_cb.wait() as g:
            state = ttl.block.fill(0, shape=(1, 2))
            for _ in range(steps):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    state = state * ttl.math.broadcast(d, blk, dims=[0]) + blk
                    o.store(ttl.math.tanh(state) * ttl.math.broadcast(g, blk, dims=[0]))

    @ttl.datamovement()
    def write():
        for i in range(steps):
            save(out_cb, out[i : i + 1, 0:2])


def state_space(dtype: str) -> Case:
    def expected(x, decay, gain):
        state, found = np.zeros((32, 64)), []
        for block in np.split(x, 5):
            state = decay * state + block
            found.append(np.tanh(state) * gain)
        return np.concatenate(found)

    inputs = [numbers(dtype, 160, 64), numbers(dtype, 1, 64, seed=1, low=0.3, high=0.9), numbers(dtype, 1, 64, seed=2)]
    return case(state_space_kernel, inputs, expected)


@ttl.operation(grid=(1, 1))
def linear_attention_kernel(q, k, v, mask, out):
    """Causal attention without exponentials: earlier blocks are a sum of k^T v, the own block a product with a mask."""
    q_cb = ttl.make_dataflow_buffer_like(q, shape=(1, 1))
    k_cb = ttl.make_dataflow_buffer_like(k, shape=(1, 1))
    v_cb = ttl.make_dataflow_buffer_like(v, shape=(1, 2))
    mask_cb = ttl.make_dataflow_buffer_like(mask, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    steps = q.shape[0] // 32

    @ttl.datamovement()
    def read():
        load(mask_cb, mask[0, 0])
        for i in range(steps):
            load(q_cb, q[i, 0])
            load(k_cb, k[i, 0])
            load(v_cb, v[i : i + 1, 0:2])

    @ttl.compute()
    def compute():
        state = ttl.block.fill(0, shape=(1, 2))
        with mask_cb.wait() as seen:
            for _ in range(steps):
                with q_cb.wait() as qs, k_cb.wait() as ks, v_cb.wait() as vs, out_cb.reserve() as o:
                    turned = ttl.math.transpose(ks)
                    o.store(qs @ state + (qs @ turned * seen) @ vs)
                    state = state + turned @ vs

    @ttl.datamovement()
    def write():
        for i in range(steps):
            save(out_cb, out[i : i + 1, 0:2])


def linear_attention(dtype: str) -> Case:
    inputs = [numbers(dtype, 128, width, seed=seed) for seed, width in enumerate((32, 32, 64))]
    mask = np.tri(32).astype(inputs[0].dtype)
    return case(linear_attention_kernel, [*inputs, mask], lambda q, k, v, _: np.tril(q @ k.T) @ v)


@ttl.operation(grid=(1, 1))
def fourier_kernel(real, imaginary, cosines, sines, power):
    """Discrete Fourier transform of 64 points as two products each, and its power spectrum."""
    real_cb = ttl.make_dataflow_buffer_like(real, shape=(2, 1))
    imaginary_cb = ttl.make_dataflow_buffer_like(imaginary, shape=(2, 1))
    cosine_cb = ttl.make_dataflow_buffer_like(cosines, shape=(2, 2), block_count=1)
    sine_cb = ttl.make_dataflow_buffer_like(sines, shape=(2, 2), block_count=1)
    power_cb = ttl.make_dataflow_buffer_like(power, shape=(2, 1))

    @ttl.datamovement()
    def read():
        load(cosine_cb, cosines[0:2, 0:2])
        load(sine_cb, sines[0:2, 0:2])
        for j in range(2):
            load(real_cb, real[0:2, j : j + 1])
            load(imaginary_cb, imaginary[0:2, j : j + 1])

    @ttl.compute()
    def compute():
        with cosine_cb.wait() as c, sine_cb.wait() as s:
            for _ in range(2):
                with real_cb.wait() as x, imaginary_cb.wait() as y, power_cb.reserve() as o:
                    o.store((c @ x + s @ y) ** 2 + (c @ y - s @ x) ** 2)

    @ttl.datamovement()
    def write():
        for j in range(2):
            save(power_cb, power[0:2, j : j + 1])


def fourier(dtype: str) -> Case:
    angles = 2 * np.pi * np.outer(np.arange(64), np.arange(64)) / 64
    inputs = [numbers(dtype, 64, 64), numbers(dtype, 64, 64, seed=1)]
    waves = [each(angles).astype(inputs[0].dtype) for each in (np.cos, np.sin)]

    def expected(x, y, c, s):
        return (c @ x + s @ y) ** 2 + (c @ y - s @ x) ** 2

    made = case(fourier_kernel, [*inputs, *waves], expected)
    transformed = np.fft.fft(inputs[0].astype(np.float64) + 1j * inputs[1].astype(np.float64), axis=0)
    np.testing.assert_allclose(made.results[0], abs(transformed) ** 2, atol=0.02 * made.results[0].max())
    return made


@ttl.operation(grid=(1, 1))
def pooled_kernel(x, out):
    """The largest of all matrices of each batch, two rows of tiles in a block of three dimensions."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 2, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2, 1))
    batches = x.shape[0] // 2

    @ttl.datamovement()
    def read():
        for j in range(2):
            for n in range(batches):
                load(x_cb, x[2 * n : 2 * n + 2, 0:2, j : j + 1])

    @ttl.compute()
    def compute():
        for _ in range(2):
            most = ttl.block.fill(-100, shape=(2, 2, 1))
            for _ in range(batches):
                with x_cb.wait() as blk:
                    most = ttl.math.max(blk, most)
            with out_cb.reserve() as o:
                o.store(most)

    @ttl.datamovement()
    def write():
        for j in range(2):
            save(out_cb, out[0:2, 0:2, j : j + 1])


def pooled(dtype: str) -> Case:
    def expected(x):
        return x.reshape(3, 2, 64, 64).max(axis=0)

    return case(pooled_kernel, [numbers(dtype, 6, 64, 64)], expected, tolerance=0)


@ttl.operation(grid=(1, 1))
def substitution_kernel(a, b, out):
    """Solve by blocks: block i of x is that of `b` minus products with all blocks before, which come from memory."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 1))
    before_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    solved = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        for i in range(4):
            load(b_cb, b[i, 0])
            solved.wait_ge(i)
            for j in range(i):
                load(a_cb, a[i, j])
                load(before_cb, out[j, 0])
        solved.wait_eq(4)

    @ttl.compute()
    def compute():
        for i in range(4):
            total = ttl.block.fill(0, shape=(1, 1))
            for _ in range(i):
                with a_cb.wait() as part, before_cb.wait() as block:
                    total += part @ block
            with b_cb.wait() as right, out_cb.reserve() as o:
                o.store(right - total)

    @ttl.datamovement()
    def write():
        for i in range(4):
            save(out_cb, out[i, 0])
            solved.inc(1)


def substitution(dtype: str) -> Case:
    def expected(a, b):
        blocks = a.reshape(4, 32, 4, 32)
        lower = np.eye(128) + np.tril(np.ones((4, 4)), -1).repeat(32, 0).repeat(32, 1) * blocks.reshape(128, 128)
        return np.linalg.solve(lower, b)

    inputs = [numbers(dtype, 128, 128, low=-0.2, high=0.2), numbers(dtype, 128, 32, seed=1)]
    return case(substitution_kernel, inputs, expected)


PROGRAMS = [life, conjugate_gradient, escape, state_space, linear_attention, fourier, pooled, substitution]
