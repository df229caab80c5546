// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#eight = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#linear = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
#generic = #ttg.generic_linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [8, 0]], block = []}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#nvmma3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
#nvmma_t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#fp4 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
#swizzled = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#swizzled2 = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#padded = #ttg.padded_shared<[32:+4, 64:+8] {order = [1, 0], shape = [16, 64]}>
#padded_bases = #ttg.padded_shared<[4:+2] {offset = [[1, 0], [0, 2], [0, 1], [2, 0]], block = []}>
#shared_linear = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 0]]}, alignment = 16>
#partitioned = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #swizzled2}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: @layouts(
tt.func @layouts(%a: tensor<64x64xf16, #blocked>, %b: tensor<64xf16, #ttg.slice<{dim = 1, parent = #blocked}>>, %c: tensor<64x64xf32, #mma>, %d: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %e: tensor<32x8xf32, #linear>, %f: tensor<16x8xf32, #generic>, %g: !ttg.memdesc<16x64xf16, #padded, #smem>, %h: !ttg.memdesc<4x4xf16, #padded_bases, #smem>, %i: !ttg.memdesc<4x4xf16, #shared_linear, #smem>, %j: !ttg.memdesc<64x64xf16, #partitioned, #smem>, %k: !ttg.memdesc<64x64xi8, #fp4, #smem, mutable>) {
  // CHECK: %convert = ttg.convert_layout %c : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #{{.*}}>
  %convert = ttg.convert_layout %c : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
  // CHECK: %shuffle = ttg.convert_layout %d {force_warp_shuffle} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
  %shuffle = ttg.convert_layout %d {force_warp_shuffle} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
  tt.return
}

// CHECK-LABEL: @local(
tt.func @local(%x: tensor<64x64xf16, #blocked>, %token: !ttg.async.token) {
  // CHECK: %buffers = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<3x64x64xf16, #{{.*}}, #smem, mutable>
  %buffers = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<3x64x64xf16, #nvmma, #smem, mutable>
  // CHECK: %constant = ttg.local_alloc %x : (tensor<64x64xf16, #{{.*}}>) -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem>
  %constant = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #nvmma, #smem>
  // CHECK: %c0 = arith.constant 0 : i32
  %c0 = arith.constant 0 : i32
  // CHECK: %buffer = ttg.memdesc_index %buffers[%c0] : !ttg.memdesc<3x64x64xf16, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  %buffer = ttg.memdesc_index %buffers[%c0] : !ttg.memdesc<3x64x64xf16, #nvmma, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: %part = ttg.memdesc_subslice %buffer[0, 32] : !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x32xf16, #{{.*}}, #smem, mutable, 64x64>
  %part = ttg.memdesc_subslice %buffer[0, 32] : !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable> -> !ttg.memdesc<64x32xf16, #nvmma, #smem, mutable, 64x64>
  // CHECK: %trans = ttg.memdesc_trans %buffer {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  %trans = ttg.memdesc_trans %buffer {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma_t, #smem, mutable>
  // CHECK: %reshape = ttg.memdesc_reshape %constant : !ttg.memdesc<64x64xf16, #{{.*}}, #smem> -> !ttg.memdesc<2x32x64xf16, #{{.*}}, #smem>
  %reshape = ttg.memdesc_reshape %constant : !ttg.memdesc<64x64xf16, #nvmma, #smem> -> !ttg.memdesc<2x32x64xf16, #nvmma3, #smem>
  // CHECK: %flat = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #{{.*}}, #smem, mutable>
  %flat = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #swizzled2, #smem, mutable>
  // CHECK: %reinterpret = ttg.memdesc_reinterpret %flat : !ttg.memdesc<64x64xi8, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x16xf32, #{{.*}}, #smem, mutable>
  %reinterpret = ttg.memdesc_reinterpret %flat : !ttg.memdesc<64x64xi8, #swizzled2, #smem, mutable> -> !ttg.memdesc<64x16xf32, #swizzled2, #smem, mutable>
  // CHECK: %load = ttg.local_load %buffer : !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable> -> tensor<64x64xf16, #{{.*}}>
  %load = ttg.local_load %buffer : !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable> -> tensor<64x64xf16, #blocked>
  // CHECK: %later = ttg.local_load %buffer token %token : !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable> -> tensor<64x64xf16, #{{.*}}>
  %later = ttg.local_load %buffer token %token : !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable> -> tensor<64x64xf16, #blocked>
  // CHECK: ttg.local_store %x, %buffer : tensor<64x64xf16, #{{.*}}> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttg.local_store %x, %buffer : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttg.local_dealloc %buffers : !ttg.memdesc<3x64x64xf16, #{{.*}}, #smem, mutable>
  ttg.local_dealloc %buffers : !ttg.memdesc<3x64x64xf16, #nvmma, #smem, mutable>
  tt.return
}

