// RUN: tlx-opt -p 'ttl-infer-dst-requirements,ttl-bufferize,ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers,ttl-lower-compute,ttl-lower-data-movement,ttl-lower-synchronization' %s | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 2], !ttcore.tile<32x32, f32>, 2>
!block = tensor<1x2x!ttcore.tile<32x32, f32>>

// Text that comes before a buffer or a block is written on its own; functions of the vector unit have numbers.
ttl.kernel @text() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 2], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 2], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %n = arith.constant 7 : index
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.print "n = {}, block {}"(%n, %a : index, !block) {thread = "unpack"}
    ttl.print "{}"(%a_cb : !cb)
    ttl.print "only text"
    %c = ttl.clamp %a {parameters = [0.0 : f32, 1.0 : f32]} : !block -> !block
    ttl.store %c, %o : !block, !block
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// CHECK: ttkernel.cb_wait_front
// CHECK: ttkernel.dprint(%{{.*}}) {format = "n = {}, block", thread = "unpack"} : (index) -> ()
// CHECK-NEXT: ttkernel.dprint_tiles(%{{.*}}) {tiles = 2 : i32, thread = "unpack"}
// CHECK-NEXT: ttkernel.dprint_buffer(%{{.*}})
// CHECK-NEXT: ttkernel.dprint() {format = "only text"}
// CHECK: ttkernel.clamp_tile_init() : () -> ()
// CHECK-NEXT: ttkernel.clamp_tile(%{{.*}}) {parameters = [0.000000e+00 : f32, 1.000000e+00 : f32]}
