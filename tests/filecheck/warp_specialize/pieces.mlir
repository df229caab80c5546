// RUN: tlx-opt %s -p 'tlx-ws-stage-stores{pieces=2}' --split-input-file | filecheck %s

// The right half of the columns goes through the buffer of the left one, when TMA has read that.

// CHECK-LABEL: @halves
// CHECK-SAME:    %c: !tt.tensordesc<64x64xf16>
// CHECK:         ttg.local_alloc {{.*}} -> !ttg.memdesc<1x64x64xf16,
// CHECK:         [[APART:%.*]] = tt.reshape %{{.*}} : tensor<64x128xf16> -> tensor<64x2x64xf16>
// CHECK-NEXT:    [[TURNED:%.*]] = tt.trans [[APART]] {order = array<i32: 0, 2, 1>}
// CHECK-NEXT:    [[LEFT:%.*]], [[RIGHT:%.*]] = tt.split [[TURNED]]
// CHECK-NEXT:    ttg.memdesc_index
// CHECK-NEXT:    ttg.local_store [[LEFT]]
// CHECK:         ttng.async_tma_copy_local_to_global [[C:%.*]][[[I:%.*]], [[J:%.*]]]
// CHECK-NEXT:    [[HALF:%.*]] = arith.constant 64 : i32
// CHECK-NEXT:    [[K:%.*]] = arith.addi [[J]], [[HALF]]
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:    ttg.memdesc_index
// CHECK-NEXT:    ttg.local_store [[RIGHT]]
// CHECK:         ttng.async_tma_copy_local_to_global [[C]][[[I]], [[K]]]
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @halves(%c: !tt.tensordesc<64x128xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x128xf16>, %m: i32) num_warps(4) {
      %value = arith.constant dense<0.0> : tensor<64x128xf16>
      tt.descriptor_store %d[%m, %m], %value : !tt.tensordesc<64x128xf16>, tensor<64x128xf16>
      ttg.warp_return
    } : (!tt.tensordesc<64x128xf16>, i32) -> ()
    tt.return
  }
}

// -----

// Rows of 32 bytes would be too short for a piece: the block is stored as a whole.

// CHECK-LABEL: @narrow
// CHECK-NOT:     tt.split
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @narrow(%c: !tt.tensordesc<64x32xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x32xf16>, %m: i32) num_warps(4) {
      %value = arith.constant dense<0.0> : tensor<64x32xf16>
      tt.descriptor_store %d[%m, %m], %value : !tt.tensordesc<64x32xf16>, tensor<64x32xf16>
      ttg.warp_return
    } : (!tt.tensordesc<64x32xf16>, i32) -> ()
    tt.return
  }
}
