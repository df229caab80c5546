"""Gluon for Blackwell: tensor memory, tcgen05, scaled products, gather and scatter by TMA, dynamic scheduling."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_scaled,
    tma,
)

from tests.gallery.cases import BLACKWELL, Constant, case, since
from tests.gallery.synchronisation.gluon.hopper import descriptor
from tests.gallery.synchronisation.gluon.names import (
    PAIR_BARRIER,
    PAIR_BARRIER_SHAPE,
    reinterpret,
    scales_layout,
    split_tmem_layout,
    tma_load,
    tma_store,
)

ONLY = (BLACKWELL,)
BLACKWELL_ULTRA = 103

SCALES = gl.constexpr(
    gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [32, 0], [64, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
        warp_bases=[[0, 0], [0, 0]],
        block_bases=[],
        shape=[128, 4],
    )
)
"""Scales of 128 rows in registers, as they go to tensor memory: every warp has them all."""


@case(
    {"a": descriptor("fp16", 128, 64), "b": descriptor("fp16", 128, 64), "c": descriptor("fp16", 128, 128), "K": "i32"},
    archs=ONLY,
)
@gluon.jit
def gluon_tcgen05(a, b, c, K):
    rows: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    total = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    loaded = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    multiplied = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(loaded, count=1)
    mbarrier.init(multiplied, count=1)
    phase = 0
    use = False
    for k in range(0, K, 64):
        mbarrier.expect(loaded, a.block_type.nbytes + b.block_type.nbytes)
        tma_load(a, [gl.program_id(0) * 128, k], loaded, a_tile)
        tma_load(b, [gl.program_id(1) * 128, k], loaded, b_tile)
        mbarrier.wait(loaded, phase)
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), total, use_acc=use)
        tcgen05_commit(multiplied)
        mbarrier.wait(multiplied, phase, deps=[a_tile, b_tile])
        phase ^= 1
        use = True
    result = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    result.store(total.load(rows).to(c.dtype))
    fence_async_shared()
    tma_store(c, [gl.program_id(0) * 128, gl.program_id(1) * 128], result)
    tma.store_wait(0)


@case({"x": "*fp32:16", "out": "*fp32:16"}, archs=ONLY)
@gluon.jit
def gluon_tensor_memory_views(x, out):
    rows: gl.constexpr = gl.BlockedLayout([1, 64], [32, 1], [4, 1], [0, 1])
    at = gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, rows))[None, :]
    tile = gl.load(x + at)
    layout: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
    ring = allocate_tensor_memory(gl.float32, [2, 128, 64], layout)
    filled = allocate_tensor_memory(gl.float32, [128, 64], layout, tile)
    for i in range(2):
        ring.index(i).store(tile, pred=i < 1)
    half: gl.constexpr = gl.BlockedLayout([1, 32], [32, 1], [4, 1], [0, 1])
    left = filled.slice(0, 32).load(half)
    right = filled.slice(32, 32).load(half)
    filled.slice(32, 32).store(left - right)
    words = reinterpret(filled, gl.int32, [128, 64], layout)
    narrow = reinterpret(ring.index(0), gl.float16, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    wide: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    total = gl.sum(narrow.load(wide).to(gl.float32), axis=1)
    total = gl.convert_layout(total, gl.SliceLayout(1, rows))
    gl.store(out + at, filled.load(rows) + ring.index(1).load(rows) + words.load(rows).to(gl.float32) + total[:, None])


@case({"x": "*fp16:16", "y": "*fp16:16", "out": "*fp32:16", "go": "i1"}, archs=ONLY)
@gluon.jit
def gluon_tcgen05_operands(x, y, out, go):
    """The left operand in tensor memory, several barriers with predicates, and a tile of 64 rows."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows: gl.constexpr = gl.BlockedLayout([1, 64], [32, 1], [4, 1], [0, 1])
    m = gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None]
    k = gl.arange(0, 64, gl.SliceLayout(0, rows))[None, :]
    a = gl.load(x + m * 64 + k)
    left = allocate_tensor_memory(gl.float16, [128, 64], TensorMemoryLayout([128, 64], col_stride=1), a)
    at = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None] * 64
    at += gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
    right = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16, rank=2), gl.load(y + at))
    fence_async_shared()
    first = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    second = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(first, count=1)
    mbarrier.init(second, count=1)
    total = allocate_tensor_memory(gl.float32, [128, 64], TensorMemoryLayout([128, 64], col_stride=1))
    small = allocate_tensor_memory(gl.float32, [64, 64], TensorMemoryLayout([64, 64], col_stride=1))
    tcgen05_mma(left, right, total, use_acc=False, pred=go, mbarriers=[first, second], mbarrier_preds=[go, True])
    tcgen05_mma(right, right.permute((1, 0)), small, use_acc=False, mbarriers=[second])
    mbarrier.wait(first, 0)
    mbarrier.wait(second, 0)
    gl.store(out + m * 64 + k, total.load(rows))


