"""Launches of `jit(warp_specialize=...)` kernels: what reaches the CUDA driver, without a GPU."""

from __future__ import annotations

import itertools
import struct
import sys
import types
from math import prod

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs

import tlx_xdsl
import tlx_xdsl.compat as compat
from tests.unit.runtime.jit.jit_kernels import DType, FakeTensor
from tests.unit.runtime.specialize.plain_kernels import BLOCKS, add_one, grid, product
from tlx_xdsl.runtime.jit import planned, specializing
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.launch import launcher
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver
from tlx_xdsl.runtime.specialize import memory, search
from tlx_xdsl.runtime.specialize.verdict import Verdict

pytestmark = pytest.mark.backend

MAP = 128
DESCRIPTOR = [MAP, 4, 4, 8, 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cuda(make_cuda, monkeypatch, folder):
    """The fake library, used by every launcher that is made."""
    library = make_cuda()
    library._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0)
    library._cuModuleLoadData = lambda out, image: out.__setitem__(0, 0xD0)
    made = CudaDriver(library.library)
    monkeypatch.setattr(launcher, "default_driver", lambda: made)
    monkeypatch.setattr(specializing, "default_driver", lambda: made)
    monkeypatch.setenv("TLX_CACHE_DIR", str(folder / "tlx"))
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(folder / "triton")
        yield library
    for name in [name for name in sys.modules if name.startswith("tlx_specialised_")]:
        # The kernel of the file has launchers of this driver.
        del sys.modules[name]


@pytest.fixture
def kernel():
    # The proof of a loop over tiles has no end, and costs each test its seconds.
    return tlx_xdsl.jit(warp_specialize={"by": "rules", "persistent": False})(product)


def given(m=192, n=128, k=320, at=4096):
    a, b, c = (FakeTensor(*shape, address=at * (1 + i)) for i, shape in enumerate(((m, k), (k, n), (m, n))))
    return a, b, c, m, n, k, k, n, n


def test_descriptors_are_made_of_tensors(cuda, kernel):
    cuda.parameter_sizes = _sizes(kernel)
    compiled = kernel[grid](*given(), **BLOCKS)
    (launch,) = cuda.launches
    assert launch.grid == (3, 2, 1)
    # Four warps of the producer, four of the consumer.
    assert launch.block == (256, 1, 1)
    assert compiled.metadata.num_warps == 8
    assert [each["box"] for each in cuda.tensor_maps] == [[32, 64], [64, 32], [64, 64]][: len(cuda.tensor_maps)]
    assert cuda.tensor_maps[0]["address"] == 4096


def test_a_second_launch_changes_addresses_only(cuda, kernel):
    cuda.parameter_sizes = _sizes(kernel)
    kernel[grid](*given(), **BLOCKS)
    maps = len(cuda.tensor_maps)
    kernel[lambda meta: grid(meta)](*given(at=8192), **BLOCKS)
    kernel[grid](*given(at=8192), **BLOCKS)
    assert len(cuda.tensor_maps) == maps
    # Three tensors have moved, once.
    assert cuda.moved_maps == [8192, 16384, 24576]
    assert len(cuda.launches) == 3
    assert len(kernel.plans._plans) == 1


class Torch:
    """Stands in for torch: tensors that know how to make others, and whether a graph is captured."""

    float32, int32 = DType("float32", 4), DType("int32", 4)

    def __init__(self):
        self.is_capturing = False
        self.made = []
        self.cuda = types.SimpleNamespace(is_current_stream_capturing=lambda: self.is_capturing)

    def tensor(self, *shape, dtype=None, address=None):
        made = FakeTensor(*shape, **({} if dtype is None else {"dtype": dtype}), address=address or 2**20)
        made.numel = lambda: prod(shape)
        for kind in ("zeros", "empty"):
            setattr(made, f"new_{kind}", lambda count, kind=kind, dtype=made.dtype: self._new(kind, count, dtype))
        return made

    def _new(self, kind, count, dtype):
        self.made.append((kind, count, dtype.itemsize))
        return self.tensor(count, dtype=dtype, address=2**20 * (1 + len(self.made)))


def test_programs_that_share_a_loop_have_counts_of_their_stream(cuda, monkeypatch):
    """Zeros are made once for a stream, and for each launch of a graph; sums are the launch's own."""
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict("explored"))
    kernel = tlx_xdsl.jit(warp_specialize={"by": "rules", "split": 2})(product)
    torch = Torch()
    for module in (memory, planned):
        monkeypatch.setattr(module, "sys", types.SimpleNamespace(modules={"torch": torch}))
    cuda.parameter_sizes = [*DESCRIPTOR * 3, 4, 8, 8, 8, 8]
    shapes = (192, 320), (320, 128), (192, 128)
    values = [torch.tensor(*shape, address=4096 * (1 + at)) for at, shape in enumerate(shapes)]
    stream = [7]
    monkeypatch.setattr(planned.driver.active, "get_current_stream", lambda device: stream[0])

    def launched():
        torch.made.clear()
        kernel[grid](*values, 192, 128, 320, 320, 128, 128, **BLOCKS)
        return [kind for kind, *_ in torch.made]

    launched()
    assert cuda.launches[-1].grid == (6, 2, 1)
    assert launched() == ["empty"]
    stream[0] = 8
    assert launched() == ["empty", "zeros"]
    assert launched() == ["empty"]
    torch.is_capturing = True
    assert launched() == launched() == ["empty", "zeros"]
    # A launch that is bound to a stream is the plain one.
    bound = []
    monkeypatch.setattr(specializing.TritonKernel, "bind", lambda self, *args, **named: bound.append(self))
    kernel.bind((3, 2), *values, 192, 128, 320, 320, 128, 128, **BLOCKS)
    assert bound == [kernel]