// CHECK-LABEL: @along_an_axis(
tt.func @along_an_axis(%buf: !ttg.memdesc<64xi32, #swizzled, #smem, mutable>, %i: tensor<128xi32, #rows>, %v: tensor<128xi32, #rows>, %m: tensor<128xi1, #rows>) {
  // CHECK: %gather = ttg.local_gather %buf[%i] {axis = 0 : i32} : !ttg.memdesc<64xi32, #{{.*}}, #smem, mutable>, tensor<128xi32, #{{.*}}> -> tensor<128xi32, #{{.*}}>
  %gather = ttg.local_gather %buf[%i] {axis = 0 : i32} : !ttg.memdesc<64xi32, #swizzled, #smem, mutable>, tensor<128xi32, #rows> -> tensor<128xi32, #rows>
  // CHECK: ttg.local_scatter %buf[%i], %v {axis = 0 : i32} : !ttg.memdesc<64xi32, #{{.*}}, #smem, mutable>, tensor<128xi32, #{{.*}}>, tensor<128xi32, #{{.*}}>
  ttg.local_scatter %buf[%i], %v {axis = 0 : i32} : !ttg.memdesc<64xi32, #swizzled, #smem, mutable>, tensor<128xi32, #rows>, tensor<128xi32, #rows>
  // CHECK: %old = ttg.local_atomic_scatter_rmw add, %buf[%i], %v, %m {axis = 0 : i32} : (!ttg.memdesc<64xi32, #{{.*}}, #smem, mutable>, tensor<128xi32, #{{.*}}>, tensor<128xi32, #{{.*}}>, tensor<128xi1, #{{.*}}>) -> tensor<128xi32, #{{.*}}>
  %old = ttg.local_atomic_scatter_rmw add, %buf[%i], %v, %m {axis = 0 : i32} : (!ttg.memdesc<64xi32, #swizzled, #smem, mutable>, tensor<128xi32, #rows>, tensor<128xi32, #rows>, tensor<128xi1, #rows>) -> tensor<128xi32, #rows>
  tt.return
}

// The type of the buffer stands without `!ttg.memdesc`, as MLIR prints a type that can be of one class only.
// CHECK-LABEL: @asynchronous(
tt.func @asynchronous(%p: tensor<64x!tt.ptr<f32>, #rows>, %m: tensor<64xi1, #rows>, %o: tensor<64xf32, #rows>, %buf: !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) {
  // CHECK: %copy = ttg.async_copy_global_to_local %p, %buf mask %m other %o {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>, contiguity = 4 : i32} : tensor<64x!tt.ptr<f32>, #{{.*}}> -> <64xf32, #{{.*}}, #smem, mutable>
  %copy = ttg.async_copy_global_to_local %p, %buf mask %m other %o {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>, contiguity = 4 : i32} : tensor<64x!tt.ptr<f32>, #rows> -> <64xf32, #swizzled, #smem, mutable>
  // CHECK: %group = ttg.async_commit_group tokens %copy
  %group = ttg.async_commit_group tokens %copy
  // CHECK: %all = ttg.async_wait %group {num = 0 : i32}
  %all = ttg.async_wait %group {num = 0 : i32}
  tt.return
}

// CHECK-LABEL: @block(
tt.func @block(%n: i32, %f: tensor<64x32xi8, #blocked>, %buf: !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) {
  // CHECK: ttg.barrier local
  ttg.barrier local
  // CHECK: ttg.barrier local|global_read|tensor_write
  ttg.barrier local|global_read|tensor_write
  // CHECK: ttg.barrier none
  ttg.barrier none
  // CHECK: ttg.barrier all
  ttg.barrier all
  // CHECK: %warp = ttg.warp_id {omitUniformHint}
  %warp = ttg.warp_id {omitUniformHint}
  // CHECK: %scratch = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 256 : i32} : !tt.ptr<i8>
  %scratch = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 256 : i32} : !tt.ptr<i8>
  // CHECK: %unpacked = ttg.fp4_to_fp %f {axis = 1 : i32} : tensor<64x32xi8, #{{.*}}> -> tensor<64x64xf16, #{{.*}}>
  %unpacked = ttg.fp4_to_fp %f {axis = 1 : i32} : tensor<64x32xi8, #blocked> -> tensor<64x64xf16, #wide>
  // CHECK: %sum = ttg.inline_asm "add.s32 $0, $1, $1;" {constraints = "=r,r", pure = true} %n : (i32) -> i32
  %sum = ttg.inline_asm "add.s32 $0, $1, $1;" {constraints = "=r,r", pure = true} %n : (i32) -> i32
  // CHECK: ttg.inline_asm "st.shared.b32 [$0], $1;" {constraints = "r,r", pure = false} %buf, %n : (!ttg.memdesc<64xf32, #{{.*}}, #smem, mutable>, i32) -> ()
  ttg.inline_asm "st.shared.b32 [$0], $1;" {constraints = "r,r", pure = false} %buf, %n : (!ttg.memdesc<64xf32, #swizzled, #smem, mutable>, i32) -> ()
  // CHECK: %stage = ttg.predicate_stage %n, %n, %n maxStage 2 stage 1 : i32 -> i1
  %stage = ttg.predicate_stage %n, %n, %n maxStage 2 stage 1 : i32 -> i1
  // CHECK: %mask = "ttg.mask"(%stage) ({
  %mask = "ttg.mask"(%stage) ({
    // CHECK: ttg.mask.return %n : i32
    ttg.mask.return %n : i32
  }) : (i1) -> i32
  tt.return
}

// A partition sees its captures only, and its tensors are laid out for its own warps.
// CHECK-LABEL: @warp_specialize(
tt.func @warp_specialize(%n: i32, %buf: !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) {
  // CHECK: %result = ttg.warp_specialize(%n, %buf) attributes {requestedRegisters = array<i32: 24, 232>, warpGroupStartIds = array<i32: 4, 12>}
  %result = ttg.warp_specialize(%n, %buf) attributes {requestedRegisters = array<i32: 24, 232>, warpGroupStartIds = array<i32: 4, 12>}
  // CHECK: default {
  default {
    // CHECK: ttg.warp_yield %n : i32
    ttg.warp_yield %n : i32
  }
  // CHECK: partition0(%n0: i32, %buf0: !ttg.memdesc<64xf32, #{{.*}}, #smem, mutable>) num_warps(8) {
  partition0(%n0: i32, %buf0: !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) num_warps(8) {
    // CHECK: %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #{{.*}}>
    %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #eight>
    // CHECK: ttg.warp_return
    ttg.warp_return
  }
  // CHECK: partition1(%n1: i32, %buf1: !ttg.memdesc<64xf32, #{{.*}}, #smem, mutable>) num_warps(1) {
  partition1(%n1: i32, %buf1: !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) num_warps(1) {
    // CHECK: ttg.warp_return
    ttg.warp_return
  } : (i32, !ttg.memdesc<64xf32, #swizzled, #smem, mutable>) -> i32
  tt.return
}
}
