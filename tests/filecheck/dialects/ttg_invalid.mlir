// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation or type; the right use stands in ttg_ops.mlir.

// expected-error @below {{'ttg.blocked' has no parameter 'size', expected one of sizePerThread, threadsPerWarp, warpsPerCTA, order, CGALayout}}
tt.func @layout_parameter(%x: tensor<64xf32, #ttg.blocked<{size = [1]}>>) {
  tt.return
}

// -----

// expected-error @below {{'ttg.blocked' lacks the parameter 'threadsPerWarp'}}
tt.func @layout_missing(%x: tensor<64xf32, #ttg.blocked<{sizePerThread = [1]}>>) {
  tt.return
}

// -----

// expected-error @below {{the parameter 'dim' is given twice}}
tt.func @layout_twice(%x: tensor<64xf32, #ttg.slice<{dim = 1, dim = 1}>>) {
  tt.return
}

// -----

// expected-error @below {{expected an integer, a bool, a list or a layout, found #ttg.shared_memory}}
tt.func @layout_value(%x: tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.shared_memory}>>) {
  tt.return
}

// -----

#smem = #ttg.shared_memory
// expected-error @below {{'ttg.padded_shared' takes either offset and block, or order and shape}}
tt.func @padded(%x: !ttg.memdesc<4xf16, #ttg.padded_shared<[4:+2] {order = [0]}>, #smem>) {
  tt.return
}

// -----

