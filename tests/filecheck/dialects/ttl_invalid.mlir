// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation of `ttl`; the right use stands in ttl_ops.mlir.

ttl.kernel @pop_without_wait() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.compute_thread {
    // expected-error @below {{circular buffer protocol violation: pop without a matching ttl.cb_wait before it}}
    ttl.cb_pop %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

// A wait in one branch does not serve the other one.
ttl.kernel @wait_in_the_other_branch() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  %x = ttl.core(dims = 1) : index
  ttl.compute_thread {
    %zero = arith.constant 0 : index
    %c = arith.cmpi eq, %x, %zero : index
    scf.if %c {
      %v = ttl.cb_wait %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    } else {
      // expected-error @below {{pop without a matching ttl.cb_wait before it}}
      ttl.cb_pop %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @two_producers() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.datamovement_thread {
    %v = ttl.cb_reserve %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.datamovement_thread {
    // expected-error @below {{a circular buffer has one producer, found a second thread that is its producer}}
    %v = ttl.cb_reserve %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @unwritten() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.compute_thread {
    // expected-error @below {{this block is reserved and pushed, but nothing is stored into it: expected a ttl.store}}
    %v = ttl.cb_reserve %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @too_many_blocks() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.datamovement_thread {
    // expected-error @below {{ttl.cb_reserve of 3 blocks, but !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> has room for 2}}
    %v = ttl.cb_reserve %cb {blocks = 3 : i64} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<3x1x1x!ttcore.tile<32x32, f32>>
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @computing_where_data_moves() {
  %cb = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.datamovement_thread {
    %v = ttl.cb_wait %cb : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    // expected-error @below {{ttl.exp runs in compute threads only, found it in a datamovement thread}}
    %e = ttl.exp %v : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
    ttl.cb_pop %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

ttl.kernel @semaphore_where_tiles_are_computed() {
  %s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  ttl.compute_thread {
    %one = arith.constant 1 : i32
    // expected-error @below {{ttl.semaphore_wait_eq runs in datamovement threads only}}
    ttl.semaphore_wait_eq %s, %one
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

func.func @shapes(%a: tensor<1x2x!ttcore.tile<32x32, f32>>, %b: tensor<1x1x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{the blocks of ttl.add must have one shape, found 1x1 and 1x2 tiles; ttl.bcast spreads a row, a column or a tile}}
  %c = ttl.add %a, %b : tensor<1x2x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  func.return
}

// -----

func.func @inner_dimensions(%a: tensor<1x2x!ttcore.tile<32x32, f32>>, %b: tensor<3x1x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{as many columns of tiles on its left as rows on its right, found 2 and 3}}
  %c = ttl.matmul %a, %b : tensor<1x2x!ttcore.tile<32x32, f32>>, tensor<3x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  func.return
}

// -----

func.func @integers(%a: tensor<1x1x!ttcore.tile<32x32, i32>>) {
  // expected-error @below {{ttl.exp is for tiles of floats, found i32}}
  %c = ttl.exp %a : tensor<1x1x!ttcore.tile<32x32, i32>> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  func.return
}

// -----

func.func @a_store_of_integers(%a: tensor<1x1x!ttcore.tile<32x32, f32>>, %b: tensor<1x1x!ttcore.tile<32x32, i32>>) {
  // expected-error @below {{a store keeps the type of integers, found !ttcore.tile<32x32, f32> and !ttcore.tile<32x32, i32>}}
  ttl.store %a, %b : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, i32>>
  func.return
}

// -----

func.func @a_sum_of_integers(%a: tensor<1x1x!ttcore.tile<32x32, i32>>, %b: tensor<1x1x!ttcore.tile<32x32, i32>>) {
  // expected-error @below {{the packer adds floats only, found !ttcore.tile<32x32, i32>}}
  ttl.store %a, %b {accumulate} : tensor<1x1x!ttcore.tile<32x32, i32>>, tensor<1x1x!ttcore.tile<32x32, i32>>
  func.return
}

// -----

func.func @no_typecast(%a: tensor<1x1x!ttcore.tile<32x32, i32>>) {
  // expected-error @below {{there is no typecast from i32 to ui32}}
  %b = ttl.typecast %a {source = i32, target = ui32} : tensor<1x1x!ttcore.tile<32x32, i32>> -> tensor<1x1x!ttcore.tile<32x32, ui32>>
  func.return
}

// -----

func.func @exponents_of_two_sizes(%a: tensor<1x1x!ttcore.tile<32x32, f16>>, %b: tensor<1x1x!ttcore.tile<32x32, bf16>>) {
  // expected-error @below {{the tiles of ttl.add can't be of these types together: !ttcore.tile<32x32, f16> and !ttcore.tile<32x32, bf16>}}
  %c = ttl.add %a, %b : tensor<1x1x!ttcore.tile<32x32, f16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  func.return
}

// -----

func.func @bcast(%a: tensor<2x2x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{ttl.bcast along dimension 1 needs a block of one tile there, found 2x2}}
  %c = ttl.bcast %a {dims = [1]} : tensor<2x2x!ttcore.tile<32x32, f32>> -> tensor<2x2x!ttcore.tile<32x32, f32>>
  func.return
}

// -----

func.func @no_dims(%a: tensor<2x2x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{dims of ttl.reduce_sum must be some of [0, 1], found [2]}}
  %c = ttl.reduce_sum %a {dims = [2]} : tensor<2x2x!ttcore.tile<32x32, f32>> -> tensor<2x2x!ttcore.tile<32x32, f32>>
  func.return
}

// -----

func.func @two_blocks(%a: tensor<1x1x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{one side of a copy must be a tensor accessor or a pipe, found a block of a circular buffer on both}}
  %xf = ttl.copy %a, %a : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer_handle<write>
  func.return
}

// -----

func.func @direction(%p: !ttl.pipe, %a: tensor<1x1x!ttcore.tile<32x32, f32>>) {
  // expected-error @below {{this copy is a read, found a handle of a write}}
  %xf = ttl.copy %p, %a : !ttl.pipe, tensor<1x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer_handle<write>
  func.return
}

// -----

ttl.kernel @empty_range() {
  // expected-error @below {{the range of a pipe's receivers is empty: from [2, 0] to [1, 0]}}
  %p = ttl.create_pipe src=[0, 0] dst_range=[[2, 0], [1, 0]] : !ttl.pipe
  ttl.kernel_return
}

// -----

ttl.kernel_driver @one_number_twice() {
  %a = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  // expected-error @below {{two circular buffers have the number 0}}
  %b = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} : !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.kernel_driver_return
}

// -----

// expected-error @below {{expected a tensor with a #ttl.tensor_encoding, found tensor<64x64xf32>}}
ttl.kernel @nowhere(%a: tensor<64x64xf32>) {
  ttl.kernel_return
}

// -----

func.func @noc_in_compute() attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  // expected-error @below {{ttkernel.noc_async_read_barrier is a function of noc threads, found it in a compute thread}}
  ttkernel.noc_async_read_barrier() : () -> ()
  func.return
}

// -----

func.func @rows_of_another_tile(%t : tensor<2x2x!ttcore.tile<32x32, f32>>, %r : tensor<64x64xbf16>) {
  // expected-error @below {{ttl.tilize needs a block of 64x64 elements of f32 for tensor<2x2x!ttcore.tile<32x32, f32>>, found tensor<64x64xbf16>}}
  ttl.tilize %r, %t : tensor<64x64xbf16>, tensor<2x2x!ttcore.tile<32x32, f32>>
  func.return
}

// -----

func.func @two_rows_of_tiles(%t : tensor<2x2x!ttcore.tile<32x32, f32>>, %r : tensor<64x64xf32>) {
  // expected-error @below {{ttl.untilize writes one row of tiles, found tensor<2x2x!ttcore.tile<32x32, f32>>}}
  ttl.untilize %t, %r : tensor<2x2x!ttcore.tile<32x32, f32>>, tensor<64x64xf32>
  func.return
}
