"""Plain kernels with products, as users write them, and arguments for them: what the passes split and specialise."""

# Kernels of many arguments, some of which only one option needs.

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def matmul(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BIAS: tl.constexpr, GELU: tl.constexpr,
):  # fmt: skip
    """C = f(A @ B + bias), by pointers."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    if BIAS == "rows":
        acc += tl.load(bias_ptr + rm, mask=rm < M)[:, None]
    if BIAS == "columns":
        acc += tl.load(bias_ptr + rn, mask=rn < N)[None, :]
    if GELU:
        acc = 0.5 * acc * (1 + tl.math.erf(acc * 0.70710678))
    c_ptrs = c_ptr + rm[:, None] * N + rn[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@tlx_xdsl.jit
def matmul_by_descriptors(a_desc, b_desc, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A @ B^T, with descriptors that the host makes and one that the kernel makes."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
    c_desc.store([row, column], acc.to(tl.float16))


@tlx_xdsl.jit
def gated(x_ptr, w_ptr, u_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """silu(X @ W) * (X @ U)."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    first, second = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        mask = (rk[:, None] < K) & (rn[None, :] < N)
        first = tl.dot(x, tl.load(w_ptr + rk[:, None] * N + rn[None, :], mask=mask, other=0.0), first)
        second = tl.dot(x, tl.load(u_ptr + rk[:, None] * N + rn[None, :], mask=mask, other=0.0), second)
    out = first * tl.sigmoid(first) * second
    tl.store(out_ptr + rm[:, None] * N + rn[None, :], out.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@tlx_xdsl.jit
def attention(
    q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, lse_ptr, length, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """softmax(Q @ K^T * scale + bias) @ V of one head a program, and the logarithm of the denominators."""
    head = tl.program_id(1) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + rd[None, :], mask=rows[:, None] < length, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + columns[:, None] * D + rd[None, :], mask=columns[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        if BIAS:
            inside = (rows[:, None] < length) & (columns[None, :] < length)
            scores += tl.load(bias_ptr + rows[:, None] * length + columns[None, :], mask=inside, other=0.0)
        shown = columns[None, :] < length
        if CAUSAL:
            shown = shown & (rows[:, None] >= columns[None, :])
        scores = tl.where(shown, scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp(scores - m_new[:, None])
        alpha = tl.exp(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head + columns[:, None] * D + rd[None, :], mask=columns[:, None] < length, other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        m = m_new
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + head + rows[:, None] * D + rd[None, :], out, mask=rows[:, None] < length)
    tl.store(lse_ptr + tl.program_id(1) * length + rows, m + tl.log(total), mask=rows < length)


@tlx_xdsl.jit
def cross_entropy(x_ptr, w_ptr, labels_ptr, loss_ptr, M, V, D, BM: tl.constexpr, BV: tl.constexpr, BD: tl.constexpr):
    """The loss of each row of X @ W with its label, without the product in memory."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    labels = tl.load(labels_ptr + rows, mask=rows < M, other=0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    picked = tl.zeros((BM,), tl.float32)
    for start in range(0, V, BV):
        columns = start + tl.arange(0, BV)
        logits = tl.zeros((BM, BV), tl.float32)
        for k in range(0, D, BD):
            rd = k + tl.arange(0, BD)
            x = tl.load(x_ptr + rows[:, None] * D + rd[None, :], mask=(rows[:, None] < M) & (rd[None, :] < D), other=0)
            w = tl.load(w_ptr + rd[:, None] * V + columns[None, :], mask=(rd[:, None] < D) & (columns < V), other=0)
            logits = tl.dot(x, w, logits)
        logits = tl.where(columns[None, :] < V, logits, float("-inf"))
        m_new = tl.maximum(m, tl.max(logits, 1))
        total = total * tl.exp(m - m_new) + tl.sum(tl.exp(logits - m_new[:, None]), 1)
        picked += tl.sum(tl.where(columns[None, :] == labels[:, None], logits, 0.0), 1)
        m = m_new
    tl.store(loss_ptr + rows, m + tl.log(total) - picked, mask=rows < M)


@tlx_xdsl.jit
def chunk_states(
    k_ptr, v_ptr, w_ptr, gate_ptr, h_ptr, out_ptr, length,
    D: tl.constexpr, E: tl.constexpr, C: tl.constexpr, DELTA: tl.constexpr,
):  # fmt: skip
    """The state of a (gated) linear attention by chunks: h = g h + K^T V; with DELTA the delta rule's V - W h."""
    head = tl.program_id(0)
    rd, re, rc = tl.arange(0, D), tl.arange(0, E), tl.arange(0, C)
    h = tl.zeros((D, E), tl.float32)
    for chunk in range(0, tl.cdiv(length, C)):
        tl.store(h_ptr + (head * tl.cdiv(length, C) + chunk) * D * E + rd[:, None] * E + re[None, :], h.to(tl.float16))
        at = head * length + chunk * C + rc
        inside = (chunk * C + rc < length)[:, None]
        v = tl.load(v_ptr + at[:, None] * E + re[None, :], mask=inside, other=0.0)
        if DELTA:
            w = tl.load(w_ptr + at[:, None] * D + rd[None, :], mask=inside, other=0.0)
            v = (v - tl.dot(w, h.to(tl.float16))).to(tl.float16)
            tl.store(out_ptr + at[:, None] * E + re[None, :], v, mask=inside)
        k = tl.load(k_ptr + at[:, None] * D + rd[None, :], mask=inside, other=0.0)
        h = h * tl.exp(tl.load(gate_ptr + head * tl.cdiv(length, C) + chunk))
        h = tl.dot(tl.trans(k), v, h)


@tlx_xdsl.jit
def chunk_outputs(q_ptr, k_ptr, v_ptr, decay_ptr, out_ptr, length, D: tl.constexpr, C: tl.constexpr):
    """Compute what the tokens of a chunk see of each other, with decays of its rows and of its columns."""
    rc, rd = tl.arange(0, C), tl.arange(0, D)
    at = tl.program_id(0) * C + rc
    inside = at < length
    places, mask = at[:, None] * D + rd[None, :], inside[:, None]
    decay = tl.load(decay_ptr + at, mask=inside, other=0.0)
    q = tl.load(q_ptr + places, mask=mask, other=0.0)
    k = tl.load(k_ptr + places, mask=mask, other=0.0)
    scores = tl.dot(q, tl.trans(k)) * tl.exp(decay[:, None] - decay[None, :])
    scores = tl.where(rc[:, None] >= rc[None, :], scores, 0.0)
    out = tl.dot(scores.to(tl.float16), tl.load(v_ptr + places, mask=mask, other=0.0))
    tl.store(out_ptr + places, out.to(tl.float16), mask=mask)


class Numbers:
    """Random numbers for arguments, and results to be written."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def half(self, *shape: int):
        return self.random.standard_normal(shape).astype(np.float16) * np.float16(0.5)

    def single(self, *shape: int):
        return self.random.standard_normal(shape).astype(np.float32)

    def result(self, *shape: int, dtype=np.float16):
        return np.full(shape, -7, dtype)
