"""Tensor descriptors, from the host and made on the device: load, store, reduce, gather, scatter."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, case

BOTH = (HOPPER, BLACKWELL)


@case({"source": "tensordesc<fp16[64, 128]>", "target": "tensordesc<fp16[64, 128]>", "M": 64, "N": 128}, archs=BOTH)
@triton.jit
def host_descriptor_copy(source, target, M: tl.constexpr, N: tl.constexpr):
    m = tl.program_id(0) * M
    n = tl.program_id(1) * N
    target.store([m, n], source.load([m, n]) * 2.0)


@case({"x": "*fp32:16", "out": "*fp32:16", "rows": "i32", "cols": "i32:16", "M": 32, "N": 64}, archs=BOTH)
@triton.jit
def device_descriptor_copy(x, out, rows, cols, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, cols], [cols, 1], [M, N], padding_option="nan")
    target = tl.make_tensor_descriptor(out, [rows, cols], [cols, 1], [M, N])
    m = tl.program_id(0) * M
    for n in range(0, cols, N):
        tile = tl.load_tensor_descriptor(source, [m, n])
        tl.store_tensor_descriptor(target, [m, n], tl.exp(tile))


@case(
    {"f": "tensordesc<fp32[16, 32]>", "h": "tensordesc<bf16[16, 32]>", "i": "tensordesc<i32[16, 32]>"}
    | {"u": "tensordesc<u32[16, 32]>"},
    archs=BOTH,
)
@triton.jit
def descriptor_reductions(f, h, i, u):
    m = tl.program_id(0) * 16
    ones = tl.full((16, 32), 1, tl.int32)
    f.atomic_add([m, 0], ones.to(tl.float32))
    h.atomic_add([m, 0], ones.to(tl.bfloat16))
    h.atomic_min([m, 32], ones.to(tl.bfloat16))
    i.atomic_max([m, 0], ones)
    i.atomic_and([m, 0], ones)
    i.atomic_or([m, 32], ones)
    i.atomic_xor([m, 32], ones)
    u.atomic_min([m, 0], ones.to(tl.uint32))


@case({"source": "tensordesc<fp16[1, 64]>", "target": "tensordesc<fp16[1, 64]>", "rows": "*i32:16"}, archs=(BLACKWELL,))
@triton.jit
def descriptor_gather_and_scatter(source, target, rows):
    index = tl.load(rows + tl.arange(0, 32))
    column = tl.program_id(0) * 64
    picked = source.gather(index, column)
    target.scatter(picked + 1.0, index, column)


@case(
    {"a": "tensordesc<fp16[128, 64]>", "b": "tensordesc<fp16[128, 64]>", "c": "tensordesc<fp16[128, 128]>"}
    | {"K": "i32", "M": 128, "N": 128, "WARPS": False},
    archs=BOTH,
)
@case(
    {"a": "tensordesc<bf16[128, 64]>", "b": "tensordesc<bf16[128, 64]>", "c": "tensordesc<bf16[128, 128]>"}
    | {"K": "i32", "M": 128, "N": 128, "WARPS": True},
    name="descriptor_matmul_warp_specialized",
    archs=(BLACKWELL,),
)
@case(
    {"a": "tensordesc<fp16[64, 64]>", "b": "tensordesc<fp16[64, 64]>", "c": "tensordesc<fp16[64, 64]>"}
    | {"K": "i32", "M": 64, "N": 64, "WARPS": True},
    name="descriptor_matmul_warp_specialized_small",
    archs=BOTH,
)
@triton.jit
def descriptor_matmul(a, b, c, K, M: tl.constexpr, N: tl.constexpr, WARPS: tl.constexpr):
    m = tl.program_id(0) * M
    n = tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for k in tl.range(0, K, 64, warp_specialize=WARPS):
        total = tl.dot(a.load([m, k]), b.load([n, k]).T, total)
    c.store([m, n], total.to(c.dtype))


@case(
    {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp16:16", "M": "i32:16", "N": "i32:16", "K": "i32:16", "PROGRAMS": 132},
    archs=BOTH,
)
@triton.jit
def persistent_matmul(a, b, c, M, N, K, PROGRAMS: tl.constexpr):
    """Every program walks many tiles; the two loops are made one."""
    a_rows = tl.make_tensor_descriptor(a, [M, K], [K, 1], [128, 64])
    b_rows = tl.make_tensor_descriptor(b, [N, K], [K, 1], [128, 64])
    c_tile = tl.make_tensor_descriptor(c, [M, N], [N, 1], [128, 64])
    tiles_n = tl.cdiv(N, 128)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, 128) * tiles_n, PROGRAMS, flatten=True):
        m = tile // tiles_n * 128
        n = tile % tiles_n * 128
        total = tl.zeros((128, 128), tl.float32)
        for k in range(0, K, 64):
            total = tl.dot(a_rows.load([m, k]), b_rows.load([n, k]).T, total)
        left, right = tl.split(tl.permute(tl.reshape(total, (128, 2, 64)), (0, 2, 1)))
        c_tile.store([m, n], left.to(tl.float16))
        c_tile.store([m, n + 64], right.to(tl.float16))


@case({"source": "tensordesc<fp8e4nv[2, 4, 8, 16]>", "target": "tensordesc<fp8e4nv[2, 4, 8, 16]>"}, archs=BOTH)
@triton.jit
def descriptor_of_rank_four(source, target):
    at = tl.program_id(0)
    tile = source.load([at, 0, 0, 0])
    target.store([at, 0, 0, 0], tile)


@triton.jit
def _twice(desc, offset):
    return desc.load([offset, 0]) + desc.load([offset + 16, 0])


@case({"source": "tensordesc<fp32[16, 32]>", "other": "*fp32:16", "out": "*fp32:16", "n": "i32"}, archs=BOTH)
@triton.jit
def descriptor_in_a_loop(source, other, out, n):
    """A descriptor that is chosen at run time and carried by a loop."""
    desc = tl.make_tensor_descriptor(other, [n, 32], [32, 1], [16, 32])
    total = tl.zeros((16, 32), tl.float32)
    for i in range(n):
        total += _twice(desc, i)
        if i == 3:
            desc = tl.make_tensor_descriptor(out, [n, 32], [32, 1], [16, 32])
    total += _twice(source, n)
    tl.store(out + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :], total)
