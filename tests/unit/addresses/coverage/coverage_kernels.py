"""Kernels with addresses that are right, and planted ones that are not."""

from __future__ import annotations

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def masked_copy(src, dst, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    tl.store(dst + offs, tl.load(src + offs, mask=inside), mask=inside)


@tlx_xdsl.jit
def unmasked_copy(src, dst, BLOCK: tl.constexpr):
    """The tail leaves arrays that are no multiple of BLOCK."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + offs, tl.load(src + offs))


@tlx_xdsl.jit
def collision(src, dst, BLOCK: tl.constexpr):
    """Each program moves by BLOCK - 4 only."""
    offs = tl.program_id(0) * (BLOCK - 4) + tl.arange(0, BLOCK)
    tl.store(dst + offs, tl.load(src + offs))


@tlx_xdsl.jit
def two_lines(dst, BLOCK: tl.constexpr):
    """The second store of a program meets the first one of the next but one."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    tl.store(dst + pid * BLOCK + lanes, 0.0)
    tl.store(dst + (pid + 2) * BLOCK + 3 + lanes, 1.0, mask=lanes < 1)


@tlx_xdsl.jit
def holes(dst, BLOCK: tl.constexpr):
    """Store all but the last 16 of each 64 elements."""
    lanes = tl.arange(0, BLOCK)
    tl.store(dst + tl.program_id(0) * BLOCK + lanes, 0.0, mask=lanes < BLOCK - 16)


@tlx_xdsl.jit
def transpose(src, dst, rows, columns, BLOCK: tl.constexpr):
    """Loads are coalesced, stores go down the columns."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    tile = tl.load(src + r[:, None] * columns + c[None, :], mask=inside)
    tl.store(dst + c[None, :] * rows + r[:, None], tile, mask=inside)


@tlx_xdsl.jit
def split_k(src, dst, BLOCK: tl.constexpr):
    """All programs along y add to the same block."""
    lanes = tl.arange(0, BLOCK)
    x, y = tl.program_id(0), tl.program_id(1)
    part = tl.load(src + (y * tl.num_programs(0) + x) * BLOCK + lanes)
    tl.atomic_add(dst + x * BLOCK + lanes, part)


@tlx_xdsl.jit
def split_k_with_store(src, dst, BLOCK: tl.constexpr):
    """The program with y == 0 stores, while others add."""
    lanes = tl.arange(0, BLOCK)
    x, y = tl.program_id(0), tl.program_id(1)
    part = tl.load(src + (y * tl.num_programs(0) + x) * BLOCK + lanes)
    if y == 0:
        tl.store(dst + x * BLOCK + lanes, part)
    else:
        tl.atomic_add(dst + x * BLOCK + lanes, part)


@tlx_xdsl.jit
def two_parts(dst, first, BLOCK: tl.constexpr):
    """Program 0 writes the columns before `first` by TMA, in units of 16 bytes, program 1 the others."""
    if tl.program_id(0) == 0:
        part = tl.make_tensor_descriptor(dst, [8, first], [BLOCK, 1], [8, BLOCK])
        part.store([0, 0], tl.zeros((8, BLOCK), tl.float32))
    else:
        row, column = tl.arange(0, 8)[:, None], tl.arange(0, BLOCK)[None, :]
        tl.store(dst + row * BLOCK + column, 1.0, mask=column >= first)


@tlx_xdsl.jit
def scatter(index, dst, BLOCK: tl.constexpr):
    """Store to places that are loaded."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + tl.load(index + offs), 1.0)


@tlx_xdsl.jit
def chosen(flags, dst, BLOCK: tl.constexpr):
    """Store under a mask that is loaded."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + offs, 1.0, mask=tl.load(flags + offs) > 0)


@tlx_xdsl.jit
def chosen_collision(flags, dst, BLOCK: tl.constexpr):
    """All programs may store the same block."""
    offs = tl.arange(0, BLOCK)
    tl.store(dst + offs, 1.0, mask=tl.load(flags + offs) > 0)


@tlx_xdsl.jit
def same_block(dst, BLOCK: tl.constexpr):
    """All programs store the same block."""
    tl.store(dst + tl.arange(0, BLOCK), 1.0)


@tlx_xdsl.jit
def rows(dst, stride, BLOCK: tl.constexpr):
    """A row for each program."""
    tl.store(dst + tl.program_id(0) * stride + tl.arange(0, BLOCK), 1.0)


@tlx_xdsl.jit
def two_axes(dst, BLOCK: tl.constexpr):
    """Blocks in rows of eight."""
    block = tl.program_id(1) * 8 + tl.program_id(0)
    tl.store(dst + block * BLOCK + tl.arange(0, BLOCK), 1.0)


@tlx_xdsl.jit
def two_axes_too_close(dst, BLOCK: tl.constexpr):
    """Neighbours along x share half of their blocks."""
    x, y = tl.program_id(0), tl.program_id(1)
    tl.store(dst + y * 1024 + x * (BLOCK // 2) + tl.arange(0, BLOCK), 1.0)


@tlx_xdsl.jit
def before_the_start(dst, BLOCK: tl.constexpr):
    """Program 0 stores before the array."""
    tl.store(dst + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - 1, 1.0)


@tlx_xdsl.jit
def endless(dst):
    """A loop that never ends."""
    i = 0
    while i >= 0:
        tl.store(dst + i % 4, 1.0)
        i = (i + 1) % 4


@tlx_xdsl.jit
def grouped_matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    """Tiles in groups of GROUP rows of tiles, one column after the other."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * tiles_n) * GROUP
    rows = tl.minimum(tiles_m - first_m, GROUP)
    in_group = pid % (GROUP * tiles_n)
    offs_m = (first_m + in_group % rows) * BM + tl.arange(0, BM)
    offs_n = in_group // rows * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
        y = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=inside)


