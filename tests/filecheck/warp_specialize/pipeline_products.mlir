// RUN: tlx-opt %s -p tlx-ws-pipeline-products --split-input-file | filecheck %s

// The exponentials of a turn run beside the second product of the turn before: it is issued after the first product of
// this turn. A length above 0 lets the loop run, so the first turn's begin needs no branch.

// CHECK-LABEL: @scores
// CHECK-SAME:    tlx.launch_conditions = ["n > 0"]
// CHECK:         partition0
// CHECK:           [[S0:%.*]] = tt.dot %q, {{%.*}}, %zero
// CHECK:           [[E0:%.*]] = math.exp2 [[S0]]
// CHECK:           [[P0:%.*]] = arith.truncf [[E0]]
// CHECK:           [[P_LAST:%.*]], [[SUM:%.*]] = scf.for [[N:%.*]] = [[ONE:%.*]] to %n1 step {{.*}} iter_args([[P:%.*]] = [[P0]], [[ACC:%.*]] = %zero)
// CHECK:             [[STAGE:%.*]] = arith.remsi [[N]]
// CHECK:             ttng.wait_barrier
// CHECK:             [[K_SLOT:%.*]] = ttg.memdesc_index %k1[[[STAGE]]]
// CHECK:             [[K:%.*]] = ttg.local_load [[K_SLOT]]
// CHECK:             ttng.arrive_barrier
// CHECK:             [[S:%.*]] = tt.dot %q, [[K]], %zero
// CHECK-NEXT:        [[BEFORE:%.*]] = arith.subi [[N]], [[ONE]]
// CHECK-NEXT:        [[STAGE_BEFORE:%.*]] = arith.remsi [[BEFORE]]
// CHECK:             ttng.wait_barrier
// CHECK:             [[V_SLOT:%.*]] = ttg.memdesc_index %v1[[[STAGE_BEFORE]]]
// CHECK:             [[V:%.*]] = ttg.local_load [[V_SLOT]]
// CHECK:             ttng.arrive_barrier
// CHECK:             [[D:%.*]] = tt.dot [[P]], [[V]], [[ACC]]
// CHECK-NEXT:        [[E:%.*]] = math.exp2 [[S]]
// CHECK-NEXT:        [[P_NEXT:%.*]] = arith.truncf [[E]]
// CHECK-NEXT:        scf.yield [[P_NEXT]], [[D]]
// CHECK:           [[LAST:%.*]] = arith.subi %n1, [[ONE]]
// CHECK:           tt.dot [[P_LAST]], {{%.*}}, [[SUM]]
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bars = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!tiles = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!bars = !ttg.memdesc<2x1xi64, #bars, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #bars, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @scores(%k: !tiles, %v: !tiles, %k_full: !bars, %k_empty: !bars, %v_full: !bars, %v_empty: !bars, %desc: !tt.tensordesc<64x64xf16>, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%k, %v, %k_full, %k_empty, %v_full, %v_empty, %out, %n)
    default {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %true = arith.constant true
      scf.for %i = %c0 to %n step %c1 : i32 {
        %c2 = arith.constant 2 : i32
        %stage = arith.remsi %i, %c2 : i32
        %ke = ttg.memdesc_index %k_empty[%stage] : !bars -> !bar
        ttng.wait_barrier %ke, %c1, %true : !bar
        %kf = ttg.memdesc_index %k_full[%stage] : !bars -> !bar
        %x = ttg.memdesc_index %k[%stage] : !tiles -> !tile
        ttng.async_tma_copy_global_to_local %desc[%c0, %c0] %x, %kf, %true : !tt.tensordesc<64x64xf16>, !bar -> !tile
        %ve = ttg.memdesc_index %v_empty[%stage] : !bars -> !bar
        ttng.wait_barrier %ve, %c1, %true : !bar
        %vf = ttg.memdesc_index %v_full[%stage] : !bars -> !bar
        %y = ttg.memdesc_index %v[%stage] : !tiles -> !tile
        ttng.async_tma_copy_global_to_local %desc[%c0, %c0] %y, %vf, %true : !tt.tensordesc<64x64xf16>, !bar -> !tile
      }
      ttg.warp_yield
    }
    partition0(%k1: !tiles, %v1: !tiles, %k_full1: !bars, %k_empty1: !bars, %v_full1: !bars, %v_empty1: !bars, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %true = arith.constant true
      %q = arith.constant dense<0.5> : tensor<64x64xf16>
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %stage = arith.remsi %i, %c2 : i32
        %kf = ttg.memdesc_index %k_full1[%stage] : !bars -> !bar
        ttng.wait_barrier %kf, %c0, %true : !bar
        %ks = ttg.memdesc_index %k1[%stage] : !tiles -> !tile
        %kt = ttg.local_load %ks : !tile -> tensor<64x64xf16>
        %ke = ttg.memdesc_index %k_empty1[%stage] : !bars -> !bar
        ttng.arrive_barrier %ke, 1 : !bar
        %s = tt.dot %q, %kt, %zero, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        %e = math.exp2 %s : tensor<64x64xf32>
        %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>
        %vf = ttg.memdesc_index %v_full1[%stage] : !bars -> !bar
        ttng.wait_barrier %vf, %c0, %true : !bar
        %vs = ttg.memdesc_index %v1[%stage] : !tiles -> !tile
        %vt = ttg.local_load %vs : !tile -> tensor<64x64xf16>
        %ve = ttg.memdesc_index %v_empty1[%stage] : !bars -> !bar
        ttng.arrive_barrier %ve, 1 : !bar
        %d = tt.dot %p, %vt, %acc, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tiles, !tiles, !bars, !bars, !bars, !bars, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}

// -----

// The first product of a turn reads what the second one of the turn before makes, so the loop stays as it is.

// CHECK-LABEL: @recurrence
// CHECK-NOT:     tlx.launch_conditions
// CHECK:         scf.for {{.*}} = %c0 to %n1
// CHECK:           tt.dot
// CHECK:           tt.dot
// CHECK-NOT:     tt.dot
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @recurrence(%out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%out, %n)
    default {
      ttg.warp_yield
    }
    partition0(%out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %w = arith.constant dense<0.5> : tensor<64x64xf16>
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %state = scf.for %i = %c0 to %n1 step %c1 iter_args(%h = %zero) -> (tensor<64x64xf32>) : i32 {
        %h16 = arith.truncf %h : tensor<64x64xf32> to tensor<64x64xf16>
        %u = tt.dot %w, %h16, %zero, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        %u16 = arith.truncf %u : tensor<64x64xf32> to tensor<64x64xf16>
        %d = tt.dot %w, %u16, %h, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %state : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}
