// RUN: tlx-opt -p ttl-affine-dependence-analysis %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!matrix = tensor<256x256xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

// Each iteration reads a tile and writes another one: nothing keeps any two transfers in order.
// CHECK-LABEL: ttl.kernel @elementwise
// CHECK: ttl.copy {{.*}} {ttl.transfer = 0 : i64, ttl.independent}
// CHECK: } {ttl.parallel}
// CHECK: ttl.store
// CHECK: } {ttl.parallel}
// CHECK: ttl.copy {{.*}} {ttl.transfer = 1 : i64, ttl.independent}
// CHECK: } {ttl.parallel}
ttl.kernel @elementwise(%a: !matrix, %b: !matrix) {
  %in = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 1], !tile, 2>
  %out = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 1], !tile, 2>
  %from = ttl.tensor_accessor %a : !matrix -> !ttl.tensor_accessor<!matrix>
  %to = ttl.tensor_accessor %b : !matrix -> !ttl.tensor_accessor<!matrix>
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 8 {
      %v = ttl.cb_reserve %in : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
      %xf = ttl.copy %from[%i, %i], %v : !ttl.tensor_accessor<!matrix>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
      ttl.wait %xf
      ttl.cb_push %in
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 8 {
      %v = ttl.cb_wait %in : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
      %w = ttl.cb_reserve %out : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
      %x = ttl.exp %v : tensor<1x1x!tile> -> tensor<1x1x!tile>
      ttl.store %x, %w : tensor<1x1x!tile>, tensor<1x1x!tile>
      ttl.cb_pop %in
      ttl.cb_push %out
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 8 {
      %v = ttl.cb_wait %out : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
      %xf = ttl.copy %v, %to[%i, %i] : tensor<1x1x!tile>, !ttl.tensor_accessor<!matrix> -> !ttl.transfer_handle<write>
      ttl.wait %xf
      ttl.cb_pop %out
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// Blocks of two tiles at each single tile: iterations overlap with their neighbours, in the inner loop only.
// CHECK-LABEL: ttl.kernel @overlapping
// CHECK: ttl.copy {{.*}} {ttl.transfer = 0 : i64, ttl.depends_on = [{kind = "WAW", on = 0 : i64, distance = "(0, 1)"}]}
// CHECK: ttl.cb_pop
// CHECK-NEXT: }
// CHECK-NEXT: } {ttl.parallel}
ttl.kernel @overlapping(%b: !matrix) {
  %out = ttl.create_cb shape=[1, 2], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 2], !tile, 2>
  %to = ttl.tensor_accessor %b : !matrix -> !ttl.tensor_accessor<!matrix>
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 7 {
        %v = ttl.cb_wait %out : !ttl.cb<[1, 2], !tile, 2> -> tensor<1x2x!tile>
        %xf = ttl.copy %v, %to[%i, %j] : tensor<1x2x!tile>, !ttl.tensor_accessor<!matrix> -> !ttl.transfer_handle<write>
        ttl.wait %xf
        ttl.cb_pop %out
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The tile with number 8 is in row 1 of 8 columns. The other core's tiles are no concern of this one's order.
// CHECK-LABEL: ttl.kernel @by_number
// CHECK: ttl.copy {{.*}} {ttl.transfer = 0 : i64, ttl.independent}
// CHECK: ttl.copy {{.*}} {ttl.transfer = 1 : i64, ttl.depends_on = [{kind = "unordered", on = 2 : i64}]}
// CHECK: ttl.copy {{.*}} {ttl.transfer = 2 : i64, ttl.depends_on = [{kind = "unordered", on = 1 : i64}]}
ttl.kernel @by_number(%a: !matrix) attributes {grid = #ttcore.grid<2x1>} {
  %in = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 1], !tile, 2>
  %out = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 1], !tile, 2>
  %acc = ttl.tensor_accessor %a : !matrix -> !ttl.tensor_accessor<!matrix>
  %x, %y = ttl.core(dims = 2) : index, index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %in : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
    %xf = ttl.copy %acc[%x], %v : !ttl.tensor_accessor<!matrix>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %in
    %w = ttl.cb_reserve %in : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
    %number = affine.apply affine_map<(d0) -> (d0 + 8)> (%x)
    %yf = ttl.copy %acc[%number], %w : !ttl.tensor_accessor<!matrix>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %in
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %v = ttl.cb_wait %out : !ttl.cb<[1, 1], !tile, 2> -> tensor<1x1x!tile>
    %xf = ttl.copy %v, %acc[%c1, %x] : tensor<1x1x!tile>, !ttl.tensor_accessor<!matrix> -> !ttl.transfer_handle<write>
    ttl.cb_pop %out
    ttl.thread_return
  }
  ttl.kernel_return
}

// Two blocks of one acquisition are different, one block twice is not.
// CHECK-LABEL: ttl.kernel @blocks
// CHECK: ttl.copy {{.*}} {ttl.transfer = 0 : i64, ttl.independent}
// CHECK: } {ttl.parallel}
// CHECK: ttl.copy {{.*}} {ttl.transfer = 1 : i64, ttl.depends_on = [{kind = "WAW", on = 1 : i64, distance = "(1), (2), (3)"}]}
// CHECK-NOT: ttl.parallel
// CHECK: ttl.cb_push
ttl.kernel @blocks(%a: !matrix) {
  %in = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !ttl.cb<[1, 1], !tile, 4>
  %acc = ttl.tensor_accessor %a : !matrix -> !ttl.tensor_accessor<!matrix>
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %in {blocks = 4 : i64} : !ttl.cb<[1, 1], !tile, 4> -> tensor<4x1x1x!tile>
    affine.for %i = 0 to 4 {
      %b = ttl.block %v, %i : tensor<4x1x1x!tile> -> tensor<1x1x!tile>
      %xf = ttl.copy %acc[%c0, %i], %b : !ttl.tensor_accessor<!matrix>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    }
    ttl.dma_barrier read
    ttl.cb_push %in {blocks = 4 : i64}
    %w = ttl.cb_reserve %in : !ttl.cb<[1, 1], !tile, 4> -> tensor<1x1x!tile>
    affine.for %i = 0 to 4 {
      %xf = ttl.copy %acc[%c0, %i], %w : !ttl.tensor_accessor<!matrix>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    }
    ttl.dma_barrier read
    ttl.cb_push %in
    ttl.thread_return
  }
  ttl.kernel_return
}
