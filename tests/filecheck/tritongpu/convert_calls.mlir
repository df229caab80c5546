// RUN: tlx-opt %s -p convert-triton-to-tritongpu | filecheck %s

// A function that tasks of 4, 1 and 2 warps call is three functions, and so is what it calls itself. Recursion ends.

// CHECK-DAG:   #[[FOUR:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG:   #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK:       tt.func public @kernel
// CHECK:         tt.call @outer() : () -> tensor<128xi32, #[[FOUR]]>
// CHECK:         partition0
// CHECK:           tt.call @outer__1_warps() : () -> tensor<128xi32, #[[ONE]]>
// CHECK:         partition1
// CHECK:           tt.call @ring__2_warps
// CHECK:       tt.func private @outer() -> tensor<128xi32, #[[FOUR]]> {
// CHECK:         tt.call @inner() : () -> tensor<128xi32, #[[FOUR]]>
// CHECK:       tt.func private @outer__1_warps() -> tensor<128xi32, #[[ONE]]> attributes {"ttg.num-warps" = 1 : i32} {
// CHECK:         tt.call @inner__1_warps() : () -> tensor<128xi32, #[[ONE]]>
// CHECK:       tt.func private @inner() -> tensor<128xi32, #[[FOUR]]> {
// CHECK:       tt.func private @inner__1_warps() -> tensor<128xi32, #[[ONE]]> attributes {"ttg.num-warps" = 1 : i32} {
// CHECK:       tt.func private @ring()
// CHECK:         tt.call @ring()
// CHECK:       tt.func private @ring__2_warps()
// CHECK:         tt.call @ring__2_warps()
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel() {
    ttg.warp_specialize()
    default {
      %0 = tt.call @outer() : () -> tensor<128xi32>
      tt.call @ring() : () -> ()
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      %1 = tt.call @outer() : () -> tensor<128xi32>
      ttg.warp_return
    }
    partition1() num_warps(2) {
      tt.call @ring() : () -> ()
      ttg.warp_return
    } : () -> ()
    tt.return
  }
  tt.func private @outer() -> tensor<128xi32> {
    %0 = tt.call @inner() : () -> tensor<128xi32>
    tt.return %0 : tensor<128xi32>
  }
  tt.func private @inner() -> tensor<128xi32> {
    %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    tt.return %0 : tensor<128xi32>
  }
  tt.func private @ring() {
    tt.call @ring() : () -> ()
    tt.return
  }
}
