"""TMA copies, and tensor descriptors that are made on the device."""
# RUN: tlx compile %s:copies --target sm_100a --emit ttir -o - | filecheck %s --check-prefix=COPIES
# RUN: tlx compile %s:descriptors --emit ttir -o - | filecheck %s --check-prefix=DESC

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def copies(desc, line, n):
    bar = tlx.alloc_barriers(1)[0]
    tile = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    # COPIES: ttng.async_tma_copy_global_to_local %desc[%n, %c0] [[TILE:%.*]], [[BAR:%.*]], %true : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64,
    tlx.async_descriptor_load(desc, tile, [n, 0], bar)
    # COPIES: [[PRED:%.*]] = arith.cmpi sgt
    # COPIES: ttng.async_tma_copy_global_to_local %desc[%n, %c0] [[TILE]], [[BAR]], [[PRED]] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>}
    tlx.async_descriptor_load(desc, tile, [n, 0], bar, n > 0, eviction_policy="evict_last")
    # One copy for the CTAs of rank 0 and 2.
    # COPIES: tlx.async_tma_load %desc[%n, %c0] [[TILE]], [[BAR]], %true multicast %c5 : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64,
    tlx.async_descriptor_load(desc, tile, [n, 0], bar, multicast_targets=[0, 2])
    # COPIES: [[BIT:%.*]] = arith.shli %c1, %n : i32
    # COPIES: [[MASK:%.*]] = arith.ori %c2, [[BIT]] : i32
    # COPIES: tlx.async_tma_load %desc[%n, %c0] [[TILE]], [[BAR]], %true multicast [[MASK]] :
    tlx.async_descriptor_load(desc, tile, [n, 0], bar, multicast_targets=[n, 1])
    # COPIES: tlx.async_tma_load %desc[%n, %c0] [[TILE]], [[BAR]], %true {two_ctas} :
    tlx.async_descriptor_load(desc, tile, [n, 0], bar, two_ctas=True)
    # COPIES: ttng.async_tma_copy_local_to_global %desc[%n, %c0] [[TILE]] :
    tlx.async_descriptor_store(desc, tile, [n, 0])
    # COPIES: ttng.async_tma_reduce add, %desc[%n, %c0] [[TILE]] :
    tlx.async_descriptor_store(desc, tile, [n, 0], store_reduce="add")
    # COPIES: ttng.async_tma_store_wait {pendings = 1 : i32, read_only}
    tlx.async_descriptor_store_wait(1)
    # COPIES: ttng.async_tma_store_wait {pendings = 0 : i32}
    tlx.async_descriptor_store_wait(0, read=False)
    # COPIES: ttng.async_tma_store_wait {pendings = 2 : i32}
    tlx.async_descriptor_store_wait(2, read_only=False)
    # COPIES: %rows = tt.make_range
    rows = tl.arange(0, 64)
    # COPIES: ttng.async_tma_gather %line[%rows, %n] [[TILE]], [[BAR]], %true : !tt.tensordesc<1x64xf16>, tensor<64xi32>,
    tlx.async_descriptor_gather(line, tile, rows, n, bar)
    # COPIES: [[WIDE:%.*]] = arith.extsi %{{.*}} : tensor<64xi16> to tensor<64xi32>
    # COPIES: ttng.async_tma_scatter %line[[[WIDE]], %c0] [[TILE]] : !tt.tensordesc<1x64xf16>, tensor<64xi32>,
    tlx.async_descriptor_scatter(line, tile, rows.to(tl.int16), 0)
    # COPIES: tlx.async_tma_prefetch %desc[%n, %c64], %true : !tt.tensordesc<64x64xf16>
    tlx.async_descriptor_prefetch_tensor(desc, [n, 64])


@tlx_xdsl.jit
def descriptors(ptr, n):
    # DESC: %room = ttg.global_scratch_alloc {nbytes = 256 : i32, alignment = 128 : i32} : !tt.ptr<i8>
    room = tlx.allocate_tensor_descriptor(2)
    # DESC: [[PLACE:%.*]] = tt.addptr %room, %c128 : !tt.ptr<i8>, i32
    # DESC: [[MADE:%.*]] = tlx.make_tensor_descriptor [[PLACE]], %ptr, [%n, %n], [%{{.*}}, %{{.*}}] : <i8>, <f16>, <64x64xf16>
    made = tlx.make_tensor_descriptor(room[1], ptr, [n, n], [n, 1], [64, 64])
    # DESC: tt.make_tensor_descriptor %ptr, [%n, %n], [%{{.*}}, %{{.*}}] {padding = 2 : i32} : <f16>, <64x64xf16>
    other = tlx.make_tensor_descriptor(None, ptr, [n, n], [n, 1], [64, 64], padding_option="nan")
    # DESC: [[PLACE:%.*]] = tt.addptr %room, %{{.*}} : !tt.ptr<i8>, i32
    # DESC: [[FOUND:%.*]] = ttng.reinterpret_tensor_descriptor [[PLACE]] : !tt.ptr<i8> to !tt.tensordesc<64x64xf16>
    found = tlx.reinterpret_tensor_descriptor(room[n], [64, 64], tl.float16)
    bar = tlx.alloc_barriers(1)[0]
    tile = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    # DESC: ttng.async_tma_copy_global_to_local [[FOUND]][%n, %c0]
    tlx.async_descriptor_load(found, tile, [n, 0], bar)
    # DESC: ttng.async_tma_copy_local_to_global [[MADE]][%n, %c0]
    tlx.async_descriptor_store(made, tile, [n, 0])


TLX_COMPILE = {
    "copies": {"signature": {"desc": "tensordesc<fp16[64, 64]>", "line": "tensordesc<fp16[1, 64]>", "n": "i32"}},
    "descriptors": {"signature": {"ptr": "*fp16", "n": "i32"}},
}
