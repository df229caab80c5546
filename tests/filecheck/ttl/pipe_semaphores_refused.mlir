// RUN: tlx-opt %s -p ttl-infer-pipe-semaphores --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @outside_of_its_side() attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    // expected-error @below {{only the source of a pipe may do this: put the copy into ttl.if_src of the pipe}}
    %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @never_received() attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      // expected-error @below {{nothing receives what is sent through the pipe 'p': the other side waits for ever}}
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @outside_of_the_grid() attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  // expected-error @below {{the last receiver of the pipe 'p' is core (2, 0), the grid has 2x1 cores}}
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

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!one = !ttl.cb<[1, 1], !tile, 1>
!block = tensor<1x1x!tile>

// The thread would wait for its own receiver to be ready, or for its own block, before it comes to the other one.
ttl.kernel @its_own_receiver() attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 : !one
  %p = ttl.create_pipe src=[0, 0] dst_range=[[0, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %taken = ttl.cb_reserve %b_cb : !one -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      // expected-error @below {{deadlock: the source of the pipe 'p' is one of its receivers, and one thread does both, which must wait for each other: receive in the other datamovement thread, or leave the source out of dst_range}}
      // expected-note @below {{it sends at}}
      %xf = ttl.copy %p, %taken : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.cb_push %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

// One of two receivers pushes a block of its own first.
ttl.kernel @other_places() attributes {grid = #ttcore.grid<3x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
  %q = ttl.create_pipe src=[2, 0] dst_range=[[2, 0], [2, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    ttl.if_src %q {
      %own = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.cb_push %a_cb
    }
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.if_src %p {
      %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      // expected-error @below {{the blocks of the pipe 'p' are not in the same places on core (1, 0) and core (2, 0), but a multicast writes to one address: ttl-split-pipes makes a pipe for each}}
      // expected-note @below {{they are sent at}}
      %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @other_number() attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %view = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.if_src %p {
        %xf = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
      }
      ttl.cb_push %a_cb
    }
    affine.for %i = 0 to 3 {
      ttl.if_dst %p {
        %view = ttl.cb_reserve %a_cb : !cb -> !block
        // expected-error @below {{4 blocks are sent through the pipe 'p', core (1, 0) receives 3}}
        %xf = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
        ttl.cb_push %a_cb
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
