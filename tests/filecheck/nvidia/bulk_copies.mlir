// RUN: tlx-opt %s -p tlx-lower-bulk-copies,tlx-lower-thread-arrivals --split-input-file --verify-diagnostics | filecheck %s

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// One thread copies after what all others have done, and they wait for it after its wait. Between two copies no
// thread accesses memory.

// CHECK-LABEL: @copies
// CHECK:         ttg.barrier local
// CHECK:         nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$2], [$3], $4, [$5]; }" ro(%[[THREAD:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %n, %{{.*}} : i32, i32, i32, i64, i32, i32)
// CHECK-NOT:     ttg.barrier local
// CHECK:         nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p cp.async.bulk.global.shared::cta.bulk_group [$2], [$3], $4; @p cp.async.bulk.commit_group; }"
// CHECK-NEXT:    ttng.async_tma_store_wait
// CHECK-NEXT:    ttg.barrier local
// CHECK-NEXT:    tt.return
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @copies(%p: !tt.ptr<f32>, %t: !ttg.memdesc<64xf32, #flat, #smem, mutable>, %b: !ttg.memdesc<1xi64, #flat, #smem, mutable>, %n: i32) {
    tlx.async_bulk_load %p, %t, %n, %b : !tt.ptr<f32> -> !ttg.memdesc<64xf32, #flat, #smem, mutable>, !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tlx.async_bulk_store %t, %p, %n : !ttg.memdesc<64xf32, #flat, #smem, mutable> -> !tt.ptr<f32>
    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    tt.return
  }
}

// -----

// Without bulk stores, Triton's own waits for reads stay as they are; after one for writes all threads know of them.

// CHECK-LABEL: @waits
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 1 : i32, read_only}
// CHECK-NEXT:    nvvm.inline_ptx "cp.async.bulk.wait_group 2;"
// CHECK-NEXT:    ttg.barrier local
// CHECK-NEXT:    tt.return
builtin.module {
  tt.func public @waits() {
    ttng.async_tma_store_wait {pendings = 1 : i32, read_only}
    ttng.async_tma_store_wait {pendings = 2 : i32}
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Every thread arrives for itself, where a condition holds or always.

// CHECK-LABEL: @arrivals
// CHECK:         nvvm.inline_ptx "mbarrier.arrive.shared::cta.b64 _, [$0];" ro(%{{.*}} : i32)
// CHECK:         nvvm.inline_ptx "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }" ro(%{{.*}}, %{{.*}} : i32, i32)
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @arrivals(%b: !ttg.memdesc<1xi64, #flat, #smem, mutable>, %c: i1) {
    tlx.arrive_per_thread %b : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tlx.arrive_per_thread %b, %c : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#tiles = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>

// A row of 128 f16 is wider than the swizzle, so the tile takes two boxes; coordinates count from the fastest one.

// CHECK-LABEL: @prefetch
// CHECK:         nvvm.inline_ptx "{ {{.*}} @p cp.async.bulk.prefetch.tensor.2d.L2.global.tile [$2, {$3, $4}]; @p cp.async.bulk.prefetch.tensor.2d.L2.global.tile [$2, {$5, $6}]; }"
// CHECK-SAME:    ro(%{{.*}}, %{{.*}}, %{{.*}}, %y, %x, %[[NEXT:.*]], %x
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @prefetch(%d: !tt.tensordesc<64x128xf16, #tiles>, %x: i32, %y: i32, %p: i1) {
    tlx.async_tma_prefetch %d[%x, %y], %p : !tt.tensordesc<64x128xf16, #tiles>
    tt.return
  }
}

// -----

builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @no_layout(%d: !tt.tensordesc<64x128xf16>, %x: i32, %p: i1) {
    // expected-error @+1 {{the boxes of !tt.tensordesc<64x128xf16> are not known: it has no layout}}
    tlx.async_tma_prefetch %d[%x, %x], %p : !tt.tensordesc<64x128xf16>
    tt.return
  }
}
