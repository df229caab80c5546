"""C = A @ B^T of fp8 matrices with a scale for 128 elements of a row of A and one for 128 x 128 of B, in the loop."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil
from tests.gallery.plain.matmul_fp8 import shapes


@tlx_xdsl.jit
def matmul_fp8_blocks(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K,
    stride_am, stride_bn, stride_cm, stride_asm, stride_bsn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """BLOCK_K is 128, and 128 a multiple of BLOCK_N."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + pid % (GROUP_M * tiles_n) % group_m
    pid_n = pid % (GROUP_M * tiles_n) // group_m
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]
    a_scale_ptrs = a_scale_ptr + offs_m * stride_asm
    b_scale_ptrs = b_scale_ptr + pid_n * BLOCK_N // 128 * stride_bsn

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        a_scale = tl.load(a_scale_ptrs + k)
        b_scale = tl.load(b_scale_ptrs + k)
        acc += tl.dot(a, b) * a_scale[:, None] * b_scale
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(
        c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :],
        acc.to(c_ptr.dtype.element_ty),
        mask=(offs_m[:, None] < M) & (offs_n[None, :] < N),
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_fp8_blocks": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr"), "*fp8e4nv:16"),
            "c_ptr": "*bf16:16",
            **dict.fromkeys(("a_scale_ptr", "b_scale_ptr"), "*fp32:16"),
            **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bn", "stride_cm"), "i32:16"),
            **dict.fromkeys(("stride_asm", "stride_bsn"), "i32"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k = shape["M"], shape["N"], shape["K"]
    k_blocks = ceil(k, 128)
    a, b = new.normal(m, k, dtype="fp8e4nv"), new.normal(n, k, dtype="fp8e4nv")
    a_scale = new.uniform(m, k_blocks, low=0.5, high=2.0)
    b_scale = new.uniform(ceil(n, 128), k_blocks, low=0.5, high=2.0)
    c = new.poisoned(m, n, dtype="bf16")

    def reference(xp, x):
        total = 0
        for at in range(k_blocks):
            part = slice(at * 128, (at + 1) * 128)
            of_columns = x["b_scale"][xp.arange(n) // 128, at]
            product = x["a"][:, part] @ xp.swapaxes(x["b"][:, part], 0, 1)
            total = total + product * x["a_scale"][:, at][:, None] * of_columns[None, :]
        return {"c": total}

    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]),),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "a_scale_ptr": a_scale, "b_scale_ptr": b_scale,
            "M": m, "N": n, "K": k, "stride_am": k, "stride_bn": k, "stride_cm": n,
            "stride_asm": k_blocks, "stride_bsn": k_blocks,
        },
        {"a": a, "b": b, "c": c, "a_scale": a_scale, "b_scale": b_scale},
        ("c",),
        reference,
        2.0 * m * n * k,
    )  # fmt: skip


FAMILY = Family(
    matmul_fp8_blocks,
    _make,
    CONFIG,
    shapes(
        (256, 256, 256), (200, 144, 112), (1, 128, 64), (130, 264, 400), (128, 128, 16), (300, 136, 208),
        (64, 512, 320), (257, 128, 640), (77, 93, 51), (128, 128, 133), (513, 256, 192), (16, 16, 32), (1, 1, 1),
        (1024, 128, 64), (128, 1024, 128), (384, 384, 1008), (255, 256, 256), (640, 320, 448), (129, 257, 165),
        (2048, 16, 64),
    ),
    shapes((8192, 8192, 8192), (4096, 4096, 4096), (2048, 7168, 2048), (4096, 14336, 4096)),
    tuple(
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 128, "GROUP_M": 8, "num_warps": warps, "num_stages": stages}
        for m in (64, 128)
        for n in (64, 128)
        for warps in (4, 8)
        for stages in (2, 3, 4)
    ),
    tolerance=2e-3,
)  # fmt: skip