@case(
    {"a": descriptor("fp8e4nv", 128, 128, bits=8), "b": descriptor("fp8e4nv", 128, 128, bits=8)}
    | {"scales": "*u8:16", "out": "*fp32:16"}
    | {"A": Constant("e4m3"), "B": Constant("e4m3")},
    archs=ONLY,
)
@case(
    {"a": descriptor("u8", 128, 64, bits=8, swizzle=64), "b": descriptor("u8", 128, 64, bits=8, swizzle=64)}
    | {"scales": "*u8:16", "out": "*fp32:16"}
    | {"A": Constant("e2m1"), "B": Constant("e2m1")},
    name="gluon_tcgen05_scaled_fp4",
    archs=ONLY,
)
@gluon.jit
def gluon_tcgen05_scaled(a, b, scales, out, A: gl.constexpr, B: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes)
    tma_load(a, [0, 0], bar, a_tile)
    tma_load(b, [0, 0], bar, b_tile)
    mbarrier.wait(bar, 0)
    at = gl.arange(0, 128, gl.SliceLayout(1, SCALES))[:, None] * 4 + gl.arange(0, 4, gl.SliceLayout(0, SCALES))[None, :]
    a_scale = allocate_tensor_memory(gl.uint8, [128, 4], scales_layout())
    a_scale.store(gl.load(scales + at))
    b_scale = allocate_tensor_memory(gl.uint8, [128, 4], scales_layout())
    b_scale.store(gl.load(scales + 512 + at))
    total = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    tcgen05_mma_scaled(a_tile, b_tile.permute((1, 0)), total, a_scale, b_scale, A, B, use_acc=False, mbarriers=[bar])
    mbarrier.wait(bar, 1)
    columns = gl.arange(0, 128, gl.SliceLayout(0, rows))[None, :]
    gl.store(out + gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None] * 128 + columns, total.load(rows))


@case({"x": "*fp32:16", "scales": "*u8:16", "out": "*fp32:16"}, archs=ONLY)
@gluon.jit
def gluon_copy_to_tensor_memory(x, scales, out):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    rows: gl.constexpr = gl.BlockedLayout([1, 32], [32, 1], [4, 1], [0, 1])
    at = gl.arange(0, 128, gl.SliceLayout(1, layout))[:, None] * 32
    at += gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
    shared = gl.allocate_shared_memory(gl.float32, [128, 32], gl.NVMMASharedLayout(128, 32, rank=2), gl.load(x + at))
    target = allocate_tensor_memory(gl.float32, [128, 32], TensorMemoryLayout([128, 32], col_stride=1))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    tcgen05_copy(shared, target)
    tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    out_at = gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None] * 32
    out_at += gl.arange(0, 32, gl.SliceLayout(0, rows))[None, :]
    gl.store(out + out_at, target.load(rows))


