// RUN: tlx-opt %s -p 'tlx-ws-stage-stores{alias=true}' --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// The block is staged where the ring was. Both copies of the task meet before that.

// CHECK-LABEL: @after_the_ring
// CHECK:         [[STORAGE:%.*]] = tlx.storage_alias_spec storage = smem
// CHECK-NEXT:    [[RING:%.*]] = tlx.storage_alias_local_alloc [[STORAGE]] {{.*}} -> !ttg.memdesc<2x64x64xf16,
// CHECK:         [[STAGING:%.*]] = tlx.storage_alias_local_alloc [[STORAGE]] {{.*}} -> !ttg.memdesc<2x64x64xf16,
// CHECK-NEXT:    [[MEET:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64
// CHECK:         ttng.init_barrier %{{.*}}, 2
// CHECK-NEXT:    [[A:%.*]] = tlx.reuse_group([[RING]]) group_kind = shared, group_size = 2
// CHECK-NEXT:    [[B:%.*]] = tlx.reuse_group([[STAGING]]) group_kind = shared, group_size = 2
// CHECK-NEXT:    [[C:%.*]] = tlx.reuse_group([[A]], [[B]]) group_kind = shared
// CHECK-NEXT:    tlx.set_buffer_overlap([[STORAGE]], [[C]])
// CHECK:         partition0
// CHECK:           [[VALUE:%.*]] = ttg.local_load
// CHECK:           ttng.arrive_barrier %{{.*}}, 1 :
// CHECK:           ttng.arrive_barrier [[M:%.*]], 1 {tlx.note =
// CHECK:           ttng.wait_barrier
// CHECK:           ttg.local_store [[VALUE]]
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @after_the_ring(%a: !tt.tensordesc<64x64xf16>, %c: !tt.tensordesc<64x64xf16>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>
    %0 = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.init_barrier %0, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>
    %1 = ttg.memdesc_index %empty[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.init_barrier %1, 2 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttg.warp_specialize(%ring, %full, %empty, %c) attributes {tlx.replicas = array<i32: 2>}
    default {
      %e = ttg.memdesc_index %empty[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.wait_barrier %e, %c1, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      %f = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.barrier_expect %f, 8192, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      %b = ttg.memdesc_index %ring[%c0] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_global_to_local %a[%c0, %c0] %b, %f, %true : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%r: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %full0: !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, %empty0: !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, %d: !tt.tensordesc<64x64xf16>) num_warps(4) {
      %n = tlx.replica_id
      %i = arith.constant 0 : i32
      %yes = arith.constant true
      %f = ttg.memdesc_index %full0[%i] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.wait_barrier %f, %i, %yes : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      %b = ttg.memdesc_index %r[%i] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %value = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16>
      %e = ttg.memdesc_index %empty0[%i] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.arrive_barrier %e, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      tt.descriptor_store %d[%n, %i], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      ttg.warp_return
    } : (!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, !tt.tensordesc<64x64xf16>) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// The task waits for the ring after the store: the staging buffer has memory of its own.

// CHECK-LABEL: @before_the_ring
// CHECK-NOT:     tlx.storage_alias_spec
// CHECK:         ttng.async_tma_copy_local_to_global
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @before_the_ring(%a: !tt.tensordesc<64x64xf16>, %c: !tt.tensordesc<64x64xf16>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>
    %0 = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.init_barrier %0, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttg.warp_specialize(%ring, %full, %c)
    default {
      %f = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.barrier_expect %f, 8192, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      %b = ttg.memdesc_index %ring[%c0] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_global_to_local %a[%c0, %c0] %b, %f, %true : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%r: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %full0: !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, %d: !tt.tensordesc<64x64xf16>) num_warps(4) {
      %i = arith.constant 0 : i32
      %yes = arith.constant true
      %zero = arith.constant dense<0.0> : tensor<64x64xf16>
      tt.descriptor_store %d[%i, %i], %zero : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      %f = ttg.memdesc_index %full0[%i] : !ttg.memdesc<1x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.wait_barrier %f, %i, %yes : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1x1xi64, #shared1, #smem, mutable>, !tt.tensordesc<64x64xf16>) -> ()
    tt.return
  }
}
