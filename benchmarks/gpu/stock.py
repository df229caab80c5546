"""A persistent matmul and a fused attention in plain `tl` for stock Triton: what a good plain kernel reaches on Hopper.

Both load through TMA descriptors; software pipelining and the split into warps are stock Triton's. They are rivals of
`tlx_xdsl/kernels`, written for the benchmark. `compile_for_hopper` compiles them without a GPU.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

LOG2_E = tl.constexpr(1.4426950408889634)

MATMUL = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8}
MATMUL_OPTIONS = {"num_warps": 8, "num_stages": 4}
ATTENTION = {"BLOCK_M": 128, "BLOCK_N": 128}


def attention_options(head_dim: int) -> dict[str, int]:
    """Warps and stages of the software pipeline: as many blocks of K and V as the shared memory holds."""
    return {"num_warps": 8, "num_stages": 2 if head_dim == 128 else 3}


@triton.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    num_k = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        first_m = tile // (GROUP_M * tiles_n) * GROUP_M
        group_m = min(tiles_m - first_m, GROUP_M)
        in_group = tile % (GROUP_M * tiles_n)
        off_m = (first_m + in_group % group_m) * BLOCK_M
        off_n = in_group // group_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(num_k):
            acc = tl.dot(a_desc.load([off_m, k * BLOCK_K]), b_desc.load([k * BLOCK_K, off_n]), acc)
        # Two parts, so that staging them leaves memory for another stage.
        left, right = tl.split(tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
        c_desc.store([off_m, off_n], left.to(c_desc.dtype))
        c_desc.store([off_m, off_n + BLOCK_N // 2], right.to(c_desc.dtype))


@triton.jit
def attend(
    q, k_desc, v_desc, head_row, row, first, last, scale, m, total, acc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `first` to `last`."""
    for column in tl.range(first, last, BLOCK_N):
        column = tl.multiple_of(column, BLOCK_N)
        scores = tl.dot(q, k_desc.load([head_row + column, 0]).T)
        if MASKED:
            rows = row + tl.arange(0, BLOCK_M)
            columns = column + tl.arange(0, BLOCK_N)
            scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1) * scale)
        p = tl.math.exp2(scores * scale - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        v = v_desc.load([head_row + column, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    return m, total, acc


@triton.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """LENGTH is a multiple of BLOCK_M and BLOCK_N."""
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    scale = sm_scale * LOG2_E
    q = q_desc.load([head_row + row, 0])
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    plain_end = row if CAUSAL else LENGTH
    m, total, acc = attend(
        q, k_desc, v_desc, head_row, row, 0, plain_end, scale, m, total, acc, BLOCK_M, BLOCK_N, False
    )
    if CAUSAL:
        m, total, acc = attend(
            q, k_desc, v_desc, head_row, row, row, row + BLOCK_M, scale, m, total, acc, BLOCK_M, BLOCK_N, True
        )
    o_desc.store([head_row + row, 0], (acc / total[:, None]).to(q.dtype))


def matmul_signature(dtype: str) -> dict[str, str]:
    """The types of the matmul's arguments."""
    m, n, k = (MATMUL[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    blocks = {"a_desc": (m, k), "b_desc": (k, n), "c_desc": (m, n // 2)}
    descriptors = {name: f"tensordesc<{dtype}[{rows}, {columns}]>" for name, (rows, columns) in blocks.items()}
    return descriptors | dict.fromkeys(("M", "N", "K"), "i32")


def attention_signature(dtype: str, head_dim: int) -> dict[str, str]:
    """The types of the attention's arguments."""
    block = f"tensordesc<{dtype}[{ATTENTION['BLOCK_M']}, {head_dim}]>"
    return dict.fromkeys(("q_desc", "k_desc", "v_desc", "o_desc"), block) | {"sm_scale": "fp32", "LENGTH": "i32"}


def compile_for_hopper(kernel: Any, signature: dict[str, str], constexprs: dict[str, Any], options: dict[str, int]):
    """Compile without a GPU."""
    source = ASTSource(kernel, signature | dict.fromkeys(constexprs, "constexpr"), constexprs)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def bound_matmul(a: Any, b: Any, c: Any):
    """A launch of c = a @ b, rows contiguous, on torch's tensors."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = (MATMUL[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    descriptors = (
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_k, block_n]),
        TensorDescriptor.from_tensor(c, [block_m, block_n // 2]),
    )
    tiles = -(-m // block_m) * -(-n // block_n)
    grid = (min(tiles, torch.cuda.get_device_properties(a.device).multi_processor_count),)
    return lambda: matmul[grid](*descriptors, m, n, k, **MATMUL, **MATMUL_OPTIONS)


def bound_attention(q: Any, k: Any, v: Any, out: Any, causal: bool):
    """A launch of attention on contiguous tensors of torch, (batch, heads, length, dim)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    batch, heads, length, dim = q.shape
    block_m = ATTENTION["BLOCK_M"]
    descriptors = [TensorDescriptor.from_tensor(each.view(-1, dim), [block_m, dim]) for each in (q, k, v, out)]
    grid = (length // block_m, batch * heads)
    constants = {**ATTENTION, "HEAD_DIM": dim, "CAUSAL": causal, **attention_options(dim)}
    return lambda: attention[grid](*descriptors, dim**-0.5, length, **constants)
