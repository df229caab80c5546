"""Kernels of plain Triton, of the kinds that its users write, for stock Triton to compile."""

import triton
import triton.language as tl


@triton.jit
def scaled_sum(x, y, out, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a, b = tl.load(x + i, mask=inside), tl.load(y + i, mask=inside)
    tl.store(out + i, alpha * a + b, mask=inside)


@triton.jit
def quotient(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a, b = tl.load(x + i, mask=inside).to(tl.float32), tl.load(y + i, mask=inside, other=1).to(tl.float32)
    tl.store(out + i, a / b, mask=inside)


@triton.jit
def exact_quotient(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a, b = tl.load(x + i, mask=inside), tl.load(y + i, mask=inside, other=1)
    tl.store(out + i, tl.div_rn(a, b) + tl.sqrt_rn(tl.abs(a)), mask=inside)


@triton.jit
def exponentials(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.exp(value), mask=i < n)
    tl.store(out + n + i, tl.exp2(value), mask=i < n)


@triton.jit
def logarithms(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.abs(tl.load(x + i, mask=i < n))
    tl.store(out + i, tl.log(value), mask=i < n)
    tl.store(out + n + i, tl.log2(value), mask=i < n)


@triton.jit
def roots(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.abs(tl.load(x + i, mask=i < n))
    tl.store(out + i, tl.sqrt(value), mask=i < n)
    tl.store(out + n + i, tl.rsqrt(value), mask=i < n)


@triton.jit
def waves(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sin(value), mask=i < n)
    tl.store(out + n + i, tl.cos(value), mask=i < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=i < n)


@triton.jit
def silu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, value * tl.sigmoid(value), mask=i < n)


@triton.jit
def dropout(x, out, n, chance, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    kept = tl.rand(seed, i) > chance
    tl.store(out + i, tl.where(kept, value / (1 - chance), 0.0), mask=i < n)


@triton.jit
def normal(out, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.randn(seed, i), mask=i < n)


@triton.jit
def softmax_rows(x, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, BLOCK)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, power / tl.sum(power, 0), mask=i < n)


@triton.jit
def layer_norm_rows(x, weight, bias, out, mean_out, scale_out, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + row * n + i, mask=inside, other=0).to(tl.float32)
    mean = tl.sum(value, 0) / n
    centred = tl.where(inside, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w, b = tl.load(weight + i, mask=inside).to(tl.float32), tl.load(bias + i, mask=inside).to(tl.float32)
    tl.store(out + row * n + i, centred * scale * w + b, mask=inside)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)


@triton.jit
def rms_norm_rows(x, weight, out, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + row * n + i, mask=inside, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(out + row * n + i, value * scale * tl.load(weight + i, mask=inside).to(tl.float32), mask=inside)


@triton.jit
def entropy_rows(x, labels, losses, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    top = tl.max(value, 0)
    total = tl.log(tl.sum(tl.exp(value - top), 0)) + top
    tl.store(losses + row, total - tl.load(x + row * n + tl.load(labels + row)).to(tl.float32))


@triton.jit
def welford_step(mean_a, square_a, count_a, mean_b, square_b, count_b):
    total = count_a + count_b
    delta = mean_b - mean_a
    part = count_b / total
    return mean_a + delta * part, square_a + square_b + delta * delta * count_a * part, total


@triton.jit
def variances(x, out, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    value = tl.load(x + row * N + i)
    mean, square, count = tl.reduce((value, value * 0, value * 0 + 1), 0, welford_step)
    tl.store(out + 2 * row, mean)
    tl.store(out + 2 * row + 1, square / count)


@triton.jit
def linear_step(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence(decay, x, out, N: tl.constexpr):
    row, i = tl.program_id(0) * N, tl.arange(0, N)
    _, state = tl.associative_scan((tl.load(decay + row + i), tl.load(x + row + i)), 0, linear_step)
    tl.store(out + row + i, state)


@triton.jit
def running_sums(x, out, N: tl.constexpr):
    row, i = tl.program_id(0) * N, tl.arange(0, N)
    tl.store(out + row + i, tl.cumsum(tl.load(x + row + i), 0))


@triton.jit
def sorted_rows(x, out, N: tl.constexpr):
    row, i = tl.program_id(0) * N, tl.arange(0, N)
    tl.store(out + row + i, tl.sort(tl.load(x + row + i)))


@triton.jit
def argmax_rows(x, values, places, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    value, place = tl.max(tl.load(x + row * N + i), 0, return_indices=True)
    tl.store(values + row, value)
    tl.store(places + row, place)


@triton.jit
def transposed(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    value = tl.load(x + i[:, None] * columns + j[None, :], mask=inside)
    tl.store(out + j[None, :] * rows + i[:, None], value, mask=inside)


@triton.jit
def embedding(table, tokens, out, WIDTH: tl.constexpr):
    at, i = tl.program_id(0), tl.arange(0, WIDTH)
    tl.store(out + at * WIDTH + i, tl.load(table + tl.load(tokens + at) * WIDTH + i))


@triton.jit
def counts(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def quantized_rows(x, out, scales, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, mask=i < n, other=0).to(tl.float32)
    scale = tl.max(tl.abs(value), 0) / 127
    tl.store(scales + row, scale)
    tl.store(out + row * n + i, (value / scale).to(tl.int8), mask=i < n)


@triton.jit
def fp8_rows(x, out, scales, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, mask=i < n, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / 448
    tl.store(scales + row, scale)
    tl.store(out + row * n + i, (value / scale).to(tl.float8e4nv), mask=i < n)


@triton.jit
def adam(p, g, m, v, rate, step_scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    grad = tl.load(g + i, mask=inside)
    first = 0.9 * tl.load(m + i, mask=inside) + 0.1 * grad
    second = 0.999 * tl.load(v + i, mask=inside) + 0.001 * grad * grad
    change = rate * first / (tl.sqrt(second * step_scale) + 1e-8)
    tl.store(p + i, tl.load(p + i, mask=inside) - change, mask=inside)
    tl.store(m + i, first, mask=inside)
    tl.store(v + i, second, mask=inside)


@triton.jit
def convolution(x, weight, out, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(TAPS):
        at = i + tap - (TAPS - 1)
        total += tl.load(weight + tap) * tl.load(x + at, mask=(at >= 0) & (at < n), other=0)
    tl.store(out + i, total, mask=i < n)


@triton.jit
def rotated(x, cosines, sines, out, HALF: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, HALF)
    c, s = tl.load(cosines + row * HALF + i), tl.load(sines + row * HALF + i)
    a = tl.load(x + row * 2 * HALF + i).to(tl.float32)
    b = tl.load(x + row * 2 * HALF + HALF + i).to(tl.float32)
    tl.store(out + row * 2 * HALF + i, a * c - b * s)
    tl.store(out + row * 2 * HALF + HALF + i, b * c + a * s)


@triton.jit
def matmul(a, b, c, M, N, K, SLOPE, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    first = pid // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    row, column = first + pid % (GROUP * across) % height, pid % (GROUP * across) // height
    m, n, k = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inside = start + k < K
        left = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(m[:, None] < M) & inside[None, :], other=0)
        right = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=inside[:, None] & (n[None, :] < N), other=0)
        total = tl.dot(left, right, total)
    total = tl.where(total >= 0, total, SLOPE * total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def batched_matmul(a, b, c, N: tl.constexpr):
    batch, i = tl.program_id(0) * N * N, tl.arange(0, N)
    at = batch + i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def attention(q, k, v, out, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    block, head = tl.program_id(0), tl.program_id(1) * length * D
    m, d = block * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = min((block + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        key = tl.load(k + head + n[None, :] * D + d[:, None], mask=n[None, :] < length, other=0)
        scores = tl.dot(query, key) * (scale * 1.44269504)
        seen = n[None, :] < length
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        power = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(power, 1)
        value = tl.load(v + head + n[:, None] * D + d[None, :], mask=n[:, None] < length, other=0)
        result = tl.dot(power.to(value.dtype), value, result * shrink[:, None])
        top = higher
    tl.store(out + head + m[:, None] * D + d[None, :], result / total[:, None], mask=m[:, None] < length)


@triton.jit
def product(a, b, out, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    i, j, k = tl.arange(0, 64), tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(left, right, out_dtype=ACC))
