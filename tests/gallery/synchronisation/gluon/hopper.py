"""Gluon for Hopper: TMA, mbarriers, wgmma, warp specialisation, clusters."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from tests.gallery.cases import BLACKWELL, HOPPER, case, since, until
from tests.gallery.synchronisation.gluon.names import tma_load, tma_store

BOTH = (HOPPER, BLACKWELL)


def descriptor(dtype: str, rows: int, columns: int, swizzle: int = 128, bits: int = 16, **layout) -> str:
    """The type of a descriptor that the host makes."""
    shared = gl.NVMMASharedLayout(swizzle, bits, rank=2, **layout)
    return f"tensordesc<{dtype}[{rows}, {columns}],{shared!r}>"


@case({"source": descriptor("fp16", 64, 64), "target": descriptor("fp16", 64, 64)}, archs=BOTH)
@gluon.jit
def gluon_tma_copy(source, target):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    buffer = gl.allocate_shared_memory(source.dtype, source.block_type.shape, source.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    row = gl.program_id(0) * 64
    mbarrier.expect(full, source.block_type.nbytes)
    tma_load(source, [row, 0], full, buffer)
    mbarrier.wait(full, phase=0, deps=[buffer])
    buffer.store(buffer.load(layout) + 1.0)
    fence_async_shared()
    tma_store(target, [row, 0], buffer)
    tma.store_wait(0)
    mbarrier.invalidate(full)


@case({"x": "*fp32:16", "out": "*fp32:16", "rows": "i32", "columns": "i32:16"}, archs=BOTH)
@gluon.jit
def gluon_device_descriptors(x, out, rows, columns):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([32, 32], gl.float32)
    source = tma.make_tensor_descriptor(x, [rows, columns], [columns, 1], [32, 32], shared)
    target = tma.make_tensor_descriptor(out, [rows, columns], [columns, 1], [32, 32], shared)
    buffers = gl.allocate_shared_memory(gl.float32, [2, 32, 32], shared)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared(cluster=False)
    for step in range(0, columns, 32):
        stage = step // 32 % 2
        phase = step // 64 & 1
        mbarrier.expect(full.index(stage), 4096, pred=step >= 0)
        tma_load(source, [0, step], full.index(stage), buffers.index(stage), pred=step < columns)
        mbarrier.wait(full.index(stage), phase, pred=step < columns)
        tma_store(target, [0, step], buffers.index(stage))
        tma.store_wait(pendings=1)
    tma.store_wait(pendings=0)


@case(
    {"a": descriptor("fp16", 128, 64), "b": descriptor("fp16", 64, 128), "c": descriptor("fp16", 128, 128), "K": "i32"},
    num_warps=4,
)
@gluon.jit
def gluon_wgmma(a, b, c, K):
    """A ring of three stages; the products of one step stay in flight while the next is loaded."""
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    a_ring = gl.allocate_shared_memory(a.dtype, [3, 128, 64], a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [3, 64, 128], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [3, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(3):
        mbarrier.init(full.index(i), count=1)
    m = gl.program_id(0) * 128
    n = gl.program_id(1) * 128
    for k in gl.static_range(2):
        mbarrier.expect(full.index(k), a.block_type.nbytes + b.block_type.nbytes)
        tma_load(a, [m, k * 64], full.index(k), a_ring.index(k))
        tma_load(b, [k * 64, n], full.index(k), b_ring.index(k))
    total = warpgroup_mma_init(gl.zeros([128, 128], gl.float32, mma))
    for k in range(0, gl.cdiv(K, 64)):
        stage = k % 3
        mbarrier.wait(full.index(stage), k // 3 & 1)
        total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
        total = warpgroup_mma(a_ring.index(stage), b_ring.index(stage), total, is_async=True)
        after = (k + 2) % 3
        more = k + 2 < gl.cdiv(K, 64)
        mbarrier.expect(full.index(after), a.block_type.nbytes + b.block_type.nbytes, pred=more)
        tma_load(a, [m, (k + 2) * 64], full.index(after), a_ring.index(after), pred=more)
        tma_load(b, [(k + 2) * 64, n], full.index(after), b_ring.index(after), pred=more)
    total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
    tile = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    tile.store(total.to(c.dtype))
    fence_async_shared()
    tma_store(c, [m, n], tile)
    tma.store_wait(0)


@case({"x": "*bf16:16", "y": "*fp8e4nv:16", "out": "*fp32:16", "use": "i1"}, num_warps=8)
@gluon.jit
def gluon_wgmma_operands(x, y, out, use):
    """The left operand in registers, a transposed right one, fp8, and a first product that ignores the accumulator."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [8, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, 64, 16])
    mma8: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 2], [16, 32, 32])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    row = gl.arange(0, 128, gl.SliceLayout(1, layout))[:, None]
    column = gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
    tile = gl.load(x + row * 64 + column)
    fp8 = gl.load(y + row * 64 + column)
    shared = gl.allocate_shared_memory(gl.bfloat16, [128, 64], gl.NVMMASharedLayout(128, 16, rank=2), tile)
    shared8 = gl.allocate_shared_memory(gl.float8e4nv, [128, 64], gl.NVMMASharedLayout(64, 8, rank=2), fp8)
    fence_async_shared()
    b = shared.slice(0, 64).permute((1, 0))
    total = warpgroup_mma(gl.convert_layout(tile, left), b, gl.zeros([128, 64], gl.float32, mma), use_acc=use)
    eight = warpgroup_mma(
        shared8,
        shared8.slice(0, 64).permute((1, 0)),
        gl.zeros([128, 64], gl.float32, mma8),
        use_acc=False,
        max_num_imprecise_acc=32,
        is_async=True,
    )
    eight, _ = warpgroup_mma_wait(0, deps=(eight, shared8))
    at = gl.arange(0, 128, gl.SliceLayout(1, mma))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, mma))[None, :]
    gl.store(out + at, total + gl.convert_layout(eight, mma))


