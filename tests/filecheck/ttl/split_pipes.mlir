// RUN: tlx-opt %s -p ttl-split-pipes | filecheck %s
// RUN: tlx-opt %s -p ttl-split-pipes,ttl-split-pipes | filecheck %s
// RUN: tlx-opt %s -p ttl-split-pipes,ttl-infer-pipe-semaphores

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

// Cores of columns 2 and 3 push a block of their own first.
// CHECK-LABEL: ttl.kernel @other_places
// CHECK:       %[[ONE:.*]] = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}1, 0], [1, 0]] count=[1, 2]
// CHECK-NEXT:  %[[TWO:.*]] = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}2, 0], [3, 0]] count=[1, 2]
// CHECK-NEXT:  %[[ALL:.*]] = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}1, 0], [3, 0]] count=[1, 2]
// CHECK:       ttl.if_src %[[ALL]] {
// CHECK-NEXT:    ttl.if_src %[[ONE]] {
// CHECK-NEXT:      %[[XF:.*]] = ttl.copy %{{.*}}, %[[ONE]] :
// CHECK-NEXT:      ttl.wait %[[XF]]
// CHECK-NEXT:    }
// CHECK-NEXT:    ttl.if_src %[[TWO]] {
// CHECK-NEXT:      %[[XG:.*]] = ttl.copy %{{.*}}, %[[TWO]] :
// CHECK-NEXT:      ttl.wait %[[XG]]
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  ttl.if_dst %[[ALL]] {
// CHECK-NEXT:    ttl.if_dst %[[ONE]] {
// CHECK-NEXT:      %{{.*}} = ttl.copy %[[ONE]],
// CHECK:         ttl.if_dst %[[TWO]] {
// CHECK-NEXT:      %{{.*}} = ttl.copy %[[TWO]],
ttl.kernel @other_places() attributes {grid = #ttcore.grid<4x2>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] count=[1, 2] : !ttl.pipe
  %x, %y = ttl.core(dims = 2) : index, index
  %two = arith.constant 2 : index
  %is_late = arith.cmpi sge, %x, %two : index
  ttl.datamovement_thread @read {
    scf.if %is_late {
      %own = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.cb_push %a_cb
    }
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
      ttl.wait %xf
    }
    ttl.if_dst %p {
      %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      ttl.wait %xf
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// Core (3, 0) receives in another circular buffer.
// CHECK-LABEL: ttl.kernel @other_buffer
// CHECK:       %[[ONE:.*]] = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}1, 0], [2, 0]] :
// CHECK-NEXT:  %[[TWO:.*]] = ttl.create_pipe src=[0, 0] dst_range=[{{\[}}3, 0], [3, 0]] :
// CHECK:       ttl.if_dst %{{.*}} {
// CHECK:         scf.if
// CHECK-NEXT:      ttl.if_dst %[[ONE]] {
// CHECK:         } else {
// CHECK:           ttl.if_dst %[[TWO]] {
ttl.kernel @other_buffer() attributes {grid = #ttcore.grid<4x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
  %x = ttl.core(dims = 1) : index
  %three = arith.constant 3 : index
  %is_early = arith.cmpi slt, %x, %three : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %other = ttl.cb_reserve %b_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      scf.if %is_early {
        %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      } else {
        %xf = ttl.copy %p, %other : !ttl.pipe, !block -> !ttl.transfer_handle<read>
      }
    }
    ttl.cb_push %a_cb
    ttl.cb_push %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// All receivers have it in one place: the pipe stays as it is.
// CHECK-LABEL: ttl.kernel @one_place
// CHECK:       create_pipe
// CHECK-NOT:   create_pipe
ttl.kernel @one_place() attributes {grid = #ttcore.grid<3x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
