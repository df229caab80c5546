// RUN: tlx-opt -p ttl-assign-dst-registers %s --split-input-file | filecheck %s
// RUN: tlx-opt -p 'ttl-assign-dst-registers{fpu=never}' %s --split-input-file | filecheck %s --check-prefix NEVER

#all = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #linalg.iterator_type<parallel>
!tile = !ttcore.tile<32x32, f32>
!block = memref<2x3x!ttcore.tile<32x32, f32>>
!cb = !ttl.cb<[2, 3], !ttcore.tile<32x32, f32>, 2>

// Tiles are loaded, the sum is in the register of its first operand. The power overwrites its operand, which the
// product still reads, so it gets a copy. Of four registers each tile of the result takes two.
// CHECK-LABEL: ttl.kernel @chain()
ttl.kernel @chain() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[2, 3], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[2, 3], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // CHECK: capacity = 4 : i32, dst_per_tile = 2 : i32, unroll = 2 : i32
    ttl.compute ins(%a, %a : !block, !block) outs(%o : !block) attributes {indexing_maps = [#all, #all, #all], iterator_types = [#parallel, #parallel]} {
    // CHECK-NEXT: ^bb0(%[[X:.*]]: {{.*}}, %[[Y:.*]]: {{.*}}, %{{.*}}: {{.*}}):
    ^bb0(%x: !tile, %y: !tile, %z: !tile):
      // CHECK-NEXT: %[[A:.*]] = ttl.tile_copy %[[X]] {dst_idx = 0 : i32}
      // CHECK-NEXT: %[[B:.*]] = ttl.tile_copy %[[Y]] {dst_idx = 1 : i32}
      // CHECK-NEXT: %[[S:.*]] = ttl.tile_add %[[A]], %[[B]] {dst_idx = 0 : i32}
      %s = ttl.tile_add %x, %y : !tile
      // CHECK-NEXT: %[[C:.*]] = ttl.tile_copy %[[S]] {dst_idx = 1 : i32}
      // CHECK-NEXT: %[[E:.*]] = ttl.tile_exp %[[C]] {dst_idx = 1 : i32}
      %e = ttl.tile_exp %s : !tile
      // CHECK-NEXT: %[[M:.*]] = ttl.tile_mul %[[E]], %[[S]] {dst_idx = 0 : i32}
      %m = ttl.tile_mul %e, %s : !tile
      // CHECK-NEXT: ttl.yield %[[M]]
      ttl.yield %m : !tile
    }
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #linalg.iterator_type<parallel>
!tile = !ttcore.tile<32x32, bf16>
!block = memref<1x1x!ttcore.tile<32x32, bf16>>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>

// The register of s is free for an operand of x before y is computed, if s and y were two: a unary result is always in
// the register of its operand.
// CHECK-LABEL: ttl.kernel @in_place()
// CHECK: capacity = 16 : i32, dst_per_tile = 4 : i32, unroll = 1 : i32
// CHECK: ttl.tile_add %{{.*}} {dst_idx = [[U:.*]] : i32, fpu}
// CHECK: ttl.tile_add %{{.*}} {dst_idx = [[W:.*]] : i32, fpu}
// CHECK: ttl.tile_div %{{.*}} {dst_idx = [[S:.*]] : i32}
// CHECK: ttl.tile_mul %{{.*}}
// CHECK: ttl.tile_exp %{{.*}} {dst_idx = [[S]] : i32}
// Without the matrix unit, all tiles are loaded.
// NEVER-LABEL: ttl.kernel @in_place()
// NEVER-COUNT-6: ttl.tile_copy
// NEVER-NOT: fpu
ttl.kernel @in_place() attributes {grid = #ttcore.grid<1x1>, dst_full_sync_en} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %b = ttl.cb_wait %b_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.compute ins(%a, %b, %a, %b, %a, %b : !block, !block, !block, !block, !block, !block) outs(%o : !block) attributes {indexing_maps = [#all, #all, #all, #all, #all, #all, #all], iterator_types = [#parallel, #parallel]} {
    ^bb0(%p: !tile, %q: !tile, %i: !tile, %j: !tile, %k: !tile, %l: !tile, %r: !tile):
      %u = ttl.tile_add %p, %q : !tile
      %w = ttl.tile_add %i, %j : !tile
      %s = ttl.tile_div %k, %l : !tile
      %x = ttl.tile_mul %u, %w : !tile
      %y = ttl.tile_exp %s : !tile
      %z = ttl.tile_sub %x, %y : !tile
      ttl.yield %z : !tile
    }
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
