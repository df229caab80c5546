// RUN: tlx-opt -p 'ttl-bufferize,ttl-assign-dst-registers,ttl-lower-compute{to=linalg}' %s | filecheck %s --check-prefix LINALG
// RUN: tlx-opt -p 'ttl-bufferize,ttl-assign-dst-registers,ttl-lower-compute{to=tiled}' %s | filecheck %s --check-prefix TILED
// RUN: tlx-opt -p 'ttl-bufferize,ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers,ttl-lower-compute' %s | filecheck %s
// RUN: tlx-opt -p 'ttl-bufferize,ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers,ttl-lower-compute{to=linalg},ttl-lower-compute' %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 7], !ttcore.tile<32x32, f32>, 2>
!block = tensor<2x7x!ttcore.tile<32x32, f32>>

// Each row has seven tiles with one of four registers each: four tiles and then three, not seven times one.
ttl.kernel @cut() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 7], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 7], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %e = ttl.exp %a : !block -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.store %e, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// LINALG: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
// LINALG-SAME: ins(%a : memref<2x7x!ttcore.tile<32x32, f32>>) outs(%o : memref<2x7x!ttcore.tile<32x32, f32>>)
// LINALG-SAME: attrs = {ttl.dst_per_tile = 1 : i32, ttl.unroll = 4 : i32, ttl.capacity = 4 : i32}
// LINALG: %[[X:.*]] = ttl.tile_copy %{{.*}} {dst_idx = 0 : i32}
// LINALG-NEXT: %[[E:.*]] = ttl.tile_exp %[[X]] {dst_idx = 0 : i32}
// LINALG-NEXT: linalg.yield %[[E]]

// TILED: affine.for %[[I:.*]] = 0 to 2 {
// TILED-NEXT: %[[A:.*]] = memref.subview %a[%[[I]], 0] [1, 4] [1, 1] : memref<2x7x{{.*}}> to memref<1x4x{{.*}}, strided<[7, 1], offset: ?>>
// TILED-NEXT: %[[O:.*]] = memref.subview %o[%[[I]], 0] [1, 4] [1, 1]
// TILED-NEXT: linalg.generic {{.*}} ins(%[[A]] : {{.*}}) outs(%[[O]] : {{.*}}) attrs = {{.*}}ttl.tiled
// TILED: affine.for %[[J:.*]] = 0 to 2 {
// TILED-NEXT: memref.subview %a[%[[J]], 4] [1, 3] [1, 1]
// TILED-NEXT: memref.subview %o[%[[J]], 4] [1, 3] [1, 1]
// TILED-NEXT: linalg.generic

// CHECK-LABEL: func.func @compute
// CHECK-DAG: %[[IN:.*]] = builtin.unrealized_conversion_cast %a_cb : {{.*}} to !ttkernel.cb<28, !ttcore.tile<32x32, f32>>
// CHECK-DAG: %[[OUT:.*]] = builtin.unrealized_conversion_cast %o_cb : {{.*}} to !ttkernel.cb<28, !ttcore.tile<32x32, f32>>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C7:.*]] = arith.constant 7 : i32
// The steps of the circular buffers stay as they are.
// CHECK: ttl.cb_wait %a_cb
// CHECK: ttl.cb_reserve %o_cb
// The units are configured once.
// CHECK-NEXT: ttkernel.init_sfpu(%[[IN]], %[[OUT]])
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 2 {
// Tiles are counted in the whole block, whose rows have seven.
// CHECK-NEXT: %[[ROW:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[ROW]], %[[C7]] : i32
// CHECK-NEXT: ttkernel.tile_regs_acquire()
// One preparation for all tiles of the sub-block.
// CHECK-NEXT: ttkernel.copy_tile_init(%[[IN]])
// CHECK-NEXT: ttkernel.copy_tile(%[[IN]], %[[FIRST]], %[[C0]])
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[C1]] : i32
// CHECK-NEXT: ttkernel.copy_tile(%[[IN]], %[[SECOND]], %[[C1]])
// CHECK: ttkernel.exp_tile_init()
// CHECK-NEXT: ttkernel.exp_tile(%[[C0]])
// CHECK-NEXT: ttkernel.exp_tile(%[[C1]])
// CHECK-NEXT: ttkernel.exp_tile
// CHECK-NEXT: ttkernel.exp_tile
// The packer's part.
// CHECK-NEXT: ttkernel.tile_regs_commit()
// CHECK-NEXT: ttkernel.tile_regs_wait()
// CHECK-NEXT: ttkernel.pack_tile(%[[C0]], %[[OUT]], %[[FIRST]])
// CHECK-NEXT: ttkernel.pack_tile(%[[C1]], %[[OUT]], %[[SECOND]])
// CHECK: ttkernel.tile_regs_release()
// CHECK-NEXT: }
// CHECK-NEXT: affine.for
// CHECK: ttkernel.copy_tile(
// CHECK: ttkernel.copy_tile(
// CHECK: ttkernel.copy_tile(
// CHECK-NOT: ttkernel.copy_tile(
// CHECK: ttkernel.tile_regs_release()
// CHECK-NEXT: }
// CHECK-NEXT: ttl.cb_push %o_cb
