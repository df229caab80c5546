"""Programs of several cores, which exchange blocks through pipes or memory."""

from __future__ import annotations

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save

CORES = 3


@ttl.operation(grid=(2, 2))
def transposed_kernel(x, out):
    """Core (x, y) transposes two blocks of 1x2 tiles, and writes each to the mirrored place."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))
    column, row = ttl.node(dims=2)

    @ttl.datamovement()
    def read():
        for i in range(row, 4, 2):
            load(x_cb, x[i : i + 1, 2 * column : 2 * column + 2])

    @ttl.compute()
    def compute():
        for _ in range(row, 4, 2):
            with x_cb.wait() as blk, out_cb.reserve() as o:
                o.store(ttl.math.transpose(blk))

    @ttl.datamovement()
    def write():
        for i in range(row, 4, 2):
            save(out_cb, out[2 * column : 2 * column + 2, i : i + 1])


def transposed(dtype: str) -> Case:
    return case(transposed_kernel, [numbers(dtype, 128, 128)], lambda x: x.T, tolerance=0)


@ttl.operation(grid=(3, 2))
def summa_kernel(a, b, bias, out):
    """relu(a @ b + bias) on 3x2 cores: the first column sends `a` along rows, the first row sends `b` down."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 2))
    bias_cb = ttl.make_dataflow_buffer_like(bias, shape=(1, 2), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=1)
    along = ttl.PipeNet([ttl.Pipe(src=(0, y), dst=(slice(1, 3), y)) for y in range(2)])
    down = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, 1)) for x in range(3)])
    x, y = ttl.node(dims=2)
    steps = a.shape[1] // 32

    @ttl.datamovement()
    def read_a():
        for k in range(steps):
            with a_cb.reserve() as block:
                if x == 0:
                    ttl.copy(a[2 * y : 2 * y + 2, k : k + 1], block).wait()
                along.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                along.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        save(out_cb, out[2 * y : 2 * y + 2, 2 * x : 2 * x + 2])

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(2, 2))
        for _ in range(steps):
            with a_cb.wait() as left, b_cb.wait() as right:
                total += left @ right
        with bias_cb.wait() as row, out_cb.reserve() as o:
            o.store(ttl.math.relu(total + ttl.math.broadcast(row, o, dims=[0])))

    @ttl.datamovement()
    def read_b():
        load(bias_cb, bias[0:1, 2 * x : 2 * x + 2])
        for k in range(steps):
            with b_cb.reserve() as block:
                if y == 0:
                    ttl.copy(b[k : k + 1, 2 * x : 2 * x + 2], block).wait()
                down.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                down.if_dst(lambda pipe: ttl.copy(pipe, block).wait())


def summa(dtype: str) -> Case:
    inputs = [numbers(dtype, 128, 96), numbers(dtype, 96, 192, seed=1), numbers(dtype, 1, 192, seed=2)]
    return case(summa_kernel, inputs, lambda a, b, bias: np.maximum(a @ b + bias, 0))


@ttl.operation(grid=(CORES, 1))
def ring_product_kernel(a, b, out):
    """Columns of `a` go around a ring; each core multiplies what comes by with its own part of `b`."""
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    received_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    sent_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % CORES, 0)) for x in range(CORES)])
    x = ttl.node(dims=1)

    @ttl.datamovement()
    def send():
        load(own_cb, a[0, x])
        for step in range(CORES):
            load(b_cb, b[(x + CORES - step) % CORES, x])
            if step < CORES - 1:
                with sent_cb.wait() as block:
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

    @ttl.compute()
    def compute():
        with out_cb.reserve() as o:
            with own_cb.wait() as block, b_cb.wait() as part:
                with sent_cb.reserve() as on:
                    on.store(block)
                o.store(block @ part, acc=True)
            for _ in range(CORES - 2):
                with received_cb.wait() as block, b_cb.wait() as part:
                    with sent_cb.reserve() as on:
                        on.store(block)
                    o.store(block @ part, acc=True)
            with received_cb.wait() as block, b_cb.wait() as part:
                o.store(block @ part, acc=True)

    @ttl.datamovement()
    def receive():
        for _ in range(CORES - 1):
            with received_cb.reserve() as block:
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        save(out_cb, out[0, x])


def ring_product(dtype: str) -> Case:
    return case(ring_product_kernel, [numbers(dtype, 32, 96), numbers(dtype, 96, 96, seed=1)], lambda a, b: a @ b)


