"""Plain kernels with the accesses that people write: what becomes a tensor descriptor's, and what must not."""

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The matmul of Triton's tutorials: rows that wrap around, pointers that move."""
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = GROUP * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BM + tl.arange(0, BM)) % M
    offs_bn = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@tlx_xdsl.jit
def clamped(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BY_MINIMUM: tl.constexpr,
):  # fmt: skip
    """Rows that are clamped, B in columns (transposed), offsets along K that the loop carries."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    if BY_MINIMUM:
        rows = tl.minimum(offs_m, M - 1)
        columns = tl.minimum(offs_n, N - 1)
    else:
        rows = tl.where(offs_m < M, offs_m, 0)
        columns = tl.where(offs_n < N, offs_n, 0)
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * stride_am + offs_k[None, :], mask=offs_k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + columns[None, :] * stride_bk + offs_k[:, None], mask=offs_k[:, None] < K)
        acc += tl.dot(a, b)
        offs_k += BK
    out = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(out, acc.to(tl.float16), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@tlx_xdsl.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, stride_b, stride_h, stride_m, H, L, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Attention with batches and heads whose strides are arguments."""
    start = tl.program_id(0)
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    base = batch.to(tl.int64) * stride_b + head.to(tl.int64) * stride_h
    offs_m = start * BM + tl.arange(0, BM)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + base + offs_m[:, None] * stride_m + offs_d[None, :], mask=offs_m[:, None] < L, other=0.0)
    m_i = tl.full((BM,), float("-inf"), tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((start + 1) * BM, L) if CAUSAL else L
    for at in range(0, end, BN):
        offs_n = at + tl.arange(0, BN)
        k = tl.load(k_ptr + base + offs_n[None, :] * stride_m + offs_d[:, None], mask=offs_n[None, :] < L, other=0.0)
        v = tl.load(v_ptr + base + offs_n[:, None] * stride_m + offs_d[None, :], mask=offs_n[:, None] < L, other=0.0)
        s = tl.dot(q, k) * scale
        keep = offs_n[None, :] < L
        if CAUSAL:
            keep = keep & (offs_n[None, :] <= offs_m[:, None])
        s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
        m_i = m_new
    out = o_ptr + base + offs_m[:, None] * stride_m + offs_d[None, :]
    tl.store(out, (acc / l_i[:, None]).to(tl.float16), mask=offs_m[:, None] < L)


@tlx_xdsl.jit
def chunks(k_ptr, v_ptr, h_ptr, T, H: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    """The state of a linear attention by chunks, by block pointers: batches and heads are parts of the base."""
    batch, head = tl.program_id(0) // H, tl.program_id(0) % H
    base = (batch * T * H + head) * D
    state = tl.zeros((D, D), tl.float32)
    for i in range(tl.cdiv(T, C)):
        k = tl.make_block_ptr(k_ptr + base, (D, T), (1, H * D), (0, i * C), (D, C), (0, 1))
        v = tl.make_block_ptr(v_ptr + base, (T, D), (H * D, 1), (i * C, 0), (C, D), (1, 0))
        h = tl.make_block_ptr(
            h_ptr + ((batch * tl.cdiv(T, C) + i) * H + head) * D * D, (D, D), (D, 1), (0, 0), (D, D), (1, 0)
        )
        tl.store(h, state.to(tl.float16))
        state += tl.dot(tl.load(k, boundary_check=(0, 1)), tl.load(v, boundary_check=(0,), padding_option="zero"))


@tlx_xdsl.jit
def grouped(a_ptr, b_ptr, c_ptr, offsets_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of groups of rows, whose ends are in memory: rows of the next group reach no memory."""
    group = tl.program_id(2)
    first, end = tl.load(offsets_ptr + group), tl.load(offsets_ptr + group + 1)
    rows = first + tl.program_id(0) * BM + tl.arange(0, BM)
    columns, depth = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at = k + depth
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :], mask=(rows[:, None] < end) & (at < K)[None, :], other=0.0)
        b_mask = (at < K)[:, None] & (columns < N)[None, :]
        b = tl.load(b_ptr + group * K * N + at[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    out = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out, acc.to(tl.float16), mask=(rows[:, None] < end) & (columns[None, :] < N))


@tlx_xdsl.jit
def advanced(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Block pointers that the loop moves."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (pid_m * BM, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, pid_n * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(a_block, boundary_check=(0, 1)), tl.load(b_block, boundary_check=(0, 1)))
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (pid_m * BM, pid_n * BN), (BM, BN), (1, 0))
    tl.store(c_block, acc.to(tl.float16), boundary_check=(0, 1))


@tlx_xdsl.jit
def described(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Descriptors that the kernel makes; that of B is made twice."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, 2 * BK):
        b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        again = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
        acc = tl.dot(a.load([row, k + BK]), again.load([k + BK, column]), acc)
    c.store([row, column], acc.to(tl.float16))


@tlx_xdsl.jit
def shifted(x_ptr, y_ptr, T, stride, B: tl.constexpr, D: tl.constexpr, SHIFT: tl.constexpr, LOWER: tl.constexpr):
    """Rows that begin before the tensor, with and without a lower bound in the mask."""
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.arange(0, D)
    from_ = rows - SHIFT
    mask = (from_ < T)[:, None]
    if LOWER:
        mask = mask & (from_ >= 0)[:, None]
    x = tl.load(x_ptr + from_[:, None] * stride + columns[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + rows[:, None] * stride + columns[None, :], x * 2, mask=(rows < T)[:, None])


@tlx_xdsl.jit
def backwards(x_ptr, y_ptr, T, stride, B: tl.constexpr, D: tl.constexpr):
    """Blocks from the last to the first one, in a loop."""
    columns = tl.arange(0, D)
    acc = tl.zeros((B, D), tl.float32)
    for i in range(tl.cdiv(T, B) - 1, -1, -1):
        rows = i * B + tl.arange(0, B)
        at, mask = rows[:, None] * stride + columns[None, :], (rows < T)[:, None]
        acc = acc * 0.5 + tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(y_ptr + at, acc.to(tl.float16), mask=mask)


@tlx_xdsl.jit
def last_first(x_ptr, y_ptr, T, stride, B: tl.constexpr, D: tl.constexpr):
    """Programs that take the blocks from the last to the first one."""
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)) * B + tl.arange(0, B)
    at, mask = rows[:, None] * stride + tl.arange(0, D)[None, :], (rows < T)[:, None]
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) * 2, mask=mask)


@tlx_xdsl.jit
def fault(x_ptr, y_ptr, n_ptr, M, N, stride, KIND: tl.constexpr, B: tl.constexpr):  # noqa: C901 (a case for each fault)
    """Loads that are no box, or whose rows are needed."""
    WRAPPED: tl.constexpr = KIND == "sum of wrapped" or KIND == "unmasked wrapped" or KIND == "loose wrapped"
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    mask, other, at = (rows < M)[:, None] & (columns < N)[None, :], 0.0, rows[:, None] * stride + columns[None, :]
    if KIND == "mask":
        mask = mask & ((rows[:, None] + columns[None, :]) < M)
    elif KIND == "other":
        other = 1.0
    elif KIND == "overlap":
        at = rows[:, None] + columns[None, :]
    elif KIND == "diagonal":
        at = rows[:, None] * (stride + 1) + columns[None, :]
    elif KIND == "stride":
        at = rows[:, None] * tl.load(n_ptr) + columns[None, :]
    elif KIND == "extent":
        mask = (rows < tl.load(n_ptr))[:, None] & (columns < N)[None, :]
    elif KIND == "gather":
        at = tl.load(n_ptr + columns)[:, None] * stride + columns[None, :]
    elif KIND == "scattered columns":
        at = rows[:, None] * stride + 2 * columns[None, :]
    elif WRAPPED:
        at, mask = (rows % M)[:, None] * stride + columns[None, :], (columns < N)[None, :]
    elif KIND == "column":
        at = rows[:, None] * stride + columns[None, :] + tl.program_id(0)
    x = tl.load(x_ptr + at, mask=mask, other=other)
    out = y_ptr + rows[:, None] * B + columns[None, :]
    if KIND == "sum of wrapped":
        tl.store(out, x + tl.sum(x, 0)[None, :], mask=(rows < M)[:, None])
    elif KIND == "unmasked wrapped":
        tl.store(out, x)
    elif KIND == "loose wrapped":
        tl.store(out, x, mask=(rows <= M)[:, None])
    else:
        tl.store(out, x, mask=(rows < M)[:, None])


@tlx_xdsl.jit
def in_place(x_ptr, M, stride, B: tl.constexpr):
    """A kernel that stores what it loads from the same tensor."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    at, mask = x_ptr + rows[:, None] * stride + columns[None, :], (rows < M)[:, None]
    tl.store(at, tl.load(at, mask=mask) + 1, mask=mask)


@tlx_xdsl.jit
def cube(x_ptr, y_ptr, count_ptr, N, B: tl.constexpr, COUNTS: tl.constexpr):
    """A grid of three axes, of which the sizes are used, too."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = ((z * tl.num_programs(1) + y) * tl.num_programs(0) + x) * B + tl.arange(0, B)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < N) + x + 10 * y + 100 * z, mask=at < N)
    if COUNTS == 1:
        tl.atomic_add(count_ptr, 1.0)
    elif COUNTS == 2:
        last = tl.atomic_add(count_ptr, 1.0)
        tl.store(y_ptr + at, last, mask=at < N)


@tlx_xdsl.jit
def wrapped(x_ptr, w_ptr, y_ptr, M, stride, KIND: tl.constexpr, B: tl.constexpr):  # noqa: C901 (a case for each way)
    """Rows that wrap around, and ways from there to memory, which the mask of the store may hide or not."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    x = tl.load(x_ptr + (rows % M)[:, None] * stride + columns[None, :])
    w = tl.load(w_ptr + columns[:, None] * B + columns[None, :])
    out, mask = y_ptr + rows[:, None] * B + columns[None, :], (rows < M)[:, None]
    if KIND == "left operand":
        tl.store(out, tl.dot(x, w).to(tl.float16), mask=mask)
    elif KIND == "right operand":
        tl.store(out, tl.dot(w, x).to(tl.float16), mask=mask)
    elif KIND == "accumulator":
        tl.store(out, tl.dot(w, w, x.to(tl.float32)).to(tl.float16), mask=mask)
    elif KIND == "carried":
        for _ in range(3):
            x = tl.exp2(x.to(tl.float32)).to(tl.float16) - x
        tl.store(out, x, mask=mask)
    elif KIND == "carried to a sum":
        total = tl.zeros((B, B), tl.float32)
        for _ in range(3):
            total = tl.dot(w, total.to(tl.float16)) + x
        tl.store(out, total.to(tl.float16), mask=mask)
    elif KIND == "sum of the row":
        tl.store(out, x / tl.sum(x, 1)[:, None], mask=mask)
    elif KIND == "transposed":
        tl.store(out, x.T, mask=mask)
    elif KIND == "transposed with its mask":
        tl.store(y_ptr + columns[:, None] * B + rows[None, :], x.T, mask=(rows < M)[None, :])
    elif KIND == "scan":
        tl.store(out, tl.cumsum(x, 0), mask=mask)
    elif KIND == "scan of the row":
        tl.store(out, tl.cumsum(x, 1), mask=mask)
    elif KIND == "added":
        tl.atomic_add(out, x, mask=mask)
    elif KIND == "address":
        tl.store(y_ptr + x.to(tl.int32), w, mask=mask)
