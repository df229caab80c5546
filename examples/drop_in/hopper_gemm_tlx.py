"""C = relu(A @ B + bias) on Hopper, in the style of scripts for Meta's TLX: nothing in it knows of tlx_xdsl.

    python -m tlx_xdsl.compat examples/drop_in/hopper_gemm_tlx.py --bench        on a Hopper GPU
    python -m tlx_xdsl.compat --interpret examples/drop_in/hopper_gemm_tlx.py -m 256 -n 256 -k 128
    python -m tlx_xdsl.compat --compile-only examples/drop_in/hopper_gemm_tlx.py --no-check

It needs torch; the last two need no GPU. A producer task streams tiles of A and B into a ring of buffers, two consumer
tasks multiply half of the rows each, and a plain Triton kernel adds the bias.
"""

import argparse

import torch
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx
from triton.language.extra.tlx.warp_spec import get_bufidx_phase
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def set_block_shapes(nargs):
    """Each configuration has tiles of its own: the descriptors follow it before a launch."""
    rows = nargs["BLOCK_M"] // nargs["NUM_CONSUMERS"]
    nargs["a_desc"].block_shape = [rows, nargs["BLOCK_K"]]
    nargs["b_desc"].block_shape = [nargs["BLOCK_K"], nargs["BLOCK_N"]]
    nargs["c_desc"].block_shape = [rows, nargs["BLOCK_N"]]


def configurations():
    return [
        triton.Config(
            {"BLOCK_M": 128, "BLOCK_N": n, "BLOCK_K": 64, "NUM_STAGES": stages, "NUM_CONSUMERS": 2, "GROUP_M": 8},
            num_warps=4,
            num_stages=1,
            pre_hook=set_block_shapes,
        )
        for n, stages in ((128, 4), (256, 3), (256, 4))
    ]


def worth_trying(configs, named_args, **kwargs):
    """Leave out tiles that are wider than C."""
    fitting = [config for config in configs if config.kwargs["BLOCK_N"] <= max(named_args["N"], 128)]
    return fitting or configs[:1]


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """The tile of a program: columns of GROUP_M tiles, for the sake of the L2 cache."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * tiles_n) * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    return first + pid % (GROUP_M * tiles_n) % height, pid % (GROUP_M * tiles_n) // height


@triton.autotune(configs=configurations(), key=["M", "N", "K"], prune_configs_by={"early_config_prune": worth_trying})
@triton.jit
def gemm_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, NUM_CONSUMERS: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    ROWS: tl.constexpr = BLOCK_M // NUM_CONSUMERS
    dtype = tlx.dtype_of(a_desc)
    a_tiles = tlx.local_alloc((ROWS, BLOCK_K), dtype, NUM_STAGES * NUM_CONSUMERS)
    b_tiles = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=NUM_CONSUMERS)

    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row, column = pid_m * BLOCK_M, pid_n * BLOCK_N

    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(tl.cdiv(K, BLOCK_K)):
                stage, phase = get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype))
                tlx.async_descriptor_load(b_desc, b_tiles[stage], [k * BLOCK_K, column], full[stage])
                for i in tl.static_range(NUM_CONSUMERS):
                    tile = a_tiles[stage * NUM_CONSUMERS + i]
                    tlx.async_descriptor_load(a_desc, tile, [row + i * ROWS, k * BLOCK_K], full[stage])

        with tlx.async_task(num_warps=4, replicate=NUM_CONSUMERS, registers=232):
            half = tlx.async_task_replica_id()
            acc = tl.zeros((ROWS, BLOCK_N), tl.float32)
            for k in range(tl.cdiv(K, BLOCK_K)):
                stage, phase = get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(full[stage], phase)
                acc = tlx.async_dot(a_tiles[stage * NUM_CONSUMERS + half], b_tiles[stage], acc)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[stage])
            c_desc.store([row + half * ROWS, column], acc.to(dtype))


@triton.jit
def bias_relu_kernel(c_ptr, bias_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < N
        value = tl.load(c_ptr + row * N + columns, mask=inside) + tl.load(bias_ptr + columns, mask=inside)
        tl.store(c_ptr + row * N + columns, tl.maximum(value, 0.0), mask=inside)


def linear_relu(a, b, bias=None):
    """relu(a @ b + bias) for row-major fp16 or bf16 matrices."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    # The blocks are dummies: `set_block_shapes` gives the right ones.
    a_desc, b_desc, c_desc = (TensorDescriptor.from_tensor(tensor, [64, 64]) for tensor in (a, b, c))
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)  # noqa: E731
    gemm_kernel[grid](a_desc, b_desc, c_desc, M, N, K)
    if bias is not None:
        bias_relu_kernel[(M,)](c, bias, N, BLOCK=1024)
    return c


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", type=int, default=512)
    parser.add_argument("-n", type=int, default=768)
    parser.add_argument("-k", type=int, default=384)
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16")
    parser.add_argument("--no-check", action="store_true", help="do not compare with torch")
    parser.add_argument("--bench", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    dtype = getattr(torch, args.dtype)
    a = torch.randn((args.m, args.k), device=DEVICE, dtype=dtype)
    b = torch.randn((args.k, args.n), device=DEVICE, dtype=dtype)
    bias = torch.randn((args.n,), device=DEVICE, dtype=dtype)
    c = linear_relu(a, b, bias)
    print(f"best configuration: {gemm_kernel.best_config}")
    if not args.no_check:
        expected = torch.relu(a.float() @ b.float() + bias.float())
        error = ((c.float() - expected).norm() / expected.norm()).item()
        print(f"relative error: {error:.1e}")
        assert error < 1e-2
    if args.bench:
        ms = triton.testing.do_bench(lambda: linear_relu(a, b))
        print(f"{2 * args.m * args.n * args.k / ms * 1e-9:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