@ttl.operation(grid=(CORES, 1))
def by_largest_kernel(x, out):
    """All divide by the largest number: core 0 collects the maxima of all, and sends back the largest."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 1))
    own_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    mine_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    theirs_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    largest_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    back_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))
    to_first = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(0, 0)) for core in range(1, CORES)])
    to_all = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, CORES), 0))])
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        load(x_cb, x[0:2, core : core + 1])

        def take(pipe):
            with theirs_cb.reserve() as block:
                ttl.copy(pipe, block).wait()

        to_first.if_dst(take)
        if core > 0:
            with back_cb.reserve() as block:
                to_all.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.compute()
    def compute():
        with x_cb.wait() as blk, out_cb.reserve() as o:
            mine = ttl.math.reduce_max(blk, dims=[0, 1])
            if core == 0:
                with own_cb.reserve() as own:
                    own.store(mine)
                with own_cb.wait() as own, theirs_cb.wait() as first, largest_cb.reserve() as both:
                    both.store(ttl.math.max(own, first))
                with largest_cb.wait() as both, theirs_cb.wait() as second:
                    largest = ttl.math.max(both, second)
                    with mine_cb.reserve() as sent:
                        sent.store(largest)
                    o.store(blk / ttl.math.broadcast(largest, o, dims=[0, 1]))
            else:
                with mine_cb.reserve() as sent:
                    sent.store(mine)
                with back_cb.wait() as largest:
                    o.store(blk / ttl.math.broadcast(largest, o, dims=[0, 1]))

    @ttl.datamovement()
    def write():
        with mine_cb.wait() as block:
            to_first.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            to_all.if_src(lambda pipe: ttl.copy(block, pipe).wait())
        save(out_cb, out[0:2, core : core + 1])


def by_largest(dtype: str) -> Case:
    return case(by_largest_kernel, [numbers(dtype, 64, 96, low=0.5, high=9)], lambda x: x / x.max())


@ttl.operation(grid=(4, 1))
def scattered_scales_kernel(x, scales, out):
    """Core 0 sends a scalar to each other core, which spreads it over its column of tiles."""
    scale_cb = ttl.make_dataflow_buffer_like(scales, shape=(1, 1))
    sent_cb = ttl.make_dataflow_buffer_like(scales, shape=(1, 1))
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))
    pipes = [ttl.Pipe(src=(0, 0), dst=(core, 0)) for core in range(1, 4)]
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        if core == 0:
            load(scale_cb, scales[0, 0])
            for number, pipe in enumerate(pipes):
                load(sent_cb, scales[0, number + 1])
                with sent_cb.wait() as block:
                    pipe.if_src(lambda pipe: ttl.copy(block, pipe).wait())
        else:
            with scale_cb.reserve() as block:
                for pipe in pipes:
                    pipe.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.compute()
    def compute():
        with x_cb.wait() as blk, scale_cb.wait() as scale, out_cb.reserve() as o:
            o.store(blk * ttl.math.broadcast(scale, o, dims=[0, 1]))

    @ttl.datamovement()
    def write():
        load(x_cb, x[0:2, core : core + 1])
        save(out_cb, out[0:2, core : core + 1])


def scattered_scales(dtype: str) -> Case:
    inputs = [numbers(dtype, 64, 128), numbers(dtype, 32, 128, seed=1)]
    return case(scattered_scales_kernel, inputs, lambda x, scales: x * np.repeat(scales[0, ::32], 32))


@ttl.operation(grid=(4, 1))
def stencil_kernel(x, out):
    """Half of a tile and a quarter of its neighbours to both sides, which come from other cores."""
    own_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    mine_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    left_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    right_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    to_right = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(core + 1, 0)) for core in range(3)])
    to_left = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(core - 1, 0)) for core in range(1, 4)])
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def send():
        for i in range(2):
            load(own_cb, x[i, core])
            load(mine_cb, x[i, core])
            with mine_cb.wait() as block:
                to_right.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                to_left.if_src(lambda pipe: ttl.copy(block, pipe).wait())

    @ttl.compute()
    def compute():
        for _ in range(2):
            with out_cb.reserve() as o:
                with own_cb.wait() as blk:
                    o.store(blk * 0.5)
                if core > 0:
                    with left_cb.wait() as blk:
                        o.store(blk * 0.25, acc=True)
                if core < 3:
                    with right_cb.wait() as blk:
                        o.store(blk * 0.25, acc=True)

    @ttl.datamovement()
    def receive():
        for i in range(2):
            if core > 0:
                with left_cb.reserve() as block:
                    to_right.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            if core < 3:
                with right_cb.reserve() as block:
                    to_left.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            save(out_cb, out[i, core])


def stencil(dtype: str) -> Case:
    def expected(x):
        padded = np.pad(x, ((0, 0), (32, 32)))
        return padded[:, :-64] / 4 + x / 2 + padded[:, 64:] / 4

    return case(stencil_kernel, [numbers(dtype, 64, 128)], expected)


@ttl.operation(grid=(CORES, 1))
def assembly_line_kernel(x, weights, out):
    """Blocks go from core to core; each applies a layer of its own, with weights that it keeps."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    weight_cb = ttl.make_dataflow_buffer_like(weights, shape=(1, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(core + 1, 0)) for core in range(CORES - 1)])
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        load(weight_cb, weights[core, 0])
        for i in range(4):
            with x_cb.reserve() as block:
                if core == 0:
                    ttl.copy(x[i, 0], block).wait()
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.compute()
    def compute():
        with weight_cb.wait() as w:
            for _ in range(4):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    o.store(ttl.math.tanh(blk @ w))

    @ttl.datamovement()
    def write():
        for i in range(4):
            with out_cb.wait() as block:
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                if core == CORES - 1:
                    ttl.copy(block, out[i, 0]).wait()


