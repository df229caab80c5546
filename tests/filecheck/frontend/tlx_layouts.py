"""Layouts that a kernel asks for, and questions about the layouts that it got."""
# RUN: tlx compile %s:layouts --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def layouts(n):
    # A warp is a column of 32 rows, the four warps follow each other along the rows: thread 33 has row 1, column 1.
    # CHECK-DAG: #[[ROWS:.*]] = #ttg.linear<{register = {{\[\[}}0, 4], [0, 8{{\]\]}}, lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0{{\]\]}}, warp = {{\[\[}}0, 1], [0, 2{{\]\]}}, block = []}>
    # Every thread of a warp has all of its elements.
    # CHECK-DAG: #[[ALIKE:.*]] = #ttg.linear<{register = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0{{\]\]}}, lane = {{\[\[}}0, 0], [0, 0], [0, 0], [0, 0], [0, 0{{\]\]}}, warp = {{\[\[}}0, 1], [0, 2{{\]\]}}, block = []}>
    # CHECK-DAG: #[[BLOCKS:.*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
    # CHECK-DAG: #[[MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>
    # CHECK-DAG: #[[BASES:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2{{\]\]}}, lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0{{\]\]}}, warp = {{\[\[}}8, 0], [16, 0{{\]\]}}, block = []}>
    x = tl.full((32, 16), n, tl.float32)
    rows = tlx.layout(shape=((32, 4), 4), stride=((16, 1), 4))
    # CHECK: [[PINNED:%.*]] = tlx.require_layout %x {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #[[ROWS]]>
    # CHECK: %y = tlx.release_layout [[PINNED]] {pin} : tensor<32x16xf32, #[[ROWS]]> -> tensor<32x16xf32>
    y = tlx.require_layout(x, rows)
    # CHECK: [[HINT:%.*]] = tlx.require_layout %x : tensor<32x16xf32> -> tensor<32x16xf32, #[[ALIKE]]>
    # CHECK: tlx.release_layout [[HINT]] : tensor<32x16xf32, #[[ALIKE]]> -> tensor<32x16xf32>
    hint = tlx.require_layout(x, tlx.layout("((32,4),32):((0,1),16)"), pin=False)
    # CHECK: tlx.dump_layout [[PINNED]] : tensor<32x16xf32, #[[ROWS]]>
    tlx.dump_layout(y)
    # CHECK: tlx.assert_same_layout [[PINNED]], %hint : tensor<32x16xf32, #[[ROWS]]>, tensor<32x16xf32>
    tlx.assert_same_layout(y, hint)
    # CHECK: tlx.assert_same_layout_expected [[PINNED]] {expected = #[[ROWS]]} :
    tlx.assert_same_layout(y, rows)
    # CHECK: tlx.release_layout [[PINNED]] : tensor<32x16xf32, #[[ROWS]]> -> tensor<32x16xf32>
    free = tlx.release_layout(y)
    # What was computed from a pinned layout keeps to it, until it is released.
    # CHECK: [[SUM:%.*]] = arith.addf %y, %y
    # CHECK: [[ANY:%.*]] = tlx.require_layout [[SUM]] : tensor<32x16xf32> -> tensor<32x16xf32, #tlx.dummy_register_layout<32x16xf32, tmem_compatible = false>>
    # CHECK: tlx.release_layout [[ANY]] :
    free_sum = tlx.release_layout(y + y)
    tile = tlx.local_alloc((32, 16), tl.float32, 1)[0]
    # CHECK: [[LOADED:%.*]] = ttg.local_load
    # CHECK: tlx.require_layout [[LOADED]] {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #[[ROWS]]>
    loaded = tlx.local_load(tile, layout=rows)
    # CHECK: tlx.require_layout %cst{{.*}} {pin} :
    zeros = tlx.zeros((32, 16), tl.float32, layout=rows)
    # CHECK: tlx.dump_layout %{{.*}} : !ttg.memdesc<32x16xf32,
    tlx.dump_layout(tile)
    # CHECK: tlx.assert_same_layout_expected %{{.*}} {expected = #{{.*}}} : !ttg.memdesc<32x16xf32,
    tlx.assert_same_layout(tile, tlx.nv_mma_shared_layout_encoding.make_default((32, 16), tl.float32))
    # CHECK: tlx.require_layout %{{.*}} {pin} : !ttg.memdesc<32x16xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<32x16xf32, #{{.*}}, #smem, mutable>
    plain = tlx.require_layout(tile, tlx.swizzled_shared_layout_encoding.make_default(2))
    # CHECK: tlx.require_layout %x {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #[[BLOCKS]]>
    blocked = tlx.require_layout(src=x, layout=tlx.blocked_layout_encoding.make([1, 4], [8, 4], [4, 1], [1, 0]))
    mma = tlx.nv_mma_layout((4, 1), (16, 16, 16))
    # CHECK: tlx.require_layout %x {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #[[MMA]]>
    accumulator = tlx.require_layout(x, mma)
    # CHECK: tlx.require_layout %x {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #ttg.dot_op<{opIdx = 0, parent = #[[MMA]], kWidth = 1}>>
    operand = tlx.require_layout(x, tlx.dot_operand_layout(0, mma))
    # CHECK: tlx.require_layout %x {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #[[BASES]]>
    linear = tlx.require_layout(
        x,
        tlx.distributed_linear_layout_encoding.make(
            reg_bases=[[0, 1], [0, 2]],
            lane_bases=[[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]],
            warp_bases=[[8, 0], [16, 0]],
            block_bases=[],
            shape=[32, 16],
        ),
    )
    # CHECK: tlx.require_layout %{{.*}} {pin} : tensor<32xf32> -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #[[MMA]]}>>
    sums = tlx.require_layout(tl.sum(x, 1), tlx.slice_layout(mma, 1))
    # CHECK: arith.truncf %{{.*}} : tensor<32x16xf32> to tensor<32x16xf16>
    narrow = tlx.cast_preserve_layout(accumulator, tl.float16)
    # CHECK: tlx.require_layout %x{{.*}} {pin} : tensor<32x16xf32> -> tensor<32x16xf32, #tlx.dummy_register_layout<32x16xf32, tmem_compatible = true>>
    like_tmem = tlx.require_layout(x, tlx.DummyRegisterLayoutEncoding((32, 16), tl.float32, tmem_compatible=True))


TLX_COMPILE = {"layouts": {"signature": {"n": "fp32"}}}
