// RUN: tlx-opt %s -p tlx-ws-take-turns --split-input-file | filecheck %s

// A consumer waits for its call before it issues the products of a turn, and calls the other one after them. Barriers
// 0 to 3 may be the kernel's own.

// CHECK-LABEL: @softmax
// CHECK:         partition0
// CHECK:           [[REPLICA:%.*]] = tlx.replica_id
// CHECK:           [[MINE:%.*]] = arith.addi [[REPLICA]], [[FOUR:%.*]] : i32
// CHECK:           [[OTHERS:%.*]] = arith.subi {{%.*}}, [[MINE]]
// CHECK:           [[IS_SECOND:%.*]] = arith.cmpi eq, [[REPLICA]], %c1
// CHECK-NEXT:      scf.if [[IS_SECOND]] {
// CHECK-NEXT:        tlx.named_barrier_arrive [[FOUR]], 256
// CHECK:           scf.for
// CHECK:             tlx.named_barrier_wait [[MINE]], 256
// CHECK-NEXT:        ttng.warp_group_dot
// CHECK-NEXT:        ttng.warp_group_dot
// CHECK-NEXT:        tlx.named_barrier_arrive [[OTHERS]], 256
// CHECK-NEXT:        ttng.warp_group_dot_wait
// CHECK:           [[IS_FIRST:%.*]] = arith.cmpi eq, [[REPLICA]], %c0
// CHECK-NEXT:      scf.if [[IS_FIRST]] {
// CHECK-NEXT:        tlx.named_barrier_wait [[FOUR]], 256
// CHECK:           ttg.warp_return

// Where the number of the consumer decides how many turns there are, each goes on as it can.

// CHECK-LABEL: @unlike
// CHECK-NOT:     tlx.named_barrier
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @softmax(%a: !tile, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    %c3 = arith.constant 3 : i32
    tlx.named_barrier_wait %c3, 128
    ttg.warp_specialize(%a, %out, %n) attributes {tlx.replicas = array<i32: 2>}
    default {
      ttg.warp_yield
    }
    partition0(%a1: !tile, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %s = ttng.warp_group_dot %a1, %a1, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
        %d = ttng.warp_group_dot %a1, %a1, %acc {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
        %done:2 = ttng.warp_group_dot_wait %s, %d {pendings = 0 : i32} : tensor<64x64xf32>, tensor<64x64xf32>
        %e = math.exp2 %done#0 : tensor<64x64xf32>
        %next = arith.addf %e, %done#1 : tensor<64x64xf32>
        scf.yield %next : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tile, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }

  tt.func public @unlike(%a: !tile, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%a, %out, %n) attributes {tlx.replicas = array<i32: 2>}
    default {
      ttg.warp_yield
    }
    partition0(%a1: !tile, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %half = tlx.replica_id
      %end = arith.addi %n1, %half : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %d = ttng.warp_group_dot %a1, %a1, %acc {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
        %done = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
        %e = math.exp2 %done : tensor<64x64xf32>
        scf.yield %e : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tile, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}

// -----

// The third of three calls the first one; each calls the one after it. A loop that some turn more often than others
// has the calls of the others in the loop after it.

// CHECK-LABEL: @three
// CHECK:         partition0
// CHECK:           %replica = tlx.replica_id
// CHECK:           [[ONE_MORE:%.*]] = arith.addi %replica, %{{.*}} : i32
// CHECK:           [[NEXT:%.*]] = arith.remsi [[ONE_MORE]], %{{.*}} : i32
// CHECK:           [[IS_LAST:%.*]] = arith.cmpi eq, %replica, %{{.*}} : i32
// CHECK-NEXT:      scf.if [[IS_LAST]] {
// CHECK:           scf.for
// CHECK:             tlx.named_barrier_wait %replica, 256
// CHECK-NEXT:        ttng.warp_group_dot
// CHECK-NEXT:        tlx.named_barrier_arrive [[NEXT]], 256
// CHECK:           scf.for
// CHECK-NEXT:        tlx.named_barrier_wait %replica, 256
// CHECK-NEXT:        ttng.wait_barrier
// CHECK-NEXT:        ttng.arrive_barrier
// CHECK-NEXT:        tlx.named_barrier_arrive [[NEXT]], 256
// CHECK-NOT:       tlx.rest
// CHECK:           ttg.warp_return
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!barrier = !ttg.memdesc<1xi64, #plain, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @three(%a: !tile, %bar: !barrier, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%a, %bar, %out, %n) attributes {tlx.replicas = array<i32: 3>}
    default {
      ttg.warp_yield
    }
    partition0(%a1: !tile, %bar1: !barrier, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %true = arith.constant true
      %group = tlx.replica_id
      %end = arith.addi %n1, %group : i32
      %most = arith.addi %n1, %c1 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %d = ttng.warp_group_dot %a1, %a1, %acc {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
        %done = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
        %e = math.exp2 %done : tensor<64x64xf32>
        scf.yield %e : tensor<64x64xf32>
      } {tlx.uneven}
      scf.for %rest = %end to %most step %c1 : i32 {
        ttng.wait_barrier %bar1, %c0, %true : !barrier
        ttng.arrive_barrier %bar1, 1 : !barrier
      } {tlx.rest}
      tt.descriptor_store %out1[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tile, !barrier, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}