@gluon.jit
def _load_tiles(a, b, a_ring, b_ring, full, empty, K):
    for k in range(0, gl.cdiv(K, 64)):
        stage = k % 2
        mbarrier.wait(empty.index(stage), (k // 2 & 1) ^ 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma_load(a, [gl.program_id(0) * 64, k * 64], full.index(stage), a_ring.index(stage))
        tma_load(b, [gl.program_id(1) * 128, k * 64], full.index(stage), b_ring.index(stage))


@gluon.jit
def _multiply_tiles(out, a_ring, b_ring, full, empty, K):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    total = gl.zeros([64, 128], gl.float32, mma)
    for k in range(0, gl.cdiv(K, 64)):
        stage = k % 2
        mbarrier.wait(full.index(stage), k // 2 & 1)
        total = warpgroup_mma(a_ring.index(stage), b_ring.index(stage).permute((1, 0)), total)
        mbarrier.arrive(empty.index(stage), count=1)
    at = gl.arange(0, 64, gl.SliceLayout(1, mma))[:, None] * 128 + gl.arange(0, 128, gl.SliceLayout(0, mma))[None, :]
    gl.store(out + at, total)


@case({"a": descriptor("fp16", 64, 64), "b": descriptor("fp16", 128, 64), "out": "*fp32:16", "K": "i32"})
@gluon.jit
def gluon_warp_specialized(a, b, out, K):
    """One warp loads, the default warps multiply."""
    a_ring = gl.allocate_shared_memory(a.dtype, [2, 64, 64], a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [2, 128, 64], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (_multiply_tiles, (out, a_ring, b_ring, full, empty, K)),
            (_load_tiles, (a, b, a_ring, b_ring, full, empty, K)),
        ],
        [1],
        [24],
    )


@gluon.jit
def _default_task(x, scale):
    return x * scale, scale + 1.0


@gluon.jit
def _first_worker(out, ready):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [2], [0])
    mbarrier.wait(ready, 0)
    gl.store(out + gl.arange(0, 64, layout), 1.0)


@gluon.jit
def _second_worker(out, ready, n):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    for i in range(n):
        gl.store(out + i * 32 + gl.arange(0, 32, layout), 2.0)
    mbarrier.arrive(ready, count=1, pred=n > 0)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"}, archs=BOTH)
@gluon.jit
def gluon_warp_specialized_results(x, out, n):
    """The default partition takes and returns tensors; the workers have two warps and one."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    index = gl.arange(0, 128, layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    a, b = gl.warp_specialize(
        [
            (_default_task, (gl.load(x + index), 2.0)),
            (_first_worker, (out, ready)),
            (_second_worker, (out, ready, n)),
        ],
        [2, 1],
        [24, 40],
    )
    gl.store(out + index, a + b)


@gluon.jit
def _idle():
    pass


@case({"x": "*fp32:16"}, archs=BOTH, limits=(since(3, 7, "partitions without a number of registers"),))
@gluon.jit
def gluon_warp_specialized_without_captures(x):
    gl.warp_specialize([(_idle, ()), (_idle, ())], [4])
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.store(x + gl.arange(0, 128, layout), 0.0)


@case(
    {"x": descriptor("fp32", 32, 32, bits=32), "out": descriptor("fp32", 32, 32, bits=32)}
    | {"count": descriptor("i32", 32, 32, bits=32)},
    archs=BOTH,
    limits=(since(3, 8, "TMA reductions in Gluon"),),
)
@gluon.jit
def gluon_tma_reductions(x, out, count):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    buffer = gl.allocate_shared_memory(gl.float32, [32, 32], x.layout, gl.full([32, 32], 1.0, gl.float32, layout))
    words = gl.allocate_shared_memory(gl.int32, [32, 32], x.layout, gl.full([32, 32], 1, gl.int32, layout))
    fence_async_shared()
    tma.async_atomic_add(out, [0, 0], buffer)
    tma.async_atomic_max(count, [0, 0], words)
    tma.async_atomic_min(count, [0, 32], words)
    tma.async_atomic_and(count, [32, 0], words)
    tma.async_atomic_or(count, [32, 32], words)
    tma.async_atomic_xor(count, [64, 0], words)
    tma.store_wait(0, read_only=False)


@case(
    {"x": "tensordesc_im2col<fp16[64, 64],input_rank=4,NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16)>"}
    | {"out": "*fp16:16"},
    archs=BOTH,
    limits=(since(3, 8, "im2col descriptors"),),
)
@gluon.jit
def gluon_im2col(x, out):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    buffer = gl.allocate_shared_memory(gl.float16, [64, 64], x.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    mbarrier.expect(full, 8192)
    tma.async_load_im2col(x, [0, 1, 2, 0], [1, 2], full, buffer)
    mbarrier.wait(full, 0)
    at = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None] * 64
    at += gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
    gl.store(out + at, buffer.load(layout))


@case(
    {"source": descriptor("fp16", 64, 64), "target": descriptor("fp16", 64, 64), "x": "*fp32:16"},
    archs=BOTH,
    limits=(since(3, 9, "cache policies"),),
)
@gluon.jit
def gluon_cache_policies(source, target, x):
    keep: gl.constexpr = hopper.CachePolicy(l2=hopper.FractionalEvictionPolicy("evict_last", 0.5, "evict_first"))
    once: gl.constexpr = hopper.CachePolicy(l1="no_allocate", l2_prefetch_size=128)
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    buffer = gl.allocate_shared_memory(source.dtype, source.block_type.shape, source.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    mbarrier.expect(full, 8192)
    tma.async_load(source, [0, 0], full, buffer, cache_policy=keep)
    mbarrier.wait(full, 0)
    tma.async_store(
        target, [0, 0], buffer, cache_policy=hopper.CachePolicy(l2=hopper.FractionalEvictionPolicy("evict_first", 1.0))
    )
    tma.store_wait(0)
    index = gl.arange(0, 128, layout)
    a = gl.load(x + index, cache_policy=once)
    gl.store(x + index, a, cache_policy=hopper.CachePolicy(cache_modifier="cs"))


# Before Triton 3.9, not all that is made of layouts of several CTAs works if they are made inside of a kernel.
SPLIT_ROW = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]]))
SPLIT = gl.constexpr(gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]]))
WHOLE = gl.constexpr(gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 0]]))
SPLIT_TILE = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]]))
SPLIT_SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [1, 0], cga_layout=[[1, 0]]))
SPLIT_SHARED_ROW = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0], cga_layout=[[1]]))
SPLIT_BARRIER = gl.constexpr(mbarrier.MBarrierLayout(cga_layout=[[1]]))


@case({"x": "*fp32:16", "out": "*fp32:16"}, archs=BOTH, num_ctas=2)
@gluon.jit
def gluon_two_ctas(x, out):
    """A tensor whose halves are in the two CTAs of a cluster, and one that both have in full."""
    rows = gl.arange(0, 64, gl.SliceLayout(1, SPLIT))[:, None]
    columns = gl.arange(0, 32, gl.SliceLayout(0, SPLIT))[None, :]
    tile = gl.load(x + rows * 32 + columns)
    buffer = gl.allocate_shared_memory(gl.float32, [64, 32], SPLIT_SHARED, tile)
    again = gl.convert_layout(buffer.load(SPLIT), WHOLE)
    gl.store(out + rows * 32 + columns, gl.convert_layout(again, SPLIT) + gl.sum(tile, axis=1)[:, None])


@case(
    {"x": "*fp32:16"},
    archs=BOTH,
    num_ctas=2,
    limits=(since(3, 7, "arriving at a cluster barrier"), until(3, 9, "arriving at a cluster barrier")),
)
@gluon.jit
def gluon_cluster_arrive_and_wait(x):
    index = gl.arange(0, 256, SPLIT_ROW)
    hopper.cluster.arrive(relaxed=True)
    a = gl.load(x + index)
    hopper.cluster.wait()
    gl.store(x + index, a)
    mbarrier.fence_init_release_cluster()
    hopper.cluster.arrive()
    hopper.cluster.wait()


@case({"x": "*fp32:16"}, archs=BOTH, num_ctas=2, limits=(since(3, 8, "barriers of a cluster"),))
@gluon.jit
def gluon_cluster_barrier(x):
    index = gl.arange(0, 256, SPLIT_ROW)
    a = gl.load(x + index)
    hopper.cluster.barrier()
    gl.store(x + index, a)
    hopper.cluster.barrier(relaxed=True)
    gl.barrier(cluster=True)


@case(
    {"x": "*fp32:16", "out": "*fp32:16"},
    archs=BOTH,
    num_ctas=2,
    limits=(since(3, 8, "stores into the shared memory of another CTA"),),
)
@gluon.jit
def gluon_store_to_other_cta(x, out):
    index = gl.arange(0, 256, SPLIT_ROW)
    buffer = gl.allocate_shared_memory(gl.float32, [256], SPLIT_SHARED_ROW)
    full = gl.allocate_shared_memory(gl.int64, [2], SPLIT_BARRIER)
    mbarrier.init(full, count=1)
    mbarrier.expect(full, 512)
    hopper.async_store(buffer, gl.load(x + index), full)
    mbarrier.wait(full, 0)
    gl.store(out + index, buffer.load(SPLIT_ROW))


@case(
    {"x": descriptor("fp16", 128, 64, cga_layout=[[1, 0]]), "both": descriptor("fp16", 128, 64, cga_layout=[[0, 0]])}
    | {"out": "*fp16:16"},
    archs=BOTH,
    num_ctas=2,
    limits=(since(3, 7, "TMA multicast"),),
)
@gluon.jit
def gluon_tma_multicast(x, both, out):
    split = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
    whole = gl.allocate_shared_memory(both.dtype, both.block_type.shape, both.layout)
    full = gl.allocate_shared_memory(gl.int64, [2], SPLIT_BARRIER)
    mbarrier.init(full, count=1)
    mbarrier.expect(full, 8192 + 16384)
    tma_load(x, [0, 0], full, split)
    tma_load(both, [0, 0], full, whole, multicast=True)
    mbarrier.wait(full, 0)
    at = gl.arange(0, 128, gl.SliceLayout(1, SPLIT_TILE))[:, None] * 64
    at += gl.arange(0, 64, gl.SliceLayout(0, SPLIT_TILE))[None, :]
    gl.store(out + at, split.load(SPLIT_TILE) + whole.load(SPLIT_TILE))


@case({"x": "*fp32:16"}, archs=BOTH, num_ctas=2, limits=(since(3, 9, "arrivals at the barrier of another CTA"),))
@gluon.jit
def gluon_arrive_from_other_cta(x):
    ready = gl.allocate_shared_memory(gl.int64, [2], SPLIT_BARRIER)
    mbarrier.init(ready, count=2)
    mbarrier.expect(ready, 0, from_cta=0)
    mbarrier.arrive(ready, count=1, from_cta=0)
    mbarrier.arrive(ready, count=1, from_cta=1)
    mbarrier.wait(ready, 0)
    gl.store(x + gl.arange(0, 256, SPLIT_ROW), 1.0)
