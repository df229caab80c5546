"""Tensors of three and four dimensions, and blocks that lie in several shards: three machines and numpy."""

# covers: ttl.tensors, ttl.buffers

import numpy as np
import pytest
import tlx_xdsl.language.ttl as ttl

from tests.fuzz.ttl import has_compiler
from tlx_xdsl.errors import CompilationError

MACHINES = [each for each in ("tensors", "ttkernel", "cpp") if each != "cpp" or has_compiler()]
F32 = np.float32


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(F32)


@ttl.kernel(grid=(1, 1))
def batched(a, b, bias, out):
    """out[i] = a[i] @ b + bias + sums of the rows of a[i], for all matrices in one block."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(3, 2, 2), block_count=1)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 3), block_count=1)
    bias_dfb = ttl.make_dataflow_buffer_like(bias, shape=(1, 2, 3), block_count=1)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(3, 2, 3), block_count=1)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, bias_dfb.reserve() as bias_blk:
            ttl.copy(a[:, 0:2, 0:2], a_blk)
            ttl.copy(b[0:2, 0:3], b_blk)
            ttl.copy(bias[0:2, 0:3], bias_blk)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, b_dfb.wait() as y, bias_dfb.wait() as z, out_dfb.reserve() as o:
            sums = ttl.math.broadcast(ttl.math.reduce_sum(x, dims=[-1]), (3, 2, 3), dims=[2])
            o.store(x @ y + ttl.math.broadcast(z, (3, 2, 3), dims=[0]) + sums)

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as o:
            ttl.copy(o, out[0:3, 0:2, 0:3])


@pytest.mark.parametrize("machine", MACHINES)
def test_matrices_of_a_batch(machine):
    a, b, bias, out = integers(3, 60, 64), integers(64, 90), integers(60, 90), np.full((3, 60, 90), np.nan, F32)
    batched(a, b, bias, out, machine=machine)
    np.testing.assert_array_equal(out, a @ b + bias + a.sum(axis=2, keepdims=True))


@ttl.kernel(grid=(2, 1))
def transposed(x, out):
    """Each core has some layers of the second dimension; a block has both of the first one."""
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(2, 1, 2, 1))
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(2, 1, 1, 2))

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)
        for layer in range(core, 3, 2):
            with x_dfb.reserve() as blk:
                ttl.copy(x[0:2, layer, 0:2, 0:1], blk).wait()

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
        for _ in range(core, 3, 2):
            with x_dfb.wait() as blk, out_dfb.reserve() as o:
                o.store(ttl.math.transpose(blk) * 2.0)

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)
        for layer in range(core, 3, 2):
            with out_dfb.wait() as o:
                ttl.copy(o, out[0:2, layer, 0:1, 0:2]).wait()


@pytest.mark.parametrize("machine", MACHINES)
def test_four_dimensions(machine):
    x, out = integers(2, 3, 50, 20), np.full((2, 3, 20, 50), np.nan, F32)
    transposed(x, out, machine=machine)
    np.testing.assert_array_equal(out, 2 * x.swapaxes(2, 3))


@ttl.kernel(grid=(1, 1), tiled=False)
def upsample(x, out):
    """Each pixel of an image [n, h, w, c] becomes two by two."""
    images, height, width, channels = x.shape
    dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1, width, channels))

    @ttl.datamovement()
    def read():
        for n in range(images):
            for y in range(height):
                with dfb.reserve() as blk:
                    ttl.copy(x[n, y, :, :], blk).wait()

    @ttl.datamovement()
    def write():
        for n in range(images):
            for y in range(height):
                with dfb.wait() as blk:
                    for i in range(2):
                        ttl.copy(blk, out[n, 2 * y + i, 0:width, :]).wait()


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_of_four_dimensions(machine):
    x, out = integers(2, 3, 4, 8), np.full((2, 6, 4, 8), np.nan, F32)
    upsample(x, out, machine=machine)
    np.testing.assert_array_equal(out, x.repeat(2, axis=1))


ANYWHERE = ttl.sharded(grid=(2, 2), tiles_per_shard=(3, 2))
IN_L1 = ttl.tensor((3, 64, 96), layout=ttl.sharded(grid=(2, 3), tiles_per_shard=(3, 1)), memory_space="L1")


@ttl.kernel(grid=(1, 1))
def over_shards(a: ttl.tensor((160, 128), layout=ANYWHERE), b: IN_L1, out: ttl.tensor((160, 128), layout=ANYWHERE)):  # type: ignore[valid-type]
    """Blocks of two rows begin in one shard and end in the next; one of `b` is a part of two."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 3))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 3))
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(2, 3))

    @ttl.datamovement()
    def read():
        for i in range(2):
            with a_dfb.reserve() as x, b_dfb.reserve() as y:
                ttl.copy(a[2 * i + 1 : 2 * i + 3, 1:4], x)
                ttl.copy(b[i + 1, 0:2, 0:3], y)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_dfb.wait() as x, b_dfb.wait() as y, out_dfb.reserve() as o:
                o.store(x - y)

    @ttl.datamovement()
    def write():
        for i in range(2):
            with out_dfb.wait() as o:
                ttl.copy(o, out[2 * i + 1 : 2 * i + 3, 1:4])


@pytest.mark.parametrize("machine", MACHINES)
def test_blocks_over_several_shards(machine):
    a, b, out = integers(160, 128), integers(3, 64, 96), np.full((160, 128), 7, F32)
    over_shards(a, b, out, machine=machine)
    wanted = np.full((160, 128), 7, F32)
    wanted[32:, 32:] = a[32:, 32:] - b[1:].reshape(128, 96)
    np.testing.assert_array_equal(out, wanted)


def test_shapes_are_errors_at_the_parameter():
    message = r"'a': the shape of a kernel's tensor is two or more .* found \(4,\)"
    with pytest.raises(CompilationError, match=message) as error:
        batched(np.zeros(4, F32), *[np.zeros((32, 32), F32)] * 3)
    assert error.value.location.line == batched.fn.__code__.co_firstlineno + 1
    assert error.value.location.filename == __file__
