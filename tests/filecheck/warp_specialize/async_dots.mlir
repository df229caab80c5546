// RUN: tlx-opt %s -p tlx-ws-async-dots --split-input-file | filecheck %s

// A loop that only adds products up: one stays in flight, and each turn gives back the slot of the turn before. Nothing
// takes slots after the loop, so the last one is not given back.

// CHECK-LABEL: @sum
// CHECK:         partition0
// CHECK:           scf.for [[K:%.*]] = {{.*}} iter_args([[ACC:%.*]] = {{%.*}})
// CHECK:             ttng.wait_barrier
// CHECK-NOT:         ttg.local_load
// CHECK:             [[TILE:%.*]] = ttg.memdesc_index %a1
// CHECK:             [[DOT:%.*]] = ttng.warp_group_dot [[TILE]], {{%.*}}, [[ACC]] {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT:        [[SUM:%.*]] = ttng.warp_group_dot_wait [[DOT]] {pendings = 1 : i32}
// CHECK-NEXT:        [[LATER:%.*]] = arith.cmpi sgt, [[K]]
// CHECK-NEXT:        [[SHIFTED:%.*]] = arith.addi [[K]], {{%.*}}
// CHECK-NEXT:        [[BEFORE:%.*]] = arith.remsi [[SHIFTED]]
// CHECK-NEXT:        [[SLOT:%.*]] = ttg.memdesc_index {{%.*}}[[[BEFORE]]]
// CHECK-NEXT:        ttng.arrive_barrier [[SLOT]], 1, [[LATER]]
// CHECK-NEXT:        scf.yield [[SUM]]
// CHECK-NEXT:      }
// CHECK-NEXT:      ttng.warp_group_dot_wait {{%.*}} {pendings = 0 : i32}
// CHECK-NOT:       ttng.arrive_barrier
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bars = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!tiles = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!bars = !ttg.memdesc<2x1xi64, #bars, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #bars, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @sum(%a: !tiles, %b: !tiles, %full: !bars, %empty: !bars, %desc: !tt.tensordesc<64x64xf16>, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%a, %b, %full, %empty, %out, %n)
    default {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %true = arith.constant true
      scf.for %k = %c0 to %n step %c1 : i32 {
        %c2 = arith.constant 2 : i32
        %stage = arith.remsi %k, %c2 : i32
        %e = ttg.memdesc_index %empty[%stage] : !bars -> !bar
        ttng.wait_barrier %e, %c1, %true : !bar
        %f = ttg.memdesc_index %full[%stage] : !bars -> !bar
        ttng.barrier_expect %f, 16384, %true : !bar
        %x = ttg.memdesc_index %a[%stage] : !tiles -> !tile
        ttng.async_tma_copy_global_to_local %desc[%c0, %c0] %x, %f, %true : !tt.tensordesc<64x64xf16>, !bar -> !tile
        %y = ttg.memdesc_index %b[%stage] : !tiles -> !tile
        ttng.async_tma_copy_global_to_local %desc[%c0, %c0] %y, %f, %true : !tt.tensordesc<64x64xf16>, !bar -> !tile
      }
      ttg.warp_yield
    }
    partition0(%a1: !tiles, %b1: !tiles, %full1: !bars, %empty1: !bars, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %true = arith.constant true
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %k = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %stage = arith.remsi %k, %c2 : i32
        %f = ttg.memdesc_index %full1[%stage] : !bars -> !bar
        ttng.wait_barrier %f, %c0, %true : !bar
        %xs = ttg.memdesc_index %a1[%stage] : !tiles -> !tile
        %x = ttg.local_load %xs : !tile -> tensor<64x64xf16>
        %ys = ttg.memdesc_index %b1[%stage] : !tiles -> !tile
        %y = ttg.local_load %ys : !tile -> tensor<64x64xf16>
        %e = ttg.memdesc_index %empty1[%stage] : !bars -> !bar
        ttng.arrive_barrier %e, 1 : !bar
        %next = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %next : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tiles, !tiles, !bars, !bars, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}

// -----

// A is rearranged without a copy, B comes from registers through a buffer of its own, and zeros are not added. What the
// arrival gives back is read until the wait.

// CHECK-LABEL: @rearranged
// CHECK:         ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16
// CHECK:         partition0
// CHECK:           ttg.local_store {{%.*}}, [[B:%[a-z0-9_]+]]
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      [[A:%.*]] = ttg.memdesc_trans
// CHECK-NEXT:      [[DOT:%.*]] = ttng.warp_group_dot [[A]], [[B]], %zero, {{%.*}} {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT:      ttng.warp_group_dot_wait [[DOT]] {pendings = 0 : i32}
// CHECK-NEXT:      ttng.arrive_barrier

// tf32 is less than this product asks for, so it stays.

// CHECK:           tt.dot
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bars = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #bars, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @rearranged(%a: !tile, %empty: !bar, %out: !tt.tensordesc<64x64xf32>) {
    ttg.warp_specialize(%a, %empty, %out)
    default {
      ttg.warp_yield
    }
    partition0(%a1: !tile, %empty1: !bar, %out1: !tt.tensordesc<64x64xf32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %half = arith.constant dense<0.5> : tensor<64x64xf16>
      %x = ttg.local_load %a1 : !tile -> tensor<64x64xf16>
      ttng.arrive_barrier %empty1, 1 : !bar
      %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %d = tt.dot %t, %half, %zero, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %e = tt.dot %d, %d, %zero, inputPrecision = ieee : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
      tt.descriptor_store %out1[%c0, %c0], %e : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tile, !bar, !tt.tensordesc<64x64xf32>) -> ()
    tt.return
  }
}
