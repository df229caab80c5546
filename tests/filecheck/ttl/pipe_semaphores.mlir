// RUN: tlx-opt %s -p ttl-infer-pipe-semaphores,cse | filecheck %s
// RUN: tlx-opt %s -p ttl-infer-pipe-semaphores,ttl-infer-pipe-semaphores,cse | filecheck %s
// RUN: tlx-opt %s -p ttl-infer-pipe-semaphores,ttl-insert-synchronization

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!one = !ttl.cb<[1, 1], !tile, 1>
!block = tensor<1x1x!tile>
!tensor = tensor<64x128xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// The source waits for three receivers. Its word of `valid` holds what the multicast copies.
// CHECK-LABEL: ttl.kernel @multicast
// CHECK:       %p_ready = ttl.create_semaphore {initial = 0 : i32}
// CHECK-NEXT:  %p_valid = ttl.create_semaphore {initial = 0 : i32}
// CHECK:       ttl.if_src %p {
// CHECK:         ttl.copy %a_acc
// CHECK:         ttl.semaphore_wait_eq %p_ready, %[[THREE:.*]]
// CHECK-NEXT:    ttl.semaphore_set %p_ready, %[[ZERO:.*]]
// CHECK:         %[[XF:.*]] = ttl.copy %{{.*}}, %p :
// CHECK-NEXT:    ttl.wait %[[XF]]
// CHECK-NEXT:    ttl.semaphore_set %p_valid, %[[ONE:.*]]
// CHECK-NEXT:    ttl.semaphore_set %p_valid, %[[ONE]] [%[[X1:.*]], %[[Y0:.*]], %[[X3:.*]], %[[Y0]]]
// CHECK-NEXT:  }
// CHECK-NEXT:  ttl.if_dst %p {
// CHECK:         ttl.semaphore_set %p_valid, %[[Z:.*]]
// CHECK-NEXT:    %{{.*}} = ttl.copy %p, %{{.*}} {synchronized}
// CHECK-NEXT:    ttl.semaphore_inc %p_ready, %[[O:.*]] [%[[X0:.*]], %[[X0]]]
// CHECK-NEXT:    ttl.semaphore_wait_eq %p_valid, %[[O]]
// CHECK-NEXT:  }
ttl.kernel @multicast(%a: !tensor) attributes {grid = #ttcore.grid<4x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 8 {
      %view = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.if_src %p {
        %xf = ttl.copy %a_acc[%i], %view : !accessor, !block -> !ttl.transfer_handle<read>
        ttl.wait %xf
        %xg = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
        ttl.wait %xg
      }
      ttl.if_dst %p {
        %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
        ttl.wait %xf
      }
      ttl.cb_push %a_cb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 8 {
      %view = ttl.cb_wait %a_cb : !cb -> !block
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// One receiver gets a unicast. It takes the block in another buffer, whose only place is the same on all cores.
// CHECK-LABEL: ttl.kernel @unicast
// CHECK:       ttl.if_src %p {
// CHECK:         ttl.copy %{{.*}}, %p :
// CHECK-NEXT:    ttl.wait
// CHECK-NEXT:    ttl.semaphore_set %p_valid, %[[ONE:.*]]
// CHECK-NEXT:    ttl.semaphore_set %p_valid, %[[ONE]] [%[[X:.*]], %[[Y:.*]]]
// CHECK-NEXT:  }
ttl.kernel @unicast() attributes {grid = #ttcore.grid<1x2>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 : !one
  %p = ttl.create_pipe src=[0, 0] dst_range=[[0, 1], [0, 1]] : !ttl.pipe
  ttl.compute_thread @fill {
    affine.for %i = 0 to 4 {
      %view = ttl.cb_reserve %a_cb : !cb -> !block
      %one = ttl.fill {value = 1.0 : f32} : !block
      ttl.store %one, %view : !block, !block
    }
    affine.for %i = 0 to 4 {
      %view = ttl.cb_wait %b_cb : !one -> !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @send {
    affine.for %i = 0 to 4 {
      %view = ttl.cb_wait %a_cb : !cb -> !block
      ttl.if_src %p {
        %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
      }
      ttl.cb_pop %a_cb
      %taken = ttl.cb_reserve %b_cb : !one -> !block
      ttl.if_dst %p {
        %xf = ttl.copy %p, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      }
      ttl.cb_push %b_cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The source is a receiver, too: its receiving thread may reset the word that a multicast would copy.
// CHECK-LABEL: ttl.kernel @loopback
// CHECK:       ttl.if_src %p {
// CHECK:         ttl.semaphore_wait_eq %p_ready, %[[TWO:.*]]
// CHECK:         ttl.copy %{{.*}}, %p :
// CHECK-NEXT:    ttl.wait
// CHECK-NEXT:    ttl.semaphore_inc %p_valid, %[[ONE:.*]] [%[[C0:.*]], %[[C0]]]
// CHECK-NEXT:    ttl.semaphore_inc %p_valid, %[[ONE]] [%[[C1:.*]], %[[C0]]]
// CHECK-NEXT:  }
ttl.kernel @loopback(%a: !tensor) attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 : !one
  %p = ttl.create_pipe src=[0, 0] dst_range=[[0, 0], [1, 0]] : !ttl.pipe
  ttl.compute_thread @fill {
    affine.for %i = 0 to 3 {
      %view = ttl.cb_reserve %a_cb : !cb -> !block
      %one = ttl.fill {value = 1.0 : f32} : !block
      ttl.store %one, %view : !block, !block
      ttl.cb_push %a_cb
      %taken = ttl.cb_wait %b_cb : !one -> !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @send {
    affine.for %i = 0 to 3 {
      %view = ttl.cb_wait %a_cb : !cb -> !block
      ttl.if_src %p {
        %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
      }
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @receive {
    affine.for %i = 0 to 3 {
      %taken = ttl.cb_reserve %b_cb : !one -> !block
      ttl.if_dst %p {
        %xf = ttl.copy %p, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The receivers' block is in another circular buffer with room for two: they report its address.
// CHECK-LABEL: ttl.kernel @published
// CHECK:       ttl.if_src %p {
// CHECK:         %[[AT:.*]] = ttl.semaphore_wait_published %p_ready, %[[TWO:.*]]
// CHECK-NOT:     ttl.semaphore_set %p_ready
// CHECK:         ttl.copy %{{.*}}, %p[%[[AT]]] :
// CHECK-NEXT:    ttl.wait
// CHECK:       ttl.if_dst %p {
// CHECK:         ttl.semaphore_set %p_valid, %{{.*}}
// CHECK-NEXT:    ttl.copy %p, %[[VIEW:.*]] {synchronized}
// CHECK-NEXT:    %[[ADDRESS:.*]] = ttl.block_address %[[VIEW]] : tensor<1x1x!ttcore.tile<32x32, f32>> -> i32
// CHECK-NEXT:    ttl.semaphore_publish %p_ready, %[[ADDRESS]] [%{{.*}}, %{{.*}}]
// CHECK-NEXT:    ttl.semaphore_wait_eq %p_valid
// CHECK-NEXT:  }
ttl.kernel @published() attributes {grid = #ttcore.grid<3x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
  ttl.compute_thread @fill {
    affine.for %i = 0 to 4 {
      %view = ttl.cb_reserve %a_cb : !cb -> !block
      %one = ttl.fill {value = 1.0 : f32} : !block
      ttl.store %one, %view : !block, !block
    }
    affine.for %i = 0 to 4 {
      %view = ttl.cb_wait %b_cb : !cb -> !block
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @send {
    affine.for %i = 0 to 4 {
      %view = ttl.cb_wait %a_cb : !cb -> !block
      ttl.if_src %p {
        %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
      }
      ttl.cb_pop %a_cb
      %taken = ttl.cb_reserve %b_cb : !cb -> !block
      ttl.if_dst %p {
        %xf = ttl.copy %p, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      }
      ttl.cb_push %b_cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
