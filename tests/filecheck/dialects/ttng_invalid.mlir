// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation; the right use stands in ttng_ops.mlir.

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @barrier_shape(%b: !ttg.memdesc<1x1xi64, #plain, #smem, mutable>) {
  // expected-error @below {{an mbarrier is a memdesc of shape 1xi64, found}}
  ttng.init_barrier %b, 1 : !ttg.memdesc<1x1xi64, #plain, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @barrier_of_cluster(%b: !ttg.memdesc<4xi64, #bar, #smem, mutable>) {
  // expected-error @below {{an mbarrier is a memdesc of shape 1xi64 (or 2xi64), found}}
  ttng.init_barrier %b, 1 : !ttg.memdesc<4xi64, #bar, #smem, mutable>
  tt.return
}
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @barrier_space(%b: !ttg.memdesc<1xi64, #bar, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the buffer must be in shared memory}}
  ttng.inval_barrier %b : !ttg.memdesc<1xi64, #bar, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @init_count(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{the arrival count must be at least 1 and at most 1048575, found 0}}
  ttng.init_barrier %b, 0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @arrive_count(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{the arrival count must be at least 1}}
  ttng.arrive_barrier %b, 0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @expect_bytes(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{the number of bytes can't be negative, found -1}}
  ttng.barrier_expect %b, -1, %p : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @multicast(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{multicastCTA must be below the 2 CTAs of the cluster, found 2}}
  ttng.arrive_barrier %b, 1 {multicastCTA = 2 : i32} : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @multicast_from(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{multicastCTA and fromCTA exclude each other}}
  ttng.arrive_barrier %b, 1 {fromCTA = 1 : i32, multicastCTA = 1 : i32} : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @shared_store(%x: tensor<64xi32>, %b: !ttg.memdesc<64xi32, #bar, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{needs a cluster of at least two CTAs ('ttg.num-ctas')}}
  ttng.async_shared_store %x, %b, %bar : tensor<64xi32> -> !ttg.memdesc<64xi32, #bar, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @cluster() {
  // expected-error @below {{needs a cluster of at least two CTAs ('ttg.num-ctas')}}
  ttng.cluster_barrier
  tt.return
}
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @response(%r: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %b: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // expected-error @below {{a response is a memdesc of shape 2xi64}}
  ttng.clc_try_cancel %r, %b : !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// -----

tt.func @response_tensor() {
  // expected-error @below {{a response is a tensor of shape 2xi64, found tensor<4xi64>}}
  %0 = ttng.clc_try_cancel_sync : tensor<4xi64>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_block(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{does not match the buffer}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_coordinates(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{the descriptor has 2 dimensions, found 1 coordinates}}
  ttng.async_tma_copy_global_to_local %d[%i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_elements(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xi16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{the descriptor has f16 elements, the buffer i16}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xi16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_transposed(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #turned, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{TMA cannot copy to or from a transposed buffer}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #turned, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_offsets(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{expected 0 offsets, found 1}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] offsets = [%o] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_im2col(%d: !ttng.tensordesc_im2col<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{expected 2 offsets, found 0}}
  ttng.async_tma_copy_global_to_local %d[%i, %i, %i, %i] %b, %bar, %p : !ttng.tensordesc_im2col<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_constant(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{cannot store into an immutable buffer}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [5, 4, 3, 2, 1, 0]}>
#smem = #ttg.shared_memory
tt.func @tma_rank(%d: !tt.tensordesc<1x1x1x1x1x64xf16>, %b: !ttg.memdesc<1x1x1x1x1x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %p: i1) {
  // expected-error @below {{TMA copies at most 5 dimensions, the descriptor has 6}}
  ttng.async_tma_copy_global_to_local %d[%i, %i, %i, %i, %i, %i] %b, %bar, %p : !tt.tensordesc<1x1x1x1x1x64xf16>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1x1x1x1x1x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_descriptor(%x: i32, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{expected a tensor descriptor, found i32}}
  "ttng.async_tma_copy_global_to_local"(%x, %bar, %b, %p) <{operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1>}> : (i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, i1) -> ()
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_reduce(%d: !tt.tensordesc<64x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{TMA has no 'xor' of f16}}
  ttng.async_tma_reduce xor, %d[%i, %i] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tma_gather(%d: !tt.tensordesc<1x64xf16, #shared>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %r: tensor<32xi32>, %i: i32, %p: i1) {
  // expected-error @below {{expected 32 rows of 64 elements, found 64x64}}
  ttng.async_tma_gather %d[%r, %i] %b, %bar, %p : !tt.tensordesc<1x64xf16, #shared>, tensor<32xi32>, i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, i1
  tt.return
}

// -----

tt.func @tma_store_wait() {
  // expected-error @below {{the number of pending stores can't be negative: -1}}
  ttng.async_tma_store_wait {pendings = -1 : i32}
  tt.return
}

// -----

// expected-error @below {{the block of a tensor descriptor needs at least one dimension}}
tt.func @descriptor_rank(%d: !tt.tensordesc<tensor<f16>>) {
  tt.return
}

// -----

tt.func @tensormap_strides(%p: !tt.ptr<i8>, %n: i32, %s: i64) {
  // expected-error @below {{a box of 2 dimensions needs 1 strides of the tensor, found 2}}
  ttng.tensormap_create %p, %p, [%n, %n], [%n, %n], [%s, %s], [%n, %n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32, i32, i64, i64, i32, i32) -> ()
  tt.return
}

// -----

tt.func @tensormap_swizzle(%p: !tt.ptr<i8>, %n: i32) {
  // expected-error @below {{swizzle_mode must be 0 to 3, found 4}}
  ttng.tensormap_create %p, %p, [%n], [%n], [], [%n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 4 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()
  tt.return
}

// -----

tt.func @policy_parts(%p: !tt.ptr<f32>) {
  // expected-error @below {{l2_primary, l2_secondary and l2_fraction come together}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l2_primary = evict_last>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @policy_primary(%p: !tt.ptr<f32>) {
  // expected-error @below {{l2_primary cannot be no_allocate}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l2_primary = no_allocate, l2_secondary = evict_first, l2_fraction = 1.0 : f32>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @policy_secondary(%p: !tt.ptr<f32>) {
  // expected-error @below {{l2_secondary must be evict_first or evict_unchanged, found evict_last}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_last, l2_fraction = 1.0 : f32>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @policy_fraction(%p: !tt.ptr<f32>) {
  // expected-error @below {{l2_fraction must be an f32 above 0 and at most 1}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_first, l2_fraction = 2.0 : f32>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @policy_prefetch(%p: !tt.ptr<f32>) {
  // expected-error @below {{l2_prefetch_size must be an i32 of 64, 128 or 256, found 77 : i32}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l2_prefetch_size = 77 : i32>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @policy_word(%p: !tt.ptr<f32>) {
  // expected-error @below {{a cache policy has no parameter 'l3'}}
  %0 = tt.load %p {cachePolicy = #ttng.cache_policy<l3 = none>} : !tt.ptr<f32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_type(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>, %d: tensor<64x64xf32>) {
  // expected-error @below {{expected the type tensor<64x64xf32>, found tensor<64x64xf16>}}
  %0 = "ttng.warp_group_dot"(%a, %a, %c) : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<64x64xf32>) -> tensor<64x64xf16>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_rank(%a: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @below {{a wgmma takes 2-D operands}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_shapes(%a: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @below {{shapes do not match: 64x128 * 64x64 -> 64x64}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_m(%a: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<32x64xf32>) {
  // expected-error @below {{a wgmma needs M to be a multiple of 64, found 32}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<32x64xf32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_n(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x4xf16, #plain, #smem, mutable>, %c: tensor<64x4xf32>) {
  // expected-error @below {{a wgmma needs N to be a multiple of 8, found 4}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x4xf16, #plain, #smem, mutable> -> tensor<64x4xf32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_double(%a: !ttg.memdesc<64x64xf64, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf64, #shared, #smem, mutable>, %c: tensor<64x64xf64>) {
  // expected-error @below {{a wgmma cannot multiply f64}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf64, #shared, #smem, mutable> * !ttg.memdesc<64x64xf64, #shared, #smem, mutable> -> tensor<64x64xf64>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_accumulator(%a: !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, %c: tensor<64x64xbf16>) {
  // expected-error @below {{a wgmma of bf16 accumulates in f32, found bf16}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xbf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xbf16, #shared, #smem, mutable> -> tensor<64x64xbf16>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @wgmma_warps(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @below {{a wgmma needs a multiple of 4 warps, 2 run this code}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_layout(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #plain, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @below {{a wgmma reads buffers in an nvmma_shared layout}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#smem = #ttg.shared_memory
tt.func @wgmma_mma(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32, #mma2>) {
  // expected-error @below {{the accumulator needs an mma layout of version 3, found 2}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma2>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @wgmma_operand(%a: i32, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @below {{expected a tensor or a buffer, found i32}}
  %0 = "ttng.warp_group_dot"(%a, %b, %c) : (i32, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<64x64xf32>) -> tensor<64x64xf32>
  tt.return
}

// -----

tt.func @wait_nothing() {
  // expected-error @below {{needs the results of the dots to wait for}}
  "ttng.warp_group_dot_wait"() <{pendings = 0 : i32}> : () -> ()
  tt.return
}

// -----

tt.func @wait_types(%x: tensor<64xf32>) {
  // expected-error @below {{the results must have the types of the inputs}}
  %0 = "ttng.warp_group_dot_wait"(%x) <{pendings = 0 : i32}> : (tensor<64xf32>) -> tensor<64xf16>
  tt.return
}

// -----

tt.func @wait_count(%x: tensor<64xf32>) {
  // expected-error @below {{the number of pending groups can't be negative: -1}}
  %0 = ttng.warp_group_dot_wait %x {pendings = -1 : i32} : tensor<64xf32>
  tt.return
}

// -----

tt.func @wait_attribute(%x: tensor<64xf32>) {
  // expected-error @below {{'ttng.warp_group_dot_wait' lacks the attribute 'pendings'}}
  %0 = ttng.warp_group_dot_wait %x : tensor<64xf32>
  tt.return
}

// -----

tt.func @packed_count(%x: tensor<64xf32>) {
  // expected-error @below {{'fma' takes 3 operands, found 2}}
  %0 = ttng.packed_arith fma %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @packed_rank(%x: tensor<64xf32>, %y: tensor<8x8xf32>) {
  // expected-error @below {{operands must have the shape of the result, found tensor<8x8xf32>}}
  %0 = ttng.packed_arith add %x, %y : (tensor<64xf32>, tensor<8x8xf32>) -> tensor<64xf32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @tmem_space() {
  // expected-error @below {{the buffer must be in tensor memory}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #smem, mutable>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @tmem_layout() {
  // expected-error @below {{a buffer in tensor memory needs a tensor_memory layout}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #plain, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @tmem_dimensions() {
  // expected-error @below {{a buffer in tensor memory has 2 or 3 dimensions}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

// expected-error @below {{blockM must be 64 or 128, found 32}}
#rows32 = #ttng.tensor_memory_encoding<blockM = 32, blockN = 64, colStride = 1>
tt.func @tmem_block_m() {
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #rows32, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

// expected-error @below {{blockN must be a power of two, found 48}}
#columns48 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 48, colStride = 1>
tt.func @tmem_block_n() {
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x48xf32, #columns48, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#stride = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
tt.func @tmem_stride() {
  // expected-error @below {{colStride must be 1, 2 or 4 and fill at most 32 bits, found 2 for 32 bits}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #stride, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @tmem_blocks() {
  // expected-error @below {{the shape 128x32 is not made of blocks of 128x64}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @tmem_columns() {
  // expected-error @below {{takes 1024 columns of tensor memory, there are 512}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x512xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @tmem_constant() {
  // expected-error @below {{a buffer without an initial value must be mutable}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @tmem_value(%x: tensor<128x64xf16>) {
  // expected-error @below {{differ in shape or element type}}
  %0 = ttng.tmem_alloc %x : (tensor<128x64xf16>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @load_shape(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{differ in shape or element type}}
  %0 = ttng.tmem_load %b : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x32xf32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @load_red(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{'redOp' and a reduced result come together}}
  %0 = ttng.tmem_load %b {redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @load_abs(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{'abs' and 'NaN' need a 'redOp'}}
  %0 = ttng.tmem_load %b {abs = true} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @load_red_type(%b: !ttg.memdesc<128x64xi32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{a reducing load takes f32, found i32}}
  %0, %1 = ttng.tmem_load %b {redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xi32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xi32>, tensor<128xi32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @load_red_shape(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the reduced result has one element per row, found tensor<64xf32>}}
  %0, %1 = ttng.tmem_load %b {redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32>, tensor<64xf32>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @store_constant(%x: tensor<128x64xf32>, %b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>, %p: i1) {
  // expected-error @below {{cannot store into an immutable buffer}}
  ttng.tmem_store %x, %b, %p : tensor<128x64xf32> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @copy_type(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the element type must stay: from}}
  ttng.tmem_copy %a, %b : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @copy_shape(%a: !ttg.memdesc<64x128xf32, #shared, #smem, mutable>, %b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the shape must stay: from}}
  ttng.tmem_copy %a, %b : !ttg.memdesc<64x128xf32, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @copy_size(%a: !ttg.memdesc<64x16xi8, #plain, #smem, mutable>, %b: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the number of elements must stay: from}}
  ttng.tmem_copy %a, %b : !ttg.memdesc<64x16xi8, #plain, #smem, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @slice_attribute(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' lacks the attribute 'offset'}}
  %0 = ttng.tmem_subslice %b : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @slice_dim(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{cannot slice dimension 2 of}}
  %0 = ttng.tmem_subslice %b {dim = 2 : i32, offset = 0 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @slice_other(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{dimension 0 must stay: from}}
  %0 = ttng.tmem_subslice %b {offset = 0 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<64x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @slice_outside(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{elements 48 to 79 of dimension 1 are outside of its 64}}
  %0 = ttng.tmem_subslice %b {offset = 48 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_layout(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #plain, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{b must have an nvmma_shared layout}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #plain, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_place(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #tmem, #ttng.tensor_memory, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{b must be in shared memory}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @mma_scales(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xi8, #scales, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{the accumulator cannot have a layout for scales}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_two_ctas(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{an MMA with 'two_ctas' needs accumulator with twoCTAs}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p {two_ctas} : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#pair = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
tt.func @mma_one_cta(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{an MMA without 'two_ctas' takes no accumulator with twoCTAs}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_sync(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{only an asynchronous MMA ('is_async') arrives on barriers}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p, %bar[%p] : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_preds(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{has 1 barriers but 0 predicates for them}}
  "ttng.tc_gen5_mma"(%a, %b, %d, %p, %p, %bar) <{is_async, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 0>}> : (!ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, i1, i1, !ttg.memdesc<1xi64, #bar, #smem, mutable>) -> ()
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_rank(%a: !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{a must have two dimensions}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_shapes(%a: !ttg.memdesc<128x128xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{shapes do not match: 128x128 * 64x64 -> 128x64}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x128xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_elements(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{operands have different element types: f16 and bf16}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_double(%a: !ttg.memdesc<128x64xf64, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf64, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{a tcgen05 MMA cannot multiply f64}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf64, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_accumulator(%a: !ttg.memdesc<128x64xbf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, %d: !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{an MMA of bf16 accumulates in f32, found f16}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xbf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_m(%a: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !ttg.memdesc<32x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{an MMA needs M to be a multiple of 64, found 32}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @mma_n(%a: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x4xf16, #shared, #smem, mutable, 64x64>, %d: !ttg.memdesc<128x4xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) {
  // expected-error @below {{an MMA needs N to be a multiple of 8, found 4}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x4xf16, #shared, #smem, mutable, 64x64>, !ttg.memdesc<128x4xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @scaled_layout(%a: !ttg.memdesc<128x64xf8E5M2, #bytes, #smem, mutable>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x64xi8, #tmem, #ttng.tensor_memory, mutable>, %t: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, %p: i1) {
  // expected-error @below {{a_scale needs a tensor_memory_scales layout}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %t, %p, %p lhs = e5m2 rhs = e5m2 : !ttg.memdesc<128x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x64xi8, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @scaled_type(%a: !ttg.memdesc<128x64xf8E5M2, #bytes, #smem, mutable>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, %t: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, %p: i1) {
  // expected-error @below {{lhs elements of type e2m1 are held in i8, found f8E5M2}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %t, %p, %p lhs = e2m1 rhs = e5m2 : !ttg.memdesc<128x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @scaled_shapes(%a: !ttg.memdesc<256x64xf8E5M2, #bytes, #smem, mutable>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, %d: !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, %t: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, %p: i1) {
  // expected-error @below {{shapes do not match}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %t, %p, %p lhs = e5m2 rhs = e5m2 : !ttg.memdesc<256x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem, mutable>, !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @half_of_b_for_one_cta(%a: !ttg.memdesc<128x16xf16, #nvmma, #smem>, %b: !ttg.memdesc<16x32xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
  // expected-error @below {{shapes do not match: 128x16 * 16x32 -> 128x64}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x16xf16, #nvmma, #smem>, !ttg.memdesc<16x32xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @scaled_kind(%a: !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, %p: i1) {
  // expected-error @below {{a scaled MMA has no lhs elements of type fp16}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %p, %p lhs = fp16 rhs = e5m2 : !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @scaled_packed(%a: !ttg.memdesc<128x64xi8, #tmem, #ttng.tensor_memory>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, %p: i1) {
  // expected-error @below {{lhs elements of type e2m1 beside e5m2 must be fp4Padded}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %p, %p lhs = e2m1 rhs = e5m2 : !ttg.memdesc<128x64xi8, #tmem, #ttng.tensor_memory>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>
  tt.return
}

// -----

#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
#padded = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, fp4Padded = true>
#smem = #ttg.shared_memory
tt.func @scaled_accumulator(%a: !ttg.memdesc<128x64xf8E5M2, #bytes, #smem>, %b: !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, %d: !ttg.memdesc<128x64xf32, #padded, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, %p: i1) {
  // expected-error @below {{the accumulator cannot have a layout for padded 4-bit elements}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %p, %p lhs = e5m2 rhs = e5m2 : !ttg.memdesc<128x64xf8E5M2, #bytes, #smem>, !ttg.memdesc<64x64xf8E5M2, #bytes, #smem>, !ttg.memdesc<128x64xf32, #padded, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#half = #ttng.tensor_memory_encoding<blockM = 64, blockN = 128, colStride = 1>
tt.func @tmem_subslice_blocks(%b: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the blocks must stay}}
  %0 = ttng.tmem_subslice %b {offset = 0 : i32} : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #half, #ttng.tensor_memory, mutable, 128x128>
  tt.return
}

// -----

// The scales take 16 columns.
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
tt.func @tmem_reinterpret(%s: !ttg.memdesc<64x32xi8, #scales, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{the result takes 32 columns of tensor memory, the source has 16}}
  %0 = ttg.memdesc_reinterpret %s : !ttg.memdesc<64x32xi8, #scales, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x128xi8, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}
