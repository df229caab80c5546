// RUN: tlx-opt %s -p ttl-merge-pipes | filecheck %s
// RUN: tlx-opt %s -p ttl-merge-pipes,ttl-merge-pipes | filecheck %s
// RUN: tlx-opt %s -p ttl-merge-pipes,ttl-infer-pipe-semaphores,ttl-insert-synchronization

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

// Each row has the same pipe.
// CHECK-LABEL: ttl.kernel @rows
// CHECK:       %p = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}1, 0], [2, 0]] count=[1, 2] : !ttl.pipe
// CHECK-NOT:   create_pipe
// CHECK:       ttl.if_src %p {
// CHECK-NOT:   ttl.if_src
// CHECK:       ttl.if_dst %p {
// CHECK-NOT:   ttl.if_dst
ttl.kernel @rows() attributes {grid = #ttcore.grid<3x2>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
  %q = ttl.create_pipe src=[0, 1] dst_range=[[1, 1], [2, 1]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_src %q {
      %xf = ttl.copy %view, %q : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.if_dst %q {
      %xf = ttl.copy %q, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %view = ttl.cb_wait %a_cb : !cb -> !block
    ttl.thread_return
  }
  ttl.kernel_return
}

// All other cores send to core (0, 0), which receives in the order of the pipes.
// CHECK-LABEL: ttl.kernel @gather
// CHECK:       %p = ttl.create_pipe src=[1, 0] dst_range=[{{\[}}0, 0], [0, 0]] count=[3, 1] gathers : !ttl.pipe
// CHECK:       ttl.if_src %p {
// CHECK:       %[[Y:.*]] = arith.constant 0 : index
// CHECK-NEXT:  affine.for %[[X:.*]] = 1 to 4 {
// CHECK-NEXT:    ttl.if_dst %p {
// CHECK-NEXT:      %{{.*}} = ttl.cb_reserve
// CHECK-NEXT:      ttl.copy %p[%[[X]], %[[Y]]], %{{.*}} :
// CHECK-NOT:   ttl.if_dst
ttl.kernel @gather() attributes {grid = #ttcore.grid<4x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[1, 0] dst_range=[[0, 0], [0, 0]] : !ttl.pipe
  %q = ttl.create_pipe src=[2, 0] dst_range=[[0, 0], [0, 0]] : !ttl.pipe
  %r = ttl.create_pipe src=[3, 0] dst_range=[[0, 0], [0, 0]] : !ttl.pipe
  ttl.compute_thread @fill {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %one = ttl.fill {value = 1.0 : f32} : !block
    ttl.store %one, %view : !block, !block
    ttl.thread_return
  }
  ttl.datamovement_thread @send {
    %view = ttl.cb_wait %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_src %q {
      %xf = ttl.copy %view, %q : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_src %r {
      %xf = ttl.copy %view, %r : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      %taken = ttl.cb_reserve %b_cb : !cb -> !block
      %xf = ttl.copy %p, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.if_dst %q {
      %taken = ttl.cb_reserve %b_cb : !cb -> !block
      %xf = ttl.copy %q, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.if_dst %r {
      %taken = ttl.cb_reserve %b_cb : !cb -> !block
      %xf = ttl.copy %r, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @drain {
    %id = ttl.core(dims = 1) : index
    %zero = arith.constant 0 : index
    %is_first = arith.cmpi eq, %id, %zero : index
    scf.if %is_first {
      affine.for %i = 0 to 3 {
        %view = ttl.cb_wait %b_cb : !cb -> !block
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// The branches do not follow each other, or the sources are not neighbours.
// CHECK-LABEL: ttl.kernel @different
// CHECK:       create_pipe src=[0, 0] dst_range=[{{\[}}1, 0], [1, 0]] : !ttl.pipe
// CHECK:       create_pipe src=[0, 1] dst_range=[{{\[}}1, 1], [1, 1]] : !ttl.pipe
// CHECK:       create_pipe src=[0, 3] dst_range=[{{\[}}1, 3], [1, 3]] : !ttl.pipe
ttl.kernel @different() attributes {grid = #ttcore.grid<2x4>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  %q = ttl.create_pipe src=[0, 1] dst_range=[[1, 1], [1, 1]] : !ttl.pipe
  %r = ttl.create_pipe src=[0, 3] dst_range=[[1, 3], [1, 3]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.if_src %q {
      %xf = ttl.copy %view, %q : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_src %r {
      %xf = ttl.copy %view, %r : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %q {
      %xf = ttl.copy %q, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.if_dst %r {
      %xf = ttl.copy %r, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %view = ttl.cb_wait %a_cb : !cb -> !block
    ttl.thread_return
  }
  ttl.kernel_return
}