#smem = #ttg.shared_memory
// expected-error @below {{the layout of a memdesc must be a layout attribute, found 1 : i32}}
tt.func @memdesc_layout(%x: !ttg.memdesc<64xf16, 1 : i32, #smem>) {
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
// expected-error @below {{has fewer dimensions than the view}}
tt.func @memdesc_alloc(%x: !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64>) {
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @swizzle_row() {
  // expected-error @below {{a row of 32 elements of 16 bits is shorter than the swizzle of 128 bytes}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @swizzle_rank() {
  // expected-error @below {{the layout has 2 dimensions, the buffer 1}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

tt.func @convert(%x: tensor<64xf32>) {
  // expected-error @below {{changes more than the layout: from tensor<64xf32> to tensor<64xf16>}}
  %0 = ttg.convert_layout %x : tensor<64xf32> -> tensor<64xf16>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @pure_buffer(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>) {
  // expected-error @below {{assembly that takes a buffer can't be pure}}
  %0 = ttg.inline_asm "" {constraints = "=r,r", pure = true} %b : (!ttg.memdesc<64xi32, #plain, #smem, mutable>) -> i32
  tt.return
}

// -----

tt.func @pure_nothing(%x: i32) {
  // expected-error @below {{assembly without a result can't be pure}}
  ttg.inline_asm "" {constraints = "r", pure = true} %x : (i32) -> ()
  tt.return
}

// -----

tt.func @asm_operand(%x: index) {
  // expected-error @below {{expected a number, a pointer, a tensor or a buffer, found index}}
  "ttg.inline_asm"(%x) <{asm_string = "", constraints = "r", pure = false}> : (index) -> ()
  tt.return
}

// -----

tt.func @fp4_axis(%x: tensor<64xi8>) {
  // expected-error @below {{axis 1 is outside the 1 dimensions of tensor<64xi8>}}
  %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64xi8> -> tensor<128xf16>
  tt.return
}

// -----

tt.func @fp4_shape(%x: tensor<64xi8>) {
  // expected-error @below {{expected the shape}}
  %0 = ttg.fp4_to_fp %x {axis = 0 : i32} : tensor<64xi8> -> tensor<64xf16>
  tt.return
}

// -----

tt.func @scratch_bytes() {
  // expected-error @below {{cannot allocate -1 bytes}}
  %0 = ttg.global_scratch_alloc {alignment = 1 : i32, nbytes = -1 : i32} : !tt.ptr<i8>
  tt.return
}

// -----

tt.func @scratch_alignment() {
  // expected-error @below {{the alignment must be a power of two, found 3}}
  %0 = ttg.global_scratch_alloc {alignment = 3 : i32, nbytes = 1 : i32} : !tt.ptr<i8>
  tt.return
}

// -----

tt.func @barrier_mask() {
  // expected-error @below {{32 is no mask of address spaces}}
  "ttg.barrier"() <{addrSpace = 32 : i32}> : () -> ()
  tt.return
}

// -----

tt.func @barrier_none() {
  // expected-error @below {{'none' stands alone}}
  ttg.barrier none|local
  tt.return
}

// -----

tt.func @barrier_word() {
  // expected-error @below {{expected one of none, local, global_read, global_write, tensor_read, tensor_write, all, found 'shared'}}
  ttg.barrier shared
  tt.return
}

// -----

tt.func @mask_end(%p: i1) {
  // expected-error @below {{the region must end in 'ttg.mask.return'}}
  "ttg.mask"(%p) ({
    "ttg.global_scratch_alloc"() <{alignment = 1 : i32, nbytes = 1 : i32}> : () -> !tt.ptr<i8>
  }) : (i1) -> ()
  tt.return
}

// -----

tt.func @mask_result(%p: i1) {
  // expected-error @below {{the region must return the results}}
  %0 = "ttg.mask"(%p) ({
    ttg.mask.return %p : i1
  }) : (i1) -> i32
  tt.return
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @alloc_space() {
  // expected-error @below {{the buffer must be in shared memory}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @alloc_constant() {
  // expected-error @below {{a buffer without an initial value must be mutable}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @alloc_value(%x: tensor<64x64xf32>) {
  // expected-error @below {{differ in shape or element type}}
  %0 = ttg.local_alloc %x : (tensor<64x64xf32>) -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @alloc_part() {
  // expected-error @below {{an allocation cannot be a part of a larger one}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @alloc_alignment() {
  // expected-error @below {{the alignment must be a power of two, found 24}}
  %0 = ttg.local_alloc {alignment = 24 : i32} : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @load_shape(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{differ in shape or element type}}
  %0 = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x32xf16>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @store_constant(%x: tensor<64x64xf16>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>) {
  // expected-error @below {{cannot store into an immutable buffer}}
  ttg.local_store %x, %b : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @gather_axis(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>, %i: tensor<64xi32>) {
  // expected-error @below {{axis 1 is outside the 1 dimensions of the buffer}}
  %0 = ttg.local_gather %b[%i] {axis = 1 : i32} : !ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<64xi32> -> tensor<64xi32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @gather_rank(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>, %i: tensor<8x8xi32>) {
  // expected-error @below {{the indices must have 1 dimensions, found tensor<8x8xi32>}}
  %0 = ttg.local_gather %b[%i] {axis = 0 : i32} : !ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<8x8xi32> -> tensor<8x8xi32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @gather_shape(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>, %i: tensor<64xi32>) {
  // expected-error @below {{values and indices must have one shape, found tensor<32xi32> and tensor<64xi32>}}
  %0 = ttg.local_gather %b[%i] {axis = 0 : i32} : !ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<64xi32> -> tensor<32xi32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @scatter_type(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>, %i: tensor<64xi32>, %v: tensor<64xf32>) {
  // expected-error @below {{the buffer has i32 elements, the tensor f32}}
  ttg.local_scatter %b[%i], %v {axis = 0 : i32} : !ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<64xi32>, tensor<64xf32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @atomic_float(%b: !ttg.memdesc<64xi32, #plain, #smem, mutable>, %i: tensor<64xi32>) {
  // expected-error @below {{'fadd' takes floating-point values, found i32}}
  %0 = ttg.local_atomic_scatter_rmw fadd, %b[%i], %i {axis = 0 : i32} : (!ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @atomic_integer(%b: !ttg.memdesc<64xf32, #plain, #smem, mutable>, %i: tensor<64xi32>, %v: tensor<64xf32>) {
  // expected-error @below {{'add' takes integers, found f32}}
  %0 = ttg.local_atomic_scatter_rmw add, %b[%i], %v {axis = 0 : i32} : (!ttg.memdesc<64xf32, #plain, #smem, mutable>, tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @index_shape(%b: !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{the result must drop the first dimension of}}
  %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#other = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @index_layout(%b: !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{the layout must stay: from}}
  %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #other, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @index_type(%b: !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{the element type must stay: from}}
  %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xi16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @index_constant(%b: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32) {
  // expected-error @below {{a view of an immutable buffer cannot be mutable}}
  %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @reshape_space(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{the memory space must stay: from}}
  %0 = ttg.memdesc_reshape %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @reshape_size(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{cannot reshape}}
  %0 = ttg.memdesc_reshape %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @subslice_rank(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{source, result and offsets must have one rank, found 2, 2 and 1}}
  %0 = ttg.memdesc_subslice %b[0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#other = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @subslice_layout(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{the layout must stay: from}}
  %0 = ttg.memdesc_subslice %b[0, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #other, #smem, mutable, 64x64>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @subslice_alloc(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{both are parts of one allocation: from}}
  %0 = ttg.memdesc_subslice %b[0, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @subslice_outside(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{elements 64 to 95 of dimension 0 are outside of its 64}}
  %0 = ttg.memdesc_subslice %b[64, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 64x64>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @subslice_offset(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{offset 16 of dimension 0 is no multiple of its size 32}}
  %0 = ttg.memdesc_subslice %b[16, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 64x64>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @trans_shape(%b: !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{the result shape}}
  %0 = ttg.memdesc_trans %b {order = array<i32: 1, 0, 2>} : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @reinterpret_space(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{the memory space must stay: from}}
  %0 = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @reinterpret_size(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
  // expected-error @below {{the result takes 24576 bytes, the source has 8192}}
  %0 = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @copy_mask(%p: tensor<64x!tt.ptr<i32>>, %m: tensor<32xi1>, %b: !ttg.memdesc<64xi32, #plain, #smem, mutable>) {
  // expected-error @below {{the mask must be tensor<64xi1>, found tensor<32xi1>}}
  %0 = "ttg.async_copy_global_to_local"(%p, %b, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (tensor<64x!tt.ptr<i32>>, !ttg.memdesc<64xi32, #plain, #smem, mutable>, tensor<32xi1>) -> !ttg.async.token
  tt.return
}

// -----

tt.func @wait_count() {
  // expected-error @below {{the number of groups in flight can't be negative: -1}}
  %0 = ttg.async_wait {num = -1 : i32}
  tt.return
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @ws_power() {
  // expected-error @below {{a partition needs a power of two of warps, partition 0 has 3}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(3) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @ws_total() {
  // expected-error @below {{has 36 warps in all, a thread block has at most 32}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(32) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

tt.func @ws_register_count() {
  // expected-error @below {{has 1 partitions but 2 register counts}}
  ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24, 24>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}

// -----

tt.func @ws_actual() {
  // expected-error @below {{needs 2 actual register counts, found 1}}
  ttg.warp_specialize() attributes {actualRegisters = array<i32: 24>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}

// -----

tt.func @ws_start() {
  // expected-error @below {{has 1 partitions but 2 start ids}}
  ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4, 8>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}

// -----

tt.func @ws_captures(%x: i32) {
  ttg.warp_specialize(%x)
  default {
    ttg.warp_yield
  }
  // expected-error @below {{the arguments of partition 0 do not match the captures}}
  partition0(%a: i64) num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// -----

tt.func @ws_nested() {
  ttg.warp_specialize()
  default {
  // expected-error @below {{cannot stand inside another 'ttg.warp_specialize'}}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}

// -----

tt.func @ws_yield_count() {
  %0 = ttg.warp_specialize()
  default {
  // expected-error @below {{yields 0 values, 'ttg.warp_specialize' has 1 results}}
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> i32
  tt.return
}

// -----

tt.func @ws_yield_type(%x: i64) {
  %0 = ttg.warp_specialize()
  default {
  // expected-error @below {{value 0 must be i32, found i64}}
    ttg.warp_yield %x : i64
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> i32
  tt.return
}

// -----

tt.func @ws_counts() {
  // expected-error @below {{has 1 partitions but 2 warp counts}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4, 4>}> ({
    ttg.warp_yield
  }, {
    "ttg.warp_specialize.partitions"() ({
      ttg.warp_return
    }) : () -> ()
  }) : () -> ()
  tt.return
}

// -----

tt.func @ws_holder() {
  // expected-error @below {{expected the partitions in a `ttg.warp_specialize.partitions`}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32>}> ({
    ttg.warp_yield
  }, {
    ttg.warp_yield
  }) : () -> ()
  tt.return
}
