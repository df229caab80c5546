"""Kernels as operators of torch, CUDA graphs and streams, on a real GPU."""

from __future__ import annotations

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
import tlx_xdsl.torch

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

if not (torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9):
    pytest.skip("needs a Hopper GPU (compute capability 9.0)", allow_module_level=True)


@pytest.fixture(autouse=True)
def cache(tmp_path):
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path)
        yield


def staged_sum(x, y, out, n, BLOCK: tl.constexpr):
    """Adds through shared memory, so that it is a tlx kernel."""
    buffer = tlx.local_alloc((BLOCK,), tl.float32, 1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tlx.local_store(buffer[0], tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask))
    tl.store(out + at, tlx.local_load(buffer[0]), mask=mask)


@tlx_xdsl.autotune([tlx_xdsl.Config({"BLOCK": 256}), tlx_xdsl.Config({"BLOCK": 512})], key=["n"])
@tlx_xdsl.jit
def tuned_sum(x, y, out, n, BLOCK: tl.constexpr):
    buffer = tlx.local_alloc((BLOCK,), tl.float32, 1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tlx.local_store(buffer[0], tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask))
    tl.store(out + at, tlx.local_load(buffer[0]), mask=mask)


@tlx_xdsl.jit
def double_tile(source, target):
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    row = tl.program_id(0) * 64
    tlx.barrier_expect_bytes(full[0], 64 * 64 * 2)
    tlx.async_descriptor_load(source, tile[0], [row, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    target.store([row, 0], tlx.local_load(tile[0]) * 2)


def launch_tuned(x, y, out):
    tuned_sum[lambda args: (triton.cdiv(args["n"], args["BLOCK"]),)](x, y, out, x.numel())


@tlx_xdsl.torch.op("tlx_xdsl_gpu::add")
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    launch_tuned(x, y, out)
    return out


add.register_autograd(lambda ctx, grad: (grad, grad))


@tlx_xdsl.torch.op("tlx_xdsl_gpu::add_", mutates_args=["x"])
def add_(x: torch.Tensor, y: torch.Tensor) -> None:
    launch_tuned(x, y, x)


@tlx_xdsl.torch.op("tlx_xdsl_gpu::double")
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    descriptors = (tlx_xdsl.TensorDescriptor.from_tensor(each, [64, 64]) for each in (x, out))
    double_tile[(x.shape[0] // 64,)](*descriptors)
    return out


def vectors(n=1000, **options):
    return torch.randn(n, device="cuda", **options), torch.randn(n, device="cuda")


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck(requires_grad):
    torch.library.opcheck(add, vectors(requires_grad=requires_grad))
    torch.library.opcheck(double, (torch.randn(128, 64, device="cuda", dtype=torch.float16),))


def test_opcheck_of_an_operator_that_writes_its_argument():
    x, y = vectors()
    expected = x + y
    torch.library.opcheck(add_, (x.clone(), y))
    add_(x, y)
    torch.testing.assert_close(x, expected)


@pytest.mark.parametrize("dynamic", [False, True])
def test_in_a_compiled_graph(dynamic):
    compiled = torch.compile(lambda x, y: add(x * 2, y).relu(), fullgraph=True, dynamic=dynamic)
    for n in (1000, 700):
        x, y = vectors(n)
        torch.testing.assert_close(compiled(x, y), (x * 2 + y).relu())


def test_descriptors_in_a_compiled_graph():
    x = torch.randn(256, 64, device="cuda", dtype=torch.float16)
    compiled = torch.compile(lambda x: double(x) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(x), x * 2 + 1)


def test_gradients():
    x, y = vectors(requires_grad=True)
    (add(x, y) * 3).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 3))


@pytest.mark.parametrize("bound", [False, True])
def test_a_graph_is_captured_and_replayed_on_new_inputs(bound):
    kernel = tlx_xdsl.jit(staged_sum)
    (x, y), out = vectors(), torch.empty(1000, device="cuda")
    grid = (4,)
    launch = (
        kernel.bind(grid, x, y, out, 1000, BLOCK=256) if bound else lambda: kernel[grid](x, y, out, 1000, BLOCK=256)
    )
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for _ in range(3):
        x.normal_()
        y.normal_()
        out.fill_(float("nan"))
        graph.replay()
        torch.testing.assert_close(out, x + y)


def test_a_graph_of_descriptors():
    x, out = (torch.randn(128, 64, device="cuda", dtype=torch.float16) for _ in range(2))
    descriptors = [tlx_xdsl.TensorDescriptor.from_tensor(each, [64, 64]) for each in (x, out)]
    double_tile[(2,)](*descriptors)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double_tile[(2,)](*descriptors)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(out, x * 2)


@pytest.mark.parametrize("warmed_up", [False, True])
def test_a_first_launch_within_a_capture_is_refused(warmed_up):
    kernel = tlx_xdsl.jit(staged_sum)
    (x, y), out = vectors(), torch.zeros(1000, device="cuda")
    arguments = (x, y, out, 1000)
    if warmed_up:
        kernel.warmup(*arguments, BLOCK=256, grid=(4,))
    torch.cuda.synchronize()
    refused = pytest.raises(RuntimeError, match="the kernel 'staged_sum' is launched for the first time")
    # A capture of nothing is allowed: torch warns.
    with pytest.warns(UserWarning, match="empty"), torch.cuda.graph(torch.cuda.CUDAGraph()), refused:
        kernel[(4,)](*arguments, BLOCK=256)
    # Neither the kernel nor the context is worse for it.
    kernel[(4,)](*arguments, BLOCK=256)
    torch.testing.assert_close(out, x + y)
    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[(4,)](*arguments, BLOCK=256)
    graph.replay()
    torch.testing.assert_close(out, x + y)


@pytest.mark.parametrize("bound", [False, True])
def test_launches_go_to_the_current_stream(bound):
    kernel = tlx_xdsl.jit(staged_sum)
    (x, y), out = vectors(), torch.empty(1000, device="cuda")
    launch = kernel.bind((4,), x, y, out, 1000, BLOCK=256) if bound else None
    kernel[(4,)](x, y, out, 1000, BLOCK=256)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.fill_(1)
        y.fill_(2)
        # On any other stream it would run before the sleep is over.
        launch() if launch else kernel[(4,)](x, y, out, 1000, BLOCK=256)
        assert not side.query()
    side.synchronize()
    assert (out == 3).all()
