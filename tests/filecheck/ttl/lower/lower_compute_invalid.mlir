// RUN: tlx-opt -p 'ttl-bufferize,ttl-lower-compute{to=linalg}' %s --verify-diagnostics
// RUN: not tlx-opt -p 'ttl-bufferize,ttl-assign-dst-registers,ttl-lower-compute' %s 2>&1 | filecheck %s

// CHECK: lower_compute_invalid.mlir:{{[0-9]+}}:5: error: a computation outside of a thread's function: run ttl-expand-threads before

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>

ttl.kernel @unassigned() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // expected-error @below {{a ttl.compute without destination registers: run ttl-assign-dst-registers before}}
    ttl.store %a, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
