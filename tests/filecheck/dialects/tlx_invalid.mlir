// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation; the right use stands in tlx_ops.mlir.

tt.func @size() {
  // expected-error @below {{buffer_size_bytes must be positive, got 0}}
  %0 = tlx.storage_alias_spec storage = smem, size = 0 : !tlx.storage_alias_spec<smem, 0>
  tt.return
}

// -----

tt.func @type() {
  // expected-error @below {{storage kind and size do not match the type}}
  %0 = "tlx.storage_alias_spec"() <{storage = #tlx<storage_kind smem>}> : () -> !tlx.storage_alias_spec<tmem>
  tt.return
}

// -----

tt.func @no_members() {
  // expected-error @below {{reuse_group requires at least one element}}
  %0 = tlx.reuse_group() group_kind = shared : () -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
tt.func @group_size(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{group_size must be a positive integer, got 0}}
  %0 = tlx.reuse_group(%b) group_kind = shared, group_size = 0 : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
tt.func @group_kind(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{group_kind attribute (shared) doesn't match result type group kind (distinct)}}
  %0 = "tlx.reuse_group"(%b) <{group_kind = #tlx<reuse_group_kind shared>, group_size = 1 : i64}> : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<distinct>
  tt.return
}

// -----

tt.func @member(%x: i32) {
  // expected-error @below {{a member must be an allocation or a reuse_group, found i32}}
  %0 = tlx.reuse_group(%x) group_kind = shared : (i32) -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @alias_space(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{requires the same memory space for all operands and results}}
  %0 = tlx.local_alias %b : !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

tt.func @changed(%x: tensor<64xf32>) {
  // expected-error @below {{changes more than the layout: from tensor<64xf32> to tensor<32xf32>}}
  %0 = tlx.require_layout %x : tensor<64xf32> -> tensor<32xf32>
  tt.return
}

// -----

tt.func @released(%x: tensor<64xf32>) {
  // expected-error @below {{requires the source tensor to have a layout encoding}}
  %0 = tlx.release_layout %x : tensor<64xf32> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @named_barrier_threads(%id: i32) {
  // expected-error @below {{a named barrier counts 32 to 1024 threads in whole warps, found 100}}
  tlx.named_barrier_wait %id, 100
  tt.return
}

// -----

tt.func @named_barrier_many(%id: i32) {
  // expected-error @below {{a named barrier counts 32 to 1024 threads in whole warps, found 2048}}
  tlx.named_barrier_arrive %id, 2048
  tt.return
}

// -----

tt.func @fence_scope() {
  // expected-error @below {{expected one of gpu, sys, found 'cta'}}
  tlx.fence cta
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @per_thread(%b: !ttg.memdesc<2xi64, #shared, #smem, mutable>) {
  // expected-error @below {{an mbarrier is a memdesc of shape 1xi64}}
  tlx.arrive_per_thread %b : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @remote_type(%b: !ttg.memdesc<64xf32, #shared, #smem, mutable>, %rank: i32) {
  // expected-error @below {{expected !ttg.memdesc<64xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #tlx.shared_cluster_memory, mutable>, found}}
  %0 = tlx.map_to_remote %b, %rank : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32xf32, #shared, #tlx.shared_cluster_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @arrive_local(%b: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  // expected-error @below {{the buffer must be a view of another CTA's}}
  tlx.arrive_remote %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @arrive_count(%b: !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>) {
  // expected-error @below {{the arrival count must be at least 1}}
  tlx.arrive_remote %b, 0 : !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @remote_store(%x: tensor<32xf32>, %b: !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>) {
  // expected-error @below {{differ in shape or element type}}
  tlx.remote_store %x, %b : tensor<32xf32> -> !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @remote_barrier(%x: tensor<64xf32>, %b: !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>) {
  // expected-error @below {{an mbarrier is a memdesc of shape 1xi64}}
  tlx.async_remote_store %x, %b, %b : tensor<64xf32> -> !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>, !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @remote_copy(%a: !ttg.memdesc<32xf32, #shared, #smem, mutable>, %b: !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>, %bar: !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>) {
  // expected-error @below {{the buffers must agree in shape, elements and layout}}
  tlx.async_remote_copy %a, %b, %bar : !ttg.memdesc<32xf32, #shared, #smem, mutable> -> !ttg.memdesc<64xf32, #shared, #tlx.shared_cluster_memory, mutable>, !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @bulk_elements(%p: !tt.ptr<f16>, %b: !ttg.memdesc<64xf32, #shared, #smem, mutable>, %n: i32) {
  // expected-error @below {{the elements differ: !tt.ptr<f16> and}}
  tlx.async_bulk_store %b, %p, %n : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> !tt.ptr<f16>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @bulk_constant(%p: !tt.ptr<f32>, %b: !ttg.memdesc<64xf32, #shared, #smem>, %n: i32, %bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  // expected-error @below {{cannot store into an immutable buffer}}
  tlx.async_bulk_load %p, %b, %n, %bar : !tt.ptr<f32> -> !ttg.memdesc<64xf32, #shared, #smem>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @one_cta(%d: !tt.tensordesc<64xf32>, %b: !ttg.memdesc<64xf32, #shared, #smem, mutable>, %i: i32, %p: i1, %bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  // expected-error @below {{a load for one CTA is a 'ttng.async_tma_copy_global_to_local'}}
  tlx.async_tma_load %d[%i] %b, %bar, %p : !tt.tensordesc<64xf32>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
  tt.return
}

// -----

tt.func @prefetch_rank(%d: !tt.tensordesc<64xf32>, %i: i32, %p: i1) {
  // expected-error @below {{the descriptor has 1 dimensions, found 2 coordinates}}
  tlx.async_tma_prefetch %d[%i, %i], %p : !tt.tensordesc<64xf32>
  tt.return
}

// -----

tt.func @prefetch_mask(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<32xi1>) {
  // expected-error @below {{pointers and mask must have one shape}}
  tlx.prefetch L2 %p mask %m : tensor<64x!tt.ptr<f32>>, tensor<32xi1>
  tt.return
}

// -----

tt.func @descriptor_rank(%w: !tt.ptr<i8>, %p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @below {{shape, strides and block must have one rank, found 1, 1, 2}}
  %0 = tlx.make_tensor_descriptor %w, %p, [%n], [%s] : <i8>, <f32>, <64x64xf32>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @response(%r: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %p: i1) {
  // expected-error @below {{a response is a memdesc of shape 2xi64}}
  tlx.clc_try_cancel %r, %r, %p : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

tt.func @rounded(%x: tensor<64xf32>, %b: tensor<64xi32>) {
  // expected-error @below {{the result must be f16, bf16 or an 8-bit float, found tensor<64xf64>}}
  %0 = tlx.stoch_round %x, %b : tensor<64xf32>, tensor<64xi32> -> tensor<64xf64>
  tt.return
}

// -----

tt.func @rounded_shape(%x: tensor<64xf32>, %b: tensor<32xi32>) {
  // expected-error @below {{source, bits and result must have one shape}}
  %0 = tlx.stoch_round %x, %b : tensor<64xf32>, tensor<32xi32> -> tensor<64xf16>
  tt.return
}

// -----

#half = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
tt.func @shifted_rows(%b: !ttg.memdesc<64x64xf32, #half, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{a buffer of 128 rows in tensor memory is shifted, found !ttg.memdesc<64x64xf32}}
  tlx.tmem_shift %b : !ttg.memdesc<64x64xf32, #half, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#one = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
tt.func @shifted_columns(%b: !ttg.memdesc<128x1xf32, #one, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{a multiple of 8 columns of 32 bits is shifted, found !ttg.memdesc<128x1xf32}}
  tlx.tmem_shift %b : !ttg.memdesc<128x1xf32, #one, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @dynamic_part(%b: !ttg.memdesc<64xf32, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{the 48 elements of dimension 0 do not divide its 64}}
  %0 = tlx.memdesc_dynamic_subslice %b[%i] : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> !ttg.memdesc<48xf32, #shared, #smem, mutable, 64>
  tt.return
}
