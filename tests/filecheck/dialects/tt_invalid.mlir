// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation; the same operation used rightly stands in tt_ops.mlir.

tt.func @elements() {
  // expected-error @below {{the number of elements of a tensor must be a power of two, tensor<3xi32> has 3}}
  %0 = tt.make_range {end = 3 : i32, start = 0 : i32} : tensor<3xi32>
  tt.return
}

// -----

tt.func @too_many(%x: f32) {
  // expected-error @below {{a tensor may have at most 1048576 elements}}
  %0 = tt.splat %x : f32 -> tensor<2097152xf32>
  tt.return
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @layout_rank(%x: f32) {
  // expected-error @below {{has 1 dimensions, the tensor has 2}}
  %0 = tt.splat %x : f32 -> tensor<64x64xf32, #blocked>
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @layout_warps(%x: f32) {
  // expected-error @below {{is for 4 warps, but 8 run this code}}
  %0 = tt.splat %x : f32 -> tensor<64xf32, #blocked>
  tt.return
}
}

// -----

tt.func @mixed(%x: f32, %p: !tt.ptr<f32>, %i: tensor<64xi32>) {
  // expected-error @below {{scalars and tensors cannot be mixed}}
  %0 = tt.addptr %p, %i : !tt.ptr<f32>, tensor<64xi32>
  tt.return
}

// -----

tt.func @shapes(%x: tensor<64xf32>) {
  // expected-error @below {{operands and results must have one shape, found tensor<64xf32> and tensor<32xi32>}}
  %0 = tt.bitcast %x : tensor<64xf32> -> tensor<32xi32>
  tt.return
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#two = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @layouts(%x: tensor<64xf32, #blocked>) {
  // expected-error @below {{operands and results must have one layout}}
  %0 = tt.bitcast %x : tensor<64xf32, #blocked> -> tensor<64xi32, #two>
  tt.return
}

// -----

tt.func @bitcast_bits(%x: tensor<64xf32>) {
  // expected-error @below {{cannot cast 32 bits of f32 to 16 bits of i16}}
  %0 = tt.bitcast %x : tensor<64xf32> -> tensor<64xi16>
  tt.return
}

// -----

tt.func @bitcast_pointer(%x: !tt.ptr<f32>) {
  // expected-error @below {{use tt.ptr_to_int or tt.int_to_ptr}}
  %0 = tt.bitcast %x : !tt.ptr<f32> -> i64
  tt.return
}

// -----

tt.func @rounding(%x: tensor<64xf32>) {
  // expected-error @below {{a conversion from 32 to 8 bits needs a rounding mode}}
  %0 = tt.fp_to_fp %x : tensor<64xf32> -> tensor<64xf8E5M2>
  tt.return
}

// -----

tt.func @rounding_word(%x: tensor<64xf32>) {
  // expected-error @below {{expected one of rtz, rtne, found 'up'}}
  %0 = tt.fp_to_fp %x, rounding = up : tensor<64xf32> -> tensor<64xf8E5M2>
  tt.return
}

// -----

tt.func @float(%x: tensor<64xi32>) {
  // expected-error @below {{expected a floating-point number or a tensor of that, found tensor<64xi32>}}
  %0 = "tt.precise_sqrt"(%x) : (tensor<64xi32>) -> tensor<64xi32>
  tt.return
}

// -----

tt.func @one_type(%x: f32) {
  // expected-error @below {{expected the type f32, found f64}}
  %0 = "tt.precise_divf"(%x, %x) : (f32, f32) -> f64
  tt.return
}

// -----

tt.func @packed(%x: tensor<64xi32>) {
  // expected-error @below {{packed_element must be at least 1, found 0}}
  %0 = tt.elementwise_inline_asm "" {constraints = "", packed_element = 0 : i32, pure = true} %x : tensor<64xi32> -> tensor<64xi32>
  tt.return
}

// -----

tt.func @map_pack(%x: tensor<64x32xf32>) {
  // expected-error @below {{pack must be at least 1, found 0}}
  %0 = "tt.map_elementwise"(%x) <{pack = 0 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  tt.return
}

// -----

tt.func @map_arguments(%x: tensor<64x32xf32>) {
  // expected-error @below {{the region must take 2 elements of each operand}}
  %0 = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a, %a : f32, f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  tt.return
}

// -----

// As many elements as a number may name are counted, not listed.
tt.func @map_arguments_without_end(%x: tensor<64x32xf32>) {
  // expected-error @below {{the region must take 2143289344 elements of each operand}}
  %0 = "tt.map_elementwise"(%x) <{pack = 2143289344 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  tt.return
}

// -----

tt.func @map_results(%x: tensor<64x32xf32>) {
  %0 = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    // expected-error @below {{the region must return 1 elements of each result}}
    tt.map_elementwise.return %a, %a : f32, f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  tt.return
}

// -----

tt.func @range_size() {
  // expected-error @below {{the range has 64 elements, the result has shape}}
  %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<32xi32>
  tt.return
}

// -----

tt.func @range_order() {
  // expected-error @below {{the range must not end before it starts, found 64 to 0}}
  %0 = tt.make_range {end = 0 : i32, start = 64 : i32} : tensor<64xi32>
  tt.return
}

// -----

tt.func @range_type() {
  // expected-error @below {{a range has i32 elements, found i64}}
  %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi64>
  tt.return
}

// -----

tt.func @splat(%x: f32) {
  // expected-error @below {{cannot splat f32 into tensor<64xi32>}}
  %0 = tt.splat %x : f32 -> tensor<64xi32>
  tt.return
}

// -----

tt.func @unsplat(%x: tensor<64xf32>) {
  // expected-error @below {{the source must have one element, found tensor<64xf32>}}
  %0 = tt.unsplat %x : tensor<64xf32>
  tt.return
}

// -----

tt.func @expand_axis(%x: tensor<64xf32>) {
  // expected-error @below {{axis 2 is outside the 2 dimensions of the result}}
  %0 = tt.expand_dims %x {axis = 2 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  tt.return
}

// -----

tt.func @expand_shape(%x: tensor<64xf32>) {
  // expected-error @below {{expected the shape}}
  %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  tt.return
}

// -----

tt.func @expand_type(%x: tensor<64xf32>) {
  // expected-error @below {{the element type must stay, found f32 and i32}}
  %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xi32>
  tt.return
}

// -----

tt.func @reshape(%x: tensor<64xf32>) {
  // expected-error @below {{cannot reshape}}
  %0 = tt.reshape %x : tensor<64xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @broadcast(%x: tensor<2x64xf32>) {
  // expected-error @below {{cannot broadcast the shape}}
  %0 = tt.broadcast %x : tensor<2x64xf32> -> tensor<4x64xf32>
  tt.return
}

// -----

tt.func @order(%x: tensor<2x64xf32>) {
  // expected-error @below {{is no permutation of the 2 dimensions}}
  %0 = tt.trans %x {order = array<i32: 0, 0>} : tensor<2x64xf32> -> tensor<64x2xf32>
  tt.return
}

// -----

tt.func @trans(%x: tensor<2x64xf32>) {
  // expected-error @below {{the result shape}}
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<2x64xf32> -> tensor<2x64xf32>
  tt.return
}

// -----

tt.func @cat_type(%x: tensor<64xf32>) {
  // expected-error @below {{the element type must stay, found tensor<64xf32> and tensor<128xi32>}}
  %0 = tt.cat %x, %x : tensor<64xf32> -> tensor<128xi32>
  tt.return
}

// -----

tt.func @cat_shape(%x: tensor<64xf32>) {
  // expected-error @below {{two tensors of shape}}
  %0 = tt.cat %x, %x : tensor<64xf32> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @split_shape(%x: tensor<64xf32>) {
  // expected-error @below {{the last dimension must be 2, found the shape}}
  %0, %1 = tt.split %x : tensor<64xf32> -> tensor<32xf32>
  tt.return
}

// -----

tt.func @split_half(%x: tensor<64x2xf32>) {
  // expected-error @below {{must have shape}}
  %0, %1 = tt.split %x : tensor<64x2xf32> -> tensor<32xf32>
  tt.return
}

// -----

tt.func @join_type(%x: tensor<64xf32>) {
  // expected-error @below {{the element type must stay, found tensor<64xf32> and tensor<64x2xi32>}}
  %0 = tt.join %x, %x : tensor<64xf32> -> tensor<64x2xi32>
  tt.return
}

// -----

tt.func @gather_rank(%x: tensor<64xf32>, %i: tensor<8x8xi32>) {
  // expected-error @below {{the indices must have 1 dimensions, found 2}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<8x8xi32>) -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @gather_axis(%x: tensor<64xf32>, %i: tensor<64xi32>) {
  // expected-error @below {{axis 1 is outside the 1 dimensions}}
  %0 = tt.gather %x[%i] {axis = 1 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @gather_size(%x: tensor<8x8xf32>, %i: tensor<8x16xi32>) {
  // expected-error @below {{the indices have 16 elements in dimension 1, the source has 8}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<8x8xf32>, tensor<8x16xi32>) -> tensor<8x16xf32>
  tt.return
}

// -----

tt.func @gather_result(%x: tensor<64xf32>, %i: tensor<64xi32>) {
  // expected-error @below {{the result must have the shape of the indices, found tensor<32xf32>}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<32xf32>
  tt.return
}

// -----

tt.func @gather_type(%x: tensor<64xf32>, %i: tensor<64xi32>) {
  // expected-error @below {{the element type must stay, found tensor<64xf32> and tensor<64xf16>}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf16>
  tt.return
}

// -----

tt.func @load_pointer(%x: tensor<64xf32>) {
  // expected-error @below {{expected a pointer or a tensor of that, found tensor<64xf32>}}
  %0 = "tt.load"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @load_mask(%p: tensor<64x!tt.ptr<f32>>, %m: i1) {
  // expected-error @below {{the mask must be tensor<64xi1>, found i1}}
  %0 = "tt.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, i1) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @load_other(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %o: tensor<64xi32>) {
  // expected-error @below {{the value for masked elements must be tensor<64xf32>, found tensor<64xi32>}}
  %0 = "tt.load"(%p, %m, %o) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xi32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @load_result(%p: !tt.ptr<f32>) {
  // expected-error @below {{the loaded value must be f32, found f16}}
  %0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f16
  tt.return
}

// -----

tt.func @store_value(%p: !tt.ptr<f32>, %v: i32) {
  // expected-error @below {{the stored value must be f32, found i32}}
  "tt.store"(%p, %v) : (!tt.ptr<f32>, i32) -> ()
  tt.return
}

// -----

tt.func @atomic_load(%p: !tt.ptr<i32>) {
  // expected-error @below {{an atomic load must be relaxed or acquire}}
  %0 = tt.atomic_load release, gpu, %p : (!tt.ptr<i32>) -> i32
  tt.return
}

// -----

tt.func @atomic_store(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{an atomic store must be relaxed or release}}
  tt.atomic_store acquire, gpu, %p, %v : !tt.ptr<i32>
  tt.return
}

// -----

tt.func @poll_pointer(%p: !tt.ptr<i32>, %v: i64) {
  // expected-error @below {{the pointer must be !tt.ptr<i64>, found !tt.ptr<i32>}}
  %0 = tt.atomic_poll relaxed, gpu, %p, %v : !tt.ptr<i32>, i64 -> i1
  tt.return
}

// -----

tt.func @poll_bits(%p: !tt.ptr<i8>, %v: i8) {
  // expected-error @below {{polls values of 16, 32 or 64 bits, found 8 bits}}
  %0 = tt.atomic_poll relaxed, gpu, %p, %v : !tt.ptr<i8>, i8 -> i1
  tt.return
}

// -----

tt.func @poll_order(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{polling must be relaxed or acquire}}
  %0 = tt.atomic_poll release, gpu, %p, %v : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

tt.func @rmw_pointer(%p: !tt.ptr<i32>, %v: i64) {
  // expected-error @below {{the pointer must be !tt.ptr<i64>, found !tt.ptr<i32>}}
  %0 = tt.atomic_rmw add, relaxed, gpu, %p, %v : (!tt.ptr<i32>, i64) -> i64
  tt.return
}

// -----

tt.func @rmw_float(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'fadd' takes floating-point values, found i32}}
  %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

tt.func @rmw_integer(%p: !tt.ptr<f32>, %v: f32) {
  // expected-error @below {{'add' takes integers, found f32}}
  %0 = tt.atomic_rmw add, relaxed, gpu, %p, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @cas(%p: !tt.ptr<i32>, %v: i64) {
  // expected-error @below {{the pointer must be !tt.ptr<i64>, found !tt.ptr<i32>}}
  %0 = tt.atomic_cas relaxed, gpu, %p, %v, %v : (!tt.ptr<i32>, i64, i64) -> i64
  tt.return
}

// -----

tt.func @enum_number(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{9 : i32 is no MemSemantic, expected one of 1 (relaxed), 2 (acquire), 3 (release), 4 (acq_rel)}}
  %0 = "tt.atomic_cas"(%p, %v, %v) <{scope = 1 : i32, sem = 9 : i32}> : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}

// -----

tt.func @dot_shapes(%a: tensor<64x32xf32>) {
  // expected-error @below {{shapes do not match: 64x32 * 64x32 -> 64x32}}
  %0 = tt.dot %a, %a, %a : tensor<64x32xf32> * tensor<64x32xf32> -> tensor<64x32xf32>
  tt.return
}

// -----

tt.func @dot_rank(%a: tensor<64xf32>) {
  // expected-error @below {{takes three matrices, or three stacks of them, found 64, 64 and 64}}
  %0 = tt.dot %a, %a, %a : tensor<64xf32> * tensor<64xf32> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @dot_widths(%a: tensor<32x32xf32>, %b: tensor<32x32xf16>) {
  // expected-error @below {{operands must have one element width, found f32 and f16}}
  %0 = tt.dot %a, %b, %a : tensor<32x32xf32> * tensor<32x32xf16> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @dot_integers(%a: tensor<32x32xi8>, %b: tensor<32x32xi32>) {
  // expected-error @below {{integer operands must have one element type, found i8 and i32}}
  %0 = tt.dot %a, %b, %b : tensor<32x32xi8> * tensor<32x32xi32> -> tensor<32x32xi32>
  tt.return
}

// -----

tt.func @scaled_rank(%a: tensor<64xf8E5M2>, %c: tensor<64xf32>) {
  // expected-error @below {{takes matrices, or stacks of them}}
  %0 = tt.dot_scaled %a, %a, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<64xf8E5M2> * tensor<64xf8E5M2> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @scaled_type(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>) {
  // expected-error @below {{lhs elements of type e2m1 are held in i8, found f16}}
  %0 = tt.dot_scaled %a, %a, %c lhs = e2m1 rhs = fp16 {fastMath = false} : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return
}

// -----

tt.func @reduce_axis(%x: tensor<64x32xf32>) {
  // expected-error @below {{axis 2 is outside the 2 dimensions of tensor<64x32xf32>}}
  "tt.reduce"(%x) <{axis = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %b : f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @reduce_operand(%x: tensor<64x32xf32>) {
  // expected-error @below {{needs at least one operand}}
  %0 = "tt.reduce"() <{axis = 0 : i32}> ({
  ^bb0:
    "tt.reduce.return"() : () -> ()
  }) : () -> f32
  tt.return
}

// -----

tt.func @reduce_shapes(%x: tensor<64x32xf32>, %y: tensor<64xf32>) {
  // expected-error @below {{the operands must have one shape, found tensor<64xf32>}}
  %0, %1 = "tt.reduce"(%x, %y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<64x32xf32>, tensor<64xf32>) -> (tensor<32xf32>, tensor<32xf32>)
  tt.return
}

// -----

tt.func @reduce_region(%x: tensor<64x32xf32>) {
  // expected-error @below {{the region must take two elements of each operand}}
  "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: f32):
    tt.reduce.return %b : f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @reduce_return(%x: tensor<64x32xf32>) {
  // expected-error @below {{the region must return one element of each operand}}
  "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %b, %b : f32, f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @reduce_result(%x: tensor<64x32xf32>) {
  // expected-error @below {{tensor<64x32xf32> cannot reduce to tensor<32xf32> along axis 1}}
  "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %b : f32
  }) : (tensor<64x32xf32>) -> tensor<32xf32>
  tt.return
}

// -----

tt.func @reduce_results(%x: tensor<64x32xf32>) {
  // expected-error @below {{has 1 operands but 2 results}}
  "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %b : f32
  }) : (tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  tt.return
}

// -----

tt.func @scan_result(%x: tensor<64x32xf32>) {
  // expected-error @below {{the results must have the types of the operands}}
  "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    tt.scan.return %b : f32
  }) : (tensor<64x32xf32>) -> tensor<64x32xf16>
  tt.return
}

// -----

tt.func @descriptor_rank(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @below {{the block has 2 dimensions, the tensor 1}}
  %0 = tt.make_tensor_descriptor %p, [%n], [%s] : <f16>, <64x64xf16>
  tt.return
}

// -----

tt.func @descriptor_type(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @below {{the elements differ: !tt.ptr<f32> and !tt.tensordesc<64x64xf16>}}
  %0 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f32>, <64x64xf16>
  tt.return
}

// -----

tt.func @descriptor_indices(%d: !tt.tensordesc<64x64xf16>, %n: i32) {
  // expected-error @below {{the descriptor has 2 dimensions, found 1 indices}}
  %0 = tt.descriptor_load %d[%n] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.return
}

// -----

tt.func @descriptor_block(%d: !tt.tensordesc<64x64xf16>, %n: i32) {
  // expected-error @below {{the tensor tensor<64x32xf16> does not have the shape of the block !tt.tensordesc<64x64xf16>}}
  %0 = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<64x64xf16> -> tensor<64x32xf16>
  tt.return
}

// -----

tt.func @descriptor_elements(%d: !tt.tensordesc<64x64xf16>, %n: i32, %v: tensor<64x64xf32>) {
  // expected-error @below {{the descriptor has f16 elements, the tensor f32}}
  tt.descriptor_store %d[%n, %n], %v : !tt.tensordesc<64x64xf16>, tensor<64x64xf32>
  tt.return
}

// -----

tt.func @gather_block(%d: !tt.tensordesc<64x64xf16>, %n: i32, %r: tensor<32xi32>) {
  // expected-error @below {{the block must have one row, found 64x64}}
  %0 = tt.descriptor_gather %d[%r, %n] : (!tt.tensordesc<64x64xf16>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  tt.return
}

// -----

tt.func @gather_offsets(%d: !tt.tensordesc<1x64xf16>, %n: i32, %r: tensor<4x8xi32>) {
  // expected-error @below {{the row offsets must be 1-D, found 2 dimensions}}
  %0 = tt.descriptor_gather %d[%r, %n] : (!tt.tensordesc<1x64xf16>, tensor<4x8xi32>, i32) -> tensor<32x64xf16>
  tt.return
}

// -----

tt.func @scatter_rows(%d: !tt.tensordesc<1x64xf16>, %n: i32, %r: tensor<32xi32>, %v: tensor<16x64xf16>) {
  // expected-error @below {{expected 32 rows of 64 elements, found 16x64}}
  tt.descriptor_scatter %d[%r, %n], %v : !tt.tensordesc<1x64xf16>, tensor<32xi32>, i32, tensor<16x64xf16>
  tt.return
}

// -----

tt.func @tensor(%x: i32) {
  // expected-error @below {{expected a tensor of numbers or pointers, found i32}}
  %0 = "ttg.convert_layout"(%x) : (i32) -> i32
  tt.return
}

// -----

tt.func @reduce_terminator(%x: tensor<64x32xf32>) {
  // expected-error @below {{the region must end in 'tt.reduce.return'}}
  "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %b, %b : f32
  }) : (tensor<64x32xf32>) -> tensor<64xf32>
  tt.return
}

// -----

tt.func @print_signs(%x: tensor<64xi32>) {
  // expected-error @below {{has 1 arguments but 0 signs}}
  tt.print "x" {hex = false, isSigned = array<i32>} : %x : tensor<64xi32>
  tt.return
}

// -----

tt.func @axis() {
  // expected-error @below {{expected one of x, y, z, found 'w'}}
  %0 = tt.get_program_id w : i32
  tt.return
}

// -----

tt.func @return_type(%x: f32) {
  // expected-error @below {{'@return_type' returns nothing, found f32}}
  tt.return %x : f32
  }

// -----

tt.func @unknown(%x: f32) {
  // expected-error @below {{'@undefined' is no function of this module}}
  %0 = tt.call @undefined(%x) : (f32) -> f32
  tt.return
}

// -----

tt.func @recursive(%x: f32) {
  // expected-error @below {{'@recursive' has 1 arguments, the call 0}}
  tt.call @recursive() : () -> ()
  tt.return
}

// -----

tt.func @call_type(%x: f32, %y: i32) {
  // expected-error @below {{argument 0 of '@call_type' is f32, found i32}}
  tt.call @call_type(%y, %y) : (i32, i32) -> ()
  tt.return
}

// -----

tt.func @address_space(%x: f32) {
  // expected-error @below {{expected one of "global", "descriptor", "constant", found "stack"}}
  %0 = tt.int_to_ptr %x : f32 -> !tt.ptr<f32, "stack">
  tt.return
}

// -----

tt.func @cache_policy(%p: !tt.ptr<f32>) {
  // expected-error @below {{expected cache_modifier and eviction_policy}}
  %0 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @cache_word(%p: !tt.ptr<f32>) {
  // expected-error @below {{expected cache_modifier and eviction_policy, once each}}
  %0 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, l1 = none>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @one_type_for_each_operand(%s: f32) {
  // expected-error @below {{expected one type for 1 operand(s), found f32, f32}}
  %0 = tt.splat %s : (f32, f32) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @block_of_another_rank(%x: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error @below {{the block tensor<8xf32> and the tensor of 2 dimensions differ in rank}}
  %p = tt.make_tensor_ptr %x, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : <tensor<8xf32>>
  tt.return
}

// -----

tt.func @no_block(%x: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error @below {{expected a pointer to a tensor, found !tt.ptr<f32>}}
  %p = tt.make_tensor_ptr %x, [%n], [%n], [%i] {order = array<i32: 0>} : <f32>
  tt.return
}

// -----

tt.func @advances_too_far(%p: !tt.ptr<tensor<8xf32>>, %i: i32) {
  // expected-error @below {{the block has 1 dimensions, found 2 offsets}}
  %q = tt.advance %p, [%i, %i] : <tensor<8xf32>>
  tt.return
}

// -----

tt.func @boundaries_of_an_element(%p: !tt.ptr<f32>) {
  // expected-error @below {{only a pointer to a block has boundaries (tt.make_tensor_ptr)}}
  %v = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @no_such_boundary(%p: !tt.ptr<tensor<8xf32>>) {
  // expected-error @below {{the block has the dimensions 0 to 0, found (1,)}}
  %v = tt.load %p {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func @no_such_padding(%p: !tt.ptr<tensor<8xf32>>) {
  // expected-error @below {{padding must be 1 (zero) or 2 (nan), found 3 : i32}}
  %v = tt.load %p {boundaryCheck = array<i32: 0>, padding = 3 : i32} : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func @boundaries_that_are_no_array(%p: !tt.ptr<tensor<8xf32>>) {
  // expected-error @below {{boundaryCheck must be an array of dimensions, found 0 : i32}}
  %v = tt.load %p {boundaryCheck = 0 : i32} : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func @block_with_a_mask(%p: !tt.ptr<tensor<8xf32>>, %m: i1, %v: tensor<8xf32>) {
  // expected-error @below {{a pointer to a block takes no mask and no other value: check its boundaries}}
  tt.store %p, %v, %m : !tt.ptr<tensor<8xf32>>
  tt.return
}

// -----

tt.func @another_second_type(%p: !tt.ptr<f32>, %v: f32) {
  // expected-error @below {{expected !tt.ptr<f32> or f32, found f16}}
  tt.store %p, %v : !tt.ptr<f32>, f16
  tt.return
}
