// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#rows = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#reduced = #ttg.slice<{dim = 1, parent = #blocked}>
#clc = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#nvmma8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#nvmma8b = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:103", "ttg.threads-per-warp" = 32 : i32} {

// An mbarrier is a memdesc of shape 1xi64.
// CHECK-LABEL: @barriers(
tt.func @barriers(%phase: i32, %pred: i1, %buf: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>) {
  // CHECK: %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.fence_async_shared {bCluster = false}
  ttng.fence_async_shared {bCluster = false}
  // CHECK: ttng.barrier_expect %bar, 8192, %pred : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.barrier_expect %bar, 8192, %pred : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.wait_barrier %bar, %phase, %pred deps %buf : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>, !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttng.wait_barrier %bar, %phase, %pred deps %buf : !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.arrive_barrier %bar, 2, %pred : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.arrive_barrier %bar, 2, %pred : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.async_copy_mbarrier_arrive %bar {noIncrement} : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.async_copy_mbarrier_arrive %bar {noIncrement} : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}

// CHECK-LABEL: @tma(
tt.func @tma(%d: !tt.tensordesc<64x64xf16, #nvmma>, %row: !tt.tensordesc<1x64xf16, #nvmma>, %im2col: !ttng.tensordesc_im2col<64x64xf16, #nvmma>, %buf: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>, %rows_buf: !ttg.memdesc<32x64xf16, #nvmma, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %o: i16, %rows: tensor<32xi32, #rows>, %pred: i1) {
  // CHECK: ttng.async_tma_copy_global_to_local %d[%i, %i] %buf, %bar, %pred {cachePolicy = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>} : !tt.tensordesc<64x64xf16, #{{.*}}>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %buf, %bar, %pred {cachePolicy = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>} : !tt.tensordesc<64x64xf16, #nvmma>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.async_tma_copy_global_to_local %im2col[%i, %i, %i, %i] offsets = [%o, %o] %buf, %bar, %pred : !ttng.tensordesc_im2col<64x64xf16, #{{.*}}>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttng.async_tma_copy_global_to_local %im2col[%i, %i, %i, %i] offsets = [%o, %o] %buf, %bar, %pred : !ttng.tensordesc_im2col<64x64xf16, #nvmma>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.async_tma_copy_local_to_global %d[%i, %i] %buf : !tt.tensordesc<64x64xf16, #{{.*}}>, !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%i, %i] %buf : !tt.tensordesc<64x64xf16, #nvmma>, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.async_tma_reduce add, %d[%i, %i] %buf : !tt.tensordesc<64x64xf16, #{{.*}}>, !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
  ttng.async_tma_reduce add, %d[%i, %i] %buf : !tt.tensordesc<64x64xf16, #nvmma>, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.async_tma_gather %row[%rows, %i] %rows_buf, %bar, %pred : !tt.tensordesc<1x64xf16, #{{.*}}>, tensor<32xi32, #{{.*}}>, i32, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>, !ttg.memdesc<32x64xf16, #{{.*}}, #smem, mutable>, i1
  ttng.async_tma_gather %row[%rows, %i] %rows_buf, %bar, %pred : !tt.tensordesc<1x64xf16, #nvmma>, tensor<32xi32, #rows>, i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<32x64xf16, #nvmma, #smem, mutable>, i1
  // CHECK: ttng.async_tma_scatter %row[%rows, %i] %rows_buf : !tt.tensordesc<1x64xf16, #{{.*}}>, tensor<32xi32, #{{.*}}>, i32, !ttg.memdesc<32x64xf16, #{{.*}}, #smem, mutable>
  ttng.async_tma_scatter %row[%rows, %i] %rows_buf : !tt.tensordesc<1x64xf16, #nvmma>, tensor<32xi32, #rows>, i32, !ttg.memdesc<32x64xf16, #nvmma, #smem, mutable>
  // CHECK: ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  tt.return
}

// CHECK-LABEL: @tensormaps(
tt.func @tensormaps(%p: !tt.ptr<i8>, %base: !tt.ptr<f16>, %n: i32, %s: i64) {
  // CHECK: ttng.tensormap_create %p, %base, [%n, %n], [%n, %n], [%s], [%n, %n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
  ttng.tensormap_create %p, %base, [%n, %n], [%n, %n], [%s], [%n, %n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
  // CHECK: ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
  ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
  // CHECK: %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #{{.*}}>
  %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #nvmma>
  tt.return
}

// CHECK-LABEL: @wgmma(
tt.func @wgmma(%a: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma>, %use: i1) {
  // CHECK: %dot = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #{{.*}}, #smem> * !ttg.memdesc<64x64xf16, #{{.*}}, #smem> -> tensor<64x64xf32, #mma>
  %dot = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma>
  // CHECK: %async = ttng.warp_group_dot %a, %b, %dot, %use {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #{{.*}}, #smem> * !ttg.memdesc<64x64xf16, #{{.*}}, #smem> -> tensor<64x64xf32, #mma>
  %async = ttng.warp_group_dot %a, %b, %dot, %use {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma>
  // CHECK: %done = ttng.warp_group_dot_wait %async {pendings = 0 : i32} : tensor<64x64xf32, #mma>
  %done = ttng.warp_group_dot_wait %async {pendings = 0 : i32} : tensor<64x64xf32, #mma>
  // CHECK: %packed = ttng.packed_arith add %dot, %dot : (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
  %packed = ttng.packed_arith add %dot, %dot : (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
  tt.return
}

// CHECK-LABEL: @tensor_memory(
tt.func @tensor_memory(%v: tensor<128x64xf32, #blocked>, %pred: i1, %raw: !ttg.memdesc<128x64xf32, #nvmma32, #smem>) {
  // CHECK: %buffer = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  %buffer = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %filled = ttng.tmem_alloc %v : (tensor<128x64xf32, #{{.*}}>) -> !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory>
  %filled = ttng.tmem_alloc %v : (tensor<128x64xf32, #blocked>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
  // CHECK: %tracked, %t0 = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>, !ttg.async.token)
  %tracked, %t0 = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
  // CHECK: %t1 = ttng.tmem_store %v, %tracked[%t0], %pred : tensor<128x64xf32, #{{.*}}> -> !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  %t1 = ttng.tmem_store %v, %tracked[%t0], %pred : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %x, %t2 = ttng.tmem_load %tracked[%t1] : !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #{{.*}}>
  %x, %t2 = ttng.tmem_load %tracked[%t1] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>
  // CHECK: ttng.tmem_store %v, %buffer, %pred : tensor<128x64xf32, #{{.*}}> -> !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  ttng.tmem_store %v, %buffer, %pred : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %y, %least = ttng.tmem_load %buffer {NaN = true, abs = false, redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #{{.*}}>, tensor<128xf32, #{{.*}}>
  %y, %least = ttng.tmem_load %buffer {NaN = true, abs = false, redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>, tensor<128xf32, #reduced>
  // CHECK: ttng.tmem_wait load
  ttng.tmem_wait load
  // CHECK: %half = ttng.tmem_subslice %buffer {offset = 32 : i32} : !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #{{.*}}, #ttng.tensor_memory, mutable, 128x64>
  %half = ttng.tmem_subslice %buffer {offset = 32 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
  // CHECK: ttng.tmem_copy %raw, %buffer : !ttg.memdesc<128x64xf32, #{{.*}}, #smem>, !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  ttng.tmem_copy %raw, %buffer : !ttg.memdesc<128x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// CHECK-LABEL: @tcgen05(
tt.func @tcgen05(%a: !ttg.memdesc<128x128xf8E5M2, #nvmma8, #smem>, %b: !ttg.memdesc<128x64xf8E5M2, #nvmma8b, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %as: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, %bs: !ttg.memdesc<64x4xi8, #scales, #ttng.tensor_memory>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %use: i1, %pred: i1, %t: !ttg.async.token) {
  // CHECK: ttng.tc_gen5_mma %a, %b, %d, %use, %pred : !ttg.memdesc<128x128xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>
  ttng.tc_gen5_mma %a, %b, %d, %use, %pred : !ttg.memdesc<128x128xf8E5M2, #nvmma8, #smem>, !ttg.memdesc<128x64xf8E5M2, #nvmma8b, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %t1 = ttng.tc_gen5_mma %a, %b, %d[%t], %use, %pred, %bar[%pred] {is_async} : !ttg.memdesc<128x128xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  %t1 = ttng.tc_gen5_mma %a, %b, %d[%t], %use, %pred, %bar[%pred] {is_async} : !ttg.memdesc<128x128xf8E5M2, #nvmma8, #smem>, !ttg.memdesc<128x64xf8E5M2, #nvmma8b, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: %t2 = ttng.tc_gen5_mma_scaled %a, %b, %d[], %as, %bs, %use, %pred lhs = e5m2 rhs = e5m2, %bar[%pred] {is_async} : !ttg.memdesc<128x128xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf32, #{{.*}}, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #{{.*}}, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #{{.*}}, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  %t2 = ttng.tc_gen5_mma_scaled %a, %b, %d[], %as, %bs, %use, %pred lhs = e5m2 rhs = e5m2, %bar[%pred] {is_async} : !ttg.memdesc<128x128xf8E5M2, #nvmma8, #smem>, !ttg.memdesc<128x64xf8E5M2, #nvmma8b, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.tc_gen5_commit %bar : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.tc_gen5_commit %bar : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: ttng.tc_gen5_commit %bar, %pred descs %a, %b : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>, !ttg.memdesc<128x128xf8E5M2, #{{.*}}, #smem>, !ttg.memdesc<128x64xf8E5M2, #{{.*}}, #smem>
  ttng.tc_gen5_commit %bar, %pred descs %a, %b : !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<128x128xf8E5M2, #nvmma8, #smem>, !ttg.memdesc<128x64xf8E5M2, #nvmma8b, #smem>
  tt.return
}

// CHECK-LABEL: @dynamic_scheduling(
tt.func @dynamic_scheduling(%response: !ttg.memdesc<2xi64, #bar, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>) {
  // CHECK: ttng.clc_try_cancel %response, %bar : !ttg.memdesc<2xi64, #{{.*}}, #smem, mutable>, !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable>
  ttng.clc_try_cancel %response, %bar : !ttg.memdesc<2xi64, #bar, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  // CHECK: %result = ttng.clc_load_result %response : !ttg.memdesc<2xi64, #{{.*}}, #smem, mutable> -> i128
  %result = ttng.clc_load_result %response : !ttg.memdesc<2xi64, #bar, #smem, mutable> -> i128
  // CHECK: %canceled = ttng.clc_is_canceled %result : i128 -> i1
  %canceled = ttng.clc_is_canceled %result : i128 -> i1
  // CHECK: %x = ttng.clc_get_program_id %result, x : i128 -> i32
  %x = ttng.clc_get_program_id %result, x : i128 -> i32
  // CHECK: %sync = ttng.clc_try_cancel_sync : tensor<2xi64, #{{.*}}>
  %sync = ttng.clc_try_cancel_sync : tensor<2xi64, #clc>
  tt.return
}
}
