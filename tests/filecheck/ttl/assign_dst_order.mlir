// RUN: tlx-opt -p 'ttl-assign-dst-registers{capacity=3}' %s | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #linalg.iterator_type<parallel>
!tile = !ttcore.tile<32x32, f32>
!block = memref<1x1x!ttcore.tile<32x32, f32>>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>

// In program order both sums are alive when the difference is computed, which takes four registers. The difference and
// what is made of it come first here.
ttl.kernel @order() attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // CHECK: capacity = 3 : i32, dst_per_tile = 3 : i32, unroll = 1 : i32
    ttl.compute ins(%a, %a, %a, %a, %a, %a : !block, !block, !block, !block, !block, !block) outs(%o : !block) attributes {indexing_maps = [#all, #all, #all, #all, #all, #all, #all], iterator_types = [#parallel, #parallel]} {
    ^bb0(%b: !tile, %c: !tile, %d: !tile, %e: !tile, %f: !tile, %g: !tile, %r: !tile):
      %s = ttl.tile_add %b, %c : !tile
      %t = ttl.tile_mul %d, %e : !tile
      %u = ttl.tile_sub %f, %g : !tile
      %v = ttl.tile_div %t, %u : !tile
      %w = ttl.tile_max %s, %v : !tile
      // CHECK: ttl.tile_mul
      // CHECK: ttl.tile_sub
      // CHECK: ttl.tile_div
      // CHECK: ttl.tile_add
      // CHECK: ttl.tile_max
      ttl.yield %w : !tile
    }
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
