// RUN: tlx-opt -p affine-data-copy-generate %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!matrix = tensor<256x256xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<!matrix>
!view = tensor<1x1x!tile>
!read = !ttl.transfer_handle<read>
!write = !ttl.transfer_handle<write>

// A row's factor is read once per row, and stays in its circular buffer while the row's tiles are scaled.
// CHECK-LABEL: ttl.kernel @scale_rows
// CHECK: affine.for %i = 0 to 4 {
// CHECK-NEXT: %next = affine.apply
// CHECK-NEXT: %v = ttl.cb_reserve %acb
// CHECK-NEXT: %xf = ttl.copy %aacc[%next, %c0], %v
// CHECK-NEXT: ttl.wait %xf
// CHECK-NEXT: ttl.cb_push %acb
// CHECK-NEXT: affine.for %j = 0 to 8 {
// CHECK-NEXT: ttl.cb_reserve %bcb
// CHECK-NOT: %acb
// CHECK: ttl.compute_thread
// CHECK-NEXT: affine.for
// CHECK-NEXT: %[[A:.*]] = ttl.cb_wait %acb
// CHECK-NEXT: affine.for
// CHECK-NEXT: %[[B:.*]] = ttl.cb_wait %bcb
// CHECK: ttl.mul %[[A]], %[[B]]
// CHECK-NOT: %acb
// CHECK: }
// CHECK-NEXT: ttl.cb_pop %acb
// CHECK-NEXT: }
ttl.kernel @scale_rows(%a: !matrix, %b: !matrix, %c: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %ccb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %bacc = ttl.tensor_accessor %b : !matrix -> !acc
  %cacc = ttl.tensor_accessor %c : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 8 {
        %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
        %v = ttl.cb_reserve %acb : !cb -> !view
        %xf = ttl.copy %aacc[%next, %c0], %v : !acc, !view -> !read
        ttl.wait %xf
        ttl.cb_push %acb
        %w = ttl.cb_reserve %bcb : !cb -> !view
        %yf = ttl.copy %bacc[%i, %j], %w : !acc, !view -> !read
        ttl.wait %yf
        ttl.cb_push %bcb
      }
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 8 {
        %v = ttl.cb_wait %acb : !cb -> !view
        %w = ttl.cb_wait %bcb : !cb -> !view
        %o = ttl.cb_reserve %ccb : !cb -> !view
        %x = ttl.mul %v, %w : !view, !view -> !view
        ttl.store %x, %o : !view, !view
        ttl.cb_pop %acb
        ttl.cb_pop %bcb
        ttl.cb_push %ccb
      }
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 8 {
        %v = ttl.cb_wait %ccb : !cb -> !view
        %xf = ttl.copy %v, %cacc[%i, %j] : !view, !acc -> !write
        ttl.wait %xf
        ttl.cb_pop %ccb
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The writer changes the tile in the meantime: each iteration reads what the last one wrote.
// CHECK-LABEL: ttl.kernel @accumulate_in_memory
// CHECK: affine.for
// CHECK-NEXT: ttl.cb_reserve %acb
// CHECK: ttl.compute_thread
// CHECK-NEXT: affine.for
// CHECK-NEXT: ttl.cb_wait %acb
ttl.kernel @accumulate_in_memory(%a: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %ccb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%c0, %c0], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %acb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_wait %acb : !cb -> !view
      %o = ttl.cb_reserve %ccb : !cb -> !view
      %x = ttl.exp %v : !view -> !view
      ttl.store %x, %o : !view, !view
      ttl.cb_pop %acb
      ttl.cb_push %ccb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_wait %ccb : !cb -> !view
      %xf = ttl.copy %v, %aacc[%c0, %c0] : !view, !acc -> !write
      ttl.wait %xf
      ttl.cb_pop %ccb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The consumer's loop goes through all blocks: which of its iterations share one is not followed.
// CHECK-LABEL: ttl.kernel @other_iterations
// CHECK: affine.for
// CHECK-NEXT: affine.for
// CHECK-NEXT: ttl.cb_reserve %acb
ttl.kernel @other_iterations(%a: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      affine.for %j = 0 to 4 {
        %v = ttl.cb_reserve %acb : !cb -> !view
        %xf = ttl.copy %aacc[%i, %c0], %v : !acc, !view -> !read
        ttl.wait %xf
        ttl.cb_push %acb
      }
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 8 {
      %v = ttl.cb_wait %acb : !cb -> !view
      ttl.cb_pop %acb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The reader begins when the compute thread has pushed a block, which it does before it waits for the reader's: if it
// waited for that before the loop, both would wait.
// CHECK-LABEL: ttl.kernel @reader_waits
// CHECK: ttl.cb_pop %fcb
// CHECK-NEXT: affine.for
ttl.kernel @reader_waits(%a: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %fcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    %f = ttl.cb_wait %fcb : !cb -> !view
    ttl.cb_pop %fcb
    affine.for %i = 0 to 2 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%c0, %c0], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %acb
    }
    %g = ttl.cb_wait %fcb : !cb -> !view
    ttl.cb_pop %fcb
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      %o = ttl.cb_reserve %fcb : !cb -> !view
      %x = ttl.fill {value = 1.0 : f32} : !view
      ttl.store %x, %o : !view, !view
      ttl.cb_push %fcb
      %v = ttl.cb_wait %acb : !cb -> !view
      ttl.cb_pop %acb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
