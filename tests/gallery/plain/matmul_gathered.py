"""C = A[index] @ B: an index chooses the rows of A, such as the tokens of an expert, or of an embedding's table."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def matmul_gathered(
    a_ptr, b_ptr, c_ptr, index_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    index = tl.load(index_ptr + rows, mask=rows < M, other=0)
    a_rows = a_ptr + index[:, None] * stride_am
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_rows + (k + depth)[None, :], mask=(rows[:, None] < M) & (k + depth < K)[None, :], other=0.0)
        b = tl.load(
            b_ptr + (k + depth)[:, None] * stride_bk + columns[None, :],
            mask=(k + depth < K)[:, None] & (columns < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    tl.store(
        c_ptr + rows[:, None] * stride_cm + columns[None, :],
        acc.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_gathered": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
            "index_ptr": "*i32:16",
            **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    m, n, k, table = shape["M"], shape["N"], shape["K"], shape["rows"]
    a, b, c = new.normal(table, k), new.normal(k, n), new.poisoned(m, n)
    index = new.below(table, m)
    return Problem(
        (ceil(m, config["BLOCK_M"]), ceil(n, config["BLOCK_N"])),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "index_ptr": index, "M": m, "N": n, "K": k,
            "stride_am": k, "stride_bk": n, "stride_cm": n,
        },
        {"a": a, "b": b, "c": c, "index": index},
        ("c",),
        lambda xp, x: {"c": x["a"][x["index"]] @ x["b"]},
        2.0 * m * n * k,
    )  # fmt: skip


def _shapes(*sizes: tuple[int, int, int, int]) -> tuple[Shape, ...]:
    return tuple({"M": m, "N": n, "K": k, "rows": rows} for m, n, k, rows in sizes)


FAMILY = Family(
    matmul_gathered,
    _make,
    CONFIG,
    _shapes(
        (256, 256, 256, 100), (208, 144, 336, 64), (16, 128, 64, 3), (144, 264, 80, 500), (128, 128, 16, 128),
        (304, 144, 208, 304), (64, 512, 320, 1000), (256, 128, 64, 1), (128, 144, 128, 7), (80, 96, 48, 50),
        (128, 128, 640, 128), (512, 256, 192, 2048), (16, 16, 16, 16), (1, 8, 8, 1), (1024, 128, 64, 32),
        (77, 93, 51, 60), (384, 384, 1008, 200), (255, 255, 255, 255), (640, 320, 448, 99), (130, 264, 72, 41),
    ),
    _shapes((8192, 4096, 4096, 8192), (8192, 8192, 1024, 32768), (4096, 14336, 4096, 16384), (2048, 4096, 7168, 65536)),
    tiles((64, 128), (128, 256), (64,)) + tiles((128,), (128,), (32,)),
)  # fmt: skip