@tlx_xdsl.jit
def batches(src, dst, stride, n, BLOCK: tl.constexpr):
    """Offsets in 32 bits, which wrap around where there are many batches."""
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0) * stride + offs
    tl.store(dst + at, tl.load(src + at, mask=offs < n), mask=offs < n)


_VECTOR = {"BLOCK": 64}
TLX_COMPILE = {
    "masked_copy": {"signature": {"src": "*fp32:16", "dst": "*fp32:16", "n": "i32"}, "constexprs": _VECTOR},
    "unmasked_copy": {"signature": {"src": "*fp32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "collision": {"signature": {"src": "*fp32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "two_lines": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "holes": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "transpose": {
        "signature": {"src": "*fp32", "dst": "*fp32", "rows": "i32", "columns": "i32"},
        "constexprs": {"BLOCK": 32},
    },
    "split_k": {"signature": {"src": "*fp32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "split_k_with_store": {"signature": {"src": "*fp32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "two_parts": {"signature": {"dst": "*fp32", "first": "i32"}, "constexprs": _VECTOR},
    "scatter": {"signature": {"index": "*i32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "chosen": {"signature": {"flags": "*i32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "chosen_collision": {"signature": {"flags": "*i32", "dst": "*fp32"}, "constexprs": _VECTOR},
    "same_block": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "rows": {"signature": {"dst": "*fp32", "stride": "i32"}, "constexprs": _VECTOR},
    "two_axes": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "two_axes_too_close": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "before_the_start": {"signature": {"dst": "*fp32"}, "constexprs": _VECTOR},
    "endless": {"signature": {"dst": "*fp32"}},
    "batches": {
        "signature": {"src": "*bf16:16", "dst": "*bf16:16", "stride": "i32:16", "n": "i32"},
        "constexprs": {"BLOCK": 1024},
    },
    "grouped_matmul": {
        "signature": {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp16:16", "M": "i32", "N": "i32:16", "K": "i32:16"},
        "constexprs": {"BM": 64, "BN": 64, "BK": 32, "GROUP": 4},
    },
}
