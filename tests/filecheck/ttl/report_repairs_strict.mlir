// RUN: tlx-opt %s -p 'ttl-report-repairs{strict=true}' --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

ttl.kernel @left_out(%a: !tensor, %b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    // expected-error @below {{this block of 'a_cb' is reserved, but not pushed: push it after its last use}}
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %xf = ttl.copy %a_acc[%id], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf
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

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

ttl.kernel @too_early(%a: !tensor, %b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    // expected-error @below {{this copy is not waited for before 'a_cb' is pushed: wait for it}}
    %xf = ttl.copy %a_acc[%id], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %a_cb
    ttl.wait %xf
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
