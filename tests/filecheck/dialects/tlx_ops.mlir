// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem = #ttg.shared_memory

// Allocations of one region, and the tree that says which of them overlap.
// CHECK-LABEL: @storage_alias(
tt.func @storage_alias() {
  // CHECK: %spec = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
  %spec = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
  // CHECK: %computed = tlx.storage_alias_spec storage = tmem : !tlx.storage_alias_spec<tmem>
  %computed = tlx.storage_alias_spec storage = tmem : !tlx.storage_alias_spec<tmem>
  // CHECK: %a = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>
  %a = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
  // CHECK: %b = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>
  %b = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
  // CHECK: %pair = tlx.reuse_group(%a) group_kind = distinct, group_size = 2 : (!ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>) -> !tlx.reuse_group<distinct>
  %pair = tlx.reuse_group(%a) group_kind = distinct, group_size = 2 : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<distinct>
  // CHECK: %tree = tlx.reuse_group(%pair, %b) group_kind = shared : (!tlx.reuse_group<distinct>, !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>) -> !tlx.reuse_group<shared>
  %tree = tlx.reuse_group(%pair, %b) group_kind = shared : (!tlx.reuse_group<distinct>, !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<shared>
  // CHECK: tlx.set_buffer_overlap(%spec, %tree) : (!tlx.storage_alias_spec<smem, 65536>, !tlx.reuse_group<shared>) -> ()
  tlx.set_buffer_overlap(%spec, %tree) : (!tlx.storage_alias_spec<smem, 65536>, !tlx.reuse_group<shared>) -> ()
  // CHECK: %view = tlx.local_alias %a : !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<2x32x64xf32, #{{.*}}, #smem, mutable>
  %view = tlx.local_alias %a : !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable>
  tt.return
}

// Layouts that the user asks for, and placeholders for those that a pass will choose.
// CHECK-LABEL: @layouts(
tt.func @layouts(%x: tensor<64x64xf32>, %y: tensor<64x64xf32, #tlx.user_layout<#mma>>) {
  // CHECK: %required = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
  %required = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
  // CHECK: %released = tlx.release_layout %required : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  %released = tlx.release_layout %required : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  // CHECK: %requested = tlx.release_layout %required {pin} : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  %requested = tlx.release_layout %required {pin} : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  // CHECK: tlx.dump_layout %required : tensor<64x64xf32, #mma>
  tlx.dump_layout %required : tensor<64x64xf32, #mma>
  // CHECK: tlx.assert_same_layout %required, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
  tlx.assert_same_layout %required, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
  // CHECK: tlx.assert_same_layout_expected %required {expected = #mma} : tensor<64x64xf32, #mma>
  tlx.assert_same_layout_expected %required {expected = #mma} : tensor<64x64xf32, #mma>
  tt.return
}

#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#cluster = #tlx.shared_cluster_memory

// Named barriers, fences and arrivals of every thread.
// CHECK-LABEL: @synchronisation(
tt.func @synchronisation(%bar: !ttg.memdesc<1xi64, #barrier, #smem, mutable>, %id: i32, %pred: i1) {
  // CHECK: tlx.named_barrier_wait %id, 256
  tlx.named_barrier_wait %id, 256
  // CHECK: tlx.named_barrier_arrive %id, 256
  tlx.named_barrier_arrive %id, 256
  // CHECK: tlx.fence gpu
  tlx.fence gpu
  // CHECK: tlx.fence sys
  tlx.fence sys
  // CHECK: tlx.fence_mbarrier_init_cluster
  tlx.fence_mbarrier_init_cluster
  // CHECK: tlx.arrive_per_thread %bar : !ttg.memdesc<1xi64,
  tlx.arrive_per_thread %bar : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
  // CHECK: tlx.arrive_per_thread %bar, %pred : !ttg.memdesc<1xi64,
  tlx.arrive_per_thread %bar, %pred : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
  tt.return
}

// Another CTA's buffers and barriers.
// CHECK-LABEL: @clusters(
tt.func @clusters(%buf: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #barrier, #smem, mutable>, %x: tensor<64x64xf32>, %pred: i1) {
  // CHECK: %rank = tlx.cluster_cta_rank
  %rank = tlx.cluster_cta_rank
  // CHECK: %size = tlx.cluster_size
  %size = tlx.cluster_size
  // CHECK: %rbuf = tlx.map_to_remote %buf, %rank : !ttg.memdesc<64x64xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf32, #{{.*}}, #tlx.shared_cluster_memory, mutable>
  %rbuf = tlx.map_to_remote %buf, %rank : !ttg.memdesc<64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf32, #shared, #cluster, mutable>
  // CHECK: %rbar = tlx.map_to_remote %bar, %rank :
  %rbar = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #barrier, #smem, mutable> -> !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  // CHECK: tlx.arrive_remote %rbar, 2, %pred : !ttg.memdesc<1xi64, #{{.*}}, #tlx.shared_cluster_memory, mutable>
  tlx.arrive_remote %rbar, 2, %pred : !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  // CHECK: tlx.arrive_remote %rbar, 1, %pred releases shared :
  tlx.arrive_remote %rbar, 1, %pred releases shared : !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  // CHECK: tlx.arrive_remote %rbar, 1 releases cta :
  tlx.arrive_remote %rbar, 1 releases cta : !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  // CHECK: tlx.remote_store %x, %rbuf : tensor<64x64xf32> -> !ttg.memdesc<64x64xf32,
  tlx.remote_store %x, %rbuf : tensor<64x64xf32> -> !ttg.memdesc<64x64xf32, #shared, #cluster, mutable>
  // CHECK: tlx.async_remote_store %x, %rbuf, %rbar : tensor<64x64xf32> -> !ttg.memdesc<64x64xf32,
  tlx.async_remote_store %x, %rbuf, %rbar : tensor<64x64xf32> -> !ttg.memdesc<64x64xf32, #shared, #cluster, mutable>, !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  // CHECK: tlx.async_remote_copy %buf, %rbuf, %rbar : !ttg.memdesc<64x64xf32,
  tlx.async_remote_copy %buf, %rbuf, %rbar : !ttg.memdesc<64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf32, #shared, #cluster, mutable>, !ttg.memdesc<1xi64, #barrier, #cluster, mutable>
  tt.return
}

// Bulk copies, loads for several CTAs, prefetches, descriptors at a place that the user names.
// CHECK-LABEL: @copies(
tt.func @copies(%p: !tt.ptr<f32>, %where: !tt.ptr<i8>, %buf: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>, %response: !ttg.memdesc<2xi64, #barrier, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #barrier, #smem, mutable>, %n: i32, %stride: i64, %pred: i1, %ps: tensor<64x!tt.ptr<f32>>, %mask: tensor<64xi1>) {
  // CHECK: tlx.async_bulk_load %p, %buf, %n, %bar : !tt.ptr<f32> -> !ttg.memdesc<64x64xf32, #{{.*}}, #smem, mutable>, !ttg.memdesc<1xi64,
  tlx.async_bulk_load %p, %buf, %n, %bar : !tt.ptr<f32> -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #barrier, #smem, mutable>
  // CHECK: tlx.async_bulk_store %buf, %p, %n : !ttg.memdesc<64x64xf32, #{{.*}}, #smem, mutable> -> !tt.ptr<f32>
  tlx.async_bulk_store %buf, %p, %n : !ttg.memdesc<64x64xf32, #shared, #smem, mutable> -> !tt.ptr<f32>
  // CHECK: %d = tlx.make_tensor_descriptor %where, %p, [%n, %n], [%stride, %stride] {padding = 2 : i32} : <i8>, <f32>, <64x64xf32>
  %d = tlx.make_tensor_descriptor %where, %p, [%n, %n], [%stride, %stride] {padding = 2 : i32} : <i8>, <f32>, <64x64xf32>
  // CHECK: tlx.async_tma_load %d[%n, %n] %buf, %bar, %pred multicast %n {two_ctas} : !tt.tensordesc<64x64xf32>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf32,
  tlx.async_tma_load %d[%n, %n] %buf, %bar, %pred multicast %n {two_ctas} : !tt.tensordesc<64x64xf32>, !ttg.memdesc<1xi64, #barrier, #smem, mutable> -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
  // CHECK: tlx.async_tma_prefetch %d[%n, %n], %pred : !tt.tensordesc<64x64xf32>
  tlx.async_tma_prefetch %d[%n, %n], %pred : !tt.tensordesc<64x64xf32>
  // CHECK: tlx.prefetch L1 %p : !tt.ptr<f32>
  tlx.prefetch L1 %p : !tt.ptr<f32>
  // CHECK: tlx.prefetch L2 %ps mask %mask : tensor<64x!tt.ptr<f32>>, tensor<64xi1>
  tlx.prefetch L2 %ps mask %mask : tensor<64x!tt.ptr<f32>>, tensor<64xi1>
  // CHECK: tlx.prefetch_tensormap %d : !tt.tensordesc<64x64xf32>
  tlx.prefetch_tensormap %d : !tt.tensordesc<64x64xf32>
  // CHECK: tlx.clc_try_cancel %response, %bar, %pred : !ttg.memdesc<2xi64,
  tlx.clc_try_cancel %response, %bar, %pred : !ttg.memdesc<2xi64, #barrier, #smem, mutable>, !ttg.memdesc<1xi64, #barrier, #smem, mutable>
  tt.return
}

// Single instructions, and a part of a buffer from run-time offsets.
// CHECK-LABEL: @special(
tt.func @special(%buf: !ttg.memdesc<128x64xf32, #shared, #smem, mutable>, %acc: !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable>, %x: tensor<64xf32>, %bits: tensor<64xi32>, %preds: tensor<64xi1>, %pred: i1, %i: i32) {
  // CHECK: %t = tlx.clock64
  %t = tlx.clock64
  // CHECK: %v = tlx.vote_ballot %i, %pred : i1 -> i32
  %v = tlx.vote_ballot %i, %pred : i1 -> i32
  // CHECK: %vs = tlx.vote_ballot %i, %preds : tensor<64xi1> -> tensor<64xi32>
  %vs = tlx.vote_ballot %i, %preds : tensor<64xi1> -> tensor<64xi32>
  // CHECK: %vn = tlx.vote_ballot %i, %preds : tensor<64xi1> -> i32
  %vn = tlx.vote_ballot %i, %preds : tensor<64xi1> -> i32
  // CHECK: tlx.tmem_shift %acc : !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  tlx.tmem_shift %acc : !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable>
  // CHECK: %r = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf8E5M2>
  %r = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf8E5M2>
  // CHECK: %part = tlx.memdesc_dynamic_subslice %buf[%i, %i] : !ttg.memdesc<128x64xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf32, #{{.*}}, #smem, mutable, 128x64>
  %part = tlx.memdesc_dynamic_subslice %buf[%i, %i] : !ttg.memdesc<128x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable, 128x64>
  tt.return
}

#half = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#pair = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>

// Of a pair of CTAs with tensors of their own, each has half of the rows of a and d, and half of the columns of b.
// CHECK-LABEL: @pair(
tt.func @pair(%a: !ttg.memdesc<128x32xf16, #half, #smem>, %b: !ttg.memdesc<32x32xf16, #half, #smem>, %d: !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>, %use: i1) {
  // CHECK: ttng.tc_gen5_mma %a, %b, %d, %use, %use {two_ctas} :
  ttng.tc_gen5_mma %a, %b, %d, %use, %use {two_ctas} : !ttg.memdesc<128x32xf16, #half, #smem>, !ttg.memdesc<32x32xf16, #half, #smem>, !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>
  tt.return
}
