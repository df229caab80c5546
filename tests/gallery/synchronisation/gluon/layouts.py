"""Gluon: layouts of tensors and of shared memory, views, and what needs no tensor cores."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mbarrier, mma_v2

from tests.gallery.cases import BLACKWELL, HOPPER, case, since
from tests.gallery.synchronisation.gluon.names import barrier, copy_async, reinterpret

BOTH = (HOPPER, BLACKWELL)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 1024}, archs=BOTH)
@gluon.jit
def gluon_vector_scale(x, out, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    index = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    inside = index < n
    gl.store(out + index, gl.load(x + index, mask=inside, other=0.0) * 2, mask=inside)


@case({"x": "*fp16:16", "out": "*fp16:16", "M": 64, "N": 128})
@gluon.jit
def gluon_shared_memory_views(x, out, M: gl.constexpr, N: gl.constexpr):
    """Slices, transposes, reshapes, indices and reinterpretations of shared memory of several layouts."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])
    turned: gl.constexpr = gl.BlockedLayout([8, 1], [16, 2], [1, 4], [0, 1])
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    at = rows[:, None] * N + columns[None, :]
    tile = gl.load(x + at)
    ring = gl.allocate_shared_memory(gl.float16, [3, M, N], swizzled)
    for i in gl.static_range(3):
        ring.index(i).store(tile)
    barrier()
    one = ring.index(1)
    half = one.slice(32, 32, dim=0).slice(0, 64, dim=1)
    half.store(gl.convert_layout(gl.full([32, 64], 0.5, gl.float16, layout), layout))
    flipped = one.permute((1, 0)).load(turned)
    again = gl.permute(flipped, (1, 0))
    fixed = gl.allocate_shared_memory(gl.float16, [M, N], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), tile)
    words = fixed.reshape((2 * M, N // 2)).load(layout)
    bits = reinterpret(fixed, gl.int16, [M, N], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])).load(layout)
    gl.store(out + at, gl.convert_layout(again, layout) + bits.to(gl.float16))
    rows_2 = gl.arange(0, 2 * M, gl.SliceLayout(1, layout))
    columns_2 = gl.arange(0, N // 2, gl.SliceLayout(0, layout))
    gl.store(out + rows_2[:, None] * (N // 2) + columns_2[None, :], words)
    fixed._keep_alive()


@case({"x": "*fp32:16", "out": "*fp32:16", "M": 32, "N": 64}, archs=BOTH)
@gluon.jit
def gluon_padded_and_linear_layouts(x, out, M: gl.constexpr, N: gl.constexpr):
    linear: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [8, 0], [16, 0]],
        lane_bases=[[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]],
        warp_bases=[[2, 0], [4, 0]],
        block_bases=[],
        shape=[M, N],
    )
    padded: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 4]], [M, N], [1, 0])
    twice: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[32, 4], [128, 8]], [M, N], [0, 1])
    shared: gl.constexpr = gl.SharedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]], alignment=128
    )
    rows = gl.arange(0, M, gl.SliceLayout(1, linear))
    columns = gl.arange(0, N, gl.SliceLayout(0, linear))
    at = rows[:, None] * N + columns[None, :]
    tile = gl.load(x + at)
    a = gl.allocate_shared_memory(gl.float32, [M, N], padded, tile)
    b = gl.allocate_shared_memory(gl.float32, [M, N], twice, tile)
    c = gl.allocate_shared_memory(gl.float32, [M, N], shared)
    c.store(a.load(linear) + b.load(linear))
    gl.store(out + at, c.load(linear))


@case({"x": "*fp32:16", "out": "*fp32:16", "M": 32, "N": 64}, limits=(since(3, 8, "generic linear layouts"),))
@gluon.jit
def gluon_generic_linear_layout(x, out, M: gl.constexpr, N: gl.constexpr):
    """A layout whose warps move along two dimensions at once."""
    layout: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [8, 0], [16, 0]],
        lane_bases=[[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]],
        warp_bases=[[2, 4], [4, 8]],
        block_bases=[],
        shape=[M, N],
    )
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None]
    at = rows * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    gl.store(out + at, gl.load(x + at))


