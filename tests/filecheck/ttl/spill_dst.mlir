// RUN: tlx-opt -p 'ttl-spill-dst-registers{capacity=2}' %s --verify-diagnostics | filecheck %s
// RUN: tlx-opt -p 'ttl-spill-dst-registers{capacity=3}' %s | filecheck %s --check-prefix=ENOUGH
// RUN: tlx-opt -p 'ttl-spill-dst-registers{capacity=2},ttl-allocate-circular-buffers,ttl-expand-threads,ttl-assign-dst-registers{capacity=2}' %s | filecheck %s --check-prefix=ASSIGNED

#all = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #linalg.iterator_type<parallel>
!tile = !ttcore.tile<32x32, bf16>
!block = memref<1x1x!ttcore.tile<32x32, bf16>>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>

// Registers have 32 bits, and so has the buffer: nothing is rounded.
// CHECK-LABEL: ttl.kernel @too_few
// CHECK: %[[CB:.*]] = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=1 {internal}
// CHECK: %[[KEPT:.*]] = ttl.cb_reserve %[[CB]]
// CHECK: ttl.compute ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%[[KEPT]] :
// CHECK: ^bb0(%[[B:[0-9]+]]: {{.*}}, %[[C:[0-9]+]]: {{.*}}, %{{.*}}):
// CHECK: %[[S:.*]] = ttl.tile_max %[[B]], %[[C]]
// CHECK-NEXT: ttl.yield %[[S]]
// CHECK: ttl.cb_push %[[CB]]
// CHECK-NEXT: %[[READ:.*]] = ttl.cb_wait %[[CB]]
// CHECK: ttl.compute ins({{.*}}%[[READ]] : {{.*}}) outs(%{{.*}} : memref<1x1x!ttcore.tile<32x32, bf16>>)
// CHECK: ttl.tile_mul %{{.*}}, %{{.*}} : (!ttcore.tile<32x32, f32>, !ttcore.tile<32x32, bf16>) -> !ttcore.tile<32x32, bf16>
// CHECK: ttl.cb_pop %[[CB]]
// ENOUGH-NOT: internal
// ASSIGNED: ttl.compute
// ASSIGNED: ttl.compute
ttl.kernel @too_few() attributes {grid = #ttcore.grid<1x1>, fp32_dest_acc_en} {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %o_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %a = ttl.cb_wait %a_cb : !cb -> !block
    %o = ttl.cb_reserve %o_cb : !cb -> !block
    // expected-warning @below {{2 DST registers are too few for this computation: a value goes through a circular buffer}}
    ttl.compute ins(%a, %a, %a, %a : !block, !block, !block, !block) outs(%o : !block) attributes {indexing_maps = [#all, #all, #all, #all, #all], iterator_types = [#parallel, #parallel]} {
    ^bb0(%b: !tile, %c: !tile, %d: !tile, %e: !tile, %f: !tile):
      %s = ttl.tile_max %b, %c : !tile
      %t = ttl.tile_max %d, %e : !tile
      %m = ttl.tile_mul %s, %t : !tile
      ttl.yield %m : !tile
    }
    ttl.cb_push %o_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}
