// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

// Functions, calls and the grid.
// CHECK-LABEL: @callee(
tt.func private @callee(%x: f32) -> f32 attributes {noinline = true} {
  tt.return %x : f32
}

// CHECK-LABEL: @grid(
tt.func public @grid(%x: f32 {tt.divisibility = 16 : i32}) {
  // CHECK: %y = tt.call @callee(%x) : (f32) -> f32
  %y = tt.call @callee(%x) : (f32) -> f32
  // CHECK: %pid = tt.get_program_id x : i32
  %pid = tt.get_program_id x : i32
  // CHECK: %num = tt.get_num_programs z : i32
  %num = tt.get_num_programs z : i32
  tt.return
}

// Tensors: creation, shapes, order of elements.
// CHECK-LABEL: @shapes(
tt.func @shapes(%s: f32, %a: tensor<64xf32>, %b: tensor<64x1xf32>, %i: tensor<128xi32>, %m: tensor<128xi1>, %one: tensor<1xf32>) {
  // CHECK: %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  // CHECK: %splat = tt.splat %s : f32 -> tensor<64x64xf32>
  %splat = tt.splat %s : f32 -> tensor<64x64xf32>
  // CHECK: %unsplat = tt.unsplat %one : tensor<1xf32>
  %unsplat = tt.unsplat %one : tensor<1xf32>
  // CHECK: %expand = tt.expand_dims %a {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %expand = tt.expand_dims %a {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  // CHECK: %broadcast = tt.broadcast %b : tensor<64x1xf32> -> tensor<64x32xf32>
  %broadcast = tt.broadcast %b : tensor<64x1xf32> -> tensor<64x32xf32>
  // CHECK: %reshape = tt.reshape %a : tensor<64xf32> -> tensor<8x8xf32>
  %reshape = tt.reshape %a : tensor<64xf32> -> tensor<8x8xf32>
  // CHECK: %reorder = tt.reshape %a allow_reorder efficient_layout : tensor<64xf32> -> tensor<8x8xf32>
  %reorder = tt.reshape %a allow_reorder efficient_layout : tensor<64xf32> -> tensor<8x8xf32>
  // CHECK: %trans = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x1xf32> -> tensor<1x64xf32>
  %trans = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x1xf32> -> tensor<1x64xf32>
  // CHECK: %cat = tt.cat %a, %a : tensor<64xf32> -> tensor<128xf32>
  %cat = tt.cat %a, %a : tensor<64xf32> -> tensor<128xf32>
  // CHECK: %join = tt.join %a, %a : tensor<64xf32> -> tensor<64x2xf32>
  %join = tt.join %a, %a : tensor<64xf32> -> tensor<64x2xf32>
  // CHECK: %lhs, %rhs = tt.split %join : tensor<64x2xf32> -> tensor<64xf32>
  %lhs, %rhs = tt.split %join : tensor<64x2xf32> -> tensor<64xf32>
  // CHECK: %gather = tt.gather %a[%i] {axis = 0 : i32, efficient_layout} : (tensor<64xf32>, tensor<128xi32>) -> tensor<128xf32>
  %gather = tt.gather %a[%i] {axis = 0 : i32, efficient_layout} : (tensor<64xf32>, tensor<128xi32>) -> tensor<128xf32>
  // CHECK: %histogram = tt.histogram %i : tensor<128xi32> -> tensor<16xi32>
  %histogram = tt.histogram %i : tensor<128xi32> -> tensor<16xi32>
  // CHECK: %masked = tt.histogram %i, %m : tensor<128xi32> -> tensor<16xi32>
  %masked = tt.histogram %i, %m : tensor<128xi32> -> tensor<16xi32>
  tt.return
}

