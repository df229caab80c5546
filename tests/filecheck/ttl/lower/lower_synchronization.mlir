// RUN: tlx-opt %s -p ttl-lower-synchronization --split-input-file --verify-diagnostics | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 3>
!kcb = !ttkernel.cb<6, !ttcore.tile<32x32, f32>>
!t = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>>

// Steps count in pages: a block is two tiles. Casts of the buffer, and of a block of it, become the compile-time argument
// that has its number. The function has no arguments any more; the launch keeps the tensors whose addresses it takes.
// CHECK-LABEL: ttl.kernel_driver @steps_driver
// CHECK: ttl.launch_thread @steps(%b_acc, %a_acc)
ttl.kernel_driver @steps_driver(%a: !t, %b: !t) {
  %other = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 3 : i32} : !cb
  %cb = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 3 : i32} : !cb
  %a_acc = ttl.tensor_accessor %a : !t -> !acc
  %b_acc = ttl.tensor_accessor %b : !t -> !acc
  ttl.launch_thread @steps(%b_acc, %cb, %a_acc)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @steps() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
// CHECK-DAG: %[[CB:.*]] = ttkernel.get_compile_time_arg_val() {index = 1 : i32} : () -> !ttkernel.cb<6, !ttcore.tile<32x32, f32>>
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
func.func @steps(%b_acc: !acc, %cb: !cb, %a_acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK-NEXT: ttkernel.cb_reserve_back(%[[CB]], %[[TWO]])
  // CHECK-NEXT: ttkernel.get_write_ptr(%[[CB]])
  // CHECK-NEXT: ttkernel.get_read_ptr(%[[CB]])
  // CHECK-NEXT: ttkernel.cb_push_back(%[[CB]], %[[TWO]])
  // CHECK-NEXT: ttkernel.cb_wait_front(%[[CB]], %[[FOUR]])
  // CHECK-NEXT: ttkernel.cb_pop_front(%[[CB]], %[[FOUR]])
  // CHECK-NEXT: func.return
  %cast = builtin.unrealized_conversion_cast %cb : !cb to !kcb
  %view = ttl.cb_reserve %cb : !cb -> memref<2x1x!tile>
  %0 = ttkernel.get_write_ptr(%cast) : (!kcb) -> i32
  %block = builtin.unrealized_conversion_cast %view : memref<2x1x!tile> to !kcb
  %1 = ttkernel.get_read_ptr(%block) : (!kcb) -> i32
  ttl.cb_push %cb
  %i = arith.constant 0 : index
  %views = ttl.cb_wait %cb {blocks = 2 : i64} : !cb -> memref<2x2x1x!tile>
  %unused = ttl.block %views, %i : memref<2x2x1x!tile> -> memref<2x1x!tile>
  ttl.cb_pop %cb {blocks = 2 : i64}
  func.return
}

// -----

// Barriers of one direction with nothing but arithmetic in between are one.
ttl.kernel_driver @barriers_driver() {
  ttl.launch_thread @barriers()
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @barriers
func.func @barriers() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK: ttkernel.noc_async_read_barrier
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: ttkernel.noc_async_write_barrier
  // CHECK-NEXT: ttkernel.noc_async_read_barrier
  // CHECK-NEXT: func.return
  ttl.dma_barrier read
  %0 = arith.constant 1 : i32
  %1 = arith.addi %0, %0 : i32
  ttl.dma_barrier read
  ttl.dma_barrier write
  ttl.dma_barrier read
  func.return
}

// -----

