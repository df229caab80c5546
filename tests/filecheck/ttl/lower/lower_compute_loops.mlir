// RUN: tlx-opt -p 'ttl-bufferize,ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers,ttl-lower-compute{block_calls=false}' %s | filecheck %s
// RUN: tlx-opt -p 'ttl-bufferize,ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers,ttl-lower-compute' %s | filecheck %s --check-prefix=BLOCKS

!tile = !ttcore.tile<32x32, bf16>
!a = !ttl.cb<[2, 9], !ttcore.tile<32x32, bf16>, 2>
!b = !ttl.cb<[9, 1], !ttcore.tile<32x32, bf16>, 2>
!o = !ttl.cb<[2, 1], !ttcore.tile<32x32, bf16>, 2>

// A product whose sums stay in registers over the inner dimension, between one acquire and one release. The packer adds
// to what is in memory but for the first product of the loop, and overwrites again afterwards.
// CHECK-LABEL: func.func @matmul
// In calls for both rows at once there is no loop left but that of the user.
// BLOCKS: ttkernel.mm_block_init(
// BLOCKS-NOT: scf.for
// BLOCKS: ttkernel.matmul_block(
// BLOCKS-NOT: matmul_tiles
ttl.kernel @product() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 9], element_type=!tile, buffer_factor=2 : !a
  %b_cb = ttl.create_cb shape=[9, 1], element_type=!tile, buffer_factor=2 : !b
  %o_cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !o
  // CHECK-DAG: %[[A:.*]] = builtin.unrealized_conversion_cast %a_cb
  // CHECK-DAG: %[[B:.*]] = builtin.unrealized_conversion_cast %b_cb
  // CHECK-DAG: %[[O:.*]] = builtin.unrealized_conversion_cast %o_cb
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[C9:.*]] = arith.constant 9 : i32
  ttl.compute_thread @matmul {
    %c0 = arith.constant 0 : index
    %o = ttl.cb_reserve %o_cb : !o -> tensor<2x1x!tile>
    affine.for %k = 0 to 4 {
      %a = ttl.cb_wait %a_cb : !a -> tensor<2x9x!tile>
      %b = ttl.cb_wait %b_cb : !b -> tensor<9x1x!tile>
      %m = ttl.matmul %a, %b : tensor<2x9x!tile>, tensor<9x1x!tile> -> tensor<2x1x!tile>
      // CHECK: %first = arith.cmpi eq, %k, %c0 : index
      %first = arith.cmpi eq, %k, %c0 : index
      // CHECK-NEXT: ttkernel.mm_init(%[[A]], %[[B]], %[[O]])
      // CHECK-NEXT: %[[ADDS:.*]] = arith.select %first, %[[C0]], %[[C1]] : i32
      // CHECK-NEXT: ttkernel.pack_reconfig_l1_acc(%[[ADDS]])
      // CHECK-NEXT: ttkernel.tile_regs_acquire()
      // CHECK-NEXT: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
      // CHECK-NEXT: %[[INNER:.*]] = arith.index_cast %[[K]] : index to i32
      // CHECK-NEXT: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
      // CHECK-NEXT: %[[ROW:.*]] = arith.index_cast %[[R]] : index to i32
      // CHECK-NEXT: %[[BEGIN:.*]] = arith.muli %[[ROW]], %[[C9]] : i32
      // CHECK-NEXT: %[[LEFT:.*]] = arith.addi %[[BEGIN]], %[[INNER]] : i32
      // CHECK-NEXT: ttkernel.matmul_tiles(%[[A]], %[[B]], %[[LEFT]], %[[INNER]], %[[ROW]])
      // CHECK: ttkernel.tile_regs_commit()
      // CHECK-NEXT: ttkernel.tile_regs_wait()
      // CHECK-NEXT: ttkernel.pack_tile(%[[C0]], %[[O]], %[[C0]])
      // CHECK-NEXT: ttkernel.pack_tile(%[[C1]], %[[O]], %[[C1]])
      // CHECK-NEXT: ttkernel.tile_regs_release()
      // CHECK-NEXT: ttkernel.pack_reconfig_l1_acc(%[[C0]])
      // CHECK-NEXT: ttl.cb_pop %a_cb
      ttl.store %m, %o first %first {accumulate} : tensor<2x1x!tile>, tensor<2x1x!tile>
      ttl.cb_pop %a_cb
      ttl.cb_pop %b_cb
    }
    ttl.cb_push %o_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
