// RUN: tlx-opt %s -p ttl-lower-data-movement --split-input-file | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 2], !ttcore.tile<32x32, f32>, 2>
!t = tensor<64x96xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<tensor<64x96xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>>

// A block of two tiles: two transfers, of tiles row * 3 + column and the next one, from where the buffer's pointer is.
// The accessor is made once, at the beginning: of tensor 1, after the numbers of one buffer, with the thread's first
// address. Waiting is waiting for all reads.
ttl.kernel_driver @tiles_driver(%x: !t, %a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @read(%cb, %acc)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @read
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 4096 : i32
// CHECK-DAG: %[[ARGS:.*]] = ttkernel.TensorAccessorArgs() {cta = 2 : i32, crta = 0 : i32}
// CHECK-DAG: %[[BASE:.*]] = ttkernel.get_common_arg_val() {index = 0 : i32}
// CHECK-DAG: %[[ACC:.*]] = ttkernel.TensorAccessor(%[[ARGS]], %[[BASE]], %[[BYTES]]) {layout = #ttl.layout<tiled>, shape = [64 : i32, 96 : i32], element = !ttcore.tile<32x32, f32>}
// CHECK-DAG: %[[CB:.*]] = builtin.unrealized_conversion_cast %cb : !ttl.cb<[1, 2], !ttcore.tile<32x32, f32>, 2> to !ttkernel.cb<4, !ttcore.tile<32x32, f32>>
// CHECK: affine.for %i = 0 to 2
func.func @read(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %c1 = arith.constant 1 : index
  affine.for %i = 0 to 2 {
    // CHECK-NEXT: ttl.cb_reserve
    // CHECK-NEXT: %[[L1:.*]] = ttkernel.get_write_ptr(%[[CB]])
    // CHECK-NEXT: %[[ROW:.*]] = arith.muli %i, %[[C3]] : index
    // CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[ROW]], %c1 : index
    // CHECK-NEXT: %[[ID:.*]] = arith.index_cast %[[FIRST]] : index to i32
    // CHECK-NEXT: ttkernel.noc_async_read_tile(%[[ID]], %[[ACC]], %[[L1]])
    // CHECK: %[[SECOND:.*]] = arith.addi %{{.*}}, %[[C2]] : index
    // CHECK: %[[AT:.*]] = arith.addi %[[L1]], %[[BYTES]] : i32
    // CHECK: ttkernel.noc_async_read_tile(%{{.*}}, %[[ACC]], %[[AT]])
    // CHECK-NEXT: ttl.dma_barrier read
    // CHECK-NEXT: ttl.cb_push
    %view = ttl.cb_reserve %cb : !cb -> memref<1x2x!tile>
    %xf = ttl.copy %acc[%i, %c1], %view : !acc, memref<1x2x!tile> -> !ttl.transfer_handle<read>
    ttl.wait %xf
    ttl.cb_push %cb
  }
  func.return
}

// -----

!tile = !ttcore.tile<32x32, bf16>
!cb = !ttl.cb<[4, 2], !ttcore.tile<32x32, bf16>, 2>
!t = tensor<128x90xbf16, #ttl.tensor_encoding<L1, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<tensor<128x90xbf16, #ttl.tensor_encoding<L1, #ttl.layout<tiled>>>>

// The second of two blocks that were waited for, of eight tiles: a loop nest. A tensor that ends within a tile has whole
// tiles, so 90 columns are 3 tiles.
ttl.kernel_driver @blocks_driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @write(%cb, %acc)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @write
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[TILE:.*]] = arith.constant 2048 : i32
// CHECK-DAG: %[[BLOCK:.*]] = arith.constant 16384 : i32
func.func @write(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK: %[[L1:.*]] = ttkernel.get_read_ptr
  // CHECK: %[[BASE:.*]] = arith.addi %[[L1]], %[[BLOCK]] : i32
  // CHECK: scf.for %[[R:.*]] = %zero to %[[C4]]
  // CHECK: scf.for %[[C:.*]] = %zero to %[[C2]]
  // CHECK: %[[FIRST:.*]] = arith.muli %[[R]], %[[C3]] : index
  // CHECK: %[[COLUMN:.*]] = arith.addi %one, %[[C]] : index
  // CHECK: arith.addi %[[FIRST]], %[[COLUMN]] : index
  // CHECK: ttkernel.noc_async_write_tile
  // CHECK: ttl.dma_barrier write
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = ttl.cb_wait %cb {blocks = 2 : i64} : !cb -> memref<2x4x2x!tile>
  %view = ttl.block %two, %one : memref<2x4x2x!tile> -> memref<4x2x!tile>
  %xf = ttl.copy %view, %acc[%zero, %one] : memref<4x2x!tile>, !acc -> !ttl.transfer_handle<write>
  ttl.wait %xf
  ttl.cb_pop %cb {blocks = 2 : i64}
  func.return
}

