// RUN: tlx-opt %s -p ttl-report-repairs --split-input-file --verify-diagnostics | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// Nothing is said of what is complete, and nothing is changed.
// CHECK-LABEL: ttl.kernel @complete
// CHECK:       ttl.copy
// CHECK-NEXT:  ttl.wait
// CHECK-NEXT:  ttl.cb_push
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

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// CHECK-LABEL: ttl.kernel @left_out
// CHECK:       ttl.copy
// CHECK-NEXT:  ttl.wait
// CHECK-NEXT:  ttl.thread_return
ttl.kernel @left_out(%a: !tensor, %b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    // expected-remark @below {{this block of 'a_cb' is reserved, but not pushed: the compiler pushes it after its last use}}
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %xf = ttl.copy %a_acc[%id], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    // expected-remark @below {{this block of 'a_cb' is waited for, but not popped: the compiler pops it after its last use}}
    %view = ttl.cb_wait %a_cb : !cb -> !block
    %xf = ttl.copy %view, %b_acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.wait %xf
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

// CHECK-LABEL: ttl.kernel @too_early
ttl.kernel @too_early(%a: !tensor, %b: !tensor) {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %b_acc = ttl.tensor_accessor %b : !tensor -> !accessor
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    // expected-remark @below {{this copy is not waited for before 'a_cb' is pushed: the compiler waits for it}}
    %xf = ttl.copy %a_acc[%id], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.cb_push %a_cb
    ttl.wait %xf
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %view = ttl.cb_wait %a_cb : !cb -> !block
    // expected-remark @below {{this copy is not waited for before 'a_cb' is popped: the compiler waits for it}}
    %xf = ttl.copy %view, %b_acc[%id] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 1>
!block = tensor<1x1x!tile>

// Nothing is said of the compiler's own buffers, whose blocks a kernel can't give back.
// CHECK-LABEL: ttl.kernel @own_buffer
// CHECK:       ttl.cb_wait
// CHECK-NEXT:  ttl.thread_return
ttl.kernel @own_buffer() {
  %sum = "ttl.create_cb"() <{internal}> : () -> !cb
  ttl.compute_thread @compute {
    %value = ttl.fill {value = 0.0 : f32} : !block
    %made = ttl.cb_reserve %sum : !cb -> !block
    ttl.store %value, %made : !block, !block
    ttl.cb_push %sum
    %view = ttl.cb_wait %sum : !cb -> !block
    ttl.thread_return
  }
  ttl.kernel_return
}
