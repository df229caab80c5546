"""Kernels compiled by stock Triton, launched by `Launcher` on a real GPU."""

import pytest

from tlx_xdsl import runtime

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

if not (runtime.available() and torch.cuda.get_device_capability() >= (9, 0)):
    pytest.skip("needs a GPU with TMA (compute capability 9.0)", allow_module_level=True)


@triton.jit
def scale_tile(source, out, columns, flag, offset, factor, half, brain, double):
    """Read one tile through TMA, write it through pointers, with a scalar of every kind."""
    row = tl.program_id(0) * 64
    column = tl.program_id(1) * 128
    tile = source.load([row, column]).to(tl.float32)
    factors = factor * half.to(tl.float32) * brain.to(tl.float32) * double.to(tl.float32)
    if flag:
        tile = tile * factors
    rows = row + tl.arange(0, 64)[:, None]
    tl.store(out + rows * columns + column + tl.arange(0, 128)[None, :], tile + offset)


SCALE_ARGUMENTS = [
    ("source", "tensordesc<fp16[64, 128]>"),
    ("out", "*fp32"),
    ("columns", "i64"),
    ("flag", "i1"),
    ("offset", "i32"),
    ("factor", "fp32"),
    ("half", "fp16"),
    ("brain", "bf16"),
    ("double", "fp64"),
]


@triton.jit
def cluster_rank(out):
    """Write this CTA's rank in its cluster."""
    rank = tl.inline_asm_elementwise("mov.u32 $0, %cluster_ctarank;", "=r", [], tl.int32, False, 1)
    tl.store(out + tl.program_id(0), rank)


def compile_with_triton(kernel, arguments, **launcher_options):
    source = triton.compiler.ASTSource(kernel, signature=dict(arguments), constexprs={})
    compiled = triton.compile(source)
    metadata = compiled.metadata
    return runtime.Launcher(
        compiled.asm["cubin"],
        name=metadata.name,
        arguments=arguments,
        num_warps=metadata.num_warps,
        shared=metadata.shared,
        tensordesc_meta=metadata.tensordesc_meta or (),
        **launcher_options,
    )


@pytest.mark.parametrize("rows", [64, 1024])  # 32 KiB and 512 KiB: the driver treats small tensors differently
def test_descriptor_pointers_and_scalars(rows):
    columns = 256
    source = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
    out = torch.full((rows, columns), float("nan"), device="cuda")
    launcher = compile_with_triton(scale_tile, SCALE_ARGUMENTS)
    descriptor = runtime.TensorDescriptor.from_tensor(source, [64, 128])
    launcher((rows // 64, columns // 128), descriptor, out, columns, True, 3, 0.5, 0.25, 8.0, 2.0)
    torch.testing.assert_close(out, source.float() * 2 + 3)


def test_bound_launch_on_torchs_stream_and_in_a_graph():
    source = torch.randn(64, 128, device="cuda", dtype=torch.float16)
    out = torch.zeros(64, 128, device="cuda")
    launcher = compile_with_triton(scale_tile, SCALE_ARGUMENTS)
    descriptor = runtime.TensorDescriptor.from_tensor(source, [64, 128])
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    run = launcher.bind((1, 1), descriptor, out, 128, False, 1, 1.0, 1.0, 1.0, 1.0, stream=stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, source.float() + 1)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_cluster(size):
    out = torch.full((64,), -1, device="cuda", dtype=torch.int32)
    compile_with_triton(cluster_rank, [("out", "*i32")], cluster=(size, 1, 1))((64,), out)
    assert out.tolist() == [i % size for i in range(64)]


def test_host_tensor_is_refused():
    launcher = compile_with_triton(cluster_rank, [("out", "*i32")])
    with pytest.raises(TypeError, match="expected a tensor in GPU memory, got one on cpu"):
        launcher((1,), torch.zeros(1, dtype=torch.int32))


def test_wrong_signature_is_refused_before_the_launch():
    launcher = compile_with_triton(cluster_rank, [("out", "*i32")])
    short = runtime.Launcher(launcher.cubin, name=launcher.name, arguments=[], num_warps=4, shared=0)
    with pytest.raises(ValueError, match="the cubin declares"):
        short((1,))


def test_cubin_that_is_none():
    bad = runtime.Launcher(b"\x7fELF" + bytes(64), name="k", arguments=[], num_warps=1, shared=0)
    with pytest.raises(runtime.CudaDriverError, match="cuModuleLoadData failed: CUDA_ERROR_"):
        bad((1,))