@gluon.jit
def _load(a, b, a_ring, b_ring, full, empty, steps):
    for k in range(steps):
        stage = k % 2
        mbarrier.wait(empty.index(stage), (k // 2 & 1) ^ 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma_load(a, [gl.program_id(0) * 128, k * 64], full.index(stage), a_ring.index(stage))
        tma_load(b, [k * 64, gl.program_id(1) * 128], full.index(stage), b_ring.index(stage))


@gluon.jit
def _multiply(a_ring, b_ring, total, full, empty, done, steps):
    for k in range(steps):
        stage = k % 2
        mbarrier.wait(full.index(stage), k // 2 & 1)
        tcgen05_mma(a_ring.index(stage), b_ring.index(stage), total, use_acc=k > 0, mbarriers=[empty.index(stage)])
    tcgen05_commit(done)


@gluon.jit
def _write(c, total, done):
    rows: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    mbarrier.wait(done, 0)
    result = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    result.store(total.load(rows).to(c.dtype))
    fence_async_shared()
    tma_store(c, [gl.program_id(0) * 128, gl.program_id(1) * 128], result)
    tma.store_wait(0)


@case(
    {"a": descriptor("bf16", 128, 64), "b": descriptor("bf16", 64, 128), "c": descriptor("bf16", 128, 128)}
    | {"steps": "i32"},
    archs=ONLY,
)
@gluon.jit
def gluon_tcgen05_warp_specialized(a, b, c, steps):
    """One warp loads, one multiplies, the default warps write the result."""
    a_ring = gl.allocate_shared_memory(a.dtype, [2, 128, 64], a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [2, 64, 128], b.layout)
    total = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    mbarrier.init(done, count=1)
    gl.warp_specialize(
        [
            (_write, (c, total, done)),
            (_load, (a, b, a_ring, b_ring, full, empty, steps)),
            (_multiply, (a_ring, b_ring, total, full, empty, done, steps)),
        ],
        [1, 1],
        [24, 24],
    )


@case({"x": descriptor("bf16", 1, 64), "rows": "*i32:16"}, archs=ONLY)
@gluon.jit
def gluon_tma_gather_and_scatter(x, rows):
    layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))
    picked = gl.load(rows + gl.arange(0, 32, layout))
    buffer = gl.allocate_shared_memory(gl.bfloat16, [32, 64], x.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    mbarrier.expect(full, 32 * 64 * 2)
    tma.async_gather(x, picked, 0, full, buffer, pred=gl.program_id(0) == 0)
    mbarrier.wait(full, 0)
    tma.async_scatter(x, picked, 64, buffer)
    tma.store_wait(0)


@case({"x": "*fp32:16", "top": "*fp32:16"}, archs=(BLACKWELL_ULTRA,), limits=(since(3, 7, "TMEM loads that reduce"),))
@gluon.jit
def gluon_tensor_memory_reductions(x, top):
    rows: gl.constexpr = gl.BlockedLayout([1, 64], [32, 1], [4, 1], [0, 1])
    m = gl.arange(0, 128, gl.SliceLayout(1, rows))
    at = m[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, rows))[None, :]
    tile = allocate_tensor_memory(gl.float32, [128, 64], TensorMemoryLayout([128, 64], col_stride=1), gl.load(x + at))
    _, high = tile.load_max(rows)
    values, low = tile.load_min(rows, abs=True)
    gl.store(x + at, values)
    gl.store(top + m, gl.convert_layout(high + low, gl.SliceLayout(1, rows)))


@case({"x": "*fp32:16", "h": "*fp16:16", "out": "*fp32:16"}, archs=ONLY, limits=(since(3, 8, "packed arithmetic"),))
@gluon.jit
def gluon_packed_arithmetic(x, h, out):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    index = gl.arange(0, 512, layout)
    a = gl.load(x + index)
    b = blackwell.add2(a, blackwell.mul2(a, 2.0))
    c = blackwell.fma2(a, b, blackwell.sub2(b, a))
    half = gl.load(h + index)
    least = blackwell.min2(half, blackwell.max2(half, half * 2))
    gl.store(out + index, c)
    gl.store(h + index, least)


@case({"out": "*i32:16"}, archs=ONLY, limits=(since(3, 8, "cluster launch control"),))
@gluon.jit
def gluon_dynamic_scheduling(out):
    """Take over the work of programs that were not launched yet."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    tile = gl.program_id(0)
    phase = 0
    more = True
    while more:
        mbarrier.expect(ready, 16)
        blackwell.clc.try_cancel(answer, ready)
        gl.store(out + tile * 128 + gl.arange(0, 128, layout), tile)
        mbarrier.wait(ready, phase)
        result = blackwell.clc.load_result(answer)
        more = result.is_canceled()
        tile = result.program_id(0) + result.program_id(1)
        phase ^= 1


@case(
    {"a": descriptor("fp8e4nv", 128, 128, bits=8), "b": descriptor("u8", 128, 64, bits=8, fp4_padded=True)}
    | {"scales": "*u8:16", "out": "*fp32:16"}
    | {"A": Constant("e4m3"), "B": Constant("e2m1")},
    archs=ONLY,
)
@gluon.jit
def gluon_tcgen05_scaled_mixed(a, b, scales, out, A: gl.constexpr, B: gl.constexpr):
    """Eight bits times four: those of four are padded to eight in shared memory; one scale for all."""
    rows: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 128 * 128 + 128 * 64)
    tma_load(a, [0, 0], bar, a_tile)
    tma_load(b, [0, 0], bar, b_tile)
    mbarrier.wait(bar, 0)
    ones = allocate_tensor_memory(gl.uint8, [128, 4], scales_layout(), gl.full([128, 4], 127, gl.uint8, SCALES))
    total = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    tcgen05_mma_scaled(a_tile, b_tile.permute((1, 0)), total, ones, ones, A, B, use_acc=False)
    tcgen05_commit(bar)
    mbarrier.wait(bar, 1)
    columns = gl.arange(0, 128, gl.SliceLayout(0, rows))[None, :]
    gl.store(out + gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None] * 128 + columns, total.load(rows))


@case(
    {"x": "*u8:16", "b": descriptor("fp8e4nv", 128, 128, bits=8), "A": Constant("e2m1"), "B": Constant("e4m3")},
    archs=ONLY,
    limits=(since(3, 8, "padded fp4 in tensor memory"),),
)
@gluon.jit
def gluon_padded_fp4_in_tensor_memory(x, b, A: gl.constexpr, B: gl.constexpr):
    """Numbers of four bits that the kernel has padded to eight, as an operand of a scaled product."""
    rows: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    m = gl.arange(0, 128, gl.SliceLayout(1, rows))[:, None]
    padded = gl.load(x + m * 128 + gl.arange(0, 128, gl.SliceLayout(0, rows))[None, :])
    tile = allocate_tensor_memory(gl.uint8, [128, 128], TensorMemoryLayout([128, 128], col_stride=1), padded)
    left = reinterpret(tile, gl.uint8, [128, 64], TensorMemoryLayout([128, 64], col_stride=1, fp4_padded=True))
    right = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, b.block_type.nbytes)
    tma_load(b, [0, 0], bar, right)
    mbarrier.wait(bar, 0)
    ones = allocate_tensor_memory(gl.uint8, [128, 4], scales_layout(), gl.full([128, 4], 127, gl.uint8, SCALES))
    total = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    tcgen05_mma_scaled(left, right.permute((1, 0)), total, ones, ones, A, B, use_acc=False, mbarriers=[bar])
    mbarrier.wait(bar, 1)


# Before Triton 3.9, not all that is made of layouts of several CTAs works if they are made inside of a kernel.
PAIR_A = gl.constexpr(gl.NVMMASharedLayout(128, 16, rank=2, cga_layout=[[1, 0]]))
PAIR_B = gl.constexpr(gl.NVMMASharedLayout(128, 16, rank=2, cga_layout=[[0, 1]]))
PAIR_LEFT = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]]))
PAIR_RIGHT = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 1]]))
PAIR_ROWS = gl.constexpr(gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1], cga_layout=[[1, 0]]))


@case({"a": "*fp16:16", "b": "*fp16:16", "c": "*fp32:16"}, archs=ONLY, num_ctas=2)
@gluon.jit
def gluon_tcgen05_two_ctas(a, b, c):
    """One product by the tensor cores of two CTAs together."""
    m = gl.arange(0, 256, gl.SliceLayout(1, PAIR_LEFT))[:, None]
    k = gl.arange(0, 64, gl.SliceLayout(0, PAIR_LEFT))[None, :]
    a_tile = gl.allocate_shared_memory(gl.float16, [256, 64], PAIR_A, gl.load(a + m * 64 + k))
    k = gl.arange(0, 64, gl.SliceLayout(1, PAIR_RIGHT))[:, None]
    n = gl.arange(0, 128, gl.SliceLayout(0, PAIR_RIGHT))[None, :]
    b_tile = gl.allocate_shared_memory(gl.float16, [64, 128], PAIR_B, gl.load(b + k * 128 + n))
    fence_async_shared(cluster=True)
    total = allocate_tensor_memory(gl.float32, [256, 128], split_tmem_layout([128, 128], two_ctas=True))
    done = gl.allocate_shared_memory(gl.int64, PAIR_BARRIER_SHAPE, PAIR_BARRIER)
    mbarrier.init(done, count=1)
    tcgen05_mma(a_tile, b_tile, total, use_acc=False, mbarriers=[done])
    mbarrier.wait(done, 0)
    m = gl.arange(0, 256, gl.SliceLayout(1, PAIR_ROWS))[:, None]
    n = gl.arange(0, 128, gl.SliceLayout(0, PAIR_ROWS))[None, :]
    gl.store(c + m * 128 + n, total.load(PAIR_ROWS))


@case(
    {"a": descriptor("fp16", 256, 64, cga_layout=[[1, 0]]), "b": descriptor("fp16", 64, 64, cga_layout=[[0, 0]])},
    archs=ONLY,
    num_ctas=2,
    limits=(since(3, 7, "TMA multicast"),),
)
@gluon.jit
def gluon_tcgen05_multicast(a, b):
    """Each CTA multiplies its own rows with a tile that both receive."""
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    total = allocate_tensor_memory(gl.float32, [256, 64], split_tmem_layout([128, 64]))
    loaded = gl.allocate_shared_memory(gl.int64, PAIR_BARRIER_SHAPE, PAIR_BARRIER)
    done = gl.allocate_shared_memory(gl.int64, PAIR_BARRIER_SHAPE, PAIR_BARRIER)
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=2)
    mbarrier.expect(loaded, 16384 + 8192)
    tma_load(a, [0, 0], loaded, a_tile)
    tma_load(b, [0, 0], loaded, b_tile, multicast=True)
    mbarrier.wait(loaded, 0)
    tcgen05_mma(a_tile, b_tile, total, use_acc=False, multicast=True, mbarriers=[done])
    tcgen05_mma(a_tile, b_tile, total)
    tcgen05_commit(done, pred=gl.program_id(0) > 0, descs=[a_tile, b_tile])
    mbarrier.wait(done, 0)
