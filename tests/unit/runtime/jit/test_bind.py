"""`kernel.bind`: what reaches the CUDA driver, without a GPU."""

from __future__ import annotations

import concurrent.futures
import struct

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.runtime.driver import driver as triton_driver

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.jit.jit_kernels import DType, FakeTensor, Pair, add, copy_tile, of_a_tuple, rank_in_cluster
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.launch import launcher
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

pytestmark = pytest.mark.backend

HANDLE, SIZE = 8, 128


@pytest.fixture
def cuda(make_cuda, monkeypatch, tmp_path):
    """The fake library, used by every launcher that is made; compiled kernels have their names there."""
    library = make_cuda()
    library._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0)
    library._cuModuleLoadData = lambda out, image: out.__setitem__(0, 0xD0)
    made = CudaDriver(library.library)
    monkeypatch.setattr(launcher, "default_driver", lambda: made)
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        yield library


def test_a_launch_repeats_with_the_arguments_that_were_read(cuda):
    cuda.parameter_sizes = [8, 8, 8, 4, 8, 8]
    x, y, z = (FakeTensor(1024, address=4096 * (1 + index)) for index in range(3))
    bound = add.bind(lambda args: (args["n"] // args["BLOCK"],), x, y, z, 1024, BLOCK=256, num_warps=8)
    assert cuda.launches == []
    x.address = 0
    bound()
    bound()
    first, second = cuda.launches
    assert first == second
    assert (first.grid, first.block, first.attributes) == ((4, 1, 1), (256, 1, 1), [])
    assert first.parameters[:4] == [struct.pack("<Q", 4096 * (1 + i)) for i in range(3)] + [struct.pack("<i", 1024)]
    assert bound.kernel.metadata.num_warps == 8


def test_it_goes_to_the_stream_that_is_current_then(cuda, monkeypatch):
    cuda.parameter_sizes = [8, 8, 8]
    streams = iter([5, 7, 7, 9, 7])
    monkeypatch.setattr(triton_driver.active, "get_current_stream", lambda device: next(streams), raising=False)
    bound = rank_in_cluster.bind((2,), FakeTensor(64), ctas_per_cga=(2, 1, 1))
    for _ in range(3):
        bound()
    assert [launch.stream for launch in cuda.launches] == [7, 9, 7]
    assert cuda.launches[0].attributes == [(4, (2, 1, 1))]


def test_it_goes_to_the_stream_that_was_named(cuda):
    cuda.parameter_sizes = [8, 8, 8]
    rank_in_cluster.bind((2,), FakeTensor(64), stream=42)()
    assert cuda.launches[0].stream == 42


def test_descriptors_and_tuples(cuda):
    cuda.parameter_sizes = [SIZE, 4, 4, HANDLE, HANDLE] * 2 + [HANDLE] * 2
    tiles = [tlx_xdsl.TensorDescriptor.from_tensor(FakeTensor(128, 64), [64, 64]) for _ in range(2)]
    copy_tile.bind((2,), *tiles, ROWS=64, COLUMNS=64)()
    assert [each["box"] for each in cuda.tensor_maps] == [[64, 64]] * 2
    cuda.parameter_sizes = [HANDLE, HANDLE, 4, HANDLE, HANDLE]
    of_a_tuple.bind((1,), FakeTensor(4, address=64), Pair(FakeTensor(4, address=128), 1), (2.5,))()
    assert cuda.launches[-1].parameters[:3] == [struct.pack("<Q", 64), struct.pack("<Q", 128), struct.pack("<f", 2.5)]


def test_ctas_that_share_tensors_are_a_cluster(cuda):
    cuda.parameter_sizes = [8, 8, 8, 4, 8, 8]
    tensors = [FakeTensor(1024) for _ in range(3)]
    add.bind((4,), *tensors, 1024, BLOCK=256, num_ctas=2)()
    (launch,) = cuda.launches
    assert (launch.grid, launch.block) == ((8, 1, 1), (128, 1, 1))
    assert launch.attributes == [(4, (2, 1, 1))]


def test_what_is_wrong_is_reported_at_once(cuda):
    cuda.parameter_sizes = [8, 8, 8]
    with pytest.raises(ValueError, match="multiple of the cluster's 2 CTAs in x, got 3"):
        rank_in_cluster.bind((3,), FakeTensor(64), ctas_per_cga=(2, 1, 1))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        add.bind((1,), FakeTensor(4), FakeTensor(4), FakeTensor(4), 4)


def test_it_waits_for_a_kernel_that_is_compiled_in_the_background(cuda):
    cuda.parameter_sizes = [8, 8, 8]
    kernel = tlx_xdsl.jit(rank_in_cluster.fn)
    with concurrent.futures.ThreadPoolExecutor(1) as threads, triton.AsyncCompileMode(threads):
        kernel.bind((2,), FakeTensor(64))()
    assert len(cuda.launches) == 1


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1)])
def test_a_grid_has_up_to_three_numbers(cuda, grid):
    cuda.parameter_sizes = [8, 8, 8]
    with pytest.raises(ValueError, match="expected a grid of one to three numbers"):
        rank_in_cluster.bind(grid, FakeTensor(64))


@tlx_xdsl.jit
def stores_a_stream(out, stream):
    tl.store(out, stream)


def test_a_parameter_may_be_called_stream(cuda):
    cuda.parameter_sizes = [8, 4, 8, 8]
    stores_a_stream.bind((2,), FakeTensor(64), 7)()
    assert cuda.launches[0].parameters[1] == struct.pack("<i", 7)


@tlx_xdsl.jit
def stores_a_choice(out, choose, flags):
    if choose:
        tl.store(out, 1.0)
    tl.store(flags, choose)


def test_booleans(cuda):
    cuda.parameter_sizes = [8, 1, 8, 8, 8]
    flags = FakeTensor(64, dtype=DType("bool", 1, is_floating_point=False))
    stores_a_choice.bind((2,), FakeTensor(64), True, flags)()
    assert cuda.launches[0].parameters[1] == b"\1"
