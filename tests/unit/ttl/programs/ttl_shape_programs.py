"""Programs on tensors of more dimensions, in shards, in rows, and of sizes that are no whole tiles."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.programs.ttl_cases import Case, case, load, numbers, save
from tlx_xdsl.ttl.runtime.memory_config import memory_named, placed


@ttl.operation(grid=(2, 1))
def channels_kernel(x, bias, out):
    """x[n, c] + bias[c] for pictures of 2x1 tiles: each core has channels in turns, a block has all pictures."""
    pictures, channels = x.shape[0], x.shape[1]
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(pictures, 1, 2, 1))
    bias_cb = ttl.make_dataflow_buffer_like(bias, shape=(1, 1, 1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(pictures, 1, 2, 1))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for c in range(core, channels, 2):
            load(x_cb, x[0:pictures, c, 0:2, 0:1])
            load(bias_cb, bias[0, c, 0:1, 0:1])

    @ttl.compute()
    def compute():
        for _ in range(core, channels, 2):
            with x_cb.wait() as blk, bias_cb.wait() as b, out_cb.reserve() as o:
                o.store(ttl.math.relu(blk + ttl.math.broadcast(b, o, dims=[0, 2, 3])))

    @ttl.datamovement()
    def write():
        for c in range(core, channels, 2):
            save(out_cb, out[0:pictures, c, 0:2, 0:1])


def channels(dtype: str) -> Case:
    inputs = [numbers(dtype, 2, 3, 40, 32), numbers(dtype, 1, 3, 1, 1, seed=1)]
    return case(channels_kernel, inputs, lambda x, bias: np.maximum(x + bias, 0))


@ttl.operation(grid=(1, 1))
def batched_kernel(a, b, out):
    """A product for each matrix of a batch, two of them in a block, summed over K."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 2, 1))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(2, 1, 1))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2, 1))

    @ttl.datamovement()
    def read():
        for n in range(2):
            for k in range(3):
                load(a_cb, a[2 * n : 2 * n + 2, 0:2, k : k + 1])
                load(b_cb, b[2 * n : 2 * n + 2, k : k + 1, 0:1])

    @ttl.compute()
    def compute():
        for _ in range(2):
            total = ttl.block.fill(0, shape=(2, 2, 1))
            for _ in range(3):
                with a_cb.wait() as x, b_cb.wait() as y:
                    total += x @ y
            with out_cb.reserve() as o:
                o.store(total)

    @ttl.datamovement()
    def write():
        for n in range(2):
            save(out_cb, out[2 * n : 2 * n + 2, 0:2, 0:1])


def batched(dtype: str) -> Case:
    return case(batched_kernel, [numbers(dtype, 4, 50, 96), numbers(dtype, 4, 96, 32, seed=1)], lambda a, b: a @ b)


SHARDS = ttl.sharded(grid=(3, 2), tiles_per_shard=(1, 2))
TYPES = {"f32": ttl.float32, "bf16": ttl.bfloat16}


def over_two_shards_kernel(dtype: str) -> Any:
    where = ttl.tensor((96, 128), TYPES[dtype], layout=SHARDS)

    @ttl.operation(grid=(1, 1))
    def over_two_shards(x: Annotated[Any, where], out: Annotated[Any, where]):
        """A block is a whole row, which is in two shards; the other tensor is written row by row, last row first."""
        x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 4))
        out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 4))

        @ttl.datamovement()
        def read():
            for i in range(3):
                load(x_cb, x[i : i + 1, 0:4])

        @ttl.compute()
        def compute():
            for _ in range(3):
                with x_cb.wait() as blk, out_cb.reserve() as o:
                    mean = ttl.math.reduce_sum(blk, dims=[1]) * (1 / 128)
                    o.store(blk - ttl.math.broadcast(mean, blk, dims=[1]))

        @ttl.datamovement()
        def write():
            for i in range(3):
                save(out_cb, out[2 - i : 3 - i, 0:4])

    return over_two_shards


def over_two_shards(dtype: str) -> Case:
    def expected(x):
        centred = x - x.mean(axis=1, keepdims=True)
        return np.concatenate(np.split(centred, 3)[::-1])

    return case(over_two_shards_kernel(dtype), [numbers(dtype, 96, 128)], expected)


@ttl.operation(grid=(2, 1))
def in_l1_kernel(x, out):
    """A core has a shard of rows in L1: a whole one is read, and the result goes to columns of others."""
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(2, 3), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 3), block_count=1)
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        load(x_cb, x[2 * core : 2 * core + 2, 0:3])

    @ttl.compute()
    def compute():
        with x_cb.wait() as blk, out_cb.reserve() as o:
            o.store(ttl.math.exp(blk) - 1.0)

    @ttl.datamovement()
    def write():
        save(out_cb, out[2 - 2 * core : 4 - 2 * core, 0:3])


def in_l1(dtype: str) -> Case:
    height, width = (memory_named(text) for text in ("height_sharded[64,96]@l1", "width_sharded[128,32]@l1"))
    return case(
        in_l1_kernel, [numbers(dtype, 128, 96)], lambda x: np.concatenate(np.split(np.expm1(x), 2)[::-1]),
        places={0: lambda x: placed(x, height), 1: lambda x: placed(x, width)},
    )  # fmt: skip


@ttl.operation(grid=(1, 1))
def ragged_mean_kernel(x, out):
    """The mean of each row of 70 elements: what is beyond them in the last tile is zero."""
    columns = x.shape[1]
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 3))
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 3))

    @ttl.datamovement()
    def read():
        for i in range(2):
            load(x_cb, x[i : i + 1, 0:3])

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as blk, out_cb.reserve() as o:
                mean = ttl.math.reduce_sum(blk, dims=[1]) * (1 / columns)
                o.store(blk * 2.0 + ttl.math.broadcast(mean, blk, dims=[1]))

    @ttl.datamovement()
    def write():
        for i in range(2):
            save(out_cb, out[i : i + 1, 0:3])


def ragged_mean(dtype: str) -> Case:
    return case(ragged_mean_kernel, [numbers(dtype, 50, 70)], lambda x: 2 * x + x.mean(axis=1, keepdims=True))


@ttl.operation(grid=(2, 1), tiled=False)
def rows_apart_kernel(x, even, odd):
    """Rows of an image without tiles go to two tensors in turns; a core has half of them."""
    rows, columns = x.shape
    part = rows // 4
    even_cb = ttl.make_dataflow_buffer_like(x, shape=(1, columns))
    odd_cb = ttl.make_dataflow_buffer_like(x, shape=(1, columns))
    core = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for i in range(part * core, part * core + part):
            load(even_cb, x[2 * i : 2 * i + 1, :])
            load(odd_cb, x[2 * i + 1 : 2 * i + 2, :])

    @ttl.datamovement()
    def write():
        for i in range(part * core, part * core + part):
            save(even_cb, even[i : i + 1, :])
            save(odd_cb, odd[i : i + 1, :])


def rows_apart(dtype: str) -> Case:
    return case(rows_apart_kernel, [numbers(dtype, 8, 64)], lambda x: (x[::2], x[1::2]), tolerance=0)


PROGRAMS = [channels, batched, over_two_shards, in_l1, ragged_mean, rows_apart]