def assembly_line(dtype: str) -> Case:
    def expected(x, weights):
        for each in np.split(weights, CORES):
            x = np.tanh(x @ each)
        return x

    inputs = [numbers(dtype, 128, 32), numbers(dtype, 96, 32, seed=1, low=-0.4, high=0.4)]
    return case(assembly_line_kernel, inputs, expected)


@ttl.operation(grid=(2, 1))
def split_k_kernel(a, b, partial, out):
    """Each core sums over half of K; core 1 leaves its sum in memory, and signals core 0, which adds it."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 1))
    other_cb = ttl.make_dataflow_buffer_like(partial, shape=(1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    written = ttl.Semaphore(0)
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for i in range(2):
            for k in range(2):
                load(a_cb, a[i, 2 * core + k])
                load(b_cb, b[2 * core + k, 0])
            if core == 0:
                written.wait_ge(i + 1)
                load(other_cb, partial[i, 0])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with out_cb.reserve() as o:
                for _ in range(2):
                    with a_cb.wait() as x, b_cb.wait() as y:
                        o.store(x @ y, acc=True)
                if core == 0:
                    with other_cb.wait() as other:
                        o.store(other, acc=True)

    @ttl.datamovement()
    def write():
        for i in range(2):
            with out_cb.wait() as o:
                if core == 0:
                    ttl.copy(o, out[i, 0]).wait()
                else:
                    ttl.copy(o, partial[i, 0]).wait()
                    written.get_remote((0, 0)).inc(1)


def split_k(dtype: str) -> Case:
    def expected(a, b):
        return a[:, 64:] @ b[64:], a @ b

    return case(split_k_kernel, [numbers(dtype, 64, 128), numbers(dtype, 128, 32, seed=1)], expected)


@ttl.operation(grid=(1, 2))
def column_sums_kernel(x, out):
    """Two cores sum rows of tiles in turns; one sends its sums to the other, which adds the rows of the tile."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    sum_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    other_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 1), dst=(0, 0))])
    _, core = ttl.node(dims=2)

    @ttl.datamovement()
    def read():
        for i in range(core, 5, 2):
            load(x_cb, x[i : i + 1, 0:2])
        if core == 0:
            with other_cb.reserve() as block:
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(1, 2))
        for _ in range(core, 5, 2):
            with x_cb.wait() as blk:
                total += blk
        if core == 0:
            with other_cb.wait() as other, out_cb.reserve() as o:
                o.store(ttl.math.broadcast(ttl.math.reduce_sum(total + other, dims=[0]), o, dims=[0]))
        else:
            with sum_cb.reserve() as block:
                block.store(total)

    @ttl.datamovement()
    def write():
        if core == 0:
            save(out_cb, out[0:1, 0:2])
        else:
            with sum_cb.wait() as block:
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())


def column_sums(dtype: str) -> Case:
    return case(column_sums_kernel, [numbers(dtype, 160, 64)], lambda x: np.tile(x.sum(axis=0), (32, 1)))


PROGRAMS = [
    transposed,
    summa,
    ring_product,
    by_largest,
    scattered_scales,
    stencil,
    assembly_line,
    split_k,
    column_sums,
]
