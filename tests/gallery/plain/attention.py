"""Attention, forward, by pointers: one loop with an online softmax; causal or not, any length."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil


@tlx_xdsl.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, sm_scale, HEADS, LENGTH,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
    stride_vb, stride_vh, stride_vn, stride_ob, stride_oh, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh
    o_ptr += batch * stride_ob + head * stride_oh
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)

    q = tl.load(q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :], mask=offs_m[:, None] < LENGTH, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    qk_scale = sm_scale * 1.44269504
    end = tl.minimum((block + 1) * BLOCK_M, LENGTH) if CAUSAL else LENGTH
    for start in range(0, end, BLOCK_N):
        columns = start + offs_n
        k = tl.load(k_ptr + columns[:, None] * stride_kn + offs_d[None, :], mask=columns[:, None] < LENGTH, other=0.0)
        scores = tl.dot(q, k.T) * qk_scale
        keep = columns[None, :] < LENGTH
        if CAUSAL:
            keep = keep & (columns[None, :] <= offs_m[:, None])
        scores = tl.where(keep, scores, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.math.exp2(scores - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + columns[:, None] * stride_vn + offs_d[None, :], mask=columns[:, None] < LENGTH, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(
        o_ptr + offs_m[:, None] * stride_om + offs_d[None, :],
        acc.to(o_ptr.dtype.element_ty),
        mask=offs_m[:, None] < LENGTH,
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 2}
STRIDES = tuple(f"stride_{array}{axis}" for array in "qkvo" for axis in ("bhn" if array in "kv" else "bhm"))
TLX_COMPILE = {
    "attention": {
        "signature": {
            **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16:16"),
            "sm_scale": "fp32", "HEADS": "i32", "LENGTH": "i32",
            **dict.fromkeys(STRIDES, "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD_DIM": 128, "CAUSAL": False},
        "num_warps": 8,
    }
}  # fmt: skip


def make(shape: Shape, new: Arrays, config: Config) -> Problem:
    """The launch of a shape: heads lie beside each other, or a head's rows do with the shape's `by_rows`."""
    batch, heads, length, dim = (shape[each] for each in ("batch", "heads", "length", "dim"))
    dtype, by_rows = shape.get("dtype", "fp16"), shape.get("by_rows", False)
    whole = (batch, length, heads, dim) if by_rows else (batch, heads, length, dim)
    strides = (length * heads * dim, dim, heads * dim) if by_rows else (heads * length * dim, length * dim, dim)
    q, k, v = (new.normal(*whole, dtype=dtype) for _ in range(3))
    o = new.poisoned(*whole, dtype=dtype)

    def reference(xp, x):
        heads_first = {name: xp.swapaxes(each, 1, 2) if by_rows else each for name, each in x.items()}
        out = attended(xp, heads_first["q"], heads_first["k"], heads_first["v"], shape["causal"])
        return {"o": xp.swapaxes(out, 1, 2) if by_rows else out}

    return Problem(
        (ceil(length, config["BLOCK_M"]), batch * heads),
        {
            "q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": o, "sm_scale": dim**-0.5, "HEADS": heads, "LENGTH": length,
            **dict(zip(STRIDES, strides * 4, strict=True)),
        },
        {"q": q, "k": k, "v": v, "o": o},
        ("o",),
        reference,
        4.0 * batch * heads * length**2 * dim / (2 if shape["causal"] else 1),
    )  # fmt: skip


def attended(xp, q, k, v, causal, bias=None, window=None):
    """The attention of all heads, each with its whole matrix of weights; a window is one of causal attention."""
    length = q.shape[-2]
    scores = q @ xp.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    away = xp.arange(length)[:, None] - xp.arange(length)[None, :]
    if causal:
        scores = xp.where((away >= 0) & (away < (window or length)), scores, scores * 0 - float("inf"))
    weights = xp.exp(scores - xp.amax(scores, -1)[..., None])
    return weights / xp.sum(weights, -1)[..., None] @ v


def shapes(*sizes: tuple[int, int, int, int, bool], **more: object) -> tuple[Shape, ...]:
    """Shapes of batches, heads, length, head dimension, and whether it is causal."""
    names = ("batch", "heads", "length", "dim", "causal")
    return tuple({**dict(zip(names, each, strict=True)), **more} for each in sizes)


SIZES = (
    (1, 1, 256, 64, False), (1, 2, 300, 64, True), (2, 1, 128, 128, False), (1, 1, 17, 64, False),
    (1, 1, 1, 64, True), (1, 1, 385, 128, True), (1, 3, 129, 64, False), (1, 1, 512, 64, True),
    (2, 2, 256, 128, True), (1, 1, 127, 64, True), (1, 1, 640, 64, False), (1, 1, 255, 128, False),
    (1, 4, 64, 64, False), (2, 1, 200, 128, True), (1, 1, 1000, 64, True), (1, 2, 384, 128, False),
    (1, 1, 2, 128, False), (3, 1, 150, 64, True), (1, 1, 768, 128, True),
)  # fmt: skip


def configs(**more: object) -> tuple[Config, ...]:
    """Blocks, warps and stages for stock Triton."""
    return tuple(
        {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages, **more}
        for m in (64, 128)
        for n in (64, 128)
        for warps in (4, 8)
        for stages in (2, 3)
    )


def constants(shape: Shape) -> Config:
    """The head dimension, and whether the attention is causal."""
    return {"HEAD_DIM": shape["dim"], "CAUSAL": shape["causal"]}


LARGE = ((4, 16, 4096, 64, False), (4, 16, 4096, 128, False), (4, 16, 4096, 128, True), (2, 16, 8192, 64, True))

FAMILY = Family(
    attention,
    make,
    CONFIG,
    shapes(*SIZES) + shapes((1, 2, 192, 64, False), (2, 3, 130, 64, True), dtype="bf16", by_rows=True),
    shapes(*LARGE),
    configs(),
    constants=constants,
)
