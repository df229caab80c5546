// RUN: tlx-opt %s -p ttl-lower-data-movement --split-input-file | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

// The source of a pipe, a range of receivers, and the multicast to them: relative to the own place on the network, as
// the TTL design document has it in section 5.2.1. Only the source runs it, so the differences are constants.
ttl.kernel_driver @multicast_driver() attributes {grid = #ttcore.grid<4x1>} {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !cb
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
  ttl.launch_thread @multicast(%cb, %pipe)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @multicast
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 4096 : i32
// CHECK-DAG: %[[X:.*]] = ttkernel.my_x()
// CHECK-DAG: %[[Y:.*]] = ttkernel.my_y()
// CHECK-DAG: %[[LX:.*]] = ttkernel.my_logical_x()
// CHECK-DAG: %[[LY:.*]] = ttkernel.my_logical_y()
func.func @multicast(%cb: !cb, %pipe: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK: %[[L1:.*]] = ttkernel.get_write_ptr
  // CHECK: %[[IS_X:.*]] = arith.cmpi eq, %[[LX]], %{{.*}} : i32
  // CHECK: %[[IS_Y:.*]] = arith.cmpi eq, %[[LY]], %{{.*}} : i32
  // CHECK: %[[IS_SOURCE:.*]] = arith.andi %[[IS_X]], %[[IS_Y]] : i1
  // CHECK: scf.if %[[IS_SOURCE]] {
  // CHECK-NEXT: %[[START:.*]] = arith.addi %[[X]], %[[C1]] : i32
  // CHECK-NEXT: %[[END:.*]] = arith.addi %[[X]], %[[C3]] : i32
  // CHECK-NEXT: %[[TO:.*]] = ttkernel.get_noc_multicast_addr(%[[START]], %[[Y]], %[[END]], %[[Y]], %[[L1]])
  // CHECK-NEXT: ttkernel.noc_async_write_multicast(%[[L1]], %[[TO]], %[[BYTES]], %[[C3]])
  // CHECK-NEXT: ttl.dma_barrier write
  // CHECK-NEXT: }
  %view = ttl.cb_reserve %cb : !cb -> memref<1x1x!tile>
  ttl.if_src %pipe {
    %send = ttl.copy %view, %pipe : memref<1x1x!tile>, !ttl.pipe -> !ttl.transfer_handle<write>
    ttl.wait %send
  }
  // The last core of the row is one, too, so there is no upper bound.
  // CHECK: %[[FROM:.*]] = arith.cmpi sge, %[[LX]], %[[C1]] : i32
  // CHECK-NOT: sle
  // CHECK: arith.andi %[[FROM]]
  // CHECK: scf.if
  // CHECK-NOT: ttl.copy
  // CHECK-NOT: ttl.wait
  // CHECK: ttl.cb_push
  ttl.if_dst %pipe {
    %received = ttl.copy %pipe, %view {synchronized} : !ttl.pipe, memref<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.wait %received
  }
  ttl.cb_push %cb
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>

// One receiver takes no multicast. It receives into another buffer, which is at one address only; a receiver that is the
// source itself, and others, take a multicast that loops back.
ttl.kernel_driver @unicast_driver() attributes {grid = #ttcore.grid<2x2>} {
  %from = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32, l1_address = 0 : i32} : !cb
  %to = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 1 : i32, l1_address = 4096 : i32} : !cb
  %one = ttl.create_pipe src=[1, 0] dst_range=[[0, 1], [0, 1]] : !ttl.pipe
  %all = ttl.create_pipe src=[1, 1] dst_range=[[0, 0], [1, 1]] : !ttl.pipe
  ttl.launch_thread @unicast(%from, %to, %one, %all)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @unicast
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[MINUS:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 4096 : i32
func.func @unicast(%from: !cb, %to: !cb, %one: !ttl.pipe, %all: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  // CHECK: %[[L1:.*]] = ttkernel.get_read_ptr
  // CHECK: %[[X:.*]] = arith.addi %{{.*}}, %[[MINUS]] : i32
  // CHECK: %[[Y:.*]] = arith.addi %{{.*}}, %[[ONE]] : i32
  // CHECK: %[[TO:.*]] = ttkernel.get_noc_addr(%[[X]], %[[Y]], %[[BYTES]])
  // CHECK: ttkernel.noc_async_write(%[[L1]], %[[TO]], %[[BYTES]])
  %view = ttl.cb_wait %from : !cb -> memref<1x1x!tile>
  ttl.if_src %one {
    %send = ttl.copy %view, %one : memref<1x1x!tile>, !ttl.pipe -> !ttl.transfer_handle<write>
    ttl.wait %send
    ttl.pipe_yield
  }
  // CHECK: ttkernel.get_noc_multicast_addr(
  // CHECK: ttkernel.noc_async_write_multicast_loopback_src(%[[L1]], %{{.*}}, %[[BYTES]], %[[FOUR]])
  ttl.if_src %all {
    %send = ttl.copy %view, %all : memref<1x1x!tile>, !ttl.pipe -> !ttl.transfer_handle<write>
    ttl.wait %send
  }
  ttl.cb_pop %from
  %place = ttl.cb_reserve %to : !cb -> memref<1x1x!tile>
  ttl.if_dst %one {
    %received = ttl.copy %one, %place {synchronized} : !ttl.pipe, memref<1x1x!tile> -> !ttl.transfer_handle<read>
  }
  ttl.if_dst %all {
    %received = ttl.copy %all, %place {synchronized} : !ttl.pipe, memref<1x1x!tile> -> !ttl.transfer_handle<read>
  }
  ttl.cb_push %to
  func.return
}

// -----

// Coordinates: as arguments of the driver, and in the thread; the number of a core counts row by row. They are read once.
ttl.kernel_driver @places_driver() attributes {grid = #ttcore.grid<4x2>} {
  %x, %y = ttl.core(dims = 2) : index, index
  %id = ttl.get_shard_id() : index
  ttl.launch_thread @places(%y, %id)
  ttl.kernel_driver_return
}
// CHECK-LABEL: func.func @places
// CHECK: %[[X:.*]] = ttkernel.my_logical_x()
// CHECK-NEXT: %[[Y:.*]] = ttkernel.my_logical_y()
// CHECK-NEXT: %[[IX:.*]] = arith.index_cast %[[X]] : i32 to index
// CHECK-NEXT: %[[IY:.*]] = arith.index_cast %[[Y]] : i32 to index
// CHECK: %[[ROW:.*]] = arith.muli %[[IY]], %{{.*}} : index
// CHECK-NEXT: %[[ID:.*]] = arith.addi %[[IX]], %[[ROW]] : index
// CHECK-NEXT: scf.for %i = %[[IY]] to %[[ID]] step %[[ID]]
func.func @places(%y: index, %id: index) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %number = ttl.core(dims = 1) : index
  scf.for %i = %y to %id step %number {
  }
  func.return
}
