"""Attention with a bias for each pair of a row and a column, over a window of the columns before a row."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.attention import attended
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil


@tlx_xdsl.jit
def attention_window(
    q_ptr, k_ptr, v_ptr, bias_ptr, o_ptr, sm_scale, LENGTH, WINDOW, stride_bias_h, stride_bias_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    rows = start_m + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    base = head * LENGTH * HEAD_DIM
    bias_rows = bias_ptr + head * stride_bias_h + rows[:, None] * stride_bias_m

    q = tl.load(q_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :], mask=rows[:, None] < LENGTH, other=0.0)
    m_i = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    # The columns that the window of any row of this block has.
    first = tl.maximum(start_m - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
    last = tl.minimum(start_m + BLOCK_M, LENGTH)
    for start_n in range(first, last, BLOCK_N):
        columns = start_n + tl.arange(0, BLOCK_N)
        inside = columns < LENGTH
        k = tl.load(k_ptr + base + columns[:, None] * HEAD_DIM + dims[None, :], mask=inside[:, None], other=0.0)
        v = tl.load(v_ptr + base + columns[:, None] * HEAD_DIM + dims[None, :], mask=inside[:, None], other=0.0)
        bias = tl.load(bias_rows + columns[None, :], mask=(rows[:, None] < LENGTH) & inside[None, :], other=0.0)
        scores = tl.dot(q, k.T) * sm_scale + bias.to(tl.float32)
        away = rows[:, None] - columns[None, :]
        scores = tl.where((away >= 0) & (away < WINDOW), scores * 1.44269504, -1.0e30)
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        # A row without a column in this block has the difference 0: what it adds is multiplied by 0 later.
        p = tl.math.exp2(scores - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = acc / l_i[:, None]
    tl.store(
        o_ptr + base + rows[:, None] * HEAD_DIM + dims[None, :],
        out.to(o_ptr.dtype.element_ty),
        mask=rows[:, None] < LENGTH,
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 2}
TLX_COMPILE = {
    "attention_window": {
        "signature": {
            **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "bias_ptr", "o_ptr"), "*fp16:16"),
            "sm_scale": "fp32", "LENGTH": "i32", "WINDOW": "i32", "stride_bias_h": "i32:16", "stride_bias_m": "i32:16",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD_DIM": 64},
        "num_warps": 8,
    }
}  # fmt: skip


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    heads, length, dim, window = (shape[each] for each in ("heads", "length", "dim", "window"))
    dtype = shape.get("dtype", "fp16")
    q, k, v = (new.normal(heads, length, dim, dtype=dtype) for _ in range(3))
    bias, o = new.normal(heads, length, length, dtype=dtype), new.poisoned(heads, length, dim, dtype=dtype)

    def reference(xp, x):
        return {"o": attended(xp, x["q"], x["k"], x["v"], True, x["bias"], window)}

    pairs = length * window - window * (window - 1) // 2 if window < length else length * (length + 1) // 2
    return Problem(
        (ceil(length, config["BLOCK_M"]), heads),
        {
            "q_ptr": q, "k_ptr": k, "v_ptr": v, "bias_ptr": bias, "o_ptr": o, "sm_scale": dim**-0.5,
            "LENGTH": length, "WINDOW": window, "stride_bias_h": length * length, "stride_bias_m": length,
        },
        {"q": q, "k": k, "v": v, "bias": bias, "o": o},
        ("o",),
        reference,
        4.0 * heads * pairs * dim,
    )  # fmt: skip


def _shapes(*sizes: tuple[int, int, int, int], **more: object) -> tuple[Shape, ...]:
    names = ("heads", "length", "dim", "window")
    return tuple({**dict(zip(names, each, strict=True)), **more} for each in sizes)


FAMILY = Family(
    attention_window,
    _make,
    CONFIG,
    _shapes(
        (1, 512, 64, 100), (2, 304, 64, 80), (1, 128, 128, 1000), (1, 385, 64, 1), (1, 1, 64, 5), (1, 17, 64, 4),
        (1, 256, 128, 128), (2, 129, 64, 129), (1, 1000, 64, 250), (1, 640, 128, 63), (3, 64, 64, 65), (1, 255, 64, 17),
        (1, 768, 64, 300), (1, 384, 64, 2), (2, 200, 128, 90), (1, 2, 128, 2), (1, 448, 64, 448), (1, 513, 64, 129),
        (1, 320, 128, 33), (4, 96, 64, 31),
    )
    + _shapes((1, 512, 128, 200), (2, 264, 64, 80), dtype="bf16"),
    _shapes((32, 4096, 64, 1024), (16, 4096, 128, 1024), (16, 8192, 64, 2048), (32, 4096, 128, 4096)),
    tuple(
        {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages}
        for m in (64, 128)
        for n in (32, 64, 128)
        for warps in (4, 8)
        for stages in (2, 3)
    ),
    constants=lambda shape: {"HEAD_DIM": shape["dim"]},
)  # fmt: skip
