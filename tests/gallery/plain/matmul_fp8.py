"""C = (A @ B^T) * scales of fp8 matrices: a scale a tensor, or a scale a row of A and of B."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def matmul_fp8(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K, stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    BY_ROWS: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    offs_m = (first_m + pid % (GROUP_M * tiles_n) % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % (GROUP_M * tiles_n) // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_n[None, :] < N) & (offs_k[:, None] < left), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    if BY_ROWS:
        a_scale = tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)
        b_scale = tl.load(b_scale_ptr + offs_n, mask=offs_n < N, other=0.0)
        acc = acc * a_scale[:, None] * b_scale[None, :]
    else:
        acc = acc * (tl.load(a_scale_ptr) * tl.load(b_scale_ptr))
    tl.store(
        c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :],
        acc.to(c_ptr.dtype.element_ty),
        mask=(offs_m[:, None] < M) & (offs_n[None, :] < N),
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_fp8": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr"), "*fp8e4nv:16"),
            "c_ptr": "*bf16:16",
            **dict.fromkeys(("a_scale_ptr", "b_scale_ptr"), "*fp32:16"),
            **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bn", "stride_cm"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8, "BY_ROWS": True},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k, by_rows = shape["M"], shape["N"], shape["K"], shape["by_rows"]
    a, b = new.normal(m, k, dtype="fp8e4nv"), new.normal(n, k, dtype="fp8e4nv")
    a_scale, b_scale = (new.uniform(size if by_rows else 1, low=0.5, high=2.0) for size in (m, n))
    c = new.poisoned(m, n, dtype="bf16")
    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]),),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "a_scale_ptr": a_scale, "b_scale_ptr": b_scale,
            "M": m, "N": n, "K": k, "stride_am": k, "stride_bn": k, "stride_cm": n,
        },
        {"a": a, "b": b, "c": c, "a_scale": a_scale, "b_scale": b_scale},
        ("c",),
        lambda xp, x: {"c": x["a"] @ xp.swapaxes(x["b"], 0, 1) * x["a_scale"][:, None] * x["b_scale"][None, :]},
        2.0 * m * n * k,
    )  # fmt: skip


def shapes(*sizes: tuple[int, int, int], **more: object) -> tuple[Shape, ...]:
    """Shapes of M, N and K."""
    return tuple({"M": m, "N": n, "K": k, **more} for m, n, k in sizes)


FAMILY = Family(
    matmul_fp8,
    _make,
    CONFIG,
    shapes((256, 256, 256), (200, 144, 112), (1, 128, 64), (130, 264, 80), by_rows=True)
    + shapes((128, 128, 16), (300, 136, 208), (64, 512, 320), (257, 128, 64), (77, 93, 51), by_rows=False)
    + shapes((128, 128, 33), (513, 256, 192), (16, 16, 32), (1, 1, 1), (1024, 128, 64), by_rows=True)
    + shapes((128, 1024, 128), (384, 384, 1008), (255, 256, 256), (640, 320, 448), (129, 257, 65), by_rows=False)
    + shapes((2048, 16, 64), (16, 2048, 64), by_rows=True),
    shapes((8192, 8192, 8192), (4096, 4096, 4096), (2048, 7168, 2048), by_rows=True)
    + shapes((8192, 8192, 1024), by_rows=False),
    tiles((64, 128), (128, 256), (64, 128), GROUP_M=8) + tiles((256,), (128,), (128,), GROUP_M=8),
    # The tensor cores add fp8 products with 14 bits or so.
    tolerance=2e-3,
    constants=lambda shape: {"BY_ROWS": shape["by_rows"]},
)
