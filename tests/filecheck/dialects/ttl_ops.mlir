// RUN: tlx-opt %s | tlx-opt | filecheck %s

// What `ttl` and `ttkernel` print is read again, and is the same.
// covers: ttkernel.noc, ttkernel.compute, ttkernel.buffers

#enc = #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>
// CHECK: ttl.kernel @add(%a: tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>, %b: tensor<64x64xf32, #
ttl.kernel @add(%a: tensor<64x64xf32, #enc>, %b: tensor<64x64xf32, #enc>, %c: tensor<64x64xf32, #enc>) attributes {grid = #ttcore.grid<1x1>} {
  // CHECK: %a_cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  // CHECK: %c_cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 {l1_address = 32 : 
  %c_cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 {l1_address = 32 : i32} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  // CHECK: %acc = ttl.tensor_accessor %a : tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>> -> !ttl.tens
  %acc = ttl.tensor_accessor %a : tensor<64x64xf32, #enc> -> !ttl.tensor_accessor<tensor<64x64xf32, #enc>>
  // CHECK: %id = ttl.get_shard_id() : index
  %id = ttl.get_shard_id() : index
  // CHECK: %x, %y = ttl.core(dims = 2) : index, index
  %x, %y = ttl.core(dims = 2) : index, index
  // CHECK: %p = ttl.create_pipe src=[0, 0] dst_range=[[0, 1], [0, 3]] : !ttl.pipe
  %p = ttl.create_pipe src=[0, 0] dst_range=[[0, 1], [0, 3]] : !ttl.pipe
  // CHECK: %s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  %s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  // CHECK: ttl.datamovement_thread @read {
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
    // CHECK: %v = ttl.cb_reserve %a_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %v = ttl.cb_reserve %a_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %xf = ttl.copy %acc[%i, %id], %v : !ttl.tensor_accessor<tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layo
    %xf = ttl.copy %acc[%i, %id], %v : !ttl.tensor_accessor<tensor<64x64xf32, #enc>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer_handle<read>
    // CHECK: ttl.wait %xf
    ttl.wait %xf
    // CHECK: ttl.dma_barrier read
    ttl.dma_barrier read
    // CHECK: ttl.cb_push %a_cb
    ttl.cb_push %a_cb
    }
    // CHECK: %v{{.*}} = ttl.cb_reserve %a_cb {blocks = 2 : i64} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<2x1x1x!ttcore.tile<32x32, f32>>
    %v = ttl.cb_reserve %a_cb {blocks = 2 : i64} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<2x1x1x!ttcore.tile<32x32, f32>>
    // CHECK: ttl.cb_push %a_cb {blocks = 2 : i64}
    ttl.cb_push %a_cb {blocks = 2 : i64}
    // CHECK: ttl.if_src %p {
    ttl.if_src %p {
      %one = arith.constant 1 : i32
      // CHECK: ttl.semaphore_inc %s, %one [%x, %y]
      ttl.semaphore_inc %s, %one [%x, %y]
      // CHECK: ttl.semaphore_set %s, %one [%x, %y, %x, %y] {loopback}
      ttl.semaphore_set %s, %one [%x, %y, %x, %y] {loopback}
    }
    // CHECK: ttl.thread_return
    ttl.thread_return
  }
  // CHECK: ttl.compute_thread {
  ttl.compute_thread {
    // CHECK: %v{{.*}} = ttl.cb_wait %a_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %v = ttl.cb_wait %a_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %o = ttl.cb_reserve %c_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %o = ttl.cb_reserve %c_cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %e = ttl.exp %v{{.*}} : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %e = ttl.exp %v : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %f = ttl.add %e, %v{{.*}} : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %f = ttl.add %e, %v : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %g = ttl.fill {value = 1.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, f32>>
    %g = ttl.fill {value = 1.0 : f32} : tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: %h = ttl.bcast %f {dims = [1 : i64]} : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    %h = ttl.bcast %f {dims = [1]} : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: ttl.store %h, %o {accumulate} : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>>
    ttl.store %h, %o {accumulate} : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>>
    // CHECK: ttl.cb_push %c_cb
    ttl.cb_push %c_cb
    // CHECK: ttl.cb_pop %a_cb
    ttl.cb_pop %a_cb
    // CHECK: ttl.thread_return
    ttl.thread_return
  }
  // CHECK: ttl.kernel_return
  ttl.kernel_return
}
func.func @k() attributes {ttkernel.thread = #ttkernel.thread<tensix>} {
  // CHECK: %cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !ttkernel.cb<2, !ttcore.tile<32x32, f32>>
  %cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !ttkernel.cb<2, !ttcore.tile<32x32, f32>>
  %n = arith.constant 1 : i32
  // CHECK: ttkernel.cb_wait_front(%cb, %n) : (!ttkernel.cb<2, !ttcore.tile<32x32, f32>>, i32) -> ()
  ttkernel.cb_wait_front(%cb, %n) : (!ttkernel.cb<2, !ttcore.tile<32x32, f32>>, i32) -> ()
  // CHECK: ttkernel.unary_bcast(%cb, %n, %n) {dims = [1 : i64]} : (!ttkernel.cb<2, !ttcore.tile<32x32, f32>>, i32, i32) -> ()
  ttkernel.unary_bcast(%cb, %n, %n) {dims = [1]} : (!ttkernel.cb<2, !ttcore.tile<32x32, f32>>, i32, i32) -> ()
  // CHECK: ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  func.return
}
func.func @rows(%t : tensor<2x2x!ttcore.tile<32x32, f32>>, %r : tensor<64x64xf32>, %l : memref<1x2x!ttcore.tile<32x32, f32>>, %s : memref<32x64xf32>) {
  // CHECK: ttl.tilize %r, %t : tensor<64x64xf32>, tensor<2x2x!ttcore.tile<32x32, f32>>
  ttl.tilize %r, %t : tensor<64x64xf32>, tensor<2x2x!ttcore.tile<32x32, f32>>
  // CHECK: ttl.untilize %l, %s : memref<1x2x!ttcore.tile<32x32, f32>>, memref<32x64xf32>
  ttl.untilize %l, %s : memref<1x2x!ttcore.tile<32x32, f32>>, memref<32x64xf32>
  %i = arith.constant 3 : index
  // CHECK: %x = ttl.get_tile %t, %i : tensor<2x2x!ttcore.tile<32x32, f32>> -> !ttcore.tile<32x32, f32>
  %x = ttl.get_tile %t, %i : tensor<2x2x!ttcore.tile<32x32, f32>> -> !ttcore.tile<32x32, f32>
  // CHECK: ttl.pack_tile %x, %t, %i : !ttcore.tile<32x32, f32>, tensor<2x2x!ttcore.tile<32x32, f32>>
  ttl.pack_tile %x, %t, %i : !ttcore.tile<32x32, f32>, tensor<2x2x!ttcore.tile<32x32, f32>>
  func.return
}
func.func @compute(%m : memref<2x2x!ttcore.tile<32x32, f32>>, %x : memref<64x64xf32, #enc>) attributes {ttl.kernel_thread = #ttkernel.thread<tensix>} {
  // CHECK: ttl.compute ins(%m, %m : memref<2x2x!ttcore.tile<32x32, f32>>, memref<2x2x!ttcore.tile<32x32, f32>>) outs(%m :
  ttl.compute ins(%m, %m : memref<2x2x!ttcore.tile<32x32, f32>>, memref<2x2x!ttcore.tile<32x32, f32>>) outs(%m : memref<2x2x!ttcore.tile<32x32, f32>>)
      attributes {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} {
  ^bb0(%p: !ttcore.tile<32x32, f32>, %q: !ttcore.tile<32x32, f32>, %r: !ttcore.tile<32x32, f32>):
    // CHECK: %b = ttl.tile_bcast %q {dims = [1 : i64], dst_idx = 1 : i32} : !ttcore.tile<32x32, f32>
    %b = ttl.tile_bcast %q {dims = [1], dst_idx = 1 : i32} : !ttcore.tile<32x32, f32>
    // CHECK: %c = ttl.tile_add %p, %b {dst_idx = 0 : i32} : !ttcore.tile<32x32, f32>
    %c = ttl.tile_add %p, %b {dst_idx = 0 : i32} : !ttcore.tile<32x32, f32>
    // CHECK: %d = ttl.tile_matmul %p, %q, %c : !ttcore.tile<32x32, f32>, !ttcore.tile<32x32, f32>, !ttcore.tile<32x32, f32> -> !ttcore.tile<32x32, f32>
    %d = ttl.tile_matmul %p, %q, %c : !ttcore.tile<32x32, f32>, !ttcore.tile<32x32, f32>, !ttcore.tile<32x32, f32> -> !ttcore.tile<32x32, f32>
    // CHECK: ttl.yield %d : !ttcore.tile<32x32, f32>
    ttl.yield %d : !ttcore.tile<32x32, f32>
  }
  func.return
}
