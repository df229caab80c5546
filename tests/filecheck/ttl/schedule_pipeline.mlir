// RUN: tlx-opt -p ttl-schedule-pipeline %s | filecheck %s
// RUN: tlx-opt -p "ttl-schedule-pipeline{depth=4}" %s | filecheck %s --check-prefix DEEP
// RUN: tlx-opt -p ttl-schedule-pipeline,ttl-schedule-pipeline %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 4>
!matrix = tensor<256x256xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<!matrix>
!view = tensor<1x1x!tile>
!read = !ttl.transfer_handle<read>
!write = !ttl.transfer_handle<write>

// CHECK-DAG: #[[CUT:map[0-9]*]] = affine_map<(d0) -> ((((d0 + 4) floordiv 2) * 2))>
// CHECK-DAG: #[[REST:map[0-9]*]] = affine_map<(d0) -> (0, (((d0 + 4) floordiv 2) * 2))>
// CHECK-DAG: #[[END:map[0-9]*]] = affine_map<(d0) -> ((d0 + 4))>

// Both buffers go in lockstep with the compute thread: batches of two, and the seventh block on its own. One barrier each.
// CHECK-LABEL: ttl.kernel @add
// CHECK: affine.for %{{.*}} = 0 to 6 step 2 {
// CHECK: %[[V:.*]] = ttl.cb_reserve %acb {blocks = 2 : i64}
// CHECK: %[[V0:.*]] = ttl.block %[[V]], %{{.*}}
// CHECK: %[[V1:.*]] = ttl.block %[[V]], %{{.*}}
// CHECK: ttl.copy %aacc[{{.*}}], %[[V0]]
// CHECK-NEXT: ttl.copy %aacc[{{.*}}], %[[V1]]
// CHECK: ttl.cb_reserve %bcb {blocks = 2 : i64}
// CHECK-COUNT-2: ttl.copy %bacc
// CHECK-NEXT: ttl.dma_barrier read
// CHECK-NEXT: ttl.cb_push %acb {blocks = 2 : i64}
// CHECK-NEXT: ttl.cb_push %bcb {blocks = 2 : i64}
// CHECK: affine.for %{{.*}} = 6 to 7 {
// CHECK: ttl.cb_reserve %acb :
// CHECK-NEXT: ttl.copy %aacc
// CHECK-NEXT: ttl.cb_reserve %bcb :
// CHECK-NEXT: ttl.copy %bacc
// CHECK-NEXT: ttl.dma_barrier read
// CHECK-NEXT: ttl.cb_push %acb
// CHECK-NEXT: ttl.cb_push %bcb
// The compute thread keeps its order.
// CHECK: ttl.compute_thread
// CHECK: affine.for %{{.*}} = 0 to 7 {
// The writer waits for two blocks, and writes both.
// CHECK: affine.for %{{.*}} = 0 to 6 step 2 {
// CHECK: ttl.cb_wait %ccb {blocks = 2 : i64}
// CHECK-COUNT-2: ttl.copy %{{.*}}, %cacc
// CHECK-NEXT: ttl.dma_barrier write
// CHECK-NEXT: ttl.cb_pop %ccb {blocks = 2 : i64}

