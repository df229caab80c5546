// RUN: tlx-opt %s | filecheck %s
// RUN: tlx-opt %s --triton-version 3.6 | filecheck %s --check-prefix=OLD
// RUN: tlx-opt %s --triton-version 3.6 | tlx-opt | filecheck %s
// RUN: tlx-opt %s | filecheck %s --check-prefix=TMEM
// RUN: tlx-opt %s --triton-version 3.6 | filecheck %s --check-prefix=OLD-TMEM

// What Triton 3.6 to 3.8 spell in another way is read, and becomes what Triton 3.9 has.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2, twoCTAs = true>
#smem = #ttg.shared_memory

// TMEM: #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = {{\[\[}}1, 0]], twoCTAs = true>
// OLD-TMEM: #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2, twoCTAs = true>

// CHECK-LABEL: @cache_hints(
// OLD-LABEL: @cache_hints(
tt.func @cache_hints(%p: !tt.ptr<f32>, %v: f32) {
  // CHECK-NEXT: %a = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>} : !tt.ptr<f32>
  // OLD-NEXT: %a = tt.load %p cacheModifier = cg evictionPolicy = evict_first : !tt.ptr<f32>
  %a = tt.load %p cacheModifier = cg evictionPolicy = evict_first : !tt.ptr<f32>
  // CHECK-NEXT: %b = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.ptr<f32>
  // OLD-NEXT: %b = tt.load %p evictionPolicy = evict_last : !tt.ptr<f32>
  %b = tt.load %p evictionPolicy = evict_last : !tt.ptr<f32>
  // CHECK-NEXT: tt.store %p, %v {cachePolicy = #tt.cache_policy<cache_modifier = wb, eviction_policy = evict_normal>} : !tt.ptr<f32>
  // OLD-NEXT: tt.store %p, %v cacheModifier = wb : !tt.ptr<f32>
  tt.store %p, %v cacheModifier = wb : !tt.ptr<f32>
  // A second type, of the pointer or of the value.
  // CHECK-NEXT: tt.store %p, %v : !tt.ptr<f32>
  tt.store %p, %v : !tt.ptr<f32>, !tt.ptr<f32>
  // CHECK-NEXT: tt.store %p, %v : !tt.ptr<f32>
  tt.store %p, %v : !tt.ptr<f32>, f32
  tt.return
}

// CHECK-LABEL: @tensor_memory(
// OLD-LABEL: @tensor_memory(
tt.func @tensor_memory(%b: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // CHECK: ttng.tmem_subslice %b {offset = 64 : i32}
  // OLD: ttng.tmem_subslice %b {N = 64 : i32}
  %0 = ttng.tmem_subslice %b {N = 64 : i32} : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable, 128x128>
  tt.return
}

// CHECK-LABEL: @descriptor(
// CHECK-SAME: !tt.tensordesc<64x64xf16, #{{.*}}>
// OLD-LABEL: @descriptor(
// OLD-SAME: !tt.tensordesc<tensor<64x64xf16, #{{.*}}>>
tt.func @descriptor(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>) {
  tt.return
}

// Operations that only those versions have.
// CHECK-LABEL: @barriers(
tt.func @barriers() {
  // CHECK-NEXT: ttg.local_barrier
  ttg.local_barrier
  // CHECK-NEXT: ttng.cluster_arrive {relaxed = false}
  ttng.cluster_arrive {relaxed = false}
  // CHECK-NEXT: ttng.cluster_wait
  ttng.cluster_wait
  tt.return
}

// Before Triton 3.0 the types of all operands stood in parentheses, and properties among the attributes.
// CHECK-LABEL: @parentheses(
tt.func @parentheses(%a: tensor<4xf32>, %s: f32) {
  // CHECK-NEXT: %0 = tt.splat %s : f32 -> tensor<4xf32>
  %0 = tt.splat %s : (f32) -> tensor<4xf32>
  // CHECK-NEXT: %1 = tt.expand_dims %a {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
  %1 = tt.expand_dims %a {axis = 0 : i32} : (tensor<4xf32>) -> tensor<1x4xf32>
  // CHECK-NEXT: %2 = tt.broadcast %1 : tensor<1x4xf32> -> tensor<2x4xf32>
  %2 = tt.broadcast %1 : (tensor<1x4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: %3 = tt.cat %a, %a : tensor<4xf32> -> tensor<8xf32>
  %3 = tt.cat %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %4 = tt.reshape %3 : tensor<8xf32> -> tensor<2x4xf32>
  %4 = tt.reshape %3 : (tensor<8xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: %5 = tt.trans %4 {order = array<i32: 1, 0>} : tensor<2x4xf32> -> tensor<4x2xf32>
  %5 = tt.trans %4 {order = array<i32: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %6 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  %6 = "tt.reduce"(%a) ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) {axis = 0 : i32} : (tensor<4xf32>) -> f32
  tt.return
}
