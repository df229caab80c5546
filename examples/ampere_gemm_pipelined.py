"""C = A @ B with copies by the threads and `tl.dot`: for every NVIDIA GPU from Ampere (sm_80) on.

Design. There is one task. Its warps copy tiles of A and B into shared memory with cp.async, a few steps of K ahead,
and multiply the tiles of the oldest step with the tensor cores.

Ring: NUM_STAGES stages of shared memory, each with a tile of A and of B. The copies of one step of K form one commit
group; groups complete in order, so "at most NUM_STAGES - 2 pending" says that the oldest stage has arrived. The stage
that is filled in step k is that of step k - 1, which everybody has read when the wait of step k is over.

Barriers and phases: none of our own. The threads of one task meet where one writes what another one reads, and the
compiler places those barriers.

Steps after the end of K have all elements masked out. They fill stages with zeros that are never multiplied, and keep
the number of groups equal to the number of steps.

Nothing here names an architecture: `tl.dot` becomes mma.sync on sm_80, sm_86, sm_89 and sm_120a, wgmma on sm_90a and
tcgen05 on sm_100a and sm_103a. The tile fits the 99 KiB that a thread block has on the smallest of them.

    tlx compile examples/ampere_gemm_pipelined.py:matmul --target sm_80 -o build/     (needs no GPU)
    python examples/ampere_gemm_pipelined.py                                          (needs an NVIDIA GPU and torch)
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def copy_step(
    step, a_tile, b_tile, a_rows, b_columns, a, b, K, stride_b,
    BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
):  # fmt: skip
    """Start the copies of one step of K, as one commit group."""
    stage = step % NUM_STAGES
    offs_k = tl.arange(0, BLOCK_K)
    in_k = offs_k < K - step * BLOCK_K
    tlx.async_load(a_tile + step * BLOCK_K, a[stage], mask=a_rows & in_k[None, :])
    tlx.async_load(b_tile + step * BLOCK_K * stride_b, b[stage], mask=b_columns & in_k[:, None])
    tlx.async_load_commit_group()


@tlx_xdsl.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tl.static_assert(NUM_STAGES >= 2, "one stage is multiplied while another one is filled")
    dtype: tl.constexpr = a_ptr.dtype.element_ty

    # Programs walk the C tiles in columns of GROUP_M tiles, so that neighbours share tiles of A and B in the L2.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    offs_m = (first_m + in_group % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = in_group // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    num_k = tl.cdiv(K, BLOCK_K)

    a_tile = a_ptr + offs_m[:, None] * stride_a + offs_k[None, :]
    b_tile = b_ptr + offs_k[:, None] * stride_b + offs_n[None, :]
    a_rows = offs_m[:, None] < M
    b_columns = offs_n[None, :] < N

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)

    for step in tl.static_range(NUM_STAGES - 1):
        copy_step(step, a_tile, b_tile, a_rows, b_columns, a, b, K, stride_b, BLOCK_K, NUM_STAGES)

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(num_k):
        # NUM_STAGES - 1 + k groups have been committed: this leaves those after step k in flight.
        tlx.async_load_wait_group(NUM_STAGES - 2)
        stage = k % NUM_STAGES
        acc = tl.dot(tlx.local_load(a[stage]), tlx.local_load(b[stage]), acc)
        copy_step(k + NUM_STAGES - 1, a_tile, b_tile, a_rows, b_columns, a, b, K, stride_b, BLOCK_K, NUM_STAGES)
    tlx.async_load_wait_group(0)

    c_tile = c_ptr + offs_m[:, None] * stride_c + offs_n[None, :]
    tl.store(c_tile, acc.to(dtype), mask=a_rows & b_columns)


TLX_COMPILE = {
    "matmul": {
        # 16 bytes at a time need aligned addresses and rows: pointers and strides are multiples of 16.
        "signature": {
            "a_ptr": "*fp16:16",
            "b_ptr": "*fp16:16",
            "c_ptr": "*fp16:16",
            "M": "i32",
            "N": "i32:16",
            "K": "i32:16",
            "stride_a": "i32:16",
            "stride_b": "i32:16",
            "stride_c": "i32:16",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "NUM_STAGES": 4, "GROUP_M": 8},
        "num_warps": 4,
        "target": "sm_80",
    }
}


def launch_arguments(a, b, c):
    """The grid and the arguments for c = a @ b on torch tensors. N and K are multiples of 16."""
    (m, k), n = a.shape, b.shape[1]
    tile = TLX_COMPILE["matmul"]["constexprs"]
    grid = -(-m // tile["BLOCK_M"]) * -(-n // tile["BLOCK_N"])
    return (grid,), (a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0))


def main():
    from check_on_gpu import check_matmul

    constants, num_warps = TLX_COMPILE["matmul"]["constexprs"], TLX_COMPILE["matmul"]["num_warps"]
    shapes = (512, 512, 512), (1000, 1296, 720), (4096, 4096, 4096)
    check_matmul(matmul, launch_arguments, constants | {"num_warps": num_warps}, shapes)


if __name__ == "__main__":
    main()
