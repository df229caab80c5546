"""C = A @ B[g] for the rows of each group g, such as the tokens of an expert: the groups' offsets come from memory."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def matmul_grouped(
    a_ptr, b_ptr, c_ptr, offsets_ptr, N, K, stride_am, stride_bg, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(2)
    first = tl.load(offsets_ptr + group)
    end = tl.load(offsets_ptr + group + 1)
    # The grid has programs for the largest group: those of a smaller one may have nothing to do.
    if first + tl.program_id(0) * BLOCK_M >= end:
        return
    rows = first + tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    b_group = b_ptr + group.to(tl.int64) * stride_bg
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + (k + depth)[None, :],
            mask=(rows[:, None] < end) & (k + depth < K)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_group + (k + depth)[:, None] * stride_bk + columns[None, :],
            mask=(k + depth < K)[:, None] & (columns < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    tl.store(
        c_ptr + rows[:, None] * stride_cm + columns[None, :],
        acc.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < end) & (columns[None, :] < N),
    )


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "matmul_grouped": {
        "signature": {
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16:16"),
            "offsets_ptr": "*i32:16",
            **dict.fromkeys(("N", "K", "stride_am", "stride_bg", "stride_bk", "stride_cm"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    rows, n, k = shape["rows"], shape["N"], shape["K"]
    starts = [sum(rows[:group]) for group in range(len(rows) + 1)]
    m = starts[-1]
    a, b = new.normal(m, k, dtype="bf16"), new.normal(len(rows), k, n, dtype="bf16")
    c = new.poisoned(m, n, dtype="bf16")
    offsets = new.integers(starts)

    def reference(xp, x):
        parts = [x["a"][starts[at] : starts[at + 1]] @ x["b"][at] for at in range(len(rows))]
        return {"c": xp.concatenate(parts)}

    return Problem(
        (ceil(max(rows), config["BLOCK_M"]), ceil(n, config["BLOCK_N"]), len(rows)),
        {
            "a_ptr": a, "b_ptr": b, "c_ptr": c, "offsets_ptr": offsets, "N": n, "K": k,
            "stride_am": k, "stride_bg": k * n, "stride_bk": n, "stride_cm": n,
        },
        {"a": a, "b": b, "c": c, "offsets": offsets},
        ("c",),
        reference,
        2.0 * m * n * k,
    )  # fmt: skip


def _shape(n: int, k: int, *rows: int) -> Shape:
    return {"rows": rows, "N": n, "K": k}


FAMILY = Family(
    matmul_grouped,
    _make,
    CONFIG,
    (
        _shape(256, 192, 128, 128, 128), _shape(136, 72, 100, 28, 0, 200), _shape(64, 64, 1),
        _shape(144, 96, 129, 0, 1), _shape(8, 8, 16, 16, 16), _shape(128, 256, 64, 64, 64, 64), _shape(51, 77, 20, 33),
        _shape(264, 64, 256, 3), _shape(128, 128, 256, 256), _shape(1000, 64, 5, 7), _shape(64, 1000, 130),
        _shape(1, 1, 1, 1), _shape(128, 128, 0, 0, 100), _shape(200, 104, 33, 65, 97), _shape(96, 48, 300, 20),
        _shape(130, 131, 132), _shape(16, 16, *[8] * 16), _shape(256, 64, 127, 129), _shape(320, 320, 64, 192),
        _shape(128, 8, 384), _shape(32, 512, 12, 500),
    ),
    (
        _shape(4096, 2048, *[1024] * 8), _shape(4096, 4096, *[1024] * 16), _shape(2048, 7168, *[256] * 64),
        _shape(7168, 2048, 3000, 100, 1500, 900, 2100, 592, 0, 0),
    ),
    tiles((64, 128), (64, 128), (32, 64)) + tiles((128,), (256,), (64,)),
)  # fmt: skip
