"""Copies by the threads and in bulk, and prefetches."""
# covers: ttg.asynchronous
# RUN: tlx compile %s:copies --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def copies(ptr, desc, n):
    bars = tlx.alloc_barriers(1)
    bufs = tlx.local_alloc((64,), tl.float16, 2)
    offsets = tl.arange(0, 64)
    # CHECK: [[ALL:%.*]] = ttg.async_copy_global_to_local %{{.*}}, %{{.*}} : tensor<64x!tt.ptr<f16>> -> <64xf16,
    all_of_it = tlx.async_load(ptr + offsets, bufs[0])
    # What is masked out becomes zero.
    # CHECK: [[MASK:%.*]] = arith.cmpi slt, %offsets
    # CHECK: [[SOME:%.*]] = ttg.async_copy_global_to_local %{{.*}}, %{{.*}} mask [[MASK]] other %cst {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>} :
    some = tlx.async_load(ptr + offsets, bufs[1], mask=offsets < n, cache_modifier=".cg", eviction_policy="evict_first")
    # CHECK: [[GROUP:%.*]] = ttg.async_commit_group tokens [[ALL]], [[SOME]]
    group = tlx.async_load_commit_group([all_of_it, some])
    # CHECK: [[DONE:%.*]] = ttg.async_wait [[GROUP]] {num = 0 : i32}
    done = tlx.async_load_wait_group(0, [group])
    # CHECK: ttg.local_load %{{.*}} token [[DONE]] :
    x = tlx.local_load(bufs[0], done)
    # CHECK: tlx.async_bulk_load %ptr, %{{.*}}, %c128, %{{.*}} : !tt.ptr<f16> -> !ttg.memdesc<64xf16, #{{.*}}, #smem, mutable>, !ttg.memdesc<1xi64,
    tlx.async_load(ptr, bufs[0], bulk=True, barrier=bars[0])
    # CHECK: tlx.async_bulk_load %ptr, %{{.*}}, %n, %{{.*}} :
    tlx.async_load(ptr, bufs[0], bulk=True, bulk_size=n, barrier=bars[0])
    # CHECK: tlx.async_bulk_store %{{.*}}, %ptr, %c64 : !ttg.memdesc<64xf16, #{{.*}}, #smem, mutable> -> !tt.ptr<f16>
    tlx.async_store(ptr, bufs[0], 64)
    # CHECK: tlx.prefetch L2 %ptr : !tt.ptr<f16>
    tlx.prefetch(ptr)
    # CHECK: tlx.prefetch L1 %{{.*}} mask %{{.*}} : tensor<64x!tt.ptr<f16>>, tensor<64xi1>
    tlx.prefetch(ptr + offsets, "L1", offsets < n)
    # CHECK: tlx.prefetch_tensormap %desc : !tt.tensordesc<64x64xf16>
    tlx.prefetch(desc, tensormap=True)


TLX_COMPILE = {"copies": {"signature": {"ptr": "*fp16", "desc": "tensordesc<fp16[64, 64]>", "n": "i32"}}}
