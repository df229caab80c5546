// RUN: tlx-opt %s -p ttl-insert-synchronization | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// What is complete stays as it is.
// CHECK-LABEL: ttl.kernel @complete
// CHECK:       ttl.datamovement_thread @read {
// CHECK-NEXT:    %{{.*}} = ttl.cb_reserve %a_cb
// CHECK-NEXT:    %xf = ttl.copy
// CHECK-NEXT:    ttl.wait %xf
// CHECK-NEXT:    ttl.cb_push %a_cb
// CHECK-NEXT:    ttl.thread_return
// CHECK:       ttl.datamovement_thread @write {
// CHECK-NEXT:    %{{.*}} = ttl.cb_wait %a_cb
// CHECK-NEXT:    %xf_1 = ttl.copy
// CHECK-NEXT:    ttl.wait %xf_1
// CHECK-NEXT:    ttl.cb_pop %a_cb
// CHECK-NEXT:    ttl.thread_return
ttl.kernel @complete(%a: !tensor, %b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %xf = ttl.copy %a_acc[%id], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %view = ttl.cb_wait %a_cb : !cb -> !block
    %xf = ttl.copy %view, %b_acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.wait %xf
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// Pushes and pops that are left out follow the last use, inside of the loop. The two reads overlap: one barrier before
// the first push stands for both waits. The last write is waited for before its block is popped.
// CHECK-LABEL: ttl.kernel @left_out
// CHECK:       ttl.datamovement_thread @read {
// CHECK-NEXT:    affine.for
// CHECK-NEXT:      %a_view = ttl.cb_reserve %a_cb
// CHECK-NEXT:      %b_view = ttl.cb_reserve %b_cb
// CHECK-NEXT:      %{{.*}} = ttl.copy %a_acc
// CHECK-NEXT:      %{{.*}} = ttl.copy %b_acc
// CHECK-NEXT:      ttl.dma_barrier read
// CHECK-NEXT:      ttl.cb_push %a_cb
// CHECK-NEXT:      ttl.cb_push %b_cb
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.thread_return
// CHECK:       ttl.compute_thread @compute {
// CHECK-NEXT:    affine.for
// CHECK-NEXT:      %{{.*}} = ttl.cb_wait %a_cb
// CHECK-NEXT:      %{{.*}} = ttl.cb_wait %b_cb
// CHECK-NEXT:      %{{.*}} = ttl.cb_reserve %c_cb
// CHECK-NEXT:      %{{.*}} = ttl.add
// CHECK-NEXT:      ttl.store
// CHECK-NEXT:      ttl.cb_pop %a_cb
// CHECK-NEXT:      ttl.cb_pop %b_cb
// CHECK-NEXT:      ttl.cb_push %c_cb
// CHECK-NEXT:    }
// CHECK:       ttl.datamovement_thread @write {
// CHECK-NEXT:    affine.for
// CHECK-NEXT:      %{{.*}} = ttl.cb_wait %c_cb
// CHECK-NEXT:      %{{.*}} = ttl.copy
// CHECK-NEXT:      ttl.dma_barrier write
// CHECK-NEXT:      ttl.cb_pop %c_cb
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.thread_return
ttl.kernel @left_out(%a: !tensor, %b: !tensor, %c: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %c_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %c_acc = ttl.tensor_accessor %c : !tensor -> !accessor
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %a_view = ttl.cb_reserve %a_cb : !cb -> !block
      %b_view = ttl.cb_reserve %b_cb : !cb -> !block
      %xf_a = ttl.copy %a_acc[%i], %a_view : !accessor, !block -> !ttl.transfer_handle<read>
      %xf_b = ttl.copy %b_acc[%i], %b_view : !accessor, !block -> !ttl.transfer_handle<read>
      ttl.wait %xf_a
      ttl.wait %xf_b
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 4 {
      %x = ttl.cb_wait %a_cb : !cb -> !block
      %y = ttl.cb_wait %b_cb : !cb -> !block
      %z = ttl.cb_reserve %c_cb : !cb -> !block
      %s = ttl.add %x, %y : !block, !block -> !block
      ttl.store %s, %z : !block, !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = 0 to 4 {
      %z = ttl.cb_wait %c_cb : !cb -> !block
      %xf = ttl.copy %z, %c_acc[%i] : !block, !accessor -> !ttl.transfer_handle<write>
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// A pop is bounded by the next wait for the same buffer, which would give the same block again.
// CHECK-LABEL: ttl.kernel @bounded
// CHECK:       %[[A:.*]] = ttl.cb_wait %a_cb
// CHECK-NEXT:  %{{.*}} = ttl.copy %[[A]]
// CHECK-NEXT:  ttl.dma_barrier write
// CHECK-NEXT:  ttl.cb_pop %a_cb
// CHECK-NEXT:  %[[B:.*]] = ttl.cb_wait %a_cb
// CHECK-NEXT:  %{{.*}} = ttl.copy %[[B]]
// CHECK-NEXT:  ttl.dma_barrier write
// CHECK-NEXT:  ttl.cb_pop %a_cb
// CHECK-NEXT:  ttl.thread_return
ttl.kernel @bounded(%b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.compute_thread @fill {
    affine.for %i = 0 to 2 {
      %v = ttl.cb_reserve %a_cb : !cb -> !block
      %one = ttl.fill {value = 1.0 : f32} : !block
      ttl.store %one, %v : !block, !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %first = ttl.cb_wait %a_cb : !cb -> !block
    %xf = ttl.copy %first, %b_acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    %second = ttl.cb_wait %a_cb : !cb -> !block
    %xg = ttl.copy %second, %b_acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.thread_return
  }
  ttl.kernel_return
}

// A transfer that a branch may have begun is waited for after it. A read of a tensor waits for writes of the
// same tile; reads of another tile or tensor do not.
// CHECK-LABEL: ttl.kernel @tensors
// CHECK:       ttl.datamovement_thread @write {
// CHECK-NEXT:    %x = ttl.cb_wait %a_cb
// CHECK-NEXT:    scf.if %first {
// CHECK-NEXT:      %{{.*}} = ttl.copy %x, %b_acc
// CHECK-NEXT:    }
// CHECK-NEXT:    %y = ttl.cb_reserve %b_cb
// CHECK-NEXT:    %{{.*}} = ttl.copy %c_acc{{.*}}, %y
// CHECK-NEXT:    ttl.dma_barrier read
// CHECK-NEXT:    ttl.cb_push %b_cb
// CHECK-NEXT:    %z = ttl.cb_reserve %b_cb
// CHECK-NEXT:    %{{.*}} = ttl.copy %b_acc[%c1], %z
// CHECK-NEXT:    ttl.dma_barrier read
// CHECK-NEXT:    ttl.cb_push %b_cb
// CHECK-NEXT:    %w = ttl.cb_reserve %b_cb
// CHECK-NEXT:    ttl.dma_barrier write
// CHECK-NEXT:    %{{.*}} = ttl.copy %b_acc{{.*}}, %w
ttl.kernel @tensors(%b: !tensor, %c: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %c_acc = ttl.tensor_accessor %c : !tensor -> !accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %id = ttl.get_shard_id() : index
  %first = arith.cmpi eq, %id, %c0 : index
  ttl.compute_thread @compute {
    %v = ttl.cb_reserve %a_cb : !cb -> !block
    %one = ttl.fill {value = 1.0 : f32} : !block
    ttl.store %one, %v : !block, !block
    affine.for %i = 0 to 3 {
      %u = ttl.cb_wait %b_cb : !cb -> !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %x = ttl.cb_wait %a_cb : !cb -> !block
    scf.if %first {
      %0 = ttl.copy %x, %b_acc[%c0] : !block, !accessor -> !ttl.transfer_handle<write>
    }
    %y = ttl.cb_reserve %b_cb : !cb -> !block
    %1 = ttl.copy %c_acc[%c0], %y : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %b_cb
    %z = ttl.cb_reserve %b_cb : !cb -> !block
    %2 = ttl.copy %b_acc[%c1], %z : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %b_cb
    %w = ttl.cb_reserve %b_cb : !cb -> !block
    %3 = ttl.copy %b_acc[%c0], %w : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %b_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// The handle that is waited for is that of the last iteration; what earlier ones began must be waited for, too.
// CHECK-LABEL: ttl.kernel @several_iterations
// CHECK:       ttl.datamovement_thread @write {
// CHECK-NEXT:    %x = ttl.cb_wait %a_cb
// CHECK-NEXT:    affine.for
// CHECK-NEXT:      %{{.*}} = ttl.copy
// CHECK-NEXT:      %last = arith.cmpi
// CHECK-NEXT:      scf.if %last {
// CHECK-NEXT:        ttl.dma_barrier write
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.dma_barrier write
// CHECK-NEXT:    ttl.cb_pop %a_cb
ttl.kernel @several_iterations(%b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %c2 = arith.constant 2 : index
  ttl.compute_thread @fill {
    %v = ttl.cb_reserve %a_cb : !cb -> !block
    %one = ttl.fill {value = 1.0 : f32} : !block
    ttl.store %one, %v : !block, !block
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %x = ttl.cb_wait %a_cb : !cb -> !block
    affine.for %i = 0 to 4 {
      %xf = ttl.copy %x, %b_acc[%i] : !block, !accessor -> !ttl.transfer_handle<write>
      %last = arith.cmpi eq, %i, %c2 : index
      scf.if %last {
        ttl.wait %xf
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