// CHECK-LABEL: @elementwise(
tt.func @elementwise(%i: i64, %p: !tt.ptr<f32>, %x: tensor<64xf32>, %n: tensor<64xi32>) {
  // CHECK: %ptr = tt.int_to_ptr %i : i64 -> !tt.ptr<f32>
  %ptr = tt.int_to_ptr %i : i64 -> !tt.ptr<f32>
  // CHECK: %int = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %int = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  // CHECK: %bits = tt.bitcast %x : tensor<64xf32> -> tensor<64xi32>
  %bits = tt.bitcast %x : tensor<64xf32> -> tensor<64xi32>
  // CHECK: %narrow = tt.fp_to_fp %x, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
  %narrow = tt.fp_to_fp %x, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
  // CHECK: %wide = tt.fp_to_fp %narrow : tensor<64xf8E5M2> -> tensor<64xf32>
  %wide = tt.fp_to_fp %narrow : tensor<64xf8E5M2> -> tensor<64xf32>
  // CHECK: %clamp = tt.clampf %x, %x, %x, propagateNan = all : tensor<64xf32>
  %clamp = tt.clampf %x, %x, %x, propagateNan = all : tensor<64xf32>
  // CHECK: %sqrt = tt.precise_sqrt %x : tensor<64xf32>
  %sqrt = tt.precise_sqrt %x : tensor<64xf32>
  // CHECK: %div = tt.precise_divf %x, %x : tensor<64xf32>
  %div = tt.precise_divf %x, %x : tensor<64xf32>
  // CHECK: %approx = tt.approx_divf %x, %x : tensor<64xf32>
  %approx = tt.approx_divf %x, %x : tensor<64xf32>
  // CHECK: %high = tt.mulhiui %n, %n : tensor<64xi32>
  %high = tt.mulhiui %n, %n : tensor<64xi32>
  // CHECK: %extern = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<64xf32>) -> tensor<64xf32>
  %extern = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: %asm = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %n : tensor<64xi32> -> tensor<64xi32>
  %asm = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %n : tensor<64xi32> -> tensor<64xi32>
  // CHECK: %clock = tt.elementwise_inline_asm "mov.u32 $0, %clock;" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  %clock = tt.elementwise_inline_asm "mov.u32 $0, %clock;" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  tt.return
}

// Pointers: `%p` is one, `%ps` are many.
// CHECK-LABEL: @memory(
tt.func @memory(%p: !tt.ptr<f32>, %ps: tensor<64x!tt.ptr<f32>>, %i: tensor<64xi32>, %m: tensor<64xi1>, %v: tensor<64xf32>, %c: !tt.ptr<f32, "constant">) {
  // CHECK: %moved = tt.addptr %ps, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %moved = tt.addptr %ps, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  // CHECK: %scalar = tt.load %p : !tt.ptr<f32>
  %scalar = tt.load %p : !tt.ptr<f32>
  // CHECK: %constant = tt.load %c : !tt.ptr<f32, "constant">
  %constant = tt.load %c : !tt.ptr<f32, "constant">
  // CHECK: %load = tt.load %ps, %m, %v {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, isVolatile = true} : tensor<64x!tt.ptr<f32>>
  %load = tt.load %ps, %m, %v {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, isVolatile = true} : tensor<64x!tt.ptr<f32>>
  // CHECK: tt.store %ps, %v : tensor<64x!tt.ptr<f32>>
  tt.store %ps, %v : tensor<64x!tt.ptr<f32>>
  // CHECK: tt.store %ps, %v, %m {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>, ignore_cta} : tensor<64x!tt.ptr<f32>>
  tt.store %ps, %v, %m {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>, ignore_cta} : tensor<64x!tt.ptr<f32>>
  // CHECK: tt.grid_dependency_wait
  tt.grid_dependency_wait
  // CHECK: tt.grid_dependency_launch_dependents
  tt.grid_dependency_launch_dependents
  tt.return
}

// CHECK-LABEL: @atomics(
tt.func @atomics(%p: !tt.ptr<i32>, %ps: tensor<64x!tt.ptr<f32>>, %v: i32, %vs: tensor<64xf32>, %m: tensor<64xi1>, %t: i64) {
  // CHECK: %load = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32
  %load = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32
  // CHECK: tt.atomic_store release, sys, %p, %v : !tt.ptr<i32>
  tt.atomic_store release, sys, %p, %v : !tt.ptr<i32>
  // CHECK: %poll = tt.atomic_poll relaxed, gpu, %p, %v timeout %t : !tt.ptr<i32>, i32 -> i1
  %poll = tt.atomic_poll relaxed, gpu, %p, %v timeout %t : !tt.ptr<i32>, i32 -> i1
  // CHECK: %add = tt.atomic_rmw fadd, acq_rel, gpu, %ps, %vs, %m : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
  %add = tt.atomic_rmw fadd, acq_rel, gpu, %ps, %vs, %m : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
  // CHECK: %exch = tt.atomic_rmw exch, relaxed, cta, %p, %v : (!tt.ptr<i32>, i32) -> i32
  %exch = tt.atomic_rmw exch, relaxed, cta, %p, %v : (!tt.ptr<i32>, i32) -> i32
  // CHECK: %cas = tt.atomic_cas acq_rel, gpu, %p, %v, %v : (!tt.ptr<i32>, i32, i32) -> i32
  %cas = tt.atomic_cas acq_rel, gpu, %p, %v, %v : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}