// Semaphores: the own word through a pointer; others by their places on the network, which differ from the logical ones
// as the own does.
ttl.kernel_driver @semaphores_driver() attributes {grid = #ttcore.grid<4x4>} {
  %s = ttl.create_semaphore {initial = 0 : i32, index = 2 : i32} : !ttl.semaphore
  ttl.launch_thread @semaphores(%s)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @semaphores
// CHECK: %[[SEM:.*]] = ttkernel.get_semaphore() {index = 2 : i32}
// CHECK: %[[OWN:.*]] = ttkernel.cast_to_l1_ptr(%[[SEM]])
// CHECK: %[[X:.*]] = ttkernel.my_x()
// CHECK: %[[LX:.*]] = ttkernel.my_logical_x()
// CHECK: %[[DX:.*]] = arith.subi %[[X]], %[[LX]] : i32
// CHECK: %[[DY:.*]] = arith.subi
// CHECK: %[[AT:.*]] = ttkernel.semaphore_address(%[[SEM]])
func.func @semaphores(%s: !ttl.semaphore) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %v = arith.constant 1 : i32
  %x = arith.constant 1 : index
  %y = arith.constant 2 : index
  // CHECK: ttkernel.noc_semaphore_set(%[[OWN]], %v)
  // CHECK-NEXT: ttkernel.noc_semaphore_wait(%[[OWN]], %v)
  // CHECK-NEXT: ttkernel.noc_semaphore_wait_min(%[[OWN]], %v)
  ttl.semaphore_set %s, %v
  ttl.semaphore_wait_eq %s, %v
  ttl.semaphore_wait_min %s, %v
  // CHECK-NEXT: %[[THERE_X:.*]] = arith.addi %[[DX]], %v : i32
  // CHECK-NEXT: %[[THERE_Y:.*]] = arith.addi %[[DY]], %{{.*}} : i32
  // CHECK-NEXT: %[[THERE:.*]] = ttkernel.get_noc_addr(%[[THERE_X]], %[[THERE_Y]], %[[AT]])
  // CHECK-NEXT: ttkernel.noc_semaphore_inc(%[[THERE]], %v)
  // CHECK-NEXT: ttkernel.noc_async_atomic_barrier()
  ttl.semaphore_inc %s, %v [%x, %y]
  // CHECK: ttkernel.noc_semaphore_set_remote(%[[SEM]], %{{.*}})
  // CHECK-NEXT: ttkernel.noc_async_write_barrier()
  ttl.semaphore_set %s, %v [%x, %y]
  // A range of 1x2 cores.
  // CHECK: %[[RANGE:.*]] = ttkernel.get_noc_multicast_addr(
  // CHECK-NEXT: ttkernel.noc_semaphore_set_multicast(%[[SEM]], %[[RANGE]], %[[TWO:.*]]) :
  ttl.semaphore_set %s, %v [%x, %x, %x, %y]
  // CHECK: ttkernel.noc_semaphore_set_multicast_loopback_src(
  ttl.semaphore_set %s, %v [%x, %x, %y, %y] {loopback}
  // A range of one core is no multicast.
  // CHECK: ttkernel.get_noc_addr(
  // CHECK-NEXT: ttkernel.noc_semaphore_set_remote(
  ttl.semaphore_set %s, %v [%x, %y, %x, %y]
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>

ttl.kernel_driver @driver() {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  ttl.launch_thread @uses_a_block(%cb)
  ttl.kernel_driver_return
}
func.func @uses_a_block(%cb: !cb) attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %v = ttl.cb_wait %cb : !cb -> tensor<1x1x!tile>
  %e = ttl.exp %v : tensor<1x1x!tile> -> tensor<1x1x!tile> // expected-error {{'ttl.exp' can't be lowered to ttkernel: run ttl-lower-compute before, or write it with operations on blocks that a store ends}}
  ttl.cb_pop %cb
  %o = ttl.cb_reserve %cb : !cb -> tensor<1x1x!tile>
  ttl.store %e, %o : tensor<1x1x!tile>, tensor<1x1x!tile>
  ttl.cb_push %cb
  func.return
}

// -----

ttl.kernel_driver @driver() {
  %s = ttl.create_semaphore {initial = 0 : i32, index = 0 : i32} : !ttl.semaphore
  ttl.launch_thread @counts_itself(%s)
  ttl.kernel_driver_return
}
// The own semaphore is incremented over the network on chip, too.
// CHECK-LABEL: func.func @counts_itself
func.func @counts_itself(%s: !ttl.semaphore) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK-DAG: %[[X:.*]] = ttkernel.my_x()
  // CHECK-DAG: %[[Y:.*]] = ttkernel.my_y()
  // CHECK: %[[OWN:.*]] = ttkernel.get_noc_addr(%[[X]], %[[Y]], %{{.*}})
  // CHECK-NEXT: ttkernel.noc_semaphore_inc(%[[OWN]], %v)
  %v = arith.constant 1 : i32
  ttl.semaphore_inc %s, %v
  func.return
}

// -----

ttl.kernel_driver @driver() attributes {grid = #ttcore.grid<2x1>} {
  %p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.launch_thread @asks(%p)
  ttl.kernel_driver_return
}
func.func @asks(%p: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  ttl.if_src %p { // expected-error {{'ttl.if_src' can't be lowered to ttkernel: run ttl-lower-data-movement before}}
    ttl.dma_barrier read
  }
  func.return
}

// -----

ttl.kernel_driver @driver() {
  ttl.launch_thread @missing() // expected-error {{there is no function '@missing' to launch as a thread}}
  ttl.kernel_driver_return
}
