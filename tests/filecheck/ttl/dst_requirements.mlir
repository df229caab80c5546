// RUN: tlx-opt -p ttl-infer-dst-requirements %s | filecheck %s
// RUN: tlx-opt -p ttl-infer-dst-requirements,ttl-infer-dst-requirements %s | filecheck %s
// RUN: tlx-opt -p ttl-infer-dst-requirements,ttl-bufferize %s | filecheck %s --check-prefix ERASED

!tile = !ttcore.tile<32x32, bf16>
!cb = !ttl.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>
!block = tensor<2x2x!ttcore.tile<32x32, bf16>>

// A product reads circular buffers, not registers: neither what is waited for nor what is computed for it is marked.
// ERASED-NOT: ttl.require_dst
ttl.kernel @product() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 2], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    // CHECK: %a = ttl.cb_wait
    %a = ttl.cb_wait %a_cb : !cb -> !block
    // CHECK-NEXT: ttl.require_dst %a
    // CHECK-NEXT: %b = ttl.cb_wait
    %b = ttl.cb_wait %b_cb : !cb -> !block
    // CHECK-NEXT: %e = ttl.exp
    %e = ttl.exp %a : !block -> !block
    // CHECK-NEXT: %m = ttl.matmul
    %m = ttl.matmul %e, %b : !block, !block -> !block
    // CHECK-NEXT: ttl.require_dst %m
    // CHECK-NEXT: %o = ttl.cb_reserve
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // CHECK-NEXT: ttl.store
    ttl.store %m, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
