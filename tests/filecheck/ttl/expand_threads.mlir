// RUN: tlx-opt %s -p ttl-expand-threads --split-input-file --verify-diagnostics | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!block = tensor<1x1x!ttcore.tile<32x32, f32>>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
!t = tensor<1024x1024xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<sharded, grid=[32, 32], tiles_per_shard=[1, 1]>>>
!acc = !ttl.tensor_accessor<tensor<1024x1024xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<sharded, grid=[32, 32], tiles_per_shard=[1, 1]>>>>

// The element-wise addition of the TTL design document, section 5.2: a driver that has the buffers and their numbers,
// and a function for each thread that has them as arguments, in the order of their definitions.
// CHECK-LABEL: ttl.kernel_driver @elementwise_add_driver(
// CHECK-SAME: attributes {grid = #ttcore.grid<32x32>, fp32_dest_acc_en}
// CHECK-NEXT: %a_cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
// CHECK-NEXT: %b_cb = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 2 : i32}
// CHECK-NEXT: %c_cb = ttl.bind_cb {cb_index = 2 : i32, buffer_factor = 2 : i32}
// CHECK-NEXT: %a_accessor = ttl.tensor_accessor %a
// CHECK-NEXT: %b_accessor = ttl.tensor_accessor %b
// CHECK-NEXT: %c_accessor = ttl.tensor_accessor %c
// CHECK-NEXT: %shard_id = ttl.get_shard_id() : index
// CHECK-NEXT: ttl.launch_thread @dm_reader(%a_cb, %b_cb, %a_accessor, %b_accessor, %shard_id)
// CHECK-NEXT: ttl.launch_thread @compute(%a_cb, %b_cb, %c_cb)
// CHECK-NEXT: ttl.launch_thread @dm_writer(%c_cb, %c_accessor, %shard_id)
// CHECK-NEXT: ttl.kernel_driver_return
// CHECK: func.func @dm_reader(%a_cb: !ttl.cb<{{.*}}>, %b_cb: !ttl.cb<{{.*}}>, %a_accessor: {{.*}}, %b_accessor: {{.*}}, %shard_id: index) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
// CHECK-NOT: ttl.bind_cb
// CHECK: ttl.copy %a_accessor[%shard_id]
// CHECK: func.return
// CHECK: func.func @compute(%a_cb: !ttl.cb<{{.*}}>, %b_cb: !ttl.cb<{{.*}}>, %c_cb: !ttl.cb<{{.*}}>) attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
// CHECK-NOT: ttl.bind_cb
// CHECK: func.return
// CHECK: func.func @dm_writer(%c_cb: {{.*}}, %c_accessor: {{.*}}, %shard_id: index) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
// CHECK-NOT: ttl.bind_cb
// CHECK: func.return
ttl.kernel @elementwise_add(%a: !t, %b: !t, %c: !t) attributes {grid = #ttcore.grid<32x32>, fp32_dest_acc_en} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %c_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %a_accessor = ttl.tensor_accessor %a : !t -> !acc
  %b_accessor = ttl.tensor_accessor %b : !t -> !acc
  %c_accessor = ttl.tensor_accessor %c : !t -> !acc
  %shard_id = ttl.get_shard_id() : index
  ttl.datamovement_thread {
    %a_view = ttl.cb_reserve %a_cb : !cb -> !block
    %xf_a = ttl.copy %a_accessor[%shard_id], %a_view : !acc, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf_a
    ttl.cb_push %a_cb
    %b_view = ttl.cb_reserve %b_cb : !cb -> !block
    %xf_b = ttl.copy %b_accessor[%shard_id], %b_view : !acc, !block -> !ttl.transfer_handle<read>
    ttl.wait %xf_b
    ttl.cb_push %b_cb
    ttl.thread_return
  }
  ttl.compute_thread {
    %a_tiles = ttl.cb_wait %a_cb : !cb -> !block
    %b_tiles = ttl.cb_wait %b_cb : !cb -> !block
    %c_view = ttl.cb_reserve %c_cb : !cb -> !block
    %c_tiles = ttl.add %a_tiles, %b_tiles : !block, !block -> !block
    ttl.store %c_tiles, %c_view : !block, !block
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    ttl.cb_push %c_cb
    ttl.thread_return
  }
  ttl.datamovement_thread {
    %c_view = ttl.cb_wait %c_cb : !cb -> !block
    %xf_c = ttl.copy %c_view, %c_accessor[%shard_id] : !block, !acc -> !ttl.transfer_handle<write>
    ttl.wait %xf_c
    ttl.cb_pop %c_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>

// Numbers and addresses that were given are kept; semaphores get numbers. Threads have their own arithmetic; resources
// and the core's place are arguments.
// CHECK-LABEL: ttl.kernel_driver @resources_driver
// CHECK-NEXT: %cb = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 1 : i32, l1_address = 64 : i32, internal}
// CHECK-NEXT: %other = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32}
// CHECK-NEXT: %ready = ttl.create_semaphore {initial = 0 : i32, index = 0 : i32}
// CHECK-NEXT: %done = ttl.create_semaphore {initial = 3 : i32, index = 1 : i32}
// CHECK-NEXT: %pipe = ttl.create_pipe
// CHECK-NEXT: %x, %y = ttl.core(dims = 2)
// CHECK-NEXT: ttl.launch_thread @send(%ready, %done, %pipe, %x)
// CHECK-NEXT: ttl.kernel_driver_return
// CHECK: func.func @send(%ready: !ttl.semaphore, %done: !ttl.semaphore, %pipe: !ttl.pipe, %x: index)
// CHECK-NEXT: %one = arith.constant 1 : index
// CHECK-NEXT: %next = arith.addi %x, %one : index
ttl.kernel @resources() attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal, cb_index = 1 : i32, l1_address = 64 : i32} : !cb
  %other = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 : !cb
  %ready = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  %done = ttl.create_semaphore {initial = 3 : i32} : !ttl.semaphore
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  %x, %y = ttl.core(dims = 2) : index, index
  %one = arith.constant 1 : index
  %next = arith.addi %x, %one : index
  ttl.datamovement_thread @send {
    %v = arith.constant 1 : i32
    ttl.if_src %pipe {
      ttl.semaphore_inc %ready, %v [%next, %one]
      ttl.semaphore_wait_eq %done, %v
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

// Threads of two kernels of a module with the same name.
// CHECK: ttl.launch_thread @read()
// CHECK: func.func @read()
// CHECK: ttl.launch_thread @second_read()
// CHECK: func.func @second_read()
ttl.kernel @first() {
  ttl.datamovement_thread @read {
    ttl.thread_return
  }
  ttl.kernel_return
}
ttl.kernel @second() {
  ttl.datamovement_thread @read {
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @computes_twice() {
  ttl.compute_thread {
    ttl.thread_return
  }
  ttl.compute_thread { // expected-error {{a core has 1 compute thread, this is number 2: move its work to the other thread}}
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @moves_thrice() {
  ttl.datamovement_thread @a {
    ttl.thread_return
  }
  ttl.datamovement_thread @b {
    ttl.thread_return
  }
  ttl.datamovement_thread @c { // expected-error {{a core has 2 datamovement threads, this is number 3: move its work to the other threads}}
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @shares_control_flow() {
  %c = arith.constant true
  %i = scf.if %c -> (index) { // expected-error {{'scf.if' is neither a resource nor index arithmetic: move it into the threads that need it}}
    %0 = arith.constant 0 : index
    scf.yield %0 : index
  } else {
    %1 = arith.constant 1 : index
    scf.yield %1 : index
  }
  ttl.datamovement_thread {
    %s = arith.addi %i, %i : index
    ttl.thread_return
  }
  ttl.kernel_return
}
