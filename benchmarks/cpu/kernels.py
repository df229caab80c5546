"""Kernels of the CPU's benchmark, as a user of Triton writes them: the tutorials' algorithms, masks and remainders.

Only the sizes of blocks are chosen for a CPU (`cases.py`): 16,384 elements of a vector, so that the work around a
block is nothing beside it; a row in one block, which stays in the first cache while it is walked several times; and
tiles of 512 x 128 x 128 of a product, whose operands stay in the second, and B's panels in the first.
"""

from __future__ import annotations

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def vector_add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(z + at, total, mask=inside)


@tlx_xdsl.jit
def softmax(result, source, result_stride, source_stride, columns, BLOCK: tl.constexpr):
    """A row for each program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(source + row * source_stride + at, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(result + row * result_stride + at, powers / tl.sum(powers, axis=0), mask=inside)


@tlx_xdsl.jit
def layer_norm(source, result, weight, bias, stride, columns, epsilon, BLOCK: tl.constexpr):
    """A row for each program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(source + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    factors = tl.load(weight + at, mask=inside).to(tl.float32)
    shifts = tl.load(bias + at, mask=inside).to(tl.float32)
    tl.store(result + row * stride + at, centred * scale * factors + shifts, mask=inside)


@tlx_xdsl.jit
def matmul(
    a, b, c, M, N, K, a_rows, a_columns, b_rows, b_columns, c_rows, c_columns,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """The tutorial's: groups of rows of tiles, indices that begin anew at the edges, and masks along K."""
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first = program // in_group * GROUP_M
    rows_of_group = min(tiles_m - first, GROUP_M)
    tile_m = first + program % in_group % rows_of_group
    tile_n = program % in_group // rows_of_group
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    depth = tl.arange(0, BLOCK_K)
    at_a = a + rows[:, None] * a_rows + depth[None, :] * a_columns
    at_b = b + depth[:, None] * b_rows + columns[None, :] * b_columns
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        block_a = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
        block_b = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(block_a, block_b, total, input_precision="ieee")
        at_a += BLOCK_K * a_columns
        at_b += BLOCK_K * b_rows
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    at_c = c + rows[:, None] * c_rows + columns[None, :] * c_columns
    tl.store(at_c, total.to(c.dtype.element_ty), mask=inside)


@tlx_xdsl.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=at < n)


@tlx_xdsl.jit
def cross_entropy(x, target, loss, columns, stride, BLOCK: tl.constexpr):
    """A row for each program, a part of it at a time."""
    row = tl.program_id(0)
    greatest = -float("inf")
    total = 0.0
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
        before = greatest
        greatest = tl.maximum(before, tl.max(values, 0))
        total = total * tl.exp(before - greatest) + tl.sum(tl.exp(values - greatest), 0)
    chosen = tl.load(x + row * stride + tl.load(target + row))
    tl.store(loss + row, greatest + tl.log(total) - chosen)


@tlx_xdsl.jit
def gather_rows(x, index, y, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = tl.load(index + at, mask=at < n, other=0)
    columns = tl.arange(0, COLUMNS)
    inside = (at < n)[:, None]
    value = tl.load(x + rows[:, None] * COLUMNS + columns[None, :], mask=inside)
    tl.store(y + at[:, None] * COLUMNS + columns[None, :], value, mask=inside)


@tlx_xdsl.jit
def attention(q, k, v, o, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A block of queries of one head for each program."""
    base = tl.program_id(1) * length * D
    rows, depth = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + depth[None, :])
    found = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    greatest = tl.full((M,), -float("inf"), tl.float32)
    for first in range(0, length, N):
        columns = first + tl.arange(0, N)
        keys = tl.load(k + base + columns[None, :] * D + depth[:, None])
        scores = tl.dot(queries, keys, input_precision="ieee") * scale
        before = greatest
        greatest = tl.maximum(before, tl.max(scores, 1))
        powers, less = tl.exp(scores - greatest[:, None]), tl.exp(before - greatest)
        total = total * less + tl.sum(powers, 1)
        values = tl.load(v + base + columns[:, None] * D + depth[None, :])
        found = found * less[:, None] + tl.dot(powers.to(values.dtype), values, input_precision="ieee")
    result = (found / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + base + rows[:, None] * D + depth[None, :], result)


@tlx_xdsl.jit
def convolution(x, w, y, C, H, W, PAD: tl.constexpr, BLOCK: tl.constexpr):
    """A 3 x 3 convolution by gathers: some pixels of one channel for each program, by their flat index."""
    channel = tl.program_id(1)
    rows, columns = H - 2 + 2 * PAD, W - 2 + 2 * PAD
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // columns - PAD, at % columns - PAD
    known = at < rows * columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(C):
        for a in tl.static_range(3):
            for b in tl.static_range(3):
                inside = known
                if PAD:
                    inside = known & (row + a >= 0) & (row + a < H) & (column + b >= 0) & (column + b < W)
                value = tl.load(x + (c * H + row + a) * W + column + b, mask=inside, other=0.0)
                total += value * tl.load(w + ((channel * C + c) * 3 + a) * 3 + b)
    tl.store(y + channel * rows * columns + at, total, mask=known)
