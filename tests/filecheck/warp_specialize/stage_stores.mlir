// RUN: tlx-opt %s -p tlx-ws-stage-stores --split-input-file --verify-diagnostics | filecheck %s

// Each copy of the task writes its block to a buffer of its own; the task ends when TMA has read them.

// CHECK-LABEL: @two_copies
// CHECK:         [[STAGING:%.*]] = ttg.local_alloc {{.*}} -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT:    ttg.warp_specialize
// CHECK:         partition0([[B:%.*]]: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, [[C:%.*]]: !tt.tensordesc<64x64xf16>)
// CHECK-NEXT:      [[COPY:%.*]] = tlx.replica_id
// CHECK:           [[VALUE:%.*]] = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
// CHECK-NEXT:      [[OWN:%.*]] = ttg.memdesc_index [[B]][[[COPY]]]
// CHECK-NEXT:      ttg.local_store [[VALUE]], [[OWN]]
// CHECK-NEXT:      ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:      [[AGAIN:%.*]] = ttg.memdesc_index [[B]][[[COPY]]]
// CHECK-NEXT:      ttng.async_tma_copy_local_to_global [[C]][%{{.*}}, %{{.*}}] [[AGAIN]]
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:      ttg.warp_return
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @two_copies(%c: !tt.tensordesc<64x64xf16>) {
    ttg.warp_specialize(%c) attributes {tlx.replicas = array<i32: 2>}
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      tt.descriptor_store %d[%c0, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>) -> ()
    tt.return
  }
}

// -----

// In a loop the buffer is written again when TMA has read it. The row goes on by a block in each turn.

// CHECK-LABEL: @next_rows
// CHECK:         scf.for
// CHECK:           ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:      ttg.memdesc_index
// CHECK-NEXT:      ttg.local_store
// CHECK:           ttng.async_tma_copy_local_to_global
// CHECK-NEXT:    }
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @next_rows(%c: !tt.tensordesc<64x64xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c64 = arith.constant 64 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      scf.for %i = %c0 to %m step %c1 : i32 {
        %base = arith.muli %m, %m : i32
        %turn = arith.addi %base, %i : i32
        %row = arith.muli %turn, %c64 : i32
        tt.descriptor_store %d[%row, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      }
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

// Blocks that overlap those of the turn before are written in order: the wait is for the writes, too.

// CHECK-LABEL: @overlapping_rows
// CHECK:         scf.for
// CHECK:           ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:      ttg.memdesc_index
// CHECK-NEXT:      ttg.local_store
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @overlapping_rows(%c: !tt.tensordesc<64x64xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c32 = arith.constant 32 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      scf.for %i = %c0 to %m step %c1 : i32 {
        %row = arith.muli %i, %c32 : i32
        tt.descriptor_store %d[%row, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      }
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

// Two halves of a row need no order, and share a buffer.

// CHECK-LABEL: @two_halves
// CHECK:         ttg.local_alloc {{.*}} -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT:    ttg.warp_specialize
// CHECK:         ttng.async_tma_copy_local_to_global
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:    ttg.memdesc_index
// CHECK-NEXT:    ttg.local_store
// CHECK:         ttng.async_tma_copy_local_to_global
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:    ttg.warp_return
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @two_halves(%c: !tt.tensordesc<64x64xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c64 = arith.constant 64 : i32
      %second = arith.addi %m, %c64 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      tt.descriptor_store %d[%m, %m], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      tt.descriptor_store %d[%m, %second], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

// The task also reads what it stores, so that the store must be over when it goes on.

// CHECK-LABEL: @read_again
// CHECK-NOT:     ttg.local_alloc
// CHECK:         tt.descriptor_store
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @read_again(%c: !tt.tensordesc<64x64xf16>) {
    ttg.warp_specialize(%c)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %value = tt.descriptor_load %d[%c64, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      tt.descriptor_store %d[%c0, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>) -> ()
    tt.return
  }
}

// -----

// The atomic addition may say that the block is stored.

// CHECK-LABEL: @flag
// CHECK-NOT:     ttg.local_alloc
// CHECK:         tt.descriptor_store
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @flag(%c: !tt.tensordesc<64x64xf16>, %flag: !tt.ptr<i32>) {
    ttg.warp_specialize(%c, %flag)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<i32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %true = arith.constant true
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      tt.descriptor_store %d[%c0, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      %old = tt.atomic_rmw add, acq_rel, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, !tt.ptr<i32>) -> ()
    tt.return
  }
}

// -----

// The turns were programs of the plain kernel, which are in no order: the wait is for the buffer alone.

// CHECK-LABEL: @tiles
// CHECK:         scf.for
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:      ttg.memdesc_index
// CHECK-NOT:     tlx.tiles
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @tiles(%c: !tt.tensordesc<64x64xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      scf.for %i = %c0 to %m step %c1 : i32 {
        tt.descriptor_store %d[%c0, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      } {tlx.tiles}
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

// Of two loops that follow each other, the second one waits before its first turn; then each turn waits for its own.

// CHECK-LABEL: @two_loops
// CHECK:           [[VALUE:%.*]] = arith.constant dense<0.000000e+00>
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK:             ttng.async_tma_copy_local_to_global
// CHECK-NEXT:      }
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK:             ttng.async_tma_copy_local_to_global
// CHECK-NEXT:      }
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:      ttg.warp_return
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @two_loops(%c: !tt.tensordesc<64x64xf16>, %n: i32) {
    ttg.warp_specialize(%c, %n)
    default {
      ttg.warp_yield
    }
    partition0(%d: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %end = arith.muli %m, %c64 : i32
      %value = arith.constant dense<0.0> : tensor<64x64xf16>
      scf.for %i = %c0 to %m step %c64 : i32 {
        tt.descriptor_store %d[%i, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      }
      scf.for %i = %m to %end step %c64 : i32 {
        tt.descriptor_store %d[%i, %c0], %value : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
      }
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}
