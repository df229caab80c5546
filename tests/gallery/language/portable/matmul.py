"""Matrix multiplication."""

# covers: tl.matrix, tt.dot

import triton
import triton.language as tl

from tests.gallery.cases import case


@triton.jit
def _tile(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.load(x + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])


@triton.jit
def _keep(out, a):
    tl.store(out + tl.arange(0, a.shape[0])[:, None] * a.shape[1] + tl.arange(0, a.shape[1])[None, :], a)


@case({"x": "*fp16:16", "y": "*fp16:16", "out": "*fp16:16", "M": "i32", "N": "i32", "K": "i32:16", "TILE": 64})
@triton.jit
def blocked_product(x, y, out, M, N, K, TILE: tl.constexpr):
    """A product in tiles, with a grouped order of the programs and masks at the edges."""
    pid = tl.program_id(0)
    wide = tl.cdiv(N, TILE)
    row = (pid // wide) * TILE + tl.arange(0, TILE)
    column = (pid % wide) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, 32)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, 32)):
        left = depth[None, :] + k * 32 < K
        a = tl.load(x + row[:, None] * K + (k * 32 + depth)[None, :], mask=left, other=0.0)
        b = tl.load(y + (k * 32 + depth)[:, None] * N + column[None, :], mask=depth[:, None] + k * 32 < K, other=0.0)
        total = tl.dot(a, b, total)
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(out + row[:, None] * N + column[None, :], total.to(tl.float16), mask=inside)


@case({"x": "*fp32:16", "h": "*fp16:16", "b": "*bf16:16", "i": "*i8:16", "q": "*fp8e5:16", "out": "*fp32:16"})
@triton.jit
def precisions(x, h, b, i, q, out):
    """dot over all types of elements, with the options for precision."""
    a = _tile(x, 32, 32)
    _keep(out, tl.dot(a, a))
    _keep(out, tl.dot(a, a, input_precision="ieee"))
    _keep(out, tl.dot(a, a, input_precision="tf32x3"))
    _keep(out, tl.dot(a, a, allow_tf32=False))
    _keep(out, tl.dot(a, a.T, acc=a))
    c = _tile(h, 32, 32)
    _keep(out, tl.dot(c, c))
    _keep(out, tl.dot(c, c, out_dtype=tl.float16))
    d = _tile(b, 32, 32)
    _keep(out, tl.dot(d, d, a))
    e = _tile(i, 32, 32)
    _keep(out, tl.dot(e, e))
    f = _tile(q, 32, 32)
    _keep(out, tl.dot(f, f, max_num_imprecise_acc=32))
    _keep(out, tl.dot(f, f, a) + tl.dot(f, f))


@case({"x": "*fp16:16", "out": "*fp32:16"})
@triton.jit
def batched_product(x, out):
    """A product of three-dimensional blocks, and an accumulator updated in place."""
    index = (
        tl.arange(0, 2)[:, None, None] * 1024 + tl.arange(0, 32)[None, :, None] * 32 + tl.arange(0, 32)[None, None, :]
    )
    a = tl.load(x + index)
    total = tl.dot(a, a)
    total += tl.dot(a, tl.permute(a, (0, 2, 1)))
    tl.store(out + index, total)


@case({"a": "*u8:16", "sa": "*u8:16", "b": "*u8:16", "sb": "*u8:16", "h": "*bf16:16", "out": "*fp32:16"})
@triton.jit
def scaled_products(a, sa, b, sb, h, out):
    """dot_scaled with the formats of 4 and 8 bits, with and without scales, with an accumulator."""
    scale_a = _tile(sa, 64, 2)
    scale_b = _tile(sb, 64, 2)
    left8 = _tile(a, 64, 64)
    right8 = _tile(b, 64, 64)
    left4 = _tile(a, 64, 32)
    right4 = _tile(b, 32, 64)
    c = tl.dot_scaled(left8, scale_a, "e5m2", right8, scale_b, "e4m3")
    c = tl.dot_scaled(left4, scale_a, "e2m1", right4, scale_b, "e2m1", acc=c)
    c = tl.dot_scaled(left8, scale_a, "e4m3", right4, None, "e2m1", c, fast_math=True)
    wide = _tile(h, 64, 64)
    c += tl.dot_scaled(left8, scale_a, "e4m3", wide, None, "bf16")
    _keep(out, c)


@case({"q": "*fp16:16", "k": "*fp16:16", "v": "*fp16:16", "out": "*fp16:16", "n": "i32", "scale": "fp32"})
@triton.jit
def attention(q, k, v, out, n, scale):
    """Attention with a running maximum: products, reductions and rescaling carried by one loop."""
    ROWS: tl.constexpr = 32
    DEPTH: tl.constexpr = 64
    row = tl.arange(0, ROWS)
    depth = tl.arange(0, DEPTH)
    queries = tl.load(q + tl.program_id(0) * ROWS * DEPTH + row[:, None] * DEPTH + depth[None, :])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    for start in tl.range(0, n, 32, num_stages=2):
        position = start + tl.arange(0, 32)
        keys = tl.load(k + position[None, :] * DEPTH + depth[:, None], mask=position[None, :] < n, other=0.0)
        score = tl.dot(queries, keys) * scale
        score = tl.where(position[None, :] < n, score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        mass = mass * shrink + tl.sum(weight, 1)
        values = tl.load(v + position[:, None] * DEPTH + depth[None, :], mask=position[:, None] < n, other=0.0)
        total = tl.dot(weight.to(tl.float16), values, total * shrink[:, None])
        top = new_top
    total = total / mass[:, None]
    index = (tl.program_id(0) * ROWS + row)[:, None] * DEPTH + depth[None, :]
    tl.store(out + index, total.to(out.dtype.element_ty))
