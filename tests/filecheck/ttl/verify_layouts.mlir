// RUN: tlx-opt %s -p ttl-verify-layouts --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !tile, 2>
!rows = !ttl.cb<[4, 64], f32, 2>
!tiled = tensor<120x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!paged = tensor<120x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>
!sharded = tensor<120x64xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[2, 1]>>>

// All of this fits: the last tiles and shards reach over the edge of 120 rows, where the tensor is padded. The guard
// keeps the loop inside of the tensor; what is not known is accepted.
ttl.kernel @fits(%t: !tiled, %p: !paged, %s: !sharded) attributes {grid = #ttcore.grid<2x2>} {
  %cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  %rows = ttl.create_cb shape=[4, 64], element_type=f32, buffer_factor=2 : !rows
  %t_acc = ttl.tensor_accessor %t : !tiled -> !ttl.tensor_accessor<!tiled>
  %p_acc = ttl.tensor_accessor %p : !paged -> !ttl.tensor_accessor<!paged>
  %s_acc = ttl.tensor_accessor %s : !sharded -> !ttl.tensor_accessor<!sharded>
  %id = ttl.get_shard_id() : index
  %x, %y = ttl.core(dims = 2) : index, index
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 3 {
      %r = affine.apply affine_map<(d0) -> (d0 * 2)> (%i)
      %inside = arith.cmpi slt, %r, %c4 : index
      scf.if %inside {
        %v = ttl.cb_reserve %cb : !cb -> tensor<2x1x!tile>
        %0 = ttl.copy %t_acc[%r, %x], %v : !ttl.tensor_accessor<!tiled>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
        ttl.cb_push %cb
      }
    }
    affine.for %i = 0 to 120 step 4 {
      %v = ttl.cb_reserve %rows : !rows -> tensor<4x64xf32>
      %0 = ttl.copy %p_acc[%i, %c0], %v : !ttl.tensor_accessor<!paged>, tensor<4x64xf32> -> !ttl.transfer_handle<read>
      ttl.cb_push %rows
    }
    %v = ttl.cb_reserve %cb : !cb -> tensor<2x1x!tile>
    %0 = ttl.copy %s_acc[%id], %v : !ttl.tensor_accessor<!sharded>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
    %2 = arith.divui %id, %c4 : index
    %1 = ttl.copy %s_acc[%2], %v : !ttl.tensor_accessor<!sharded>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !tile, 2>
!tiled = tensor<128x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

ttl.kernel @outside(%t: !tiled) attributes {grid = #ttcore.grid<2x2>} {
  %cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !tiled -> !ttl.tensor_accessor<!tiled>
  %x, %y = ttl.core(dims = 2) : index, index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      %r = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0)> (%i)[%y]
      %v = ttl.cb_reserve %cb : !cb -> tensor<2x1x!tile>
      // expected-error @below {{rows of tiles 3 to 4 of the block are outside of the tensor, which has 4 rows of tiles on core (0, 1)}}
      %0 = ttl.copy %t_acc[%r, %x], %v : !ttl.tensor_accessor<!tiled>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!tiled = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

ttl.kernel @outside_by_number(%t: !tiled) attributes {grid = #ttcore.grid<5x1>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !tiled -> !ttl.tensor_accessor<!tiled>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<1x1x!tile>
    // expected-error @below {{tile 4 is outside of the tensor, which has 4 tiles on core (4, 0)}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!tiled>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, bf16>
!cb = !ttl.cb<[1, 1], !tile, 2>
!tiled = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

ttl.kernel @data_type(%t: !tiled) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !tiled -> !ttl.tensor_accessor<!tiled>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<1x1x!tile>
    // expected-error @below {{a tensor of f32 is copied to and from blocks of f32, found bf16}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!tiled>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!paged = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>

ttl.kernel @tiles_of_rows(%t: !paged) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !paged -> !ttl.tensor_accessor<!paged>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<1x1x!tile>
    // expected-error @below {{a tensor with an interleaved layout has pages of rows: its circular buffer needs single elements, found !ttcore.tile<32x32, f32>}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!paged>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!cb = !ttl.cb<[2, 32], f32, 2>
!paged = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>>

ttl.kernel @half_rows(%t: !paged) {
  %cb = ttl.create_cb shape=[2, 32], element_type=f32, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !paged -> !ttl.tensor_accessor<!paged>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<2x32xf32>
    // expected-error @below {{a block holds whole rows of an interleaved tensor, of 64 elements, found one of 2x32}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!paged>, tensor<2x32xf32> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !tile, 2>
!tiled = tensor<64x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

ttl.kernel @one_index(%t: !tiled) {
  %cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !tiled -> !ttl.tensor_accessor<!tiled>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<2x1x!tile>
    // expected-error @below {{one index is the number of a tile, the block has 2x1: give its row and column of tiles}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!tiled>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!sharded = tensor<128x64xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[2, 1]>>>

ttl.kernel @part_of_a_shard(%t: !sharded) {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !sharded -> !ttl.tensor_accessor<!sharded>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %v = ttl.cb_reserve %cb : !cb -> tensor<1x1x!tile>
    // expected-error @below {{a block holds a shard, of 2x1 tiles, found one of 1x1}}
    %0 = ttl.copy %t_acc[%id], %v : !ttl.tensor_accessor<!sharded>, tensor<1x1x!tile> -> !ttl.transfer_handle<read>
    ttl.cb_push %cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !tile, 2>
!sharded = tensor<128x64xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[2, 1]>>>

ttl.kernel @beyond_shards(%t: !sharded) {
  %cb = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  %t_acc = ttl.tensor_accessor %t : !sharded -> !ttl.tensor_accessor<!sharded>
  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 4 {
      %v = ttl.cb_reserve %cb : !cb -> tensor<2x1x!tile>
      // A block may lie in two shards, but not beyond them.
      // expected-error @below {{rows of tiles 3 to 4 of the block are outside of the tensor, which has 4 rows of tiles}}
      %0 = ttl.copy %t_acc[%i, %c0], %v : !ttl.tensor_accessor<!sharded>, tensor<2x1x!tile> -> !ttl.transfer_handle<read>
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!sharded = tensor<160x64xf32, #ttl.tensor_encoding<L1, #ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[2, 1]>>>

ttl.kernel @too_few_shards(%t: !sharded) {
  // expected-error @below {{2x2 shards of 2x1 tiles cover 4x2 tiles, the tensor has 5x2}}
  %t_acc = ttl.tensor_accessor %t : !sharded -> !ttl.tensor_accessor<!sharded>
  ttl.kernel_return
}

// -----

!tensor = tensor<64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>

ttl.kernel @rank(%t: !tensor) {
  // expected-error @below {{a kernel's tensor has two or more dimensions of known size, found tensor<64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>}}
  %t_acc = ttl.tensor_accessor %t : !tensor -> !ttl.tensor_accessor<!tensor>
  ttl.kernel_return
}
