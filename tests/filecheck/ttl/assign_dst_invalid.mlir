// RUN: tlx-opt -p 'ttl-assign-dst-registers{capacity=2}' %s --verify-diagnostics
// RUN: not tlx-opt -p 'ttl-assign-dst-registers{capacity=2}' %s 2>&1 | filecheck %s
// RUN: tlx-opt -p 'ttl-assign-dst-registers{capacity=3}' %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #linalg.iterator_type<parallel>
!tile = !ttcore.tile<32x32, f32>
!block = memref<1x1x!ttcore.tile<32x32, f32>>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

// No order of the operations needs less than three registers: both operands of the product are sums of two tiles.
ttl.kernel @overflow() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    ttl.compute ins(%a, %a, %a, %a : !block, !block, !block, !block) outs(%o : !block) attributes {indexing_maps = [#all, #all, #all, #all, #all], iterator_types = [#parallel, #parallel]} {
    ^bb0(%b: !tile, %c: !tile, %d: !tile, %e: !tile, %f: !tile):
      %s = ttl.tile_add %b, %c : !tile
      // expected-error @below {{insufficient DST registers: all 2 in use}}
      %t = ttl.tile_add %d, %e : !tile
      %m = ttl.tile_mul %s, %t : !tile
      ttl.yield %m : !tile
    }
    // CHECK: note: in use: %s ({{.*}}assign_dst_invalid.mlir:20:
    // CHECK-NEXT: note: in use: a tile of %a ({{.*}}assign_dst_invalid.mlir:16:
    // CHECK-NEXT: note: store an intermediate block to a circular buffer and wait for it there, or use tiles of 16 bits, or set dst_full_sync_en
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
