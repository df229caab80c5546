// RUN: tlx-opt %s -p ttl-infer-pipe-semaphores,ttl-insert-synchronization,cse | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>
!tensor = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!accessor = !ttl.tensor_accessor<!tensor>

// Each core has begun to read into the block. The receiver waits for that before it says that it is ready: its own data
// would come later than that of the source.
// CHECK-LABEL: ttl.kernel @read_then_receive
// CHECK:       ttl.if_dst %p {
// CHECK-NOT:     ttl.semaphore_inc
// CHECK:         ttl.dma_barrier read
// CHECK:         ttl.copy %p, %{{.*}} {synchronized}
// CHECK-NEXT:    ttl.semaphore_inc %p_ready
// CHECK-NEXT:    ttl.semaphore_wait_eq %p_valid
ttl.kernel @read_then_receive(%a: !tensor) attributes {grid = #ttcore.grid<2x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_acc = ttl.tensor_accessor %a : !tensor -> !accessor
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.datamovement_thread @read {
    %c0 = arith.constant 0 : index
    %view = ttl.cb_reserve %a_cb : !cb -> !block
    %xf = ttl.copy %a_acc[%c0, %c0], %view : !accessor, !block -> !ttl.transfer_handle<read>
    ttl.if_src %p {
      %sent = ttl.copy %view, %p : !block, !ttl.pipe -> !ttl.transfer_handle<write>
    }
    ttl.if_dst %p {
      %received = ttl.copy %p, %view : !ttl.pipe, !block -> !ttl.transfer_handle<read>
    }
    ttl.cb_push %a_cb
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    %c1 = arith.constant 1 : index
    %view = ttl.cb_wait %a_cb : !cb -> !block
    %xf = ttl.copy %view, %a_acc[%c1, %c1] : !block, !accessor -> !ttl.transfer_handle<write>
    ttl.thread_return
  }
  ttl.kernel_return
}
