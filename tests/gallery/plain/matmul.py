"""C = A @ B by pointers, as tutorials have it: rows and columns wrap around, a mask along K, tiles in groups."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + pid % num_pid_in_group % group_size_m
    pid_n = pid % num_pid_in_group // group_size_m

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = acc.to(c_ptr.dtype.element_ty)

    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
            **dict.fromkeys(("M", "N", "K"), "i32:16"),
            **dict.fromkeys(("stride_am", "stride_bk", "stride_cm"), "i32:16"),
        },
        "constexprs": {
            **dict.fromkeys(("stride_ak", "stride_bn", "stride_cn"), 1),
            "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8,
        },
        "num_warps": 8,
    }
}  # fmt: skip


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k = shape["M"], shape["N"], shape["K"]
    dtype = shape.get("dtype", "fp16")
    a, b, c = new.normal(m, k, dtype=dtype), new.normal(k, n, dtype=dtype), new.poisoned(m, n, dtype=dtype)
    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]),),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k,
            "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n, "stride_cn": 1,
        },
        {"a": a, "b": b, "c": c},
        ("c",),
        lambda xp, x: {"c": x["a"] @ x["b"]},
        2.0 * m * n * k,
    )  # fmt: skip


def shapes(*sizes: tuple[int, ...], **more: object) -> tuple[Shape, ...]:
    """Shapes of M, N and K."""
    return tuple({"M": m, "N": n, "K": k, **more} for m, n, k in sizes)


SIZES = (
    (256, 256, 256), (200, 144, 112), (1, 128, 64), (130, 264, 72), (128, 128, 8), (300, 136, 200), (64, 512, 320),
    (257, 128, 64), (128, 130, 128), (77, 93, 51), (128, 128, 33), (513, 256, 192), (16, 16, 16), (1, 1, 1),
    (1024, 128, 64), (128, 1024, 128), (384, 384, 1000), (255, 255, 255), (640, 320, 448), (129, 257, 65),
    (2048, 8, 64), (8, 2048, 64),
)  # fmt: skip
"""Sizes of small products: multiples of blocks, of 16 bytes, and of nothing."""

FAMILY = Family(
    matmul,
    _make,
    CONFIG,
    shapes(*SIZES) + shapes((256, 384, 192), (100, 200, 300), dtype="bf16"),
    shapes((8192, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 512), (8192, 2048, 2048)),
    tiles((64, 128), (128, 256), (64,), GROUP_M=8)
    + tiles((256,), (128,), (64,), GROUP_M=8)
    + tiles((128,), (128, 256), (32, 128), GROUP_M=8),
)
