// RUN: tlx-opt --split-input-file %s | filecheck %s

// Operations of Meta's Triton are read as what means the same.

#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK-LABEL: tt.func @barriers(
tt.func @barriers(%bars: !ttg.memdesc<2xi64, #b, #smem, mutable>, %i: i32, %p: i1) {
  %threads = arith.constant 128 : i32
  // CHECK: %[[ARRAY:.*]] = ttg.memdesc_reinterpret %bars : !ttg.memdesc<2xi64, {{.*}} -> !ttg.memdesc<2x1xi64,
  // CHECK-NEXT: %bar = ttg.memdesc_index %[[ARRAY]][%i] : !ttg.memdesc<2x1xi64, {{.*}} -> !ttg.memdesc<1xi64,
  %bar = ttg.memdesc_index %bars[%i] : !ttg.memdesc<2xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
  // CHECK-NEXT: %far = tlx.map_to_remote %bar, %i : {{.*}} #tlx.shared_cluster_memory, mutable>
  %far = ttng.map_to_remote_buffer %bar, %i : !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #ttng.shared_cluster_memory, mutable>
  // CHECK-NEXT: tlx.arrive_remote %far, 1, %p
  ttng.arrive_barrier %far, 1, %p : !ttg.memdesc<1xi64, #b, #ttng.shared_cluster_memory, mutable>
  // CHECK-NEXT: tlx.arrive_per_thread %bar
  // CHECK-NEXT: tlx.arrive_per_thread %bar
  ttng.arrive_barrier %bar, 2 {perThread} : !ttg.memdesc<1xi64, #b, #smem, mutable>
  // An arrival of the warps together is upstream's.
  // CHECK-NEXT: ttng.arrive_barrier %bar, 2 :
  ttng.arrive_barrier %bar, 2 : !ttg.memdesc<1xi64, #b, #smem, mutable>
  // CHECK-NEXT: ttng.arrive_barrier %bar, 1 {multicastCTA = 1 : i32}
  ttng.arrive_barrier %bar, 1 {ctaMask = 1 : i32} : !ttg.memdesc<1xi64, #b, #smem, mutable>
  // CHECK-NEXT: tlx.named_barrier_wait %i, 128
  ttng.wait_barrier_named %i, %threads : i32, i32
  tt.return
}

// -----

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK-LABEL: tt.func @stores(
tt.func @stores(%d: !tt.tensordesc<64x64xf16, #s>, %x: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #b, #smem, mutable>, %i: i32, %p: i1, %g: !tt.ptr<f16>) {
  // CHECK-NEXT: ttng.async_tma_copy_local_to_global %d[%i, %i] %x
  %t = ttng.async_tma_copy_local_to_global %d[%i, %i] %x : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> !ttg.async.token
  // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  // CHECK-NEXT: ttng.arrive_barrier %bar, 1, %p
  ttng.async_tma_store_token_wait %t, %bar[%p] : !ttg.async.token, !ttg.memdesc<1xi64, #b, #smem, mutable>
  // A token that a branch gives on is a value that no wait takes.
  // CHECK-NEXT: ttng.async_tma_reduce add, %d[%i, %i] %x
  // CHECK-NEXT: %u = ub.poison : !ttg.async.token
  %u = ttng.async_tma_reduce add, %d[%i, %i] %x : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> !ttg.async.token
  %v = scf.if %p -> (!ttg.async.token) {
    scf.yield %u : !ttg.async.token
  } else {
    scf.yield %u : !ttg.async.token
  }
  // CHECK: tlx.async_bulk_store %x, %g, %i : !ttg.memdesc<64x64xf16, {{.*}} -> !tt.ptr<f16>
  ttng.async_store %x, %g, %i : !ttg.memdesc<64x64xf16, #s, #smem, mutable>, !tt.ptr<f16>
  // CHECK: %[[THERE:.*]] = tlx.map_to_remote %x, %i
  // CHECK: %[[BAR:.*]] = tlx.map_to_remote %bar, %i
  // CHECK: tlx.async_remote_copy %x, %[[THERE]], %[[BAR]]
  ttg.async_remote_shmem_copy %x, rank %i, %x barrier %bar : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable> barrier_ty !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}

// -----

#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK-LABEL: tt.func @launch_control(
tt.func @launch_control(%bar: !ttg.memdesc<1xi64, #b, #smem, mutable>, %r: !ttg.memdesc<1xui128, #b, #smem, mutable>) {
  // CHECK: tlx.clc_try_cancel %{{.*}}, %bar, %{{.*}} : !ttg.memdesc<2xi64,
  ttng.async_clc_try_cancel %bar, %r : !ttg.memdesc<1xi64, #b, #smem, mutable>, !ttg.memdesc<1xui128, #b, #smem, mutable>
  // CHECK: %[[RESPONSE:.*]] = ttng.clc_load_result
  // CHECK: %[[BRINGS:.*]] = ttng.clc_is_canceled %[[RESPONSE]]
  // CHECK: %[[X:.*]] = ttng.clc_get_program_id %[[RESPONSE]], x
  // CHECK: arith.select %[[BRINGS]], %[[X]], %{{.*}} : i32
  %at:3 = ttng.clc_query_cancel %r : (!ttg.memdesc<1xui128, #b, #smem, mutable>) -> (i32, i32, i32)
  tt.return
}
