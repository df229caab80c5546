// RUN: tlx-opt %s -p ttl-lower-data-movement --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>
!t = tensor<128x96xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 3], tiles_per_shard=[2, 1]>>>
!acc = !ttl.tensor_accessor<tensor<128x96xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 3], tiles_per_shard=[2, 1]>>>>

// A shard has two tiles, the block one: a tile has the place of its row and column.
ttl.kernel_driver @driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @part_of_a_shard(%cb, %acc)
  ttl.kernel_driver_return
}
func.func @part_of_a_shard(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %view = ttl.cb_reserve %cb : !cb -> memref<1x1x!tile>
  affine.for %i = 1 to 2 step 2 {
    %xf = ttl.copy %acc[%i], %view : !acc, memref<1x1x!tile> -> !ttl.transfer_handle<read> // expected-error {{a copy of a tensor with layout 'sharded' needs blocks of 2x1 tiles, which is a shard}}
  }
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 2], !ttcore.tile<32x32, f32>, 1>
!t = tensor<64x96xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<tensor<64x96xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>>

// Which tiles are meant by one number, for a block of two?
ttl.kernel_driver @driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @two_tiles(%cb, %acc)
  ttl.kernel_driver_return
}
func.func @two_tiles(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %i = arith.constant 1 : index
  %view = ttl.cb_reserve %cb : !cb -> memref<1x2x!tile>
  %xf = ttl.copy %acc[%i], %view : !acc, memref<1x2x!tile> -> !ttl.transfer_handle<read> // expected-error {{needs blocks of one tile where the place is one number}}
  func.return
}

// -----

!cb = !ttl.cb<[1, 40], f32, 1>
!t = tensor<64x80xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>
!acc = !ttl.tensor_accessor<tensor<64x80xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>>

// Half a row is no page.
ttl.kernel_driver @driver(%a: !t) {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 1 : i32} : !cb
  %acc = ttl.tensor_accessor %a : !t -> !acc
  ttl.launch_thread @half_a_row(%cb, %acc)
  ttl.kernel_driver_return
}
func.func @half_a_row(%cb: !cb, %acc: !acc) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %i = arith.constant 1 : index
  %view = ttl.cb_reserve %cb : !cb -> memref<1x40xf32>
  %xf = ttl.copy %acc[%i], %view : !acc, memref<1x40xf32> -> !ttl.transfer_handle<read> // expected-error {{needs blocks of whole rows of 80 elements}}
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

ttl.kernel_driver @driver() attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !cb
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.launch_thread @everyone_sends(%cb, %pipe)
  ttl.kernel_driver_return
}
func.func @everyone_sends(%cb: !cb, %pipe: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %view = ttl.cb_wait %cb : !cb -> memref<1x1x!tile>
  %xf = ttl.copy %view, %pipe : memref<1x1x!tile>, !ttl.pipe -> !ttl.transfer_handle<write> // expected-error {{a block is sent through a pipe by its source only: copy to the pipe inside of its if_src}}
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

// The receivers' buffer may be at either of its two blocks when the sender writes.
ttl.kernel_driver @driver() attributes {grid = #ttcore.grid<2x1>} {
  %from = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32, l1_address = 0 : i32} : !cb
  %to = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 2 : i32, l1_address = 8192 : i32} : !cb
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.launch_thread @other_buffer(%from, %to, %pipe)
  ttl.kernel_driver_return
}
func.func @other_buffer(%from: !cb, %to: !cb, %pipe: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  ttl.if_src %pipe {
    %view = ttl.cb_wait %from : !cb -> memref<1x1x!tile>
    %xf = ttl.copy %view, %pipe : memref<1x1x!tile>, !ttl.pipe -> !ttl.transfer_handle<write> // expected-error {{the receivers' block is in another circular buffer, which has room for 2 blocks: receive into the buffer that is sent from, or use buffer_factor=1}}
  }
  ttl.if_dst %pipe {
    %view = ttl.cb_reserve %to : !cb -> memref<1x1x!tile>
    %xf = ttl.copy %pipe, %view {synchronized} : !ttl.pipe, memref<1x1x!tile> -> !ttl.transfer_handle<read>
  }
  func.return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

ttl.kernel_driver @driver() attributes {grid = #ttcore.grid<2x1>} {
  %cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !cb
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
  ttl.launch_thread @no_semaphore(%cb, %pipe)
  ttl.kernel_driver_return
}
func.func @no_semaphore(%cb: !cb, %pipe: !ttl.pipe) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  ttl.if_dst %pipe {
    %view = ttl.cb_reserve %cb : !cb -> memref<1x1x!tile>
    %xf = ttl.copy %pipe, %view : !ttl.pipe, memref<1x1x!tile> -> !ttl.transfer_handle<read> // expected-error {{nothing says when this block has arrived: run ttl-infer-pipe-semaphores, or wait for a semaphore}}
  }
  func.return
}