// The whole buffer at once.
// DEEP-LABEL: ttl.kernel @add
// DEEP: affine.for %{{.*}} = 0 to 4 step 4 {
// DEEP: ttl.cb_reserve %acb {blocks = 4 : i64}
// DEEP-COUNT-4: ttl.copy %aacc
// DEEP: affine.for %{{.*}} = 4 to 7 {
ttl.kernel @add(%a: !matrix, %b: !matrix, %c: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %ccb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %bacc = ttl.tensor_accessor %b : !matrix -> !acc
  %cacc = ttl.tensor_accessor %c : !matrix -> !acc
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 7 {
      %r = affine.apply affine_map<(d0) -> (d0 floordiv 2)> (%i)
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%r, %i], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %acb
      %w = ttl.cb_reserve %bcb : !cb -> !view
      %yf = ttl.copy %bacc[%i, %i], %w : !acc, !view -> !read
      ttl.wait %yf
      ttl.cb_push %bcb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 7 {
      %v = ttl.cb_wait %acb : !cb -> !view
      %w = ttl.cb_wait %bcb : !cb -> !view
      %o = ttl.cb_reserve %ccb : !cb -> !view
      %x = ttl.add %v, %w : !view, !view -> !view
      ttl.store %x, %o : !view, !view
      ttl.cb_pop %acb
      ttl.cb_pop %bcb
      ttl.cb_push %ccb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 7 {
      %v = ttl.cb_wait %ccb : !cb -> !view
      %xf = ttl.copy %v, %cacc[%i, %i] : !view, !acc -> !write
      ttl.wait %xf
      ttl.cb_pop %ccb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The writer's blocks overlap in iterations that are two apart: no more than two of them are outstanding together.
// DEEP-LABEL: ttl.kernel @distance
// DEEP: affine.for %{{.*}} = 0 to 6 step 2 {
// DEEP: ttl.cb_wait %cb {blocks = 2 : i64}
ttl.kernel @distance(%c: !matrix) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %acc = ttl.tensor_accessor %c : !matrix -> !acc
  %c0 = arith.constant 0 : index
  ttl.compute_thread @compute {
    affine.for %i = 0 to 6 {
      %o = ttl.cb_reserve %cb : !cb -> !view
      %x = ttl.fill {value = 1.0 : f32} : !view
      ttl.store %x, %o : !view, !view
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 6 {
      %r = affine.apply affine_map<(d0) -> (d0 mod 2)> (%i)
      %v = ttl.cb_wait %cb : !cb -> !view
      %xf = ttl.copy %v, %acc[%r, %c0] : !view, !acc -> !write
      ttl.wait %xf
      ttl.cb_pop %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The compute thread takes all blocks of %acb before the first one of %bcb: a reader that reserved %bcb before it pushed
// %acb could wait forever. It stays as it is, and so does the loop, since its batches would be for both buffers.
// CHECK-LABEL: ttl.kernel @no_lockstep
// CHECK: affine.for %{{.*}} = 0 to 4 {
// CHECK: ttl.cb_push %acb
// CHECK-NEXT: ttl.cb_reserve %bcb
// CHECK: ttl.cb_push %bcb
ttl.kernel @no_lockstep(%a: !matrix, %b: !matrix) {
  %acb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %bcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %bacc = ttl.tensor_accessor %b : !matrix -> !acc
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_reserve %acb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %i], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %acb
      %w = ttl.cb_reserve %bcb : !cb -> !view
      %yf = ttl.copy %bacc[%i, %i], %w : !acc, !view -> !read
      ttl.wait %yf
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
      %w = ttl.cb_wait %bcb : !cb -> !view
      ttl.cb_pop %bcb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// Both sides of a buffer can't take batches: one might wait for three blocks while the other waits for room for two.
// Bounds that follow from the core are cut by affine maps.
// CHECK-LABEL: ttl.kernel @directly
// CHECK: affine.for %{{.*}} = 0 to #[[CUT]](%x) step 2 {
// CHECK: ttl.cb_reserve %cb {blocks = 2 : i64}
// CHECK: affine.for %{{.*}} = max #[[REST]](%x) to #[[END]](%x) {
// CHECK: ttl.cb_reserve %cb :
// CHECK: ttl.datamovement_thread @write
// CHECK: affine.for %{{.*}} = 0 to #[[END]](%x) {
ttl.kernel @directly(%a: !matrix, %c: !matrix) attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %aacc = ttl.tensor_accessor %a : !matrix -> !acc
  %cacc = ttl.tensor_accessor %c : !matrix -> !acc
  %x, %y = ttl.core(dims = 2) : index, index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to affine_map<(d0) -> (d0 + 4)> (%x) {
      %v = ttl.cb_reserve %cb : !cb -> !view
      %xf = ttl.copy %aacc[%i, %x], %v : !acc, !view -> !read
      ttl.wait %xf
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to affine_map<(d0) -> (d0 + 4)> (%x) {
      %v = ttl.cb_wait %cb : !cb -> !view
      %xf = ttl.copy %v, %cacc[%i, %x] : !view, !acc -> !write
      ttl.wait %xf
      ttl.cb_pop %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// In a loop in another one, a batch of two would have a rest of one, and the next batch would go over the end of the ring.
// CHECK-LABEL: ttl.kernel @nested
// CHECK: ttl.datamovement_thread
// CHECK-NEXT: affine.for
// CHECK-NEXT: affine.for %{{.*}} = 0 to 3 {
ttl.kernel @nested(%c: !matrix) {
  %dcb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %cacc = ttl.tensor_accessor %c : !matrix -> !acc
  ttl.compute_thread @fill {
    affine.for %i = 0 to 6 {
      %o = ttl.cb_reserve %dcb : !cb -> !view
      %z = ttl.fill {value = 1.0 : f32} : !view
      ttl.store %z, %o : !view, !view
      ttl.cb_push %dcb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @nested {
    affine.for %i = 0 to 2 {
      affine.for %j = 0 to 3 {
        %v = ttl.cb_wait %dcb : !cb -> !view
        %xf = ttl.copy %v, %cacc[%i, %j] : !view, !acc -> !write
        ttl.wait %xf
        ttl.cb_pop %dcb
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
