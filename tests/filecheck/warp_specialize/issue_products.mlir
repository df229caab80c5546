// RUN: tlx-opt %s -p "tlx-ws-tensor-memory,tlx-ws-issue-products" --split-input-file | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Each turn of the outer loop makes a sum and stores it. One task issues products to two buffers in turn, when threads
// have loaded what a buffer had before; the other task waits for sums, and has neither blocks nor the inner loop.

// CHECK-LABEL: @sums
// CHECK:         ttng.tmem_alloc {{.*}} : () -> !ttg.memdesc<2x128x128xf32
// CHECK:         ttg.warp_specialize{{.*}} attributes {requestedRegisters = array<i32: 232, 48>}
// CHECK:         partition0
// CHECK:           scf.for
// CHECK-NOT:         scf.for
// CHECK-NOT:         ttng.tc_gen5
// CHECK:             ttng.wait_barrier
// CHECK:             ttng.tmem_load
// CHECK:             ttng.arrive_barrier
// CHECK:             tt.store
// CHECK:         partition1{{.*}} num_warps(1)
// CHECK:           scf.for
// CHECK:             [[FREE:%.*]] = arith.xori
// CHECK:             ttng.wait_barrier {{%.*}}, [[FREE]]
// CHECK:             scf.for
// CHECK:               ttng.wait_barrier
// CHECK:               ttng.tc_gen5_mma
// CHECK:             }
// CHECK:             ttng.tc_gen5_commit
// CHECK-NOT:         ttng.tmem_load
// CHECK-NOT:         tt.store
// CHECK:           ttg.warp_return
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @sums(%m: i32, %n: i32, %out: !tt.ptr<f32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #bar, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #bar, #smem, mutable>
    ttg.warp_specialize(%m, %n, %a, %full, %empty, %out)
    default {
      ttg.warp_yield
    }
    partition0(%m1: i32, %n1: i32, %a1: !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, %full1: !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, %empty1: !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %true = arith.constant true
      %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
      scf.for %j = %c0 to %m1 step %c1 : i32 {
        %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
          %slot = arith.andi %i, %c1 : i32
          %ready = ttg.memdesc_index %full1[%slot] : !ttg.memdesc<2x1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
          ttng.wait_barrier %ready, %c0, %true : !ttg.memdesc<1xi64, #bar, #smem, mutable>
          %view = ttg.memdesc_index %a1[%slot] : !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
          %x = ttg.local_load %view : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> tensor<128x64xf16>
          %given = ttg.memdesc_index %empty1[%slot] : !ttg.memdesc<2x1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
          ttng.arrive_barrier %given, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
          %y = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
          %next = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
          scf.yield %next : tensor<128x128xf32>
        }
        %pointers = tt.splat %out1 : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
        tt.store %pointers, %sum : tensor<128x128x!tt.ptr<f32>>
      }
      ttg.warp_return
    } : (i32, i32, !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// A sum without a loop around has nothing to overlap with: one task issues products and uses the sum.

// CHECK-LABEL: @one_sum
// CHECK:         partition0
// CHECK:           ttng.tc_gen5_mma
// CHECK:           ttng.tmem_load
// CHECK-NOT:     partition1
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @one_sum(%n: i32, %out: !tt.ptr<f32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%n, %a, %out)
    default {
      ttg.warp_yield
    }
    partition0(%n1: i32, %a1: !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
      %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %view = ttg.memdesc_index %a1[%c0] : !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
        %x = ttg.local_load %view : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> tensor<128x64xf16>
        %y = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
        %next = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
        scf.yield %next : tensor<128x128xf32>
      }
      %pointers = tt.splat %out1 : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
      tt.store %pointers, %sum : tensor<128x128x!tt.ptr<f32>>
      ttg.warp_return
    } : (i32, !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}
