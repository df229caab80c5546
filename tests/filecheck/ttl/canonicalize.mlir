// RUN: tlx-opt %s -p ttl-canonicalize | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!half = !ttcore.tile<32x32, bf16>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// Constants are folded through arith and affine, so that the copy's place is known. A loop that never runs goes, and
// so does what nothing uses.
// CHECK-LABEL: ttl.kernel @indices
// CHECK-NEXT:  %cb = ttl.create_cb
// CHECK-NEXT:  %acc = ttl.tensor_accessor
// CHECK-NEXT:  ttl.datamovement_thread @read {
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %v = ttl.cb_reserve %cb
// CHECK-NEXT:    %{{.*}} = ttl.copy %acc[%[[ONE]], %[[ZERO]]], %v
// CHECK-NEXT:    ttl.cb_push %cb
// CHECK-NEXT:    ttl.thread_return
ttl.kernel @indices(%t: !tensor) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %unused = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  %acc = ttl.tensor_accessor %t : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %five = arith.addi %c2, %c3 : index
    %row = affine.apply affine_map<(d0)[s0] -> (d0 floordiv 2 - s0 + 2)> (%five)[%c3]
    %same = affine.apply affine_map<(d0) -> (d0)> (%row)
    %column = arith.subi %five, %five : index
    affine.for %i = 5 to %five {
      %v = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    %v = ttl.cb_reserve %cb : !cb -> !block
    %0 = ttl.copy %acc[%same, %column], %v : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// x * 1, 0 + x, neg(neg(x)) and two transposes are x. A bcast to the shape that its operand has is no copy: it spreads
// the first column of the tile; but it does so once.
// CHECK-LABEL: ttl.kernel @algebra
// CHECK:       %x = ttl.cb_wait %cb
// CHECK-NEXT:  %y = ttl.cb_reserve %out
// CHECK-NEXT:  %[[M:.*]] = ttl.bcast %x {dims = [1 : i64]}
// CHECK-NEXT:  %[[B:.*]] = ttl.bcast %x {dims = [1 : i64]}
// CHECK-SAME:  tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x2x!ttcore.tile<32x32, f32>>
// CHECK-NEXT:  %[[A:.*]] = ttl.abs %x
// CHECK-NEXT:  %[[S:.*]] = ttl.sub %[[A]], %[[M]]
// CHECK-NEXT:  ttl.store %[[S]], %y
// CHECK-NEXT:  ttl.cb_push %out
// CHECK-NEXT:  %z = ttl.cb_reserve %wide
// CHECK-NEXT:  ttl.store %[[B]], %z
ttl.kernel @algebra() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %out = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %wide = ttl.create_cb shape=[1, 2], element_type=!tile, buffer_factor=2 : !ttl.cb<[1, 2], !tile, 2>
  ttl.compute_thread @compute {
    %x = ttl.cb_wait %cb : !cb -> !block
    %y = ttl.cb_reserve %out : !cb -> !block
    %one = ttl.fill {value = 1.0 : f32} : !block
    %zero = ttl.fill {value = 0.0 : f32} : !block
    %0 = ttl.mul %x, %one : !block, !block -> !block
    %1 = ttl.add %zero, %0 : !block, !block -> !block
    %2 = ttl.sub %1, %zero : !block, !block -> !block
    %3 = ttl.neg %2 : !block -> !block
    %4 = ttl.neg %3 : !block -> !block
    %5 = ttl.transpose %4 : !block -> !block
    %6 = ttl.transpose %5 : !block -> !block
    %7 = ttl.max %6, %6 : !block, !block -> !block
    %8 = ttl.bcast %7 {dims = [1]} : !block -> !block
    %9 = ttl.bcast %8 {dims = [1]} : !block -> tensor<1x2x!tile>
    %10 = ttl.neg %7 : !block -> !block
    %11 = ttl.abs %10 : !block -> !block
    %12 = ttl.abs %11 : !block -> !block
    %13 = ttl.sub %12, %8 : !block, !block -> !block
    ttl.store %13, %y : !block, !block
    ttl.cb_push %out
    %z = ttl.cb_reserve %wide : !ttl.cb<[1, 2], !tile, 2> -> tensor<1x2x!tile>
    ttl.store %9, %z : tensor<1x2x!tile>, tensor<1x2x!tile>
    ttl.cb_push %wide
    ttl.cb_pop %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// 0 - x and 1 / x are no x. A transpose rounds what was computed with blocks of 16 bits.
// CHECK-LABEL: ttl.kernel @not_neutral
// CHECK:       ttl.sub
// CHECK-NEXT:  ttl.div
// CHECK:       ttl.exp
// CHECK-NEXT:  ttl.transpose
// CHECK-NEXT:  ttl.transpose
ttl.kernel @not_neutral() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %out = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %halves = ttl.create_cb shape=[1, 1], element_type=!half, buffer_factor=2 : !ttl.cb<[1, 1], !half, 2>
  %rounded = ttl.create_cb shape=[1, 1], element_type=!half, buffer_factor=2 : !ttl.cb<[1, 1], !half, 2>
  ttl.compute_thread @compute {
    %x = ttl.cb_wait %cb : !cb -> !block
    %y = ttl.cb_reserve %out : !cb -> !block
    %one = ttl.fill {value = 1.0 : f32} : !block
    %zero = ttl.fill {value = 0.0 : f32} : !block
    %0 = ttl.sub %zero, %x : !block, !block -> !block
    %1 = ttl.div %one, %0 : !block, !block -> !block
    ttl.store %1, %y : !block, !block
    ttl.cb_push %out
    ttl.cb_pop %cb
    %u = ttl.cb_wait %halves : !ttl.cb<[1, 1], !half, 2> -> tensor<1x1x!half>
    %v = ttl.cb_reserve %rounded : !ttl.cb<[1, 1], !half, 2> -> tensor<1x1x!half>
    %2 = ttl.transpose %u : tensor<1x1x!half> -> tensor<1x1x!half>
    %3 = ttl.transpose %2 : tensor<1x1x!half> -> tensor<1x1x!half>
    %4 = ttl.exp %3 : tensor<1x1x!half> -> tensor<1x1x!half>
    %5 = ttl.transpose %4 : tensor<1x1x!half> -> tensor<1x1x!half>
    %6 = ttl.transpose %5 : tensor<1x1x!half> -> tensor<1x1x!half>
    ttl.store %6, %v : tensor<1x1x!half>, tensor<1x1x!half>
    ttl.cb_push %rounded
    ttl.cb_pop %halves
    ttl.thread_return
  }
  ttl.kernel_return
}

// One block of one is that block.
// CHECK-LABEL: ttl.kernel @one_block
// CHECK:       %[[V:.*]] = ttl.cb_wait %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
// CHECK-NEXT:  %{{.*}} = ttl.copy %[[V]], %acc
// CHECK-NEXT:  ttl.cb_pop %cb
// CHECK-NEXT:  ttl.thread_return
ttl.kernel @one_block(%t: !tensor) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %acc = ttl.tensor_accessor %t : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @write {
    %c0 = arith.constant 0 : index
    %v = ttl.cb_wait %cb {blocks = 1 : i64} : !cb -> tensor<1x1x1x!tile>
    %b = ttl.block %v, %c0 : tensor<1x1x1x!tile> -> !block
    %0 = ttl.copy %b, %acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.cb_pop %cb {blocks = 1 : i64}
    ttl.thread_return
  }
  ttl.kernel_return
}

