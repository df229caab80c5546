"""Six kinds of kernel as a user writes them, with what a type checker must know of them.

A comment `# -> type` at the end of an assignment is what pyright reveals of the name on its left:
`tests/unit/test_user_types.py` asks it, and runs the kernels.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

LOG2_E = tl.constexpr(1.4426950408889634)
SQRT_HALF: tl.constexpr = tl.constexpr(0.7071067811865476)

# --- RMSNorm of a row and what is added to it -----------------------------------------------------------------------


@tlx_xdsl.jit
def rms_norm(x_ptr, residual_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr = 1024):
    row = tl.program_id(0)  # -> tensor
    column = tl.arange(0, BLOCK)  # -> tensor
    inside = column < columns  # -> mask
    place = row * columns + column  # -> tensor
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)  # -> tensor
    x += tl.load(residual_ptr + place, mask=inside, other=0.0)
    tl.store(residual_ptr + place, x, mask=inside)
    mean = tl.sum(x * x, 0) / columns  # -> tensor
    scaled = x * tl.rsqrt(mean + eps) * tl.load(weight_ptr + column, mask=inside, other=0.0)
    tl.store(out_ptr + place, scaled.to(out_ptr.dtype.element_ty), mask=inside)


# --- rotary embedding, the halves of a head as pairs (neox) ---------------------------------------------------------


@tlx_xdsl.jit
def rotated(x, y, cos, sin):
    return x * cos - y * sin, y * cos + x * sin


@tlx_xdsl.jit
def rope(q_ptr, cos_ptr, sin_ptr, heads, HEAD_DIM: tl.constexpr):
    HALF: tl.constexpr = HEAD_DIM // 2  # -> constexpr
    token, head = tl.program_id(0), tl.program_id(1)
    dim = tl.arange(0, HALF)  # -> tensor
    start = (token * heads + head) * HEAD_DIM  # -> tensor
    cos = tl.load(cos_ptr + token * HALF + dim)
    sin = tl.load(sin_ptr + token * HALF + dim)
    first = tl.load(q_ptr + start + dim)  # -> tensor
    second = tl.load(q_ptr + start + HALF + dim)
    left, right = rotated(first, second, cos, sin)
    tl.store(q_ptr + start + dim, left)
    tl.store(q_ptr + start + HALF + dim, right)


# --- cross-entropy of one pass over the logits, with a label that is ignored ----------------------------------------


@tlx_xdsl.jit
def cross_entropy(logits_ptr, labels_ptr, losses_ptr, classes, IGNORED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)  # -> tensor
    if label == IGNORED:
        tl.store(losses_ptr + row, 0.0)
        return
    largest = tl.full((), float("-inf"), tl.float32)  # -> tensor
    total = tl.zeros((), tl.float32)  # -> tensor
    for start in tl.range(0, classes, BLOCK):
        column = start + tl.arange(0, BLOCK)  # -> tensor
        value = tl.load(logits_ptr + row * classes + column, mask=column < classes, other=float("-inf"))
        higher = tl.maximum(largest, tl.max(value, 0))  # -> tensor
        total = total * tl.exp2((largest - higher) * LOG2_E) + tl.sum(tl.exp2((value - higher) * LOG2_E))
        largest = higher
    right = tl.load(logits_ptr + row * classes + label)
    tl.store(losses_ptr + row, largest + tl.log(total) - right)


# --- grouped GEMM with a helper that walks the tiles ----------------------------------------------------------------


@tlx_xdsl.jit
def swizzled(tile, rows, columns, GROUP: tl.constexpr):
    width = GROUP * columns
    first = tile // width * GROUP
    height = min(rows - first, GROUP)
    return first + tile % width % height, tile % width // height


@tlx_xdsl.jit
def grouped_gemm(
    a_ptr, b_ptr, c_ptr, ends_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr = 2
):
    expert = tl.program_id(1)  # -> tensor
    begin = tl.load(ends_ptr + expert)  # -> tensor
    end = tl.load(ends_ptr + expert + 1)
    rows, columns = tl.cdiv(end - begin, BM), tl.cdiv(N, BN)
    if tl.program_id(0) >= rows * columns:
        return
    at_m, at_n = swizzled(tl.program_id(0), rows, columns, GROUP)
    m = begin + at_m * BM + tl.arange(0, BM)  # -> tensor
    n = at_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)  # -> tensor
    for start in range(0, tl.cdiv(K, BK)):
        k = start * BK + tl.arange(0, BK)  # -> tensor
        inside = (m[:, None] < end) & (k[None, :] < K)  # -> tensor
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=inside, other=0.0)
        b = tl.load(b_ptr + (expert * K + k[:, None]) * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(a, b, acc)  # -> tensor
    tl.store(c_ptr + m[:, None] * N + n, acc, mask=(m[:, None] < end) & (n[None, :] < N))


# --- warp-specialised GEMM with bias and GELU -----------------------------------------------------------------------


@tlx_xdsl.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * SQRT_HALF))


@tlx_xdsl.jit
def gemm_gelu(
    a_desc, b_desc, c_desc, bias_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SLOTS: tl.constexpr = 2
):
    CONSUMERS: tl.constexpr = 2
    a = tlx.local_alloc((BM, BK), tlx.dtype_of(a_desc), SLOTS * CONSUMERS)  # -> buffered_tensor
    b = tlx.local_alloc((BK, BN), tlx.dtype_of(b_desc), SLOTS)
    c = tlx.local_alloc((BM, BN), tlx.dtype_of(c_desc), CONSUMERS)
    full = tlx.alloc_barriers(SLOTS)  # -> mbarrier
    empty = tlx.alloc_barriers(SLOTS, arrive_count=CONSUMERS)
    row, column = tl.program_id(0) * BM * CONSUMERS, tl.program_id(1) * BN
    steps = tl.cdiv(K, BK)  # -> number
    BYTES: tl.constexpr = (CONSUMERS * BM + BN) * BK * tlx.size_of(tl.float16)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for step in range(0, steps):
                slot, phase = tlx.get_bufidx_phase(step, SLOTS)
                barrier = full[slot]  # -> mbarrier
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(barrier, BYTES)
                for part in tl.static_range(CONSUMERS):
                    tile = a[slot * CONSUMERS + part]  # -> buffered_tensor
                    tlx.async_descriptor_load(a_desc, tile, [row + part * BM, step * BK], barrier)
                tlx.async_descriptor_load(b_desc, b[slot], [step * BK, column], barrier)
        with tlx.async_task(num_warps=4, registers=160, replicate=CONSUMERS):
            number = tlx.async_task_replica_id()  # -> int
            acc = tl.zeros((BM, BN), tl.float32)
            for step in range(0, steps):
                slot, phase = tlx.get_bufidx_phase(step, SLOTS)
                tlx.barrier_wait(full[slot], phase)
                product = tlx.async_dot(a[slot * CONSUMERS + number], b[slot], acc)  # -> tensor
                acc = tlx.async_dot_wait(0, product)  # -> tensor
                tlx.barrier_arrive(empty[slot])
            acc += tl.load(bias_ptr + column + tl.arange(0, BN))[None, :]
            result = gelu(acc)  # -> tensor
            tlx.local_store(c[number], result.to(tl.float16))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(c_desc, c[number], [row + number * BM, column])
            tlx.async_descriptor_store_wait(0)


# --- decoding: parts of the keys side by side, and their sum --------------------------------------------------------


@tlx_xdsl.jit
def decode_part(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, lengths_ptr, keys, scale, DIM: tl.constexpr, BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    head, part = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + head)  # -> tensor
    each = tl.cdiv(length, SPLITS)  # -> number
    dim = tl.arange(0, DIM)
    q = tl.load(q_ptr + head * DIM + dim).to(tl.float32) * scale
    largest, total = tl.full((), -1.0e30, tl.float32), tl.zeros((), tl.float32)
    acc = tl.zeros((DIM,), tl.float32)
    end = tl.minimum(part * each + each, length)  # -> tensor
    for start in tl.range(part * each, end, BLOCK):
        key = start + tl.arange(0, BLOCK)  # -> tensor
        place = (head * keys + key[:, None]) * DIM + dim[None, :]
        scores = tl.sum(q[None, :] * tl.load(k_ptr + place, mask=key[:, None] < end, other=0.0), axis=1)  # -> tensor
        scores = tl.where(key < end, scores, -1.0e30)
        higher = tl.maximum(largest, tl.max(scores, 0))
        weights = tl.where(key < end, tl.exp(scores - higher), 0.0)  # -> tensor
        decay = tl.exp(largest - higher)
        values = tl.load(v_ptr + place, mask=key[:, None] < end, other=0.0)
        acc = acc * decay + tl.sum(weights[:, None] * values, 0)
        total = total * decay + tl.sum(weights, 0)
        largest = higher
    tl.store(part_ptr + (head * SPLITS + part) * DIM + dim, acc / tl.maximum(total, 1e-30))
    tl.store(lse_ptr + head * SPLITS + part, largest + tl.log(tl.maximum(total, 1e-30)))


@tlx_xdsl.jit
def decode_sum(part_ptr, lse_ptr, out_ptr, DIM: tl.constexpr, SPLITS: tl.constexpr):
    head, dim, part = tl.program_id(0), tl.arange(0, DIM), tl.arange(0, SPLITS)
    lse = tl.load(lse_ptr + head * SPLITS + part)  # -> tensor
    weights = tl.softmax(lse)  # -> tensor
    parts = tl.load(part_ptr + (head * SPLITS + part[:, None]) * DIM + dim[None, :])
    tl.store(out_ptr + head * DIM + dim, tl.sum(parts * weights[:, None], 0))
