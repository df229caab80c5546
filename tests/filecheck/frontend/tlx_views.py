"""Buffers in shared memory, and views of them."""
# RUN: tlx compile %s:allocations --emit ttir -o - | filecheck %s --check-prefix=ALLOC
# RUN: tlx compile %s:views --emit ttir -o - | filecheck %s --check-prefix=VIEWS
# RUN: tlx compile %s:access --emit ttir -o - | filecheck %s --check-prefix=ACCESS

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def allocations():
    # The widest swizzle that a row fills is the default; a vector has none.
    # ALLOC-DAG: #[[TILE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
    # ALLOC-DAG: #[[VECTOR:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
    # ALLOC-DAG: #[[CUTE:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
    # ALLOC-DAG: #[[PLAIN:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
    # ALLOC-DAG: #[[TURNED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}>
    # ALLOC-DAG: #[[PADDED:.*]] = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [8, 32]}>
    # ALLOC-DAG: #[[LINEAR:.*]] = #ttg.shared_linear<{offset = {{\[\[}}0, 1], [1, 0{{\]\]}}}, alignment = 32>
    # ALLOC: %tile = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, #[[TILE]], #smem, mutable>
    tile = tlx.local_alloc((64, 32), tl.float16, 3)
    # ALLOC: %vector = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #[[VECTOR]], #smem, mutable>
    vector = tlx.local_alloc((64,), tl.float32, 2)
    # ALLOC: %cute = ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16, #tlx.user_layout<#[[CUTE]]>, #smem, mutable>
    cute = tlx.local_alloc((64, 32), tl.float16, 1, layout=tlx.swizzled_layout(2, 3, 3))
    # ALLOC: %plain = ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16, #tlx.user_layout<#[[PLAIN]]>, #smem, mutable>
    plain = tlx.local_alloc((64, 32), tl.float16, 1, layout=tlx.swizzled_shared_layout_encoding.make_default(2))
    # ALLOC: %turned = ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16, #tlx.user_layout<#[[TURNED]]>, #smem, mutable>
    turned = tlx.local_alloc(
        (64, 32),
        tl.float16,
        1,
        layout=tlx.nv_mma_shared_layout_encoding((64, 32), (0, 1), tl.float16, swizzled=False),
    )
    # ALLOC: %padded = ttg.local_alloc : () -> !ttg.memdesc<1x8x32xf32, #tlx.user_layout<#[[PADDED]]>, #smem, mutable>
    padding = tlx.padded_shared_layout_encoding.with_identity_for([(32, 4)], (8, 32), (1, 0))
    padded = tlx.local_alloc((8, 32), tl.float32, 1, layout=padding)
    # ALLOC: %linear = ttg.local_alloc : () -> !ttg.memdesc<1x2x2xf32, #tlx.user_layout<#[[LINEAR]]>, #smem, mutable>
    linear = tlx.local_alloc(
        (2, 2), tl.float32, 1, layout=tlx.shared_linear_layout_encoding([(0, 1), (1, 0)], alignment=32)
    )


@tlx_xdsl.jit
def views(n):
    # VIEWS-DAG: #[[T:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
    # VIEWS-DAG: #[[TURNED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
    # VIEWS-DAG: #[[RANK3:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32, rank = 3}>
    # VIEWS-DAG: #[[HALVES:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
    tiles = tlx.local_alloc((64, 32), tl.float32, 4)
    # VIEWS: [[ONE:%.*]] = ttg.memdesc_index %tiles[%n] : !ttg.memdesc<4x64x32xf32, #[[T]], #smem, mutable> -> !ttg.memdesc<64x32xf32, #[[T]], #smem, mutable>
    one = tiles[n]
    # VIEWS: ttg.memdesc_index %tiles[%c3] :
    same = tlx.local_view(tiles, 3)
    # VIEWS: ttg.memdesc_trans [[ONE]] {order = array<i32: 1, 0>} : {{.*}} -> !ttg.memdesc<32x64xf32, #[[TURNED]], #smem, mutable>
    turned = tlx.local_trans(one)
    # A reshape is a tile again where the hardware finds its elements; else the places are spelled out.
    # VIEWS: ttg.memdesc_reshape [[ONE]] : {{.*}} -> !ttg.memdesc<2x32x32xf32, #[[RANK3]], #smem, mutable>
    parts = tlx.local_reshape(one, (2, 32, 32))
    # VIEWS: ttg.memdesc_reshape [[ONE]] : {{.*}} -> !ttg.memdesc<32x64xf32, #shared{{[0-9]*}}, #smem, mutable>
    wide = tlx.local_reshape(one, (32, 64))
    # VIEWS: ttg.memdesc_reinterpret [[ONE]] : {{.*}} -> !ttg.memdesc<64x64xf16, #[[HALVES]], #smem, mutable>
    halves = tlx.local_reinterpret(one, tl.float16, (64, 64))
    # VIEWS: ttg.memdesc_subslice [[ONE]][32, 0] : {{.*}} -> !ttg.memdesc<32x32xf32, #[[T]], #smem, mutable, 64x32>
    lower = tlx.local_slice(one, (32, 0), (32, 32))
    # VIEWS: tlx.memdesc_dynamic_subslice [[ONE]][%n, %c0] : {{.*}} -> !ttg.memdesc<32x32xf32, #[[T]], #smem, mutable, 64x32>
    some = tlx.local_slice(one, (n, 0), (32, 32))


@tlx_xdsl.jit
def access(n):
    tile = tlx.local_alloc((64, 32), tl.float32, 1)[0]
    # ACCESS: %x = ttg.local_load [[TILE:%.*]] : !ttg.memdesc<64x32xf32, #{{.*}}, #smem, mutable> -> tensor<64x32xf32>
    x = tlx.local_load(tile)
    # ACCESS: [[SUM:%.*]] = arith.addf %x, %x
    # ACCESS: ttg.local_store [[SUM]], [[TILE]] : tensor<64x32xf32> -> !ttg.memdesc<64x32xf32, #{{.*}}, #smem, mutable>
    tlx.local_store(tile, x + x)
    rows = tl.zeros((8, 32), tl.int32)
    # ACCESS: %picked = ttg.local_gather [[TILE]][%{{.*}}] {axis = 0 : i32} : {{.*}}, tensor<8x32xi32> -> tensor<8x32xf32>
    picked = tlx.local_gather(tile, rows, 0)
    # ACCESS: ttg.local_scatter [[TILE]][%{{.*}}], %picked {axis = 0 : i32} :
    tlx.local_scatter(tile, picked, rows, 0)
    # ACCESS: arith.addf %picked, %{{cst.*}}
    y = picked + tlx.zeros((8, 32), tl.float32)


TLX_COMPILE = {"views": {"signature": {"n": "i32"}}, "access": {"signature": {"n": "i32"}}}
