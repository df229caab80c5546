// RUN: tlx-opt -p ttl-bufferize %s --split-input-file | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, f32>>
#dram = #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>

// A chain of element-wise operations is one body. Its operands are popped before the result is reserved: the pops move
// after the computation, which is where the result is stored.
// CHECK-LABEL: ttl.kernel @chain(%x: memref<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>)
ttl.kernel @chain(%x: tensor<64x64xf32, #dram>) attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  // CHECK: ttl.tensor_accessor %x : memref<64x64xf32, {{.*}}> -> !ttl.tensor_accessor<memref<64x64xf32,
  %acc = ttl.tensor_accessor %x : tensor<64x64xf32, #dram> -> !ttl.tensor_accessor<tensor<64x64xf32, #dram>>
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    // CHECK: ttl.cb_reserve %a_cb : {{.*}} -> memref<2x2x!ttcore.tile<32x32, f32>>
    %v = ttl.cb_reserve %a_cb : !cb -> !block
    // CHECK-NEXT: ttl.copy %acc[%c0, %c0], %v : !ttl.tensor_accessor<memref<{{.*}}>>, memref<2x2x!ttcore.tile<32x32, f32>> -> !ttl.transfer_handle<read>
    %xf = ttl.copy %acc[%c0, %c0], %v : !ttl.tensor_accessor<tensor<64x64xf32, #dram>>, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  // CHECK: ttl.compute_thread
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %b = ttl.cb_wait %b_cb : !cb -> !block
    %s = ttl.add %a, %b : !block, !block -> !block
    %e = ttl.exp %s : !block -> !block
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    // CHECK: %o = ttl.cb_reserve %o_cb
    // CHECK-NEXT: ttl.compute ins(%a, %b : memref<2x2x{{.*}}>, memref<2x2x{{.*}}>) outs(%o : memref<2x2x{{.*}}>)
    // CHECK-SAME: iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]
    // CHECK-NEXT: ^bb0(%[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %{{.*}}: {{.*}}):
    // CHECK-NEXT: %[[S:.*]] = ttl.tile_add %[[A]], %[[B]] : !ttcore.tile<32x32, f32>
    // CHECK-NEXT: %[[E:.*]] = ttl.tile_exp %[[S]] : !ttcore.tile<32x32, f32>
    // CHECK-NEXT: ttl.yield %[[E]] : !ttcore.tile<32x32, f32>
    // CHECK: ttl.cb_pop %a_cb
    // CHECK-NEXT: ttl.cb_pop %b_cb
    // CHECK-NEXT: ttl.cb_push %o_cb
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.store %e, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, f32>, 2>
!narrow = !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, f32>>
!column = tensor<2x1x!ttcore.tile<32x32, f32>>

// A broadcast reads its block where it is: all columns read the one column of tiles.
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: ttl.kernel @broadcast()
ttl.kernel @broadcast() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !narrow
  %o_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %b = ttl.cb_wait %b_cb : !narrow -> !column
    %w = ttl.bcast %b {dims = [1]} : !column -> !block
    %s = ttl.mul %a, %w : !block, !block -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // CHECK: ttl.compute ins(%a, %b : memref<2x2x{{.*}}>, memref<2x1x{{.*}}>) outs(%o : {{.*}}) attributes {indexing_maps = [#[[ALL]], #[[COLUMN]], #[[ALL]]]
    // CHECK: %[[W:.*]] = ttl.tile_bcast %{{.*}} {dims = [1 : i64]} : !ttcore.tile<32x32, f32>
    // CHECK-NEXT: ttl.tile_mul %{{.*}}, %[[W]]
    ttl.store %s, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, f32>, 2>
!narrow = !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, f32>>
!column = tensor<2x1x!ttcore.tile<32x32, f32>>

// A reduction reads a circular buffer, and so do its users: what it reads goes through a buffer of the compiler's own,
// and its result through another one. The ones that it multiplies with are written once, outside of the loop.
// CHECK: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: ttl.kernel @reduction()
ttl.kernel @reduction() attributes {grid = #ttcore.grid<1x1>} {
  // CHECK: %[[ONES:.*]] = ttl.create_cb shape=[1, 1], {{.*}}, buffer_factor=1 {internal}
  // CHECK-NEXT: %[[IN:.*]] = ttl.create_cb shape=[2, 2], {{.*}}, buffer_factor=1 {internal}
  // CHECK-NEXT: %[[OUT:.*]] = ttl.create_cb shape=[2, 1], {{.*}}, buffer_factor=1 {internal}
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !narrow
  // CHECK-NEXT: ttl.compute_thread
  ttl.compute_thread @compute {
    // CHECK-NEXT: ttl.cb_reserve %[[ONES]]
    // CHECK: ttl.tile_fill {value = 1.000000e+00 : f32}
    // CHECK: ttl.cb_push %[[ONES]]
    // CHECK-NEXT: %[[ONE:.*]] = ttl.cb_wait %[[ONES]]
    // CHECK-NEXT: affine.for
    affine.for %i = 0 to 4 {
      %a = ttl.cb_wait %a_cb : !cb -> !block
      // CHECK: %[[PLACE:.*]] = ttl.cb_reserve %[[IN]]
      // CHECK: ttl.tile_exp
      // CHECK: ttl.cb_push %[[IN]]
      // CHECK-NEXT: %[[POWERS:.*]] = ttl.cb_wait %[[IN]]
      %e = ttl.exp %a : !block -> !block
      // The block itself is not read any more.
      // CHECK-NEXT: ttl.cb_pop %a_cb
      ttl.cb_pop %a_cb
      // CHECK-NEXT: %[[SUM:.*]] = ttl.cb_reserve %[[OUT]]
      // CHECK-NEXT: ttl.compute ins(%[[POWERS]], %[[ONE]] : {{.*}}) outs(%[[SUM]] : memref<2x1x{{.*}}>)
      // CHECK-SAME: iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]
      // CHECK-NEXT: ^bb0(%[[X:.*]]: {{.*}}, %[[Y:.*]]: {{.*}}, %[[Z:.*]]: {{.*}}):
      // CHECK-NEXT: ttl.tile_reduce_sum %[[X]], %[[Y]], %[[Z]] {dims = [1 : i64]}
      // CHECK: ttl.cb_pop %[[IN]]
      // CHECK-NEXT: ttl.cb_push %[[OUT]]
      // CHECK-NEXT: %[[TOTAL:.*]] = ttl.cb_wait %[[OUT]]
      %r = ttl.reduce_sum %e {dims = [1]} : !block -> !column
      %l = ttl.log %r : !column -> !column
      // CHECK-NEXT: %o = ttl.cb_reserve %o_cb
      // CHECK-NEXT: ttl.compute ins(%[[TOTAL]] : memref<2x1x{{.*}}>) outs(%o :
      // CHECK: ttl.tile_log
      // CHECK: ttl.cb_pop %[[OUT]]
      // CHECK-NEXT: ttl.cb_push %o_cb
      %o = ttl.cb_reserve %o_cb : !narrow -> !column
      ttl.store %l, %o : !column, !column
      ttl.cb_push %o_cb
    }
    // CHECK: ttl.cb_pop %[[ONES]]
    // CHECK-NEXT: ttl.thread_return
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, f32>>

// Products add up in the place of the result over the runs of a loop; the first one overwrites.
// CHECK-LABEL: ttl.kernel @accumulate()
ttl.kernel @accumulate() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  // CHECK: ttl.compute_thread
  ttl.compute_thread @compute {
    %c0 = arith.constant 0 : index
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    affine.for %k = 0 to 4 {
      %a = ttl.cb_wait %a_cb : !cb -> !block
      %b = ttl.cb_wait %b_cb : !cb -> !block
      %first = arith.cmpi eq, %k, %c0 : index
      %m = ttl.matmul %a, %b : !block, !block -> !block
      // CHECK: ttl.compute ins(%a, %b : {{.*}}) outs(%o : {{.*}}) first %first attributes {
      // CHECK-SAME: iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]
      // CHECK-SAME: accumulate
      ttl.store %m, %o first %first {accumulate} : !block, !block
      ttl.cb_pop %a_cb
      ttl.cb_pop %b_cb
    }
    ttl.cb_push %o_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, f32>>
!blocks = tensor<2x2x2x!ttcore.tile<32x32, f32>>

// Two stores next to each other have an operation in common, which is computed once. A block of several begins anywhere.
// CHECK-LABEL: ttl.kernel @outputs()
ttl.kernel @outputs() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb {blocks = 2 : i64} : !cb -> !blocks
    // CHECK: %o0 = ttl.block %o, %c0 : memref<2x2x2x{{.*}}> -> memref<2x2x!ttcore.tile<32x32, f32>, strided<[2, 1], offset: ?>>
    %o0 = ttl.block %o, %c0 : !blocks -> !block
    %o1 = ttl.block %o, %c1 : !blocks -> !block
    %e = ttl.exp %a : !block -> !block
    ttl.store %e, %o0 : !block, !block
    %n = ttl.neg %e : !block -> !block
    ttl.store %n, %o1 : !block, !block
    // CHECK: ttl.compute ins(%a : {{.*}}) outs(%o0, %o1 :
    // CHECK: %[[E:.*]] = ttl.tile_exp
    // CHECK-NEXT: %[[N:.*]] = ttl.tile_neg %[[E]]
    // CHECK-NEXT: ttl.yield %[[E]], %[[N]]
    // CHECK-NOT: ttl.compute ins
    ttl.cb_push %o_cb {blocks = 2 : i64}
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
