"""out = gelu(x @ w + bias), by pointers, w transposed as a layer has it: the epilogue is on the product's tile."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles
from tests.gallery.plain.matmul import SIZES, shapes


@tlx_xdsl.jit
def gelu(x):
    """The approximation by a tangent, which is a logistic function of twice its argument."""
    return x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))


@tlx_xdsl.jit
def matmul_gelu(
    x_ptr, w_ptr, bias_ptr, out_ptr, M, N, K, stride_xm, stride_wn, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    offs_m = (first_m + pid % (GROUP_M * tiles_n) % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % (GROUP_M * tiles_n) // group_m * BLOCK_N + tl.arange(0, BLOCK_N)

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :],
            mask=(offs_m[:, None] < M) & (offs_k[None, :] < K),
            other=0.0,
        )
        w = tl.load(
            w_ptr + offs_n[:, None] * stride_wn + offs_k[None, :],
            mask=(offs_n[:, None] < N) & (offs_k[None, :] < K),
            other=0.0,
        )
        acc = tl.dot(x, w.T, acc)
    bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)
    out = gelu(acc + bias[None, :])
    tl.store(
        out_ptr + offs_m[:, None] * stride_om + offs_n[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=(offs_m[:, None] < M) & (offs_n[None, :] < N),
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_gelu": {
        "signature": {
            **dict.fromkeys(("x_ptr", "w_ptr", "bias_ptr", "out_ptr"), "*fp16:16"),
            **dict.fromkeys(("M", "N", "K", "stride_xm", "stride_wn", "stride_om"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k = shape["M"], shape["N"], shape["K"]
    dtype = shape.get("dtype", "fp16")
    x, w = new.normal(m, k, dtype=dtype), new.normal(n, k, dtype=dtype, scale=k**-0.5)
    bias, out = new.normal(n, dtype=dtype), new.poisoned(m, n, dtype=dtype)
    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]),),
        {
            "x_ptr": x, "w_ptr": w, "bias_ptr": bias, "out_ptr": out, "M": m, "N": n, "K": k,
            "stride_xm": k, "stride_wn": k, "stride_om": n,
        },
        {"x": x, "w": w, "bias": bias, "out": out},
        ("out",),
        _reference,
        2.0 * m * n * k,
    )  # fmt: skip


def _reference(xp, x):
    before = x["x"] @ xp.swapaxes(x["w"], 0, 1) + x["bias"][None, :]
    return {"out": before / (1 + xp.exp(-1.5957691216 * (before + 0.044715 * before**3)))}


FAMILY = Family(
    matmul_gelu,
    _make,
    CONFIG,
    shapes(*SIZES) + shapes((256, 384, 192), (100, 200, 304), dtype="bf16"),
    shapes((8192, 4096, 1024), (16384, 4096, 512), (4096, 16384, 4096), (2048, 8192, 2048)),
    tiles((64, 128), (128, 256), (32, 64), GROUP_M=8) + tiles((256,), (128,), (64,), GROUP_M=8),
)