// CHECK-LABEL: @dots(
tt.func @dots(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %c: tensor<64x64xf32>, %p: tensor<64x16xi8>, %s: tensor<64x1xi8>, %q: tensor<32x64xf8E4M3FN>) {
  // CHECK: %ieee = tt.dot %a, %b, %c : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %ieee = tt.dot %a, %b, %c : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  // CHECK: %tf32 = tt.dot %a, %b, %c, inputPrecision = tf32 {maxNumImpreciseAcc = 32 : i32} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %tf32 = tt.dot %a, %b, %c, inputPrecision = tf32 {maxNumImpreciseAcc = 32 : i32} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  // CHECK: %scaled = tt.dot_scaled %p scale %s, %q, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<64x16xi8>, tensor<64x1xi8> * tensor<32x64xf8E4M3FN> -> tensor<64x64xf32>
  %scaled = tt.dot_scaled %p scale %s, %q, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<64x16xi8>, tensor<64x1xi8> * tensor<32x64xf8E4M3FN> -> tensor<64x64xf32>
  tt.return
}

// CHECK-LABEL: @descriptors(
tt.func @descriptors(%p: !tt.ptr<f16>, %n: i32, %s: i64, %rows: tensor<32xi32>, %v: tensor<64x64xf16>, %vs: tensor<32x64xf16>) {
  // CHECK: %desc = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f16>, <64x64xf16>
  %desc = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f16>, <64x64xf16>
  // CHECK: %nan = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] {padding = 2 : i32} : <f16>, <1x64xf16>
  %nan = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] {padding = 2 : i32} : <f16>, <1x64xf16>
  // CHECK: %load = tt.descriptor_load %desc[%n, %n] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  %load = tt.descriptor_load %desc[%n, %n] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  // CHECK: tt.descriptor_store %desc[%n, %n], %v : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.descriptor_store %desc[%n, %n], %v : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  // CHECK: tt.descriptor_reduce add, %desc[%n, %n], %v : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.descriptor_reduce add, %desc[%n, %n], %v : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  // CHECK: %gather = tt.descriptor_gather %nan[%rows, %n] : (!tt.tensordesc<1x64xf16>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  %gather = tt.descriptor_gather %nan[%rows, %n] : (!tt.tensordesc<1x64xf16>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  // CHECK: tt.descriptor_scatter %nan[%rows, %n], %vs : !tt.tensordesc<1x64xf16>, tensor<32xi32>, i32, tensor<32x64xf16>
  tt.descriptor_scatter %nan[%rows, %n], %vs : !tt.tensordesc<1x64xf16>, tensor<32xi32>, i32, tensor<32x64xf16>
  tt.return
}

// CHECK-LABEL: @debug(
tt.func @debug(%c: tensor<64xi1>, %n: tensor<64xi32>) {
  // CHECK: tt.print " nothing" {hex = false, isSigned = array<i32>}
  tt.print " nothing" {hex = false, isSigned = array<i32>}
  // CHECK: tt.print " n: " {hex = true, isSigned = array<i32: 1>} : %n : tensor<64xi32>
  tt.print " n: " {hex = true, isSigned = array<i32: 1>} : %n : tensor<64xi32>
  // CHECK: tt.assert %c, "n must be positive" : tensor<64xi1>
  tt.assert %c, "n must be positive" : tensor<64xi1>
  tt.return
}

// Operations with a region have no syntax but the generic one.
// CHECK-LABEL: @regions(
tt.func @regions(%x: tensor<64x32xf32>, %n: tensor<64x32xi32>) {
  // CHECK: %sum, %which = "tt.reduce"(%x, %n) <{axis = 1 : i32}> ({
  %sum, %which = "tt.reduce"(%x, %n) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
    // CHECK: tt.reduce.return %a, %i : f32, i32
    tt.reduce.return %a, %i : f32, i32
  }) : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<64xf32>, tensor<64xi32>)
  // CHECK: %scan = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  %scan = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%first: f32, %second: f32):
    // CHECK: tt.scan.return %first : f32
    tt.scan.return %first : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  // CHECK: %map = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  %map = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%element: f32):
    // CHECK: tt.map_elementwise.return %element : f32
    tt.map_elementwise.return %element : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  tt.return
}