// -----

!cb = !ttl.cb<[2, 80], f32, 1>
!t = tensor<64x80xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>
!acc = !ttl.tensor_accessor<tensor<64x80xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>>

// A page is a row of 320 bytes.
ttl.kernel_driver @rows_driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @rows(%cb, %acc)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @rows
// CHECK: %[[ACC:.*]] = ttkernel.TensorAccessor(%{{.*}}, %{{.*}}, %[[BYTES:.*]]) {layout = #ttl.layout<interleaved>, shape = [64 : i32, 80 : i32], element = f32}
// CHECK: ttkernel.noc_async_read_page(%{{.*}}, %[[ACC]], %[[L1:.*]], %[[ZERO:.*]]) :
// CHECK: %[[NEXT:.*]] = arith.addi %[[L1]], %[[BYTES]] : i32
// CHECK: ttkernel.noc_async_read_page(%{{.*}}, %[[ACC]], %[[NEXT]], %[[ZERO]]) :
func.func @rows(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %row = arith.constant 6 : index
  %view = ttl.cb_reserve %cb : !cb -> memref<2x80xf32>
  %xf = ttl.copy %acc[%row], %view : !acc, memref<2x80xf32> -> !ttl.transfer_handle<read>
  ttl.wait %xf
  ttl.cb_push %cb
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 1>
!t = tensor<128x96xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 3], tiles_per_shard=[2, 1]>>>
!acc = !ttl.tensor_accessor<tensor<128x96xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 3], tiles_per_shard=[2, 1]>>>>

// A shard by its number, and by the place of its first tile.
ttl.kernel_driver @shards_driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  %id = ttl.get_shard_id() : index
  ttl.launch_thread @shards(%cb, %acc, %id)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @shards
// CHECK: %[[X:.*]] = ttkernel.my_logical_x()
func.func @shards(%cb: !cb, %acc: !acc, %id: index) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK: %[[L1:.*]] = ttkernel.get_write_ptr
  // CHECK: %[[ID:.*]] = arith.index_cast
  // CHECK-NEXT: ttkernel.noc_async_read_shard(%[[ID]], %[[ACC:.*]], %[[L1]])
  %view = ttl.cb_reserve %cb : !cb -> memref<2x1x!tile>
  %xf = ttl.copy %acc[%id], %view : !acc, memref<2x1x!tile> -> !ttl.transfer_handle<read>
  ttl.wait %xf
  ttl.cb_push %cb
  // CHECK: affine.for %i
  // CHECK: %[[ROW:.*]] = arith.divsi %i, %{{.*}} : index
  // CHECK: %[[FIRST:.*]] = arith.muli %[[ROW]], %{{.*}} : index
  // CHECK: arith.addi %[[FIRST]], %id
  // CHECK: ttkernel.noc_async_read_shard
  affine.for %i = 0 to 4 step 2 {
    %other = ttl.cb_reserve %cb : !cb -> memref<2x1x!tile>
    %more = ttl.copy %acc[%i, %id], %other : !acc, memref<2x1x!tile> -> !ttl.transfer_handle<read>
    ttl.wait %more
    ttl.cb_push %cb
  }
  func.return
}
