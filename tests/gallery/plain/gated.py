"""out = silu(x @ w) * (x @ u), by pointers: two products of one left operand."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles
from tests.gallery.plain.matmul import SIZES, shapes


@tlx_xdsl.jit
def gated(
    x_ptr, w_ptr, u_ptr, out_ptr, M, N, K, stride_x, stride_w, stride_u, stride_out,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    rows = (first_m + in_group % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = in_group // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)

    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = k + depth < K
        x = tl.load(
            x_ptr + rows[:, None] * stride_x + (k + depth)[None, :], (rows < M)[:, None] & inside[None, :], other=0.0
        )
        weights = inside[:, None] & (columns < N)[None, :]
        w = tl.load(w_ptr + (k + depth)[:, None] * stride_w + columns[None, :], weights, other=0.0)
        u = tl.load(u_ptr + (k + depth)[:, None] * stride_u + columns[None, :], weights, other=0.0)
        gate = tl.dot(x, w, gate)
        up = tl.dot(x, u, up)
    out = gate * tl.sigmoid(gate) * up
    tl.store(
        out_ptr + rows[:, None] * stride_out + columns[None, :],
        out.to(out_ptr.dtype.element_ty),
        (rows < M)[:, None] & (columns < N)[None, :],
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "gated": {
        "signature": {
            **dict.fromkeys(("x_ptr", "w_ptr", "u_ptr", "out_ptr"), "*fp16:16"),
            **dict.fromkeys(("M", "N", "K", "stride_x", "stride_w", "stride_u", "stride_out"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k = shape["M"], shape["N"], shape["K"]
    dtype = shape.get("dtype", "fp16")
    x = new.normal(m, k, dtype=dtype)
    w, u = (new.normal(k, n, dtype=dtype, scale=k**-0.5) for _ in range(2))
    out = new.poisoned(m, n, dtype=dtype)
    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]),),
        {
            "x_ptr": x, "w_ptr": w, "u_ptr": u, "out_ptr": out, "M": m, "N": n, "K": k,
            "stride_x": k, "stride_w": n, "stride_u": n, "stride_out": n,
        },
        {"x": x, "w": w, "u": u, "out": out},
        ("out",),
        _reference,
        4.0 * m * n * k,
    )  # fmt: skip


def _reference(xp, x):
    gate, up = x["x"] @ x["w"], x["x"] @ x["u"]
    return {"out": gate / (1 + xp.exp(-gate)) * up}


FAMILY = Family(
    gated,
    _make,
    CONFIG,
    shapes(*SIZES) + shapes((256, 384, 192), (100, 200, 304), dtype="bf16"),
    shapes((8192, 4096, 4096), (2048, 5632, 2048), (4096, 11008, 4096), (8192, 8192, 1024)),
    tiles((64, 128), (64, 128), (32, 64), GROUP_M=8) + tiles((256,), (64,), (64,), GROUP_M=8),
)
