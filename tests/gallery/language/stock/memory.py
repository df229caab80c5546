"""Loads and stores: masks, cache modifiers, hints to the compiler, wide offsets, atomics, gathers."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, case, since, until


@case({"x": "*fp32:16", "y": "*fp16:16", "out": "*fp32:16", "n": "i32:16", "BLOCK": 1024}, archs=(HOPPER, BLACKWELL))
@triton.jit
def cache_modifiers(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    a = tl.load(x + index, mask=inside, other=0.0, cache_modifier=".ca", eviction_policy="evict_first")
    b = tl.load(y + index, mask=inside, other=1.0, cache_modifier=".cg", eviction_policy="evict_last")
    c = tl.load(x + index, volatile=True)
    d = tl.load(y + index, cache_modifier=".cv")
    total = a + b + c + d
    tl.store(out + index, total, mask=inside, cache_modifier=".wb")
    tl.store(out + index, total, cache_modifier=".cs", eviction_policy="evict_last")
    tl.store(out + index, total, mask=inside, cache_modifier=".wt", eviction_policy="evict_first")
    tl.store(out, 1.0, cache_modifier=".cg")


@case({"x": "*fp32:16", "out": "*fp32:16", "rows": "i32", "cols": "i32", "stride": "i64:16", "M": 64, "N": 128})
@triton.jit
def masked_tile_with_wide_offsets(x, out, rows, cols, stride, M: tl.constexpr, N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)[:, None]
    n = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)[None, :]
    inside = (m < rows) & (n < cols)
    tile = tl.load(x + m * stride + n, mask=inside, other=float("-inf"))
    tl.store(out + m * stride + n, tile, mask=inside)


@case({"x": "*fp32", "out": "*fp32", "stride": "i32", "M": 32, "N": 64})
@triton.jit
def compiler_hints(x, out, stride, M: tl.constexpr, N: tl.constexpr):
    m = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * M + tl.arange(0, M), M), M)
    n = tl.max_constancy(tl.arange(0, N) // 16, 16)
    stride = tl.multiple_of(stride, 16)
    source = tl.multiple_of(x + m[:, None] * stride + n[None, :], (16, 4))
    tl.store(out + m[:, None] * N + tl.arange(0, N)[None, :], tl.load(source))


@case({"out": "*i32:16", "BLOCK": 128})
@triton.jit
def program_ids(out, BLOCK: tl.constexpr):
    flat = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    flat = flat * tl.num_programs(0) + tl.program_id(0)
    tl.store(out + flat * BLOCK + tl.arange(0, BLOCK), tl.num_programs(2))


@case(
    {"x": "*fp32:16", "flag": "*i1:16", "out": "*fp32:16", "y": "*kfp32", "scale": "fp32", "half": "fp16", "on": "i1"}
)
@triton.jit
def scalars_and_booleans(x, flag, out, y, scale, half, on):
    index = tl.arange(0, 128)
    bits = tl.load(flag + index)
    a = tl.load(x + index, mask=bits, other=scale) * half
    first = tl.load(y)
    if on:
        tl.store(out, first * scale)
    tl.store(flag + index, a > first)
    tl.store(out + index, a, mask=bits & on)


@case({"x": "*fp32:16", "h": "*fp16:16", "i": "*i32:16", "u": "*u32:16", "w": "*i64:16", "BLOCK": 256})
@triton.jit
def atomic_updates(x, h, i, u, w, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    inside = index < 200
    tl.atomic_add(x + index, 1.5, mask=inside, sem="relaxed", scope="gpu")
    tl.atomic_add(h + index, tl.full((BLOCK,), 0.5, tl.float16))
    old = tl.atomic_add(i + index, index, sem="release", scope="sys")
    old += tl.atomic_and(i + index, 255, mask=inside, sem="acquire", scope="cta")
    old += tl.atomic_or(i + index, 1) + tl.atomic_xor(i + index, 2)
    old += tl.atomic_xchg(i + index, old, mask=inside)
    old += tl.atomic_max(i + index, 3) + tl.atomic_min(i + index, -3)
    unsigned = tl.atomic_max(u + index, old.to(tl.uint32)) + tl.atomic_min(u + index, 5)
    tl.atomic_add(w + index, unsigned.to(tl.int64))


@case({"x": "*fp32:16", "BLOCK": 128})
@triton.jit
def atomic_float_extremes(x, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    tl.atomic_max(x + index, a * 2, mask=index < 100)
    tl.atomic_min(x + index, a)


@case({"lock": "*i32", "total": "*fp32", "x": "*fp32:16", "slots": "*i64:16", "BLOCK": 128}, archs=(HOPPER, BLACKWELL))
@triton.jit
def spin_lock(lock, total, x, slots, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + index), axis=0)
    while tl.atomic_cas(lock, 0, 1, sem="acquire", scope="gpu") == 1:
        pass
    tl.store(total, tl.load(total) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")
    tl.atomic_cas(slots + index, index.to(tl.int64), tl.full((BLOCK,), -1, tl.int64))


@case(
    {"flag": "*i32", "x": "*fp32:16", "BLOCK": 128},
    archs=(HOPPER, BLACKWELL),
    limits=(since(3, 9, "tl.atomic_load, tl.atomic_store and tl.atomic_poll"),),
)
@triton.jit
def atomic_load_store_poll(flag, x, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    seen = tl.atomic_load(flag, sem="acquire", scope="gpu")
    tl.atomic_poll(flag, seen + 1, sem="acquire", scope="gpu")
    tl.atomic_poll(flag, 7, sem="relaxed", scope="sys", timeout_ns=1000)
    a = tl.atomic_load(x + index, mask=index < 100, sem="relaxed", scope="cta")
    tl.atomic_store(x + index, a * 2, mask=index < 100, sem="relaxed", scope="gpu")
    tl.atomic_store(flag, 0, sem="release", scope="sys")


@case({"x": "*fp32:16", "order": "*i32:16", "out": "*fp32:16", "M": 32, "N": 64}, archs=(HOPPER, BLACKWELL))
@triton.jit
def gather_columns(x, order, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    columns = tl.load(order + at)
    tl.store(out + at, tl.gather(tile, columns, axis=1) + tl.gather(tile, columns % M, axis=0))


@case({"index": "*i32:16", "table": "*fp16:16", "out": "*fp16:16", "WIDTH": 64, "ROWS": 32})
@triton.jit
def embedding_lookup(index, table, out, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    words = tl.load(index + rows)
    columns = tl.arange(0, WIDTH)
    vectors = tl.load(table + words[:, None] * WIDTH + columns[None, :])
    tl.store(out + rows[:, None] * WIDTH + columns[None, :], vectors)


@case(
    {"x": "*fp16:16", "out": "*fp16:16", "rows": "i32", "cols": "i32", "M": 64, "N": 32},
    limits=(until(3, 9, "tl.make_block_ptr and tl.advance"),),
)
@triton.jit
def block_pointers(x, out, rows, cols, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, cols), (cols, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    target = tl.make_block_ptr(out, (rows, cols), (cols, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    for _ in range(0, cols, N):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tile * 2, boundary_check=(0, 1))
        source = tl.advance(source, (0, N))
        target = tl.advance(target, (0, N))


@case({"x": "*fp32:16", "out": "*fp32:16", "BLOCK": 256}, archs=(HOPPER, BLACKWELL), launch_pdl=True)
@triton.jit
def dependent_launch(x, out, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + index)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + index, a * a)


@case({"out": "*i64:16", "BLOCK": 128})
@triton.jit
def clocks_and_thread_ids(out, BLOCK: tl.constexpr):
    start = tl.extra.cuda.globaltimer()
    processor = tl.extra.cuda.smid()
    index = tl.arange(0, BLOCK)
    tl.store(out + index, index.to(tl.int64) + start + processor)
