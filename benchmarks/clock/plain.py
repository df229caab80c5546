"""Plain `tl` kernels, as tutorials have them, which stock Triton's own passes pipeline: what users tune first.

The number of warps and the depth of the pipeline are theirs to choose (`problems`), so they have no constants for it.
"""

from __future__ import annotations

import tlx_xdsl
import tlx_xdsl.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@tlx_xdsl.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) + tl.load(y_ptr + offsets, inside), inside)


@tlx_xdsl.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Row-major matrices of pointers; N and K are multiples of 16, and sizes of the blocks."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    rows = (first_m + in_group % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = in_group // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + (rows % M)[:, None] * K + depth[None, :]
    b_tile = b_ptr + depth[:, None] * N + (columns % N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(tl.load(a_tile), tl.load(b_tile), acc)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * N
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def matmul_tma(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    off_m = (first_m + in_group % group_m) * BLOCK_M
    off_n = in_group // group_m * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(a_desc.load([off_m, k * BLOCK_K]), b_desc.load([k * BLOCK_K, off_n]), acc)
    c_desc.store([off_m, off_n], acc.to(tl.float16))


@tlx_xdsl.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Online softmax; LENGTH is a multiple of both blocks, and BLOCK_M of BLOCK_N."""
    block = tl.program_id(0)
    head_row = tl.program_id(1) * LENGTH
    scale = sm_scale * LOG2_E
    columns = tl.arange(0, HEAD_DIM)[None, :]
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + (head_row + rows)[:, None] * HEAD_DIM + columns)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    last = (block + 1) * BLOCK_M if CAUSAL else LENGTH
    for first in range(0, last, BLOCK_N):
        place = (head_row + first + keys)[:, None] * HEAD_DIM + columns
        scores = tl.dot(q, tl.load(k_ptr + place).T) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= (first + keys)[None, :], scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))
        p = tl.math.exp2(scores - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + place)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    out = (acc / total[:, None]).to(q.dtype)
    tl.store(o_ptr + (head_row + rows)[:, None] * HEAD_DIM + columns, out)


@tlx_xdsl.jit
def softmax(x_ptr, out_ptr, ROWS, COLUMNS, BLOCK: tl.constexpr):
    """A row at a time, as many programs as there are, with a step of the grid's size."""
    columns = tl.arange(0, BLOCK)
    inside = columns < COLUMNS
    for row in tl.range(tl.program_id(0), ROWS, tl.num_programs(0)):
        x = tl.load(x_ptr + row * COLUMNS + columns, inside, float("-inf")).to(tl.float32)
        powers = tl.exp(x - tl.max(x, 0))
        out = powers / tl.sum(powers, 0)
        tl.store(out_ptr + row * COLUMNS + columns, out.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, COLUMNS, eps, BLOCK: tl.constexpr):
    """A row for each program, in pieces of BLOCK columns, read three times."""
    row = tl.program_id(0).to(tl.int64) * COLUMNS
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + row + columns, columns < COLUMNS, 0.0).to(tl.float32)
    mean = tl.sum(sums, 0) / COLUMNS
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + columns, columns < COLUMNS, 0.0).to(tl.float32)
        apart = tl.where(columns < COLUMNS, x - mean, 0.0)
        squares += apart * apart
    factor = 1 / tl.sqrt(tl.sum(squares, 0) / COLUMNS + eps)
    for first in range(0, COLUMNS, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        inside = columns < COLUMNS
        x = tl.load(x_ptr + row + columns, inside, 0.0).to(tl.float32)
        weight, bias = tl.load(weight_ptr + columns, inside), tl.load(bias_ptr + columns, inside)
        out = (x - mean) * factor * weight + bias
        tl.store(out_ptr + row + columns, out.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def cross_entropy(x_ptr, target_ptr, loss_ptr, COLUMNS, BLOCK: tl.constexpr):
    """A row for each program, with a running maximum."""
    row = tl.program_id(0)
    start = x_ptr + row.to(tl.int64) * COLUMNS
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        x = tl.load(start + columns, columns < COLUMNS, float("-inf")).to(tl.float32)
        higher = tl.maximum(most, x)
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(most - safe) + tl.exp(x - safe)
        most = higher
    top = tl.max(most, 0)
    whole = tl.sum(total * tl.exp(most - top), 0)
    chosen = tl.load(start + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(whole) + top - chosen)
