"""C[i] = A[i] @ B[i] by pointers: the grid's second axis is the batch; B may lie transposed."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def matmul_batched(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    batch = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_m = pid // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * stride_ab + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + batch * stride_bb + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    mask_m = offs_m[:, None] < M
    mask_n = offs_n[None, :] < N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=mask_m & (offs_k[None, :] + k < K), other=0.0)
        b = tl.load(b_ptrs, mask=mask_n & (offs_k[:, None] + k < K), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    c_ptrs = c_ptr + batch * stride_cb + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask_m & mask_n)


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_batched": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16:16"),
            **dict.fromkeys(("M", "N", "K"), "i32:16"),
            **dict.fromkeys(
                ("stride_ab", "stride_am", "stride_bb", "stride_bk", "stride_cb", "stride_cm"), "i32:16"
            ),
        },
        "constexprs": {
            **dict.fromkeys(("stride_ak", "stride_bn", "stride_cn"), 1),
            "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64,
        },
        "num_warps": 8,
    }
}  # fmt: skip


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    batch, m, n, k = (shape[each] for each in ("batch", "M", "N", "K"))
    turned, dtype = shape.get("turned", False), "bf16"
    a, c = new.normal(batch, m, k, dtype=dtype), new.poisoned(batch, m, n, dtype=dtype)
    b = new.normal(batch, n, k, dtype=dtype) if turned else new.normal(batch, k, n, dtype=dtype)
    return Problem(
        (ceil(m, config["BLOCK_M"]) * ceil(n, config["BLOCK_N"]), batch),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k,
            "stride_ab": m * k, "stride_am": k, "stride_ak": 1,
            "stride_bb": n * k, "stride_bk": 1 if turned else n, "stride_bn": k if turned else 1,
            "stride_cb": m * n, "stride_cm": n, "stride_cn": 1,
        },
        {"a": a, "b": b, "c": c},
        ("c",),
        lambda xp, x: {"c": x["a"] @ (xp.swapaxes(x["b"], 1, 2) if turned else x["b"])},
        2.0 * batch * m * n * k,
    )  # fmt: skip


def _shapes(*sizes: tuple[int, int, int, int], **more: object) -> tuple[Shape, ...]:
    names = ("batch", "M", "N", "K")
    return tuple({**dict(zip(names, each, strict=True)), **more} for each in sizes)


FAMILY = Family(
    matmul_batched,
    _make,
    CONFIG,
    _shapes((3, 256, 136, 192), (2, 200, 144, 72))
    + _shapes((2, 130, 264, 64), (3, 77, 96, 200), turned=True)
    + _shapes(
        (1, 1, 1, 1), (5, 16, 16, 16), (2, 128, 128, 8), (2, 93, 51, 77), (7, 1, 128, 64), (2, 257, 128, 64),
        (1, 128, 1000, 64), (1, 384, 384, 384), (4, 64, 64, 320), (2, 129, 130, 131), (3, 128, 8, 512),
    )
    + _shapes((2, 256, 256, 256), (1, 1, 64, 128), (3, 129, 65, 33), (2, 300, 200, 104), (6, 32, 48, 64), turned=True),
    _shapes((16, 2048, 2048, 256), (64, 1024, 1024, 128), (8, 4096, 4096, 512))
    + _shapes((32, 1024, 1024, 1024), turned=True),
    tiles((64, 128), (64, 128), (32, 64)) + tiles((128,), (256,), (64,)),
)  # fmt: skip
