// RUN: tlx-opt %s | filecheck %s
// RUN: tlx-opt -p ttl-canonicalize %s | filecheck %s --check-prefix=BOTH

// Other spellings of the design document are read, and written in one.
!tile = !ttcore.tile<32x32, f32>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

// CHECK-LABEL: ttl.kernel @spellings
ttl.kernel @spellings(%a: !tensor, %c: !tensor) {
  // CHECK: ttl.create_cb {{.*}} : !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>
  %cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !ttl.circular_buffer<[2,1], !tile, 2, L1>
  // CHECK: ttl.tensor_accessor %a : {{.*}} -> !ttl.tensor_accessor<tensor<64x64xf32
  %a_acc = ttl.tensor_accessor %a : !tensor -> !ttl.accessor<#ttl.layout<tiled>, DRAM>
  %c_acc = ttl.tensor_accessor %c : !tensor -> !ttl.accessor<#ttl.layout<tiled>, DRAM>
  %zero = arith.constant 0 : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %cb : !ttl.circular_buffer<[2, 1], !tile, 2> -> tensor<2x1x!tile>
    // CHECK: ttl.copy %a_acc[%zero, %zero], %{{.*}} : !ttl.tensor_accessor<{{.*}}>, {{.*}} -> !ttl.transfer_handle<read>
    %xf = ttl.copy %a_acc[%zero, %zero], %view : !ttl.accessor<#ttl.layout<tiled>, DRAM>, tensor<2x1x!tile> -> !ttl.transfer_handle
    // CHECK: ttl.dma_barrier{{$}}
    // BOTH: ttl.dma_barrier read
    // BOTH-NEXT: ttl.dma_barrier write
    ttl.dma_barrier
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %view = ttl.cb_wait %cb : !ttl.cb<[2, 1], !tile, 2> -> tensor<2x1x!tile>
    // CHECK: -> !ttl.transfer_handle<write>
    %xf = ttl.copy %view, %c_acc[%zero, %zero] : tensor<2x1x!tile>, !ttl.accessor<#ttl.layout<tiled>, DRAM> -> !ttl.transfer_handle
    ttl.wait %xf : !ttl.transfer_handle
    ttl.cb_pop %cb
    ttl.thread_return
  }
  ttl.kernel_return
}
