// RUN: tlx-opt -p ttl-bufferize %s --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

// The pop of the first block can't wait: the second one would be in its place.
ttl.kernel @popped() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    ttl.cb_pop %a_cb
    %b = ttl.cb_wait %a_cb : !cb -> !block
    %s = ttl.add %a, %b : !block, !block -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // expected-error @below {{a block is read after its circular buffer was popped at}}
    ttl.store %s, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

// Every run of the loop reads the block, the first one pops it.
ttl.kernel @popped_in_a_loop() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    affine.for %i = 0 to 2 {
      %o = ttl.cb_reserve %o_cb : !cb -> !block
      // expected-error @below {{a block is read after its circular buffer was popped at}}
      ttl.store %a, %o : !block, !block
      ttl.cb_push %o_cb
      ttl.cb_pop %a_cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

// One branch pops the block, and both are read after it.
ttl.kernel @popped_in_a_branch(%x: tensor<32x32xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>) attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %id = ttl.get_shard_id() : index
  %c0 = arith.constant 0 : index
  %is_first = arith.cmpi eq, %id, %c0 : index
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    scf.if %is_first {
      ttl.cb_pop %a_cb
    }
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // expected-error @below {{a block is read after its circular buffer was popped at}}
    ttl.store %a, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

ttl.kernel @written() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %e = ttl.exp %a : !block -> !block
    // expected-error @below {{a store writes a block of ttl.cb_reserve, found one of ttl.cb_wait}}
    ttl.store %e, %a : !block, !block
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

ttl.kernel @read() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    // expected-error @below {{a block that is reserved can only be written, found an operation that reads it}}
    %a = ttl.cb_reserve %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.store %a, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

ttl.kernel @carried() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %zero = ttl.fill {value = 0.000000e+00 : f32} : !block
    // expected-error @below {{a block of tiles must be computed or waited for in this thread, found one that a loop or a branch gives}}
    %s = affine.for %i = 0 to 4 iter_args(%before = %zero) -> (!block) {
      %a = ttl.cb_wait %a_cb : !cb -> !block
      %after = ttl.add %before, %a : !block, !block -> !block
      ttl.cb_pop %a_cb
      affine.yield %after : !block
    }
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.store %s, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