// All cores are receivers of %all, but for a copy from the pipe the branch stays; none of the receivers of %p is its
// source; a pipe that leaves the grid is left for ttl-infer-pipe-semaphores to refuse.
// CHECK-LABEL: ttl.kernel @sides
// CHECK:       ttl.datamovement_thread @read {
// CHECK-NEXT:    %{{.*}} = ttl.cb_reserve %cb
// CHECK-NEXT:    ttl.cb_push %cb
// CHECK-NEXT:    %v = ttl.cb_reserve %cb
// CHECK-NEXT:    ttl.if_dst %all {
// CHECK-NEXT:      %{{.*}} = ttl.copy %all, %v
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.cb_push %cb
// CHECK-NEXT:    ttl.if_dst %p {
// CHECK-NEXT:      %{{.*}} = ttl.cb_reserve %cb
// CHECK-NEXT:      ttl.cb_push %cb
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.if_src %out {
// CHECK-NEXT:      %{{.*}} = ttl.cb_reserve %cb
// CHECK-NEXT:      ttl.cb_push %cb
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.thread_return
ttl.kernel @sides() attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %all = ttl.create_pipe src=[0, 0] dst_range=[[0, 0], [1, 0]] : !ttl.pipe
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  %out = ttl.create_pipe src=[5, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    ttl.if_dst %all {
      %a = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    %v = ttl.cb_reserve %cb : !cb -> !block
    ttl.if_dst %all {
      %0 = ttl.copy %all, %v : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %cb
    ttl.if_dst %p {
      %a = ttl.cb_reserve %cb : !cb -> !block
      ttl.if_src %p {
        %b = ttl.cb_reserve %cb : !cb -> !block
      }
      ttl.cb_push %cb
    }
    ttl.if_src %out {
      %a = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// A condition that is the same on all cores decides; one that is not stays.
// CHECK-LABEL: ttl.kernel @conditions
// CHECK:       ttl.datamovement_thread @read {
// CHECK-NEXT:    %[[X:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi eq, %id, %[[X]]
// CHECK-NEXT:    %{{.*}} = ttl.cb_reserve %cb
// CHECK-NEXT:    ttl.cb_push %cb
// CHECK-NEXT:    scf.if %[[C]] {
// CHECK-NEXT:      %{{.*}} = ttl.cb_reserve %cb
// CHECK-NEXT:      ttl.cb_push %cb
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.thread_return
ttl.kernel @conditions() attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %one = arith.constant 1 : index
    %two = arith.addi %one, %one : index
    %yes = arith.cmpi slt, %one, %two : index
    %no = arith.cmpi eq, %one, %two : index
    %maybe = arith.cmpi eq, %id, %one : index
    scf.if %yes {
      %v = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    scf.if %no {
      %v = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    scf.if %maybe {
      %v = ttl.cb_reserve %cb : !cb -> !block
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// All cores of a grid with one row are in row 0.
// CHECK-LABEL: ttl.kernel @one_row
// CHECK:       ttl.datamovement_thread @read {
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %x, %{{.*}} = ttl.core(dims = 2)
// CHECK:         ttl.copy %acc[%[[ZERO]], %x], %v
ttl.kernel @one_row(%t: !tensor) attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %acc = ttl.tensor_accessor %t : !tensor -> !accessor
  ttl.datamovement_thread @read {
    %x, %y = ttl.core(dims = 2) : index, index
    %v = ttl.cb_reserve %cb : !cb -> !block
    %0 = ttl.copy %acc[%y, %x], %v : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}
