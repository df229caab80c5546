"""Kernels mean what their Python says: they are run before the passes, on tensors, and after them, on tiles."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl

RNG = np.random.default_rng(0)


@pytest.fixture(params=["tensors", "ttkernel"])
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


def integers(*shape: int) -> Any:
    return RNG.integers(-4, 5, shape).astype(np.float32)


def test_the_first_addition_stores(machine: str) -> None:
    @ttl.kernel()
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a)
        out_cb = ttl.make_circular_buffer_like(out)

        @ttl.compute()
        def compute():
            for _ in range(2):
                with out_cb.reserve() as o:
                    for _ in range(2, 4):
                        for _ in range(3):
                            with a_cb.wait() as x:
                                o += x * x
                                o += 1.0
                    o += 5

        @ttl.datamovement()
        def read():
            for i in range(12):
                with a_cb.reserve() as block:
                    ttl.copy(a[i, 0], block)

        @ttl.datamovement()
        def write():
            for i in range(2):
                with out_cb.wait() as block:
                    ttl.copy(block, out[i, 0])

    a, out = integers(12 * 32, 32), np.empty((64, 32), np.float32)
    kernel(a, out, machine=machine)
    expected = (a.reshape(2, 6, 32, 32) ** 2).sum(axis=1) + 6 + 5
    np.testing.assert_array_equal(out, expected.reshape(64, 32))


def test_bounds_that_are_not_affine(machine: str) -> None:
    @ttl.kernel(grid=(3, 1))
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a)
        out_cb = ttl.make_circular_buffer_like(out)
        rows = a.shape[0] // 32
        share = -(-rows // 3)
        first = ttl.core(dims=1) * share

        @ttl.compute()
        def compute():
            for _ in range(first, min(first + share, rows)):
                with a_cb.wait() as x, out_cb.reserve() as o:
                    o.store(ttl.math.max(x, -x))

        @ttl.datamovement()
        def read():
            for i in range(first, min(first + share, rows)):
                with a_cb.reserve() as block:
                    ttl.copy(a[i, 0], block)

        @ttl.datamovement()
        def write():
            for i in range(first, min(first + share, rows)):
                with out_cb.wait() as block:
                    ttl.copy(block, out[i, 0])

    a, out = integers(7 * 32, 32), np.empty((7 * 32, 32), np.float32)
    kernel(a, out, machine=machine)
    np.testing.assert_array_equal(out, abs(a))


def test_branches_by_core(machine: str) -> None:
    @ttl.kernel(grid=(2, 2))
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a)
        out_cb = ttl.make_circular_buffer_like(out)
        x, y = ttl.core(dims=2)

        @ttl.compute()
        def compute():
            with a_cb.wait() as block, out_cb.reserve() as o:
                if x == 0 and y == 0:
                    o.store(block + 1)
                elif x:
                    o.store(block * 2)
                else:
                    o.store(3 - block)

        @ttl.datamovement()
        def read():
            with a_cb.reserve() as block:
                ttl.copy(a[y, x], block)

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[y, x if x > 0 else 0])

    a, out = integers(64, 64), np.empty((64, 64), np.float32)
    kernel(a, out, machine=machine)
    expected = a.copy()
    expected[:32, :32] += 1
    expected[:, 32:] *= 2
    expected[32:, :32] = 3 - expected[32:, :32]
    np.testing.assert_array_equal(out, expected)


def test_cores_wait_for_each_other(machine: str) -> None:
    """Each core writes a tile; when all have, each reads that of its neighbour."""

    @ttl.kernel(grid=(4, 1))
    def kernel(a, shifted, out):
        cb = ttl.make_circular_buffer_like(a)
        out_cb = ttl.make_circular_buffer_like(a)
        done, go = ttl.Semaphore(), ttl.Semaphore(0)
        x = ttl.core(dims=1)

        @ttl.datamovement()
        def move():
            with cb.reserve() as block:
                ttl.copy(a[x, 0], block).wait()
                ttl.copy(block, shifted[x, 0]).wait()
                if x != 0:
                    done.get_remote((0, 0)).inc(1)
                    go.wait_eq(1)
                else:
                    done.wait_ge(3)
                    go.set(1)
                    go.get_remote_multicast((slice(1, None), 0)).set(1)
                ttl.copy(shifted[(x + 1) % 4, 0], block).wait()

        @ttl.compute()
        def compute():
            with cb.wait() as block, out_cb.reserve() as o:
                o.store(block)

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[x, 0])

    a, shifted, out = integers(128, 32), np.empty((128, 32), np.float32), np.empty((128, 32), np.float32)
    kernel(a, shifted, out, machine=machine)
    np.testing.assert_array_equal(out, np.roll(a, -32, axis=0))


def test_what_the_kernel_does_not_say_is_added(machine: str) -> None:
    """Blocks are given back, and transfers waited for, where the kernel does neither."""

    @ttl.kernel()
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a)
        out_cb = ttl.make_circular_buffer_like(out)

        @ttl.compute()
        def compute():
            for _ in range(3):
                x = a_cb.wait()
                out_cb.reserve().store(x * 3)

        @ttl.datamovement()
        def read():
            for i in range(3):
                ttl.copy(a[i, 0], a_cb.reserve())

        @ttl.datamovement()
        def write():
            for i in range(3):
                ttl.copy(out_cb.wait(), out[i, 0])

    a, out = integers(96, 32), np.empty((96, 32), np.float32)
    kernel(a, out, machine=machine)
    np.testing.assert_array_equal(out, a * 3)


def test_products_of_bf16_with_edges(machine: str) -> None:
    """One block each, of tensors that do not fill their last tiles; two blocks of one buffer at once."""

    @ttl.kernel()
    def kernel(a, b, out):
        cb = ttl.make_circular_buffer_like(a, shape=(2, 2))
        out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))

        @ttl.compute()
        def compute():
            x, y = cb.wait(blocks=2)
            with out_cb.reserve() as o:
                o.store(ttl.math.relu(x @ y) + 1.0)
            cb.pop(blocks=2)

        @ttl.datamovement()
        def read():
            for t in (a, b):
                with cb.reserve() as block:
                    ttl.copy(t[:, :], block)

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[:, :])

    a, b = (RNG.integers(-1, 2, shape).astype(ml_dtypes.bfloat16) for shape in ((40, 50), (50, 60)))
    out = np.empty((40, 60), ml_dtypes.bfloat16)
    kernel(a, b, out, machine=machine)
    expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0) + 1
    np.testing.assert_array_equal(out.astype(np.float32), expected)


def test_the_order_of_arguments_of_ttl_block(machine: str) -> None:
    @ttl.kernel()
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2))
        out_cb = ttl.make_circular_buffer_like(out, shape=(2, 1))

        @ttl.compute()
        def compute():
            with a_cb.wait() as x, out_cb.reserve() as o:
                total = ttl.math.reduce_sum(x, [1], (1, 1))
                o.store(ttl.block.transpose(ttl.block.broadcast(total, [1], (1, 2))))

        @ttl.datamovement()
        def read():
            with a_cb.reserve() as block:
                ttl.copy(a[0:1, 0:2], block)

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[0:2, 0:1])

    a, out = integers(32, 64), np.empty((64, 32), np.float32)
    kernel(a, out, machine=machine)
    np.testing.assert_array_equal(out, np.broadcast_to(a.sum(axis=1), (64, 32)))


STEPS, SCALE = np.int64(2), np.float32(0.5)


def test_numbers_of_numpy(machine: str) -> None:
    """Numbers that numpy has computed are numbers of Python."""

    @ttl.kernel()
    def kernel(a, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, STEPS))
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, STEPS))

        @ttl.compute()
        def compute():
            with a_cb.wait() as x, out_cb.reserve() as o:
                o.store(x * SCALE)

        @ttl.datamovement()
        def read():
            with a_cb.reserve() as block:
                ttl.copy(a[0, 0:STEPS], block).wait()

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[0, 0:STEPS]).wait()

    a = integers(32, 64)
    out = np.empty_like(a)
    kernel(a, out, machine=machine)
    np.testing.assert_array_equal(out, a / 2)
