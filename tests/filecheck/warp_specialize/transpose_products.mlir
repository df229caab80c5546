// RUN: tlx-opt %s -p tlx-ws-transpose-products --split-input-file | filecheck %s

// The state is the first operand of the transposed product: its registers need no way through shared memory.

// CHECK-LABEL: @state
// CHECK:         partition0
// CHECK:           [[H:%.*]] = scf.for {{.*}} iter_args([[STATE:%.*]] = {{%.*}}) -> (tensor<64x128xf32>)
// CHECK:             [[W:%.*]] = ttg.local_load
// CHECK:             [[S:%.*]] = arith.truncf [[STATE]] : tensor<64x128xf32> to tensor<64x128xf16>
// CHECK:             [[W_T:%.*]] = tt.trans [[W]]
// CHECK:             [[U:%.*]] = tt.dot [[S]], [[W_T]], {{%.*}} : tensor<64x128xf16> * tensor<128x128xf16> -> tensor<64x128xf32>
// CHECK:             [[NEXT:%.*]] = arith.addf [[STATE]], [[U]]
// CHECK:             scf.yield [[NEXT]]
// CHECK:           [[BACK:%.*]] = tt.trans [[H]]
// CHECK:           tt.descriptor_store {{.*}}, [[BACK]]
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<128x128xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @state(%w: !tile, %out: !tt.tensordesc<128x64xf32>, %n: i32) {
    ttg.warp_specialize(%w, %out, %n)
    default {
      ttg.warp_yield
    }
    partition0(%w1: !tile, %out1: !tt.tensordesc<128x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.0> : tensor<128x64xf32>
      %h = scf.for %i = %c0 to %n1 step %c1 iter_args(%state = %zero) -> (tensor<128x64xf32>) : i32 {
        %wt = ttg.local_load %w1 : !tile -> tensor<128x128xf16>
        %s = arith.truncf %state : tensor<128x64xf32> to tensor<128x64xf16>
        %u = tt.dot %wt, %s, %zero, inputPrecision = tf32 : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
        %next = arith.addf %state, %u : tensor<128x64xf32>
        scf.yield %next : tensor<128x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %h : !tt.tensordesc<128x64xf32>, tensor<128x64xf32>
      ttg.warp_return
    } : (!tile, !tt.tensordesc<128x64xf32>, i32) -> ()
    tt.return
  }
}

// -----

// What is rearranged in another way is not transposed, so its product stays as it is.

// CHECK-LABEL: @reduced
// CHECK-NOT:     tt.trans
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @reduced(%w: !tile, %out: !tt.tensordesc<64x64xf32>, %n: i32) {
    ttg.warp_specialize(%w, %out, %n)
    default {
      ttg.warp_yield
    }
    partition0(%w1: !tile, %out1: !tt.tensordesc<64x64xf32>, %n1: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %h = scf.for %i = %c0 to %n1 step %c1 iter_args(%state = %zero) -> (tensor<64x64xf32>) : i32 {
        %wt = ttg.local_load %w1 : !tile -> tensor<64x64xf16>
        %r = "tt.reduce"(%state) <{axis = 1 : i32}> ({
        ^bb0(%x: f32, %y: f32):
          %z = arith.addf %x, %y : f32
          tt.reduce.return %z : f32
        }) : (tensor<64x64xf32>) -> tensor<64xf32>
        %column = tt.expand_dims %r {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
        %rows = tt.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
        %order = tt.reshape %rows : tensor<64x64xf32> -> tensor<64x64xf32>
        %s = arith.truncf %order : tensor<64x64xf32> to tensor<64x64xf16>
        %u = tt.dot %wt, %s, %zero, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %u : tensor<64x64xf32>
      }
      tt.descriptor_store %out1[%c0, %c0], %h : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
      ttg.warp_return
    } : (!tile, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}
