"""C = A @ B by tensor descriptors that the host makes: no masks, since TMA knows the bounds."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles
from tests.gallery.plain.matmul import shapes


@tlx_xdsl.jit
def matmul_descriptors(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    width = GROUP_M * num_pid_n
    group_id = pid // width
    group_size = min(num_pid_m - group_id * GROUP_M, GROUP_M)
    pid_m = group_id * GROUP_M + pid % group_size
    pid_n = pid % width // group_size
    offs_m = pid_m * BLOCK_M
    offs_n = pid_n * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for offs_k in range(0, K, BLOCK_K):
        a = a_desc.load([offs_m, offs_k])
        b = b_desc.load([offs_k, offs_n])
        acc = tl.dot(a, b, acc)
    c_desc.store([offs_m, offs_n], acc.to(c_desc.dtype))


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_descriptors": {
        "signature": {
            "a_desc": "tensordesc<fp16[128, 64]>",
            "b_desc": "tensordesc<fp16[64, 256]>",
            "c_desc": "tensordesc<fp16[128, 256]>",
            **dict.fromkeys(("M", "N", "K"), "i32"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8},
        "num_warps": 8,
    }
}


def make(shape: Shape, new: Arrays, config: Config) -> Problem:
    """The launch of a shape, a program for each tile."""
    m, n, k = shape["M"], shape["N"], shape["K"]
    block_m, block_n, block_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    dtype = shape.get("dtype", "fp16")
    a, b, c = new.normal(m, k, dtype=dtype), new.normal(k, n, dtype=dtype), new.poisoned(m, n, dtype=dtype)
    return Problem(
        (ceil(m, block_m) * ceil(n, block_n),),
        {
            "a_desc": new.descriptor(a, [block_m, block_k]),
            "b_desc": new.descriptor(b, [block_k, block_n]),
            "c_desc": new.descriptor(c, [block_m, block_n]),
            "M": m, "N": n, "K": k,
        },
        {"a": a, "b": b, "c": c},
        ("c",),
        lambda xp, x: {"c": x["a"] @ x["b"]},
        2.0 * m * n * k,
    )  # fmt: skip


SIZES = (
    (256, 512, 256), (200, 144, 112), (1, 256, 64), (130, 264, 72), (128, 256, 8), (300, 136, 200), (64, 512, 320),
    (257, 128, 64), (77, 96, 56), (513, 256, 192), (16, 16, 16), (1, 8, 8), (1024, 128, 64), (128, 1024, 128),
    (384, 384, 1000), (255, 248, 248), (640, 320, 448), (129, 264, 72), (2048, 8, 64), (8, 2048, 64),
)  # fmt: skip
"""Rows of whole 16 bytes, which TMA needs."""

FAMILY = Family(
    matmul_descriptors,
    make,
    CONFIG,
    shapes(*SIZES) + shapes((256, 384, 192), (100, 200, 304), dtype="bf16"),
    shapes((8192, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 512), (8192, 2048, 2048)),
    tiles((64, 128), (128, 256), (64,), GROUP_M=8) + tiles((128,), (128, 256), (128,), GROUP_M=8),
)
