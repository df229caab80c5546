"""Matrix products of all types, scaled products, attention, and the loop options that matter to them."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, Constant, case, since

BOTH = (HOPPER, BLACKWELL)

STRIDES = {"M": "i32:16", "N": "i32:16", "K": "i32:16", "stride_am": "i32:16", "stride_bk": "i32:16"}
TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


def _types(a: str, b: str, c: str) -> dict[str, str]:
    return {"a": f"*{a}:16", "b": f"*{b}:16", "c": f"*{c}:16"}


@case(_types("fp16", "fp16", "fp16") | STRIDES | TILE | {"PRECISION": Constant("tf32")}, name="matmul_fp16", archs=BOTH)
@case(
    _types("bf16", "bf16", "fp32") | STRIDES | TILE | {"PRECISION": Constant("tf32")},
    name="matmul_bf16",
    archs=BOTH,
    num_warps=8,
    num_stages=4,
)
@case(
    _types("fp8e4nv", "fp8e5", "fp16") | STRIDES | TILE | {"PRECISION": Constant("tf32")},
    name="matmul_fp8",
    archs=BOTH,
)
@case(
    _types("fp32", "fp32", "fp32") | STRIDES | TILE | {"BLOCK_K": 32, "PRECISION": Constant("tf32")},
    name="matmul_tf32",
    archs=BOTH,
)
@case(
    _types("fp32", "fp32", "fp32") | STRIDES | TILE | {"BLOCK_K": 32, "PRECISION": Constant("tf32x3")},
    name="matmul_tf32x3",
)
@case(
    _types("fp32", "fp32", "fp32") | STRIDES | TILE | {"BLOCK_K": 32, "PRECISION": Constant("bf16x3")},
    name="matmul_bf16x3",
    maxnreg=128,
)
@case(
    _types("fp32", "fp32", "fp32")
    | STRIDES
    | {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "PRECISION": Constant("ieee")},
    name="matmul_ieee",
)
@case(
    _types("fp16", "fp16", "fp32")
    | STRIDES
    | {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32, "PRECISION": Constant("tf32")},
    name="matmul_small_tile",
    num_warps=2,
)
@triton.jit
def matmul(
    a, b, c, M, N, K, stride_am, stride_bk,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_tile = a + m[:, None] * stride_am + k[None, :]
    b_tile = b + k[:, None] * stride_bk + n[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for left in range(K, 0, -BLOCK_K):
        x = tl.load(a_tile, mask=k[None, :] < left, other=0.0)
        y = tl.load(b_tile, mask=k[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * stride_bk
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty), mask=inside)


@case({"a": "*i8:16", "b": "*i8:16", "c": "*i32:16", "K": "i32:16", "BLOCK": 64}, archs=BOTH)
@triton.jit
def matmul_int8(a, b, c, K, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.int32)
    for k in range(0, K, BLOCK):
        x = tl.load(a + row[:, None] * K + k + row[None, :])
        y = tl.load(b + row[None, :] * K + k + row[:, None])
        total += tl.dot(x, y, out_dtype=tl.int32)
    tl.store(c + row[:, None] * BLOCK + row[None, :], total)


@case({"a": "*fp16:16", "b": "*fp16:16", "c": "*fp16:16", "BATCH": 4, "BLOCK": 32}, archs=BOTH)
@triton.jit
def matmul_batched(a, b, c, BATCH: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.arange(0, BATCH)[:, None, None] * (BLOCK * BLOCK)
    at = batch + tl.arange(0, BLOCK)[None, :, None] * BLOCK + tl.arange(0, BLOCK)[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=tl.float16))


@case({"a": "*fp64:16", "b": "*fp64:16", "c": "*fp64:16", "BLOCK": 32})
@triton.jit
def matmul_fp64(a, b, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=tl.float64))


@case(
    {"x": "*fp16:16", "w": "*i8:16", "out": "*fp16:16", "K": "i32:16", "BLOCK": 64, "WARPS": True},
    name="matmul_weights_warp_specialized",
    archs=(BLACKWELL,),
)
@case({"x": "*fp16:16", "w": "*i8:16", "out": "*fp16:16", "K": "i32:16", "BLOCK": 64, "WARPS": False}, archs=BOTH)
@triton.jit
def matmul_weights(x, w, out, K, BLOCK: tl.constexpr, WARPS: tl.constexpr):
    """Weights of eight bits that are converted on the way; the accumulator stays in a nest of loops."""
    row = tl.arange(0, BLOCK)
    for tile in tl.range(0, 4, flatten=False):
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in tl.range(0, K, BLOCK, num_stages=3, warp_specialize=WARPS):
            a = tl.load(x + row[:, None] * K + k + row[None, :])
            b = tl.load(w + (k + row[:, None]) * BLOCK + row[None, :])
            total = tl.dot(a, b.to(tl.float16), total)
        tl.store(out + tile * BLOCK * BLOCK + row[:, None] * BLOCK + row[None, :], total.to(tl.float16))


@case({"a": "*fp16:16", "b": "*fp16:16", "c": "*fp32:16", "bias": "*fp32:16", "BLOCK": 64}, archs=BOTH)
@triton.jit
def matmul_chain(a, b, c, bias, BLOCK: tl.constexpr):
    """A product whose result is an operand of the next, with a transposed operand."""
    row = tl.arange(0, BLOCK)
    at = row[:, None] * BLOCK + row[None, :]
    x = tl.load(a + at)
    y = tl.load(b + at)
    first = tl.dot(x, tl.trans(y)) + tl.load(bias + row)[None, :]
    tl.store(c + at, tl.dot(tl.maximum(first, 0.0).to(tl.float16), y))


@case(
    {"a": "*u8:16", "a_scale": "*u8:16", "b": "*u8:16", "b_scale": "*u8:16", "c": "*fp32:16"}
    | {"A": Constant("e2m1"), "B": Constant("e2m1"), "A_PACK": 2, "B_PACK": 2, "BLOCK": 128, "K": 128},
    name="dot_scaled_fp4",
    archs=BOTH,
)
@case(
    {"a": "*fp8e4nv:16", "a_scale": "*u8:16", "b": "*fp8e5:16", "b_scale": "*u8:16", "c": "*fp32:16"}
    | {"A": Constant("e4m3"), "B": Constant("e5m2"), "A_PACK": 1, "B_PACK": 1, "BLOCK": 128, "K": 128},
    name="dot_scaled_fp8",
    archs=BOTH,
)
@case(
    {"a": "*bf16:16", "a_scale": None, "b": "*u8:16", "b_scale": "*u8:16", "c": "*fp32:16"}
    | {"A": Constant("bf16"), "B": Constant("e2m1"), "A_PACK": 1, "B_PACK": 2, "BLOCK": 128, "K": 64},
    name="dot_scaled_one_side",
    archs=BOTH,
)
@triton.jit
def dot_scaled(
    a, a_scale, b, b_scale, c,
    A: tl.constexpr, B: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr,
    BLOCK: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, BLOCK)
    group = tl.arange(0, K // 32)
    ka = tl.arange(0, K // A_PACK)
    kb = tl.arange(0, K // B_PACK)
    x = tl.load(a + row[:, None] * (K // A_PACK) + ka[None, :])
    y = tl.load(b + kb[:, None] * BLOCK + row[None, :])
    scale = tl.load(b_scale + row[:, None] * (K // 32) + group[None, :])
    if a_scale is None:
        total = tl.dot_scaled(x, None, A, y, scale, B, out_dtype=tl.float32)
    else:
        other = tl.load(a_scale + row[:, None] * (K // 32) + group[None, :])
        total = tl.dot_scaled(x, other, A, y, scale, B, acc=tl.zeros((BLOCK, BLOCK), tl.float32), fast_math=True)
    tl.store(c + row[:, None] * BLOCK + row[None, :], total)


@case(
    {"q": "*fp16:16", "k": "*fp16:16", "v": "*fp16:16", "out": "*fp16:16", "scale": "fp32", "n": "i32:16"}
    | {"BLOCK_M": 128, "BLOCK_N": 64, "D": 64, "CAUSAL": False},
    archs=BOTH,
)
@case(
    {"q": "*bf16:16", "k": "*bf16:16", "v": "*bf16:16", "out": "*bf16:16", "scale": "fp32", "n": "i32:16"}
    | {"BLOCK_M": 128, "BLOCK_N": 128, "D": 128, "CAUSAL": True},
    name="attention_causal",
    archs=BOTH,
    num_warps=8,
)
@triton.jit
def attention(
    q, k, v, out, scale, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Softmax of q times k transposed, times v, with a running maximum and sum."""
    head = tl.program_id(1).to(tl.int64) * n * D
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    query = tl.load(q + head + m[:, None] * D + d[None, :])
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, D), tl.float32)
    stop = (tl.program_id(0) + 1) * BLOCK_M if CAUSAL else n
    for start in range(0, stop, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        keys = tl.load(k + head + columns[None, :] * D + d[:, None])
        logits = tl.dot(query, keys) * scale
        if CAUSAL:
            logits = tl.where(m[:, None] >= columns[None, :], logits, -1.0e6)
        above = tl.maximum(top, tl.max(logits, axis=1))
        p = tl.exp2(logits - above[:, None])
        decay = tl.exp2(top - above)
        weight = weight * decay + tl.sum(p, axis=1)
        values = tl.load(v + head + columns[:, None] * D + d[None, :])
        total = tl.dot(p.to(values.dtype), values, total * decay[:, None])
        top = above
    tl.store(out + head + m[:, None] * D + d[None, :], (total / weight[:, None]).to(out.dtype.element_ty))


@case(
    {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp16:16", "K": "i32:16", "BLOCK": 128},
    archs=BOTH,
    num_ctas=2,
)
@triton.jit
def matmul_two_ctas(a, b, c, K, BLOCK: tl.constexpr):
    """A tile in a cluster of two CTAs. Before Triton 3.9, stock orders some operations differently in every run."""
    row = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        x = tl.load(a + row[:, None] * K + k + row[None, :])
        y = tl.load(b + (k + row[:, None]) * BLOCK + row[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + row[:, None] * BLOCK + row[None, :], total.to(tl.float16))


@case(
    {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp16:16", "tiles": "i32", "BLOCK": 64},
    archs=(BLACKWELL,),
    limits=(since(3, 9, "the option clc"),),
    clc=True,
)
@triton.jit
def matmul_dynamic(a, b, c, tiles, BLOCK: tl.constexpr):
    """Programs that are launched late are taken over by those that run."""
    row = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK * BLOCK + row[:, None] * BLOCK + row[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)).to(tl.float16), mask=at < tiles)


@case({"a": "*u8:16", "b": "*u8:16", "scale": "*u8:16", "c": "*bf16:16", "BLOCK": 128}, archs=BOTH)
@triton.jit
def dot_scaled_packed_along_rows(a, b, scale, c, BLOCK: tl.constexpr):
    """Numbers of four bits that are packed along M and N, not along K."""
    row = tl.arange(0, BLOCK)
    half = tl.arange(0, BLOCK // 2)
    x = tl.load(a + half[:, None] * BLOCK + row[None, :])
    y = tl.load(b + row[:, None] * (BLOCK // 2) + half[None, :])
    # Triton 3.6 fails if both sides have the same scales.
    scales = scale + row[:, None] * (BLOCK // 32) + tl.arange(0, BLOCK // 32)[None, :]
    x_scale = tl.load(scales)
    y_scale = tl.load(scales + 4096)
    total = tl.dot_scaled(x, x_scale, "e2m1", y, y_scale, "e2m1", lhs_k_pack=False, rhs_k_pack=False)
    tl.store(c + row[:, None] * BLOCK + row[None, :], total.to(tl.bfloat16))
