// RUN: tlx-opt %s -p tlx-lower-to-ptx-with-layouts --split-input-file | filecheck %s --check-prefixes=CHECK,PTX
// RUN: tlx-opt %s -p tlx-lower-to-ptx-with-layouts{native=true} --split-input-file | filecheck %s --check-prefixes=CHECK,NATIVE

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tiles = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Operations of several topics in program order. Between the two copies no thread accesses memory, so there is one
// barrier for both; the arrival of each thread needs none.

// CHECK-LABEL: @topics
// CHECK:         ttg.barrier local
// CHECK:         cp.async.bulk.shared::cluster.global
// CHECK-NOT:     ttg.barrier local
// CHECK:         cp.async.bulk.tensor.2d.shared::cluster.global
// CHECK-NOT:     ttg.barrier local
// CHECK:         nvvm.inline_ptx "mbarrier.arrive.shared::cta.b64 _, [$0];"
// CHECK:         vote.sync.ballot.b32
// CHECK:         ttng.tensormap_create
// CHECK-NEXT:    ttng.tensormap_fenceproxy_acquire %where
// PTX:           clusterlaunchcontrol.try_cancel
// NATIVE:        ttng.clc_try_cancel %r, %b
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @topics(%p: !tt.ptr<f32>, %t: !ttg.memdesc<64xf32, #flat, #smem, mutable>, %b: !ttg.memdesc<1xi64, #flat, #smem, mutable>, %r: !ttg.memdesc<2xi64, #flat, #smem, mutable>, %n: i32, %d: !tt.tensordesc<64x64xf16, #tiles>, %tile: !ttg.memdesc<64x64xf16, #tiles, #smem, mutable>, %mask: i32, %c: i1, %where: !tt.ptr<i8>, %base: !tt.ptr<f16>, %s: i64, %one: i64) {
    tlx.async_bulk_load %p, %t, %n, %b : !tt.ptr<f32> -> !ttg.memdesc<64xf32, #flat, #smem, mutable>, !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tlx.async_tma_load %d[%n, %n] %tile, %b, %c multicast %mask : !tt.tensordesc<64x64xf16, #tiles>, !ttg.memdesc<1xi64, #flat, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tiles, #smem, mutable>
    tlx.arrive_per_thread %b : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    %0 = tlx.vote_ballot %mask, %c : i1 -> i32
    %1 = tlx.make_tensor_descriptor %where, %base, [%n, %n], [%s, %one] : <i8>, <f16>, <64x64xf16, #tiles>
    ttng.clc_try_cancel %r, %b : !ttg.memdesc<2xi64, #flat, #smem, mutable>, !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#tiles = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// A part at a run-time offset stays: later passes may still turn it into an address.

// CHECK-LABEL: @part
// CHECK-NEXT:    tlx.memdesc_dynamic_subslice
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @part(%b: !ttg.memdesc<128x64xf16, #tiles, #smem, mutable>, %i: i32, %j: i32) {
    %p = tlx.memdesc_dynamic_subslice %b[%i, %j] : !ttg.memdesc<128x64xf16, #tiles, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tiles, #smem, mutable, 128x64>
    tt.return
  }
}
