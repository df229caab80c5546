"""`triton.compile` under the drop-in, the launch options of Meta's Triton, and the GPU that is not there."""

import importlib.util

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.driver import driver

import tlx_xdsl.compat

pytestmark = pytest.mark.backend

HOPPER = GPUTarget("cuda", 90, 32)
SOURCE = """\
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx

@triton.jit
def outer(x_ptr, n, SIZE: tl.constexpr):
    double(x_ptr, SIZE)

@triton.jit
def double(x_ptr, SIZE: tl.constexpr):
    buffer = tlx.local_alloc((SIZE,), tl.float32, 1)
    tlx.local_store(buffer[0], tl.load(x_ptr + tl.arange(0, SIZE)))
    tl.store(x_ptr + tl.arange(0, SIZE), tlx.local_load(buffer[0]) * 2)

@triton.jit
def fenced(x_ptr):
    tl.store(x_ptr, 1)
    tlx.fence("gpu")

@triton.jit
def plain(x_ptr, n, SIZE: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, SIZE), n)
"""


@pytest.fixture
def kernels(tmp_path):
    """The module with the kernels above, imported while the drop-in compiles and runs nothing."""
    path = tmp_path / "their_kernels.py"
    path.write_text(SOURCE)
    with tlx_xdsl.compat.installed(mode="compile"), knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        spec = importlib.util.spec_from_file_location("their_kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("signature", [{"x_ptr": "*fp32", "n": "i32", "SIZE": "constexpr"},
                                       {"x_ptr": "*fp32", "n": "i32"}])  # fmt: skip
def test_a_source_of_ours_is_compiled_by_us(kernels, signature):
    # That the kernel is ours shows in what it calls, which is defined below it.
    source = ASTSource(kernels.outer, signature, {"SIZE": 64})
    compiled = triton.compile(source, target=HOPPER, options={"num_warps": 2, "ctas_per_cga": (2, 1, 1)})
    assert "handoff" in compiled.asm
    assert compiled.metadata.num_warps == 2
    assert compiled.metadata.ctas_per_cga == (2, 1, 1)
    assert compiled.asm["cubin"].startswith(b"\x7fELF")


def test_the_gpu_that_is_assumed_is_the_default_target(kernels):
    source = ASTSource(kernels.double, {"x_ptr": "*fp32"}, {"SIZE": 64})
    assert ".target sm_90a" in triton.compile(source).asm["ptx"]


def test_a_source_of_stock_stays_stock(kernels):
    source = ASTSource(kernels.plain, {"x_ptr": "*i32", "n": "i32", "SIZE": "constexpr"}, {"SIZE": 64})
    assert "handoff" not in triton.compile(source, target=HOPPER).asm


def test_a_parameter_without_a_type_is_named(kernels):
    with pytest.raises(TypeError, match="'outer': the signature has no type for the parameter 'n'"):
        triton.compile(ASTSource(kernels.outer, {"x_ptr": "*fp32"}, {"SIZE": 64}), target=HOPPER)


def test_hints_of_meta_s_triton_are_dropped(kernels):
    argument = triton.runtime.jit.MockTensor(triton.language.float32)
    hints = {"launch_cluster": True, "preferred_ctas_per_cga": (4, 1, 1), "minRegAutoWS": 24}
    assert "minRegAutoWS" not in triton.Config({"SIZE": 64}, num_warps=2, **hints).all_kwargs()
    compiled = kernels.outer.warmup(argument, 1, 64, grid=(1,), ctas_per_cga=(2, 1, 1), **hints)
    assert compiled.metadata.ctas_per_cga == (2, 1, 1)
    with pytest.raises(KeyError, match="launch_clusters"):
        kernels.outer.warmup(argument, 1, 64, grid=(1,), launch_clusters=True)


def test_a_cluster_makes_a_plain_kernel_ours(kernels):
    argument = triton.runtime.jit.MockTensor(triton.language.int32)
    compiled = kernels.plain[(2,)](argument, 1, 64, ctas_per_cga=(2, 1, 1))
    assert compiled.metadata.ctas_per_cga == (2, 1, 1)
    assert "handoff" in compiled.asm


def test_the_ttgir_has_the_names_of_meta_s_triton(kernels):
    source = ASTSource(kernels.fenced, {"x_ptr": "*i32"}, {})
    compiled = triton.compile(source, target=HOPPER)
    assert 'ttng.fence {scope = "gpu"}' in compiled.asm["ttgir"]
    assert "fence.acq_rel.gpu" not in compiled.asm["ttgir"]
    assert "fence.acq_rel.gpu" in compiled.asm["handoff"]
    assert "fence.acq_rel.gpu" in compiled.asm["ptx"]


@pytest.mark.usefixtures("kernels")
def test_the_gpu_that_is_not_there_has_properties():
    found = driver.active.utils.get_device_properties(driver.active.get_current_device())
    assert found["max_shared_mem"] == 227 * 1024
    assert found["warpSize"] == 32
    assert found["multiprocessor_count"] > 1
