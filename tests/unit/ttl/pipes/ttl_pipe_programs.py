"""Programs whose cores send each other blocks, with what they compute: broadcasts, gathers, rings, and all to all.

Each is a function of a number of cores that gives the kernel, the tensors that it takes, of whole numbers, and the
results. Tensors are f32 or bf16; sums stay exact in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tlx_xdsl.language.ttl as ttl

Array = np.ndarray


class Program(NamedTuple):
    """A kernel with its inputs and what its last tensor holds afterwards."""

    kernel: Any
    inputs: list[Array]
    result: Array


def numbers(rows: int, columns: int, seed: int = 0, most: int = 3) -> Array:
    """Small whole numbers, in tiles of 32x32."""
    return np.random.default_rng(seed).integers(-most, most + 1, (32 * rows, 32 * columns)).astype(np.float32)


def summa(cores: int) -> Program:
    """A product on a square: `a` goes along rows, `b` along columns, in buffers of two and three blocks."""

    @ttl.kernel(grid=(cores, cores))
    def kernel(a: Any, b: Any, out: Any) -> None:
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=3)
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)
        rows = ttl.PipeNet([ttl.Pipe(src=(0, y), dst=(slice(1, cores), y)) for y in range(cores)])
        columns = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, slice(1, cores))) for x in range(cores)])
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def read_a() -> None:
            for k in range(3):
                with a_cb.reserve() as block:
                    if x == 0:
                        ttl.copy(a[y, k], block).wait()
                    rows.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    rows.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

        @ttl.compute()
        def compute() -> None:
            with out_cb.reserve() as result:
                for _ in range(3):
                    with a_cb.wait() as left, b_cb.wait() as right:
                        result.store(left @ right, acc=True)

        @ttl.datamovement()
        def read_b() -> None:
            for k in range(3):
                with b_cb.reserve() as block:
                    if y == 0:
                        ttl.copy(b[k, x], block).wait()
                    columns.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    columns.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            with out_cb.wait() as block:
                ttl.copy(block, out[y, x]).wait()

    a, b = numbers(cores, 3, most=1), numbers(3, cores, 1, most=1)
    return Program(kernel, [a, b], a @ b)


def turning_summa(cores: int) -> Program:
    """A product on a square: in step k, column k sends `a` to both sides, and row k sends `b` up and down."""

    @ttl.kernel(grid=(cores, cores))
    def kernel(a: Any, b: Any, out: Any) -> None:
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
        sides = [[slice(*part) for part in ((0, k), (k + 1, cores)) if part[0] < part[1]] for k in range(cores)]
        every = range(cores)
        rows = [ttl.PipeNet([ttl.Pipe(src=(k, y), dst=(to, y)) for y in every for to in sides[k]]) for k in every]
        columns = [ttl.PipeNet([ttl.Pipe(src=(x, k), dst=(x, to)) for x in every for to in sides[k]]) for k in every]
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def read_a() -> None:
            for k, net in enumerate(rows):
                with a_cb.reserve() as block:
                    if x == k:
                        ttl.copy(a[y, k], block).wait()
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

        @ttl.compute()
        def compute() -> None:
            with out_cb.reserve() as result:
                for _ in range(cores):
                    with a_cb.wait() as left, b_cb.wait() as right:
                        result.store(left @ right, acc=True)

        @ttl.datamovement()
        def read_b() -> None:
            for k, net in enumerate(columns):
                with b_cb.reserve() as block:
                    if y == k:
                        ttl.copy(b[k, x], block).wait()
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            with out_cb.wait() as block:
                ttl.copy(block, out[y, x]).wait()

    a, b = numbers(cores, cores, most=1), numbers(cores, cores, 1, most=1)
    return Program(kernel, [a, b], a @ b)


def ring(cores: int) -> Program:
    """All cores get the sum of all blocks: each block goes around a ring, and each core adds what comes by."""

    @ttl.kernel(grid=(cores, 1))
    def kernel(a: Any, out: Any) -> None:
        sent = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        received = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        result = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)
        net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % cores, 0)) for x in range(cores)])
        first = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=1)
        x = ttl.core(dims=1)

        @ttl.datamovement()
        def send() -> None:
            with first.reserve() as block:
                ttl.copy(a[0, x], block).wait()
            for _ in range(cores - 1):
                with sent.wait() as block:
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

        @ttl.compute()
        def compute() -> None:
            with result.reserve() as total:
                with first.wait() as own:
                    total.store(own, acc=True)
                    with sent.reserve() as block:
                        block.store(own)
                for _ in range(cores - 2):
                    with received.wait() as block, sent.reserve() as on:
                        total.store(block, acc=True)
                        on.store(block)
                with received.wait() as block:
                    total.store(block, acc=True)

        @ttl.datamovement()
        def receive() -> None:
            for _ in range(cores - 1):
                with received.reserve() as block:
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            with result.wait() as block:
                ttl.copy(block, out[0, x]).wait()

    a = numbers(1, cores)
    total = sum(np.split(a, cores, axis=1))
    return Program(kernel, [a], np.tile(total, (1, cores)))


def gather(cores: int) -> Program:
    """Core (0, 0) of a square gets a block of each other core, row by row, and writes them after its own."""

    @ttl.kernel(grid=(cores, cores))
    def kernel(a: Any, out: Any) -> None:
        mine = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        theirs = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=3)
        others = [(x, y) for y in range(cores) for x in range(cores) if (x, y) != (0, 0)]
        net = ttl.PipeNet([ttl.Pipe(src=place, dst=(0, 0)) for place in others])
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def read() -> None:
            with mine.reserve() as block:
                ttl.copy(a[y, x], block).wait()

            def take(pipe: Any) -> None:
                with theirs.reserve() as block:
                    ttl.copy(pipe, block).wait()

            net.if_dst(take)

        @ttl.datamovement()
        def write() -> None:
            with mine.wait() as block:
                if x == 0 and y == 0:
                    ttl.copy(block, out[0, 0]).wait()
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            if x == 0 and y == 0:
                for number in range(1, cores * cores):
                    with theirs.wait() as block:
                        ttl.copy(block, out[0, number]).wait()

    a = numbers(cores, cores)
    blocks = [each for row in np.split(a, cores) for each in np.split(row, cores, axis=1)]
    return Program(kernel, [a], np.concatenate(blocks, axis=1))


def scatter(cores: int) -> Program:
    """Core 0 sends another block to each core of a row."""

    @ttl.kernel(grid=(cores, 1))
    def kernel(a: Any, out: Any) -> None:
        mine = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        block_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        pipes = [ttl.Pipe(src=(0, 0), dst=(x, 0)) for x in range(1, cores)]
        x = ttl.core(dims=1)

        @ttl.datamovement()
        def read() -> None:
            if x == 0:
                with block_cb.reserve() as block:
                    ttl.copy(a[0, 0], block).wait()
                for number, pipe in enumerate(pipes):
                    with mine.reserve() as block:
                        ttl.copy(a[0, number + 1], block).wait()
                    with mine.wait() as block:
                        pipe.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            else:
                with block_cb.reserve() as block:
                    for pipe in pipes:
                        pipe.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

        @ttl.datamovement()
        def write() -> None:
            with block_cb.wait() as block:
                ttl.copy(block, out[0, x]).wait()

    a = numbers(1, cores)
    return Program(kernel, [a], a)


def deal(cores: int) -> Program:
    """Core (0, 0) sends another block to each core of a grid, which are more than a core has semaphores."""
    rows = cores - 1

    @ttl.kernel(grid=(cores, rows))
    def kernel(a: Any, out: Any) -> None:
        mine = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        theirs = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        pipes = [ttl.Pipe(src=(0, 0), dst=(at % cores, at // cores)) for at in range(1, cores * rows)]
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def send() -> None:
            if x == 0 and y == 0:
                for number, pipe in enumerate(pipes):
                    to = number + 1
                    with mine.reserve() as block:
                        ttl.copy(a[to // cores, to % cores], block).wait()
                    with mine.wait() as block:
                        pipe.if_src(lambda pipe: ttl.copy(block, pipe).wait())

        @ttl.datamovement()
        def receive() -> None:
            if x > 0 or y > 0:
                with theirs.reserve() as block:
                    for pipe in pipes:
                        pipe.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                with theirs.wait() as block:
                    ttl.copy(block, out[y, x]).wait()

    a = numbers(rows, cores)
    result = a.copy()
    result[:32, :32] = 0
    return Program(kernel, [a], result)


def uneven(cores: int) -> Program:
    """A multicast in each row, twice, to cores of which every other one reads a block of its own after each."""

    @ttl.kernel(grid=(cores, 2))
    def kernel(a: Any, out: Any) -> None:
        sent = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        taken = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=3)
        total = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)
        net = ttl.PipeNet([ttl.Pipe(src=(0, y), dst=(slice(0, cores), y)) for y in range(2)])
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def send() -> None:
            if x == 0:
                for number in range(2):
                    with sent.reserve() as block:
                        ttl.copy(a[y, number], block).wait()
                    with sent.wait() as block:
                        net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

        @ttl.compute()
        def compute() -> None:
            with total.reserve() as o:
                for _ in range(2):
                    with taken.wait() as block:
                        o.store(block, acc=True)
                    if x % 2 == 1:
                        with taken.wait() as own:
                            o.store(own, acc=True)

        @ttl.datamovement()
        def receive() -> None:
            for _ in range(2):
                with taken.reserve() as block:
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                if x % 2 == 1:
                    with taken.reserve() as block:
                        ttl.copy(a[y, x + 1], block).wait()
            with total.wait() as block:
                ttl.copy(block, out[y, x]).wait()

    a = numbers(2, cores + 2)
    tiles = [row.reshape(32, -1, 32).swapaxes(0, 1) for row in np.split(a, 2)]
    sums = [[row[0] + row[1] + (x % 2) * 2 * row[x + 1] for x in range(cores)] for row in tiles]
    return Program(kernel, [a], np.block(sums))


def all_to_all(cores: int) -> Program:
    """A transposition of blocks: core x of a row sends its block y to core y, which writes it in place x."""

    @ttl.kernel(grid=(cores, 1))
    def kernel(a: Any, out: Any) -> None:
        mine = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        theirs = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        nets = [
            ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + far) % cores, 0)) for x in range(cores)])
            for far in range(1, cores)
        ]
        x = ttl.core(dims=1)

        @ttl.datamovement()
        def send() -> None:
            with mine.reserve() as block:
                ttl.copy(a[x, x], block).wait()
            with mine.wait() as block:
                ttl.copy(block, out[x, x]).wait()
            for number, net in enumerate(nets):
                with mine.reserve() as block:
                    ttl.copy(a[x, (x + number + 1) % cores], block).wait()
                with mine.wait() as block:
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

        @ttl.datamovement()
        def receive() -> None:
            for number, net in enumerate(nets):
                with theirs.reserve() as block:
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                with theirs.wait() as block:
                    ttl.copy(block, out[x, (x + cores - number - 1) % cores]).wait()

    a = numbers(cores, cores)
    blocks = a.reshape(cores, 32, cores, 32).transpose(2, 1, 0, 3)
    return Program(kernel, [a], blocks.reshape(a.shape))


def tree(cores: int) -> Program:  # noqa: C901 (it is a kernel)
    """A sum over a square, gathered along rows and then along the first column; multicasts send it back."""

    @ttl.kernel(grid=(cores, cores))
    def kernel(a: Any, out: Any) -> None:
        own = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        theirs = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        partial = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        final = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        along_rows = ttl.PipeNet([ttl.Pipe(src=(x, y), dst=(0, y)) for y in range(cores) for x in range(1, cores)])
        down = ttl.PipeNet([ttl.Pipe(src=(0, y), dst=(0, 0)) for y in range(1, cores)])
        row = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, cores), 0))])
        columns = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, slice(1, cores))) for x in range(cores)])
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def read() -> None:
            with own.reserve() as block:
                ttl.copy(a[y, x], block).wait()

            def take(pipe: Any) -> None:
                with theirs.reserve() as block:
                    ttl.copy(pipe, block).wait()

            along_rows.if_dst(take)
            down.if_dst(take)

        @ttl.compute()
        def compute() -> None:
            with partial.reserve() as total:
                with own.wait() as block:
                    total.store(block, acc=True)
                if x == 0:
                    for _ in range(cores - 1):
                        with theirs.wait() as block:
                            total.store(block, acc=True)
                    if y == 0:
                        for _ in range(cores - 1):
                            with theirs.wait() as block:
                                total.store(block, acc=True)

        @ttl.datamovement()
        def write() -> None:
            with partial.wait() as block:
                along_rows.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                down.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                if x == 0 and y == 0:
                    ttl.copy(block, out[0, 0]).wait()
                    row.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    columns.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            if x > 0 or y > 0:
                with final.reserve() as block:
                    row.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                    if y == 0:
                        columns.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                    columns.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                with final.wait() as block:
                    ttl.copy(block, out[y, x]).wait()

    a = numbers(cores, cores)
    total = a.reshape(cores, 32, cores, 32).sum(axis=(0, 2))
    return Program(kernel, [a], np.tile(total, (cores, cores)))


def sum_at_one(cores: int) -> Program:
    """Core 0 of a row adds up the blocks of all; a core's block is read by compute there, and by a mover elsewhere."""

    @ttl.kernel(grid=(cores, 1))
    def kernel(a: Any, out: Any) -> None:
        blocks = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
        total = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)
        net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(0, 0)) for x in range(1, cores)])
        x = ttl.core(dims=1)

        @ttl.datamovement()
        def read() -> None:
            with blocks.reserve() as block:
                ttl.copy(a[0, x], block).wait()

            def take(pipe: Any) -> None:
                with blocks.reserve() as block:
                    ttl.copy(pipe, block).wait()

            net.if_dst(take)

        @ttl.compute()
        def compute() -> None:
            if x == 0:
                with total.reserve() as result:
                    for _ in range(cores):
                        with blocks.wait() as block:
                            result.store(block, acc=True)

        @ttl.datamovement()
        def write() -> None:
            if x == 0:
                with total.wait() as block:
                    ttl.copy(block, out[0, 0]).wait()
            else:
                with blocks.wait() as block:
                    net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

    a = numbers(1, cores)
    return Program(kernel, [a], sum(np.split(a, cores, axis=1)))


PROGRAMS: dict[str, Callable[[int], Program]] = {
    each.__name__: each
    for each in (summa, turning_summa, ring, gather, scatter, deal, uneven, all_to_all, tree, sum_at_one)
}
