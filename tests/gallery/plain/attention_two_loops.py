"""Attention, forward, in two loops: whole blocks of keys without a mask, then those at the diagonal or the end.

Stores the logarithm of each row's sum, too, as a backward pass needs it.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain import attention
from tests.gallery.plain.attention import STRIDES, configs, constants, shapes
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape


@tlx_xdsl.jit
def attend(
    acc, l_i, m_i, q, k_ptr, v_ptr, first, last, LENGTH, stride_kn, stride_vn, qk_scale, offs_m, offs_n, offs_d,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The keys from `first` to `last`."""
    for start_n in tl.range(first, last, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        columns = start_n + offs_n
        if MASKED:
            k = tl.load(k_ptr + offs_d[:, None] + columns[None, :] * stride_kn, columns[None, :] < LENGTH, other=0.0)
        else:
            k = tl.load(k_ptr + offs_d[:, None] + columns[None, :] * stride_kn)
        qk = tl.dot(q, k)
        if MASKED:
            keep = columns[None, :] < LENGTH
            if CAUSAL:
                keep = keep & (offs_m[:, None] >= columns[None, :])
            qk = qk * qk_scale + tl.where(keep, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        l_ij = tl.sum(p, 1)
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha[:, None]
        if MASKED:
            v = tl.load(v_ptr + columns[:, None] * stride_vn + offs_d[None, :], columns[:, None] < LENGTH, other=0.0)
        else:
            v = tl.load(v_ptr + columns[:, None] * stride_vn + offs_d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    return acc, l_i, m_i


@tlx_xdsl.jit
def attention_two_loops(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale, HEADS, LENGTH,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
    stride_vb, stride_vh, stride_vn, stride_ob, stride_oh, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """BLOCK_M is a multiple of BLOCK_N."""
    start_m = tl.program_id(0)
    off_z = tl.program_id(1) // HEADS
    off_h = tl.program_id(1) % HEADS
    q_ptr += off_z.to(tl.int64) * stride_qb + off_h.to(tl.int64) * stride_qh
    k_ptr += off_z.to(tl.int64) * stride_kb + off_h.to(tl.int64) * stride_kh
    v_ptr += off_z.to(tl.int64) * stride_vb + off_h.to(tl.int64) * stride_vh
    o_ptr += off_z.to(tl.int64) * stride_ob + off_h.to(tl.int64) * stride_oh
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    q = tl.load(q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :], offs_m[:, None] < LENGTH, other=0.0)

    whole = LENGTH // BLOCK_N * BLOCK_N
    if CAUSAL:
        middle = tl.minimum(start_m * BLOCK_M, whole)
        end = tl.minimum((start_m + 1) * BLOCK_M, LENGTH)
    else:
        middle = whole
        end = LENGTH
    acc, l_i, m_i = attend(
        acc, l_i, m_i, q, k_ptr, v_ptr, 0, middle, LENGTH, stride_kn, stride_vn, qk_scale, offs_m, offs_n, offs_d,
        False, CAUSAL, BLOCK_N,
    )  # fmt: skip
    acc, l_i, m_i = attend(
        acc, l_i, m_i, q, k_ptr, v_ptr, middle, end, LENGTH, stride_kn, stride_vn, qk_scale, offs_m, offs_n, offs_d,
        True, CAUSAL, BLOCK_N,
    )  # fmt: skip

    m_i += tl.math.log2(l_i)
    acc = acc / l_i[:, None]
    tl.store(lse_ptr + tl.program_id(1) * LENGTH + offs_m, m_i, mask=offs_m < LENGTH)
    tl.store(
        o_ptr + offs_m[:, None] * stride_om + offs_d[None, :],
        acc.to(o_ptr.dtype.element_ty),
        mask=offs_m[:, None] < LENGTH,
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "attention_two_loops": {
        "signature": {
            **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16:16"),
            "lse_ptr": "*fp32:16", "sm_scale": "fp32", "HEADS": "i32", "LENGTH": "i32",
            **dict.fromkeys(STRIDES, "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD_DIM": 128, "CAUSAL": True},
        "num_warps": 8,
    }
}  # fmt: skip


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    problem = attention.make(shape, new, config)
    lse = new.poisoned(shape["batch"], shape["heads"], shape["length"], dtype="fp32")
    outputs = problem.reference

    def reference(xp, x):
        q, k = (xp.swapaxes(x[name], 1, 2) if shape.get("by_rows") else x[name] for name in "qk")
        scores = q @ xp.swapaxes(k, -1, -2) * shape["dim"] ** -0.5
        if shape["causal"]:
            at = xp.arange(shape["length"])
            scores = xp.where(at[None, :] <= at[:, None], scores, scores * 0 - float("inf"))
        most = xp.amax(scores, -1)
        logarithm = xp.log2(xp.sum(xp.exp(scores - most[..., None]), -1)) + most * 1.44269504
        return {**outputs(xp, x), "lse": logarithm}

    arguments = list(problem.arguments.items())
    arguments.insert(4, ("lse_ptr", lse))
    problem.arguments = dict(arguments)
    problem.arrays["lse"] = lse
    problem.outputs = ("o", "lse")
    problem.reference = reference
    return problem


FAMILY = Family(
    attention_two_loops,
    _make,
    CONFIG,
    shapes(*((*size[:4], not size[4]) for size in attention.SIZES))
    + shapes((1, 2, 192, 64, True), (2, 3, 130, 64, False), dtype="bf16", by_rows=True),
    shapes(*attention.LARGE),
    configs(),
    constants=constants,
    fits=lambda _, config: config["BLOCK_M"] % config["BLOCK_N"] == 0,
)