@case({"x": "*fp32:16", "out": "*fp32:16", "M": 32, "N": 64})
@gluon.jit
def gluon_inferred_layouts(x, out, M: gl.constexpr, N: gl.constexpr):
    rows = gl.arange(0, M, gl.AutoLayout())[:, None]
    columns = gl.arange(0, N, gl.AutoLayout())[None, :]
    at = gl.set_auto_layout(rows * N + columns, gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0]))
    gl.store(out + at, gl.load(x + at))
    index = gl.arange(0, M * N, gl.CoalescedLayout())
    gl.store(out + index, gl.load(x + index, mask=index < 100))


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16", "M": 32, "N": 32})
@gluon.jit
def gluon_shape_operations(x, i, out, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    at = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    tile = gl.load(x + at)
    pair = gl.join(tile, tile * 2)
    first, second = gl.split(pair)
    order = gl.load(i + at)
    picked = gl.gather(first, order, axis=1)
    total = gl.sum(picked, axis=1)
    top = gl.max(gl.convert_layout(second, layout), axis=0)
    row: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    spread = gl.convert_layout(total, row) + gl.convert_layout(top, row)
    gl.store(out + gl.arange(0, M, row), spread)
    bins = gl.histogram(gl.convert_layout(gl.reshape(order, [M * N]), row), 64, layout=row)
    gl.atomic_add(out + gl.arange(0, 64, row), bins.to(gl.float32))


@gluon.jit
def _add(a, b):
    return a + b


@case({"x": "*fp32:16", "out": "*fp32:16", "N": 128})
@gluon.jit
def gluon_scans_and_calls(x, out, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    index = gl.arange(0, N, layout)
    a = gl.load(x + index, cache_modifier=".cg", eviction_policy="evict_first")
    total = gl.associative_scan(a, 0, _add, reverse=True) + gl.reduce(a, 0, _add)
    if gl.program_id(0) > 3:
        total = gl.where(total > 0, total, gl.exp(a))
    gl.assume(gl.program_id(0) < 1000)
    gl.device_assert(total == total, "not a number")
    gl.device_print("total", total)
    gl.store(out + index, total, cache_modifier=".wt")


@case({"a": "*fp16:16", "b": "*fp16:16", "c": "*fp32:16", "K": "i32"}, archs=BOTH)
@gluon.jit
def gluon_mma_v2(a, b, c, K):
    """Tensor cores as on Ampere: a ring of two stages filled by cp.async."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    m = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None]
    k = gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
    a_ring = gl.allocate_shared_memory(gl.float16, [2, 64, 32], shared)
    b_ring = gl.allocate_shared_memory(gl.float16, [2, 64, 32], shared)
    total = gl.zeros([64, 64], gl.float32, mma)
    copy_async(a_ring.index(0), a + m * K + k)
    copy_async(b_ring.index(0), b + m * K + k, mask=k < K, cache_modifier=".cg", eviction_policy="evict_last")
    async_copy.commit_group()
    for start in range(32, K, 32):
        stage = start // 32 % 2
        copy_async(a_ring.index(stage), a + m * K + k + start)
        copy_async(b_ring.index(stage), b + m * K + k + start, mask=k + start < K)
        async_copy.commit_group()
        async_copy.wait_group(1)
        barrier()
        x = a_ring.index(stage ^ 1).load(left)
        y = b_ring.index(stage ^ 1).permute((1, 0)).load(right)
        total = mma_v2(x, y, total, input_precision="tf32")
    async_copy.wait_group(0)
    rows = gl.arange(0, 64, gl.SliceLayout(1, mma))[:, None]
    columns = gl.arange(0, 64, gl.SliceLayout(0, mma))[None, :]
    gl.store(c + rows * 64 + columns, total)


@case({"x": "*fp32:16", "out": "*fp32:16"})
@gluon.jit
def gluon_async_copy_barrier(x, out):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    index = gl.arange(0, 512, layout)
    buffer = gl.allocate_shared_memory(gl.float32, [512], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=128)
    copy_async(buffer, x + index)
    async_copy.mbarrier_arrive(full)
    async_copy.mbarrier_arrive(full, increment_count=False)
    mbarrier.arrive(full)
    mbarrier.wait(full, 0)
    gl.store(out + index, buffer.load(layout))
    mbarrier.invalidate(full)


@case({"a": "*u8:16", "b": "*fp32:16", "c": "*fp32:16"})
@gluon.jit
def gluon_fma_and_fp4(a, b, c):
    packed: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    m = gl.arange(0, 16, gl.SliceLayout(1, packed))[:, None]
    n = gl.arange(0, 32, gl.SliceLayout(0, packed))[None, :]
    wide = gl.fp4_to_fp(gl.load(a + m * 32 + n), gl.bfloat16, axis=1)
    layout: gl.constexpr = gl.BlockedLayout([2, 2], [4, 8], [2, 2], [1, 0])
    left: gl.constexpr = gl.DotOperandLayout(0, layout, 0)
    right: gl.constexpr = gl.DotOperandLayout(1, layout, 0)
    x = gl.convert_layout(wide.to(gl.float32), left)
    k = gl.arange(0, 64, gl.SliceLayout(1, right))[:, None]
    j = gl.arange(0, 16, gl.SliceLayout(0, right))[None, :]
    total = gl.dot_fma(x, gl.load(b + k * 16 + j), gl.zeros([16, 16], gl.float32, layout))
    rows = gl.arange(0, 16, gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, 16, gl.SliceLayout(0, layout))[None, :]
    gl.store(c + rows * 16 + columns, total)


@case(
    {"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16"},
    limits=(since(3, 7, "gather and scatter of shared memory"),),
)
@gluon.jit
def gluon_shared_gather_and_scatter(x, i, out):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    at = gl.arange(0, 32, gl.SliceLayout(1, layout))[:, None] * 32
    at += gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
    index = gl.load(i + at)
    buffer = gl.allocate_shared_memory(gl.float32, [32, 32], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    buffer.store(gl.load(x + at))
    a = buffer.gather(index, axis=0)
    buffer.scatter(a * 2, index, axis=1)
    gl.store(out + at, buffer.load(layout))


@case(
    {"x": "*i32:16", "i": "*i32:16", "out": "*i32:16", "f": "*fp32:16"},
    limits=(since(3, 8, "atomic scatter into shared memory"),),
)
@gluon.jit
def gluon_shared_atomics(x, i, out, f):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    index = gl.arange(0, 128, layout)
    target = gl.load(i + index)
    values = gl.load(x + index)
    counts = gl.allocate_shared_memory(gl.int32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    counts.store(values)
    old = counts.atomic_scatter_add(values, target, axis=0)
    old += counts.atomic_scatter_max(values, target, axis=0, mask=index < 100)
    old += counts.atomic_scatter_min(values, target, axis=0) + counts.atomic_scatter_and(values, target, axis=0)
    old += counts.atomic_scatter_or(values, target, axis=0) + counts.atomic_scatter_xor(values, target, axis=0)
    counts.atomic_scatter_xchg(old, target, axis=0)
    sums = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    sums.store(gl.load(f + index))
    sums.atomic_scatter_add(values.to(gl.float32), target, axis=0)
    gl.store(out + index, counts.load(layout))
    gl.store(f + index, sums.load(layout))


@case({"x": "*fp32:16", "out": "*fp32:16"}, limits=(since(3, 9, "assembly for a whole thread"),))
@gluon.jit
def gluon_thread_assembly(x, out):
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    index = gl.arange(0, 256, layout)
    a = gl.load(x + index)
    b = gl.inline_asm("add.f32 $0, $2, $4; add.f32 $1, $3, $4;", "=f,=f,f,f,f", [a, 2.0], a.type, is_pure=True)
    buffer = gl.allocate_shared_memory(gl.float32, [256], gl.SwizzledSharedLayout(1, 1, 1, [0]), a)
    first = gl.inline_asm("ld.shared.f32 $0, [$1];", "=f,r", [buffer], gl.float32)
    gl.inline_asm("bar.sync 0;")
    gl.store(out + index, b + first)
