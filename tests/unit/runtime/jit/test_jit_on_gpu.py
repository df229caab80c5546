"""`@tlx_xdsl.jit` on a real GPU: launches, clusters, bound launches, graphs, autotuning, a dying worker."""

from __future__ import annotations

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation.example_runs import launchable
from tests.unit.backend.backend_kernels import ABORTING
from tests.unit.runtime.jit.jit_kernels import Pair, add, copy_tile, of_a_tuple, rank_in_cluster

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
stock_descriptors = pytest.importorskip("triton.tools.tensor_descriptor")
triton_compile = pytest.importorskip("tlx_xdsl.runtime.jit.triton_compile")

if not (torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9):
    pytest.skip("needs a Hopper GPU (compute capability 9.0)", allow_module_level=True)


StockTensorDescriptor = stock_descriptors.TensorDescriptor


@pytest.fixture(autouse=True)
def cache(tmp_path):
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path)
        yield


def nans(*shape, dtype=torch.float16):
    return torch.full(shape, float("nan"), device="cuda", dtype=dtype)


def test_pointers_and_a_ragged_end():
    x, y, z = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda"), nans(1024, dtype=torch.float32)
    add[lambda args: (triton.cdiv(args["n"], args["BLOCK"]),)](x, y, z, 1000, BLOCK=256)
    torch.testing.assert_close(z[:1000], x + y + 3)
    assert z[1000:].isnan().all()


@pytest.mark.parametrize("cls", [tlx_xdsl.TensorDescriptor, StockTensorDescriptor])
def test_descriptors(cls):
    source, target = torch.randn(256, 64, device="cuda", dtype=torch.float16), nans(256, 64)
    copy_tile[(4,)](cls.from_tensor(source, [64, 64]), cls.from_tensor(target, [64, 64]), ROWS=64, COLUMNS=64)
    assert torch.equal(source, target)


def test_tuples():
    out, value = nans(1, dtype=torch.float32), torch.tensor([3.0], device="cuda")
    of_a_tuple[(1,)](out, Pair(value, 2), (2.5,))
    of_a_tuple[(1,)](out, Pair(value, 1), (2.5,))
    assert out.item() == 5.5


@pytest.mark.parametrize("bound", [False, True])
def test_clusters(bound):
    out = torch.full((8,), -1, device="cuda", dtype=torch.int32)
    if bound:
        rank_in_cluster.bind((8,), out, ctas_per_cga=(4, 1, 1))()
    else:
        rank_in_cluster[(8,)](out, ctas_per_cga=(4, 1, 1))
    assert out.tolist() == [0, 1, 2, 3] * 2


def gemm(m=1000, n=1304, k=712):
    a, b = (torch.randn(*shape, device="cuda", dtype=torch.float16) for shape in ((m, k), (k, n)))
    c = nans(m, n)
    kernel = launchable("hopper_gemm_ws").matmul
    blocks = ((64, 64), (64, 128), (64, 128))
    descriptors = [
        StockTensorDescriptor.from_tensor(t, list(block)) for t, block in zip((a, b, c), blocks, strict=True)
    ]
    constants = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 4, "GROUP_M": 8}
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 128),)
    return kernel, grid, (*descriptors, m, n, k), constants, (a, b, c)


def error_of(a, b, c):
    expected = a.float() @ b.float()
    return (torch.linalg.norm(c.float() - expected) / torch.linalg.norm(expected)).item()


def test_warp_specialised_gemm():
    kernel, grid, arguments, constants, tensors = gemm()
    compiled = kernel[grid](*arguments, **constants)
    assert error_of(*tensors) < 1e-3
    assert compiled.metadata.spill_store_bytes == 0
    assert compiled.n_spills == 0
    assert "wgmma" in compiled.asm["ptx"]


def test_bound_launches_in_a_graph():
    kernel, grid, arguments, constants, (a, b, c) = gemm()
    bound = kernel.bind(grid, *arguments, **constants)
    kernel[grid](*arguments, **constants)
    for launch in (bound, lambda: kernel[grid](*arguments, **constants)):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        a.copy_(torch.randn_like(a))
        c.fill_(float("nan"))
        graph.replay()
        assert error_of(a, b, c) < 1e-3


def test_bound_launches_on_a_stream():
    x = torch.zeros(1024, device="cuda")
    bound = add.bind((4,), x, x, x, 1024, BLOCK=256)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x.fill_(1.0)
        bound()
    stream.synchronize()
    assert x.eq(5.0).all()


def staged(out, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    buffers = tlx.local_alloc((BLOCK,), tl.float32, STAGES)
    for stage in tl.static_range(STAGES):
        tlx.local_store(buffers[stage], tl.full((BLOCK,), 7.0, tl.float32))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tlx.local_load(buffers[0]))


@pytest.mark.parametrize("autotune", [tlx_xdsl.autotune, triton.autotune])
def test_autotuning_of_which_a_third_can_not_fit(autotune, caplog):
    configs = [
        triton.Config({"BLOCK": block, "STAGES": stages}, num_warps=warps)
        for block, stages in ((4096, 2), (4096, 16), (8192, 2))
        for warps in (4, 8)
    ]
    kernel = autotune(configs=configs, key=[])(tlx_xdsl.jit(staged))
    out = nans(1 << 20, dtype=torch.float32)
    kernel[lambda args: (out.numel() // args["BLOCK"],)](out)
    assert out.eq(7.0).all()
    assert kernel.best_config.kwargs["STAGES"] == 2
    if autotune is tlx_xdsl.autotune:
        assert len(kernel.pruned) == 2
        assert "2 of 6 configurations were left out" in caplog.text


def test_a_dying_worker_leaves_the_context_alone(monkeypatch):
    x = torch.ones(1024, device="cuda")
    real = triton_compile._compile_text

    def deadly(src, wanted):
        text = real(src, wanted)
        object.__setattr__(text, "ttgir", ABORTING)
        return text

    monkeypatch.setattr(triton_compile, "_compile_text", deadly)
    with pytest.raises(tlx_xdsl.CompilationError):
        add[(8,)](x, x, x, 1024, BLOCK=128)
    monkeypatch.undo()
    add[(8,)](x, x, x, 1024, BLOCK=128)
    assert x.eq(5.0).all()


def test_do_bench_and_launch_hooks():
    seen = []
    x = torch.ones(1024, device="cuda")
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.launch_enter_hook = lambda metadata: seen.append(metadata.get()["name"])
        add[(4,)](x, x, x, 1024, BLOCK=256)
    assert seen == ["add"]
    assert triton.testing.do_bench(lambda: add[(4,)](x, x, x, 1024, BLOCK=256)) > 0
