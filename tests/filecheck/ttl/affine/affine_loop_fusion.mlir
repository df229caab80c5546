// RUN: tlx-opt -p affine-loop-fusion %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!matrix = tensor<256x256xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<!matrix>
!view = tensor<1x1x!tile>
!read = !ttl.transfer_handle<read>
!write = !ttl.transfer_handle<write>

// The compute thread takes a block of each buffer in turn: the reader may fill them in turn. The index arithmetic between
// the loops goes before both.
// CHECK-LABEL: ttl.kernel @in_turn
// CHECK: ttl.datamovement_thread
// CHECK-NEXT: %r = affine.apply
// CHECK-NEXT: affine.for %i = 0 to 2 {
// CHECK-NEXT: ttl.cb_reserve %acb
// CHECK-NEXT: ttl.copy %aacc[%i, %i]
// CHECK-NEXT: ttl.wait
// CHECK-NEXT: ttl.cb_push %acb
// CHECK-NEXT: ttl.cb_reserve %bcb
// CHECK-NEXT: ttl.copy %bacc[%r, %i]
// CHECK-NEXT: ttl.wait
// CHECK-NEXT: ttl.cb_push %bcb
// CHECK-NEXT: }
// CHECK-NEXT: ttl.thread_return
ttl.kernel @in_turn(%a: !matrix, %b: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %bacc = ttl.tensor_accessor %b : !matrix -> !acc
  %x, %y = ttl.core(dims = 2) : index, index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %i], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %acb
    }
    %r = affine.apply affine_map<(d0) -> (d0 + 1)> (%x)
    affine.for %j = 0 to 2 {
      %w = ttl.cb_reserve %bcb : !cb -> !view
      %yf = ttl.copy %bacc[%r, %j], %w : !acc, !view -> !read
      ttl.wait %yf
      ttl.cb_push %bcb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %acb : !cb -> !view
      %w = ttl.cb_wait %bcb : !cb -> !view
      ttl.cb_pop %acb
      ttl.cb_pop %bcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// All of %acb is taken before the first block of %bcb: with more blocks than there is room for, the compute thread would
// wait for %acb and the fused reader for room in %bcb.
// CHECK-LABEL: ttl.kernel @one_after_the_other
// CHECK: affine.for %{{.*}} = 0 to 4 {
// CHECK: ttl.cb_push %acb
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK: ttl.compute_thread
// Here, both buffers have other ends in one loop of the reader each, which take all of one before the other.
// CHECK: ttl.cb_pop %acb
// CHECK-NEXT: }
// CHECK-NEXT: affine.for
ttl.kernel @one_after_the_other(%a: !matrix, %b: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %bacc = ttl.tensor_accessor %b : !matrix -> !acc
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %i], %v : !acc, !view -> !read
      ttl.cb_push %acb
    }
    affine.for %i = 0 to 4 {
      %v = ttl.cb_reserve %bcb : !cb -> !view
      %xf = ttl.copy %bacc[%i, %i], %v : !acc, !view -> !read
      ttl.cb_push %bcb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_wait %acb : !cb -> !view
      ttl.cb_pop %acb
    }
    affine.for %i = 0 to 4 {
      %v = ttl.cb_wait %bcb : !cb -> !view
      ttl.cb_pop %bcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// With room for all blocks, the reader never waits. The compute thread still takes all of %acb first.
// CHECK-LABEL: ttl.kernel @space_for_all
// CHECK: ttl.cb_push %acb
// CHECK-NEXT: ttl.cb_reserve %bcb
// CHECK: ttl.compute_thread
ttl.kernel @space_for_all(%a: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %i], %v : !acc, !view -> !read
      ttl.cb_push %acb
    }
    affine.for %i = 0 to 2 {
      %v = ttl.cb_reserve %bcb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %i], %v : !acc, !view -> !read
      ttl.cb_push %bcb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %acb : !cb -> !view
      ttl.cb_pop %acb
    }
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %bcb : !cb -> !view
      ttl.cb_pop %bcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The second loop overwrites tiles that later iterations of the first loop write: %u would win where %v has to.
// CHECK-LABEL: ttl.kernel @write_after_write
// CHECK: ttl.cb_pop %ucb
// CHECK-NEXT: }
// CHECK-NEXT: affine.for
// One tile further, it overwrites those of earlier iterations only.
// CHECK-LABEL: ttl.kernel @write_after_earlier_write
// CHECK: ttl.cb_pop %ucb
// CHECK-NEXT: ttl.cb_wait %vcb
ttl.kernel @write_after_write(%c: !matrix) {
  %ucb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %vcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %acc = ttl.tensor_accessor %c : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      %o = ttl.cb_reserve %ucb : !cb -> !view
      %p = ttl.cb_reserve %vcb : !cb -> !view
      %x = ttl.fill {value = 1.0 : f32} : !view
      ttl.store %x, %o : !view, !view
      ttl.store %x, %p : !view, !view
      ttl.cb_push %ucb
      ttl.cb_push %vcb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %ucb : !cb -> !view
      %xf = ttl.copy %v, %acc[%c0, %i] : !view, !acc -> !write
      ttl.cb_pop %ucb
    }
    affine.for %i = 0 to 2 {
      %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
      %v = ttl.cb_wait %vcb : !cb -> !view
      %xf = ttl.copy %v, %acc[%c0, %next] : !view, !acc -> !write
      ttl.cb_pop %vcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
ttl.kernel @write_after_earlier_write(%c: !matrix) {
  %ucb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %vcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %acc = ttl.tensor_accessor %c : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      %o = ttl.cb_reserve %ucb : !cb -> !view
      %p = ttl.cb_reserve %vcb : !cb -> !view
      %x = ttl.fill {value = 1.0 : f32} : !view
      ttl.store %x, %o : !view, !view
      ttl.store %x, %p : !view, !view
      ttl.cb_push %ucb
      ttl.cb_push %vcb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %ucb : !cb -> !view
      %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
      %xf = ttl.copy %v, %acc[%c0, %next] : !view, !acc -> !write
      ttl.cb_pop %ucb
    }
    affine.for %i = 0 to 2 {
      %v = ttl.cb_wait %vcb : !cb -> !view
      %xf = ttl.copy %v, %acc[%c0, %i] : !view, !acc -> !write
      ttl.cb_pop %vcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