def test_other_numbers_and_alignments_are_other_launches(cuda, kernel):
    cuda.parameter_sizes = _sizes(kernel)
    kernel[grid](*given(), **BLOCKS)
    kernel[grid](*given(m=320), **BLOCKS)
    assert [launch.grid for launch in cuda.launches] == [(3, 2, 1), (5, 2, 1)]
    assert len(kernel.plans._plans) == 2
    key, addresses = kernel.plans.key((3, 2), given(), BLOCKS)
    assert addresses == [4096, 8192, 12288]
    other, _ = kernel.plans.key((3, 2), given(at=8), BLOCKS)
    assert key != other
    assert kernel.plans.key((3, 2), ((1, 2),), {}) is None
    assert kernel.plans.key((1,), (1,), {})[0] != kernel.plans.key((1,), (True,), {})[0]


def test_a_launch_that_can_not_be_specialised_is_the_plain_one(cuda, kernel, monkeypatch):
    asked = []
    monkeypatch.setattr(specializing.TritonKernel, "run_there", lambda self, *args, **named: asked.append(self))
    unaligned = given(n=81)
    kernel[grid](*unaligned, **BLOCKS)
    kernel[grid](*given(), **BLOCKS, num_ctas=2)
    with assume_target("sm_80"):
        kernel[grid](*given(), **BLOCKS)
    assert [each is kernel for each in asked].count(True) >= 2
    # The next one is found by its key: nothing is chosen anew.
    monkeypatch.setattr(specializing.SpecializingTritonKernel, "_choice", None)
    before = len(asked)
    kernel[grid](*unaligned, **BLOCKS)
    assert len(asked) == before + 1


def test_a_kernel_that_triton_can_not_compile_is_given_up(cuda, kernel, monkeypatch, caplog):
    asked = []

    def failing(self, *args, **named):
        if self is not kernel:
            raise tlx_xdsl.CompilationError("ptxas says no")
        asked.append(named["warmup"])

    monkeypatch.setattr(specializing.TritonKernel, "run_there", failing)
    kernel[grid](*given(), **BLOCKS)
    assert "ptxas says no" in caplog.text
    kernel[grid](*given(), **BLOCKS)
    # Both launches are those of the plain kernel, and the other one is asked no more.
    assert asked == [False, False]
    assert caplog.text.count("ptxas says no") == 1


def test_a_bound_launch(cuda, kernel):
    cuda.parameter_sizes = _sizes(kernel)
    bound = kernel.bind(grid, *given(), **BLOCKS, stream=5)
    bound()
    (launch,) = cuda.launches
    assert (launch.grid, launch.block, launch.stream) == ((3, 2, 1), (256, 1, 1), 5)


def _sizes(kernel):
    """The sizes of the parameters that the specialised kernel's binary has."""
    made = kernel.specialized(*given(), **BLOCKS)
    types = made.table.signature.values()
    sizes = (DESCRIPTOR if each.startswith("tensordesc") else [8 if each.startswith("*") else 4] for each in types)
    return [*itertools.chain.from_iterable(sizes), 8, 8]


def test_parameters_are_in_the_order_of_the_file(cuda, kernel):
    cuda.parameter_sizes = _sizes(kernel)
    kernel[grid](*given(), **BLOCKS)
    (launch,) = cuda.launches
    assert struct.pack("<i", 192) in launch.parameters


def test_autotuners_and_heuristics_compile_what_is_specialised(cuda, kernel):
    configs = [tlx_xdsl.Config(BLOCKS), tlx_xdsl.Config({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 256})]
    tuned = tlx_xdsl.autotune(configs, key=["M"])(kernel)
    (compiled,) = tuned.warmup(*given(), grid=grid)
    assert compiled.metadata.num_warps == 8
    assert "shared memory" in tuned.pruned[configs[1]]
    chosen = tlx_xdsl.heuristics({"BLOCK_K": lambda given: 32})(kernel)
    compiled = chosen.warmup(*given(), grid=grid, BLOCK_M=64, BLOCK_N=64)
    assert compiled.metadata.num_warps == 8


def _of_stock(fn):
    """The same function over stock Triton's language."""
    made = types.FunctionType(fn.__code__, {**fn.__globals__, "tl": triton.language}, fn.__name__)
    made.__annotations__ = fn.__annotations__
    return made


def test_a_stock_kernel_is_specialised_where_the_drop_in_says_so(cuda):
    with compat.installed(warp_specialize="rules"):
        kernel, other = (triton.jit(_of_stock(fn)) for fn in (product, add_one.fn))
        assert type(kernel) is triton.runtime.JITFunction
        cuda.parameter_sizes = _sizes(tlx_xdsl.jit(warp_specialize="rules")(product))
        kernel[grid](*given(), **BLOCKS)
        with pytest.raises(RuntimeError, match="no GPU"):
            other[(1,)](FakeTensor(64), 64, BLOCK=64)
    (launch,) = cuda.launches
    assert (launch.grid, launch.block) == ((3, 2, 1), (256, 1, 1))
    assert type(other) is triton.runtime.JITFunction
