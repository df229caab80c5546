// RUN: tlx-opt %s -p tlx-ws-tensor-memory --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// A sum stays in tensor memory: its first product overwrites what was there, the tensor cores give slots back, and
// threads load it after the loop, if that has had a turn.

// CHECK-LABEL: @sum
// CHECK:         [[SUM:%.*]] = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x128xf32
// CHECK:         ttng.init_barrier {{.*}}, 1
// CHECK:         partition0
// CHECK:           scf.for [[I:%.*]] = [[LOWER:%.*]] to [[N:%.*]] step
// CHECK-NOT:         ttg.local_load
// CHECK-NOT:         ttng.arrive_barrier
// CHECK:             [[Y:%.*]] = ttg.memdesc_trans %view
// CHECK:             [[ADDS:%.*]] = arith.cmpi sgt, [[I]], [[LOWER]]
// CHECK:             [[EMPTY:%.*]] = ttg.memdesc_index %empty
// CHECK:             ttng.tc_gen5_mma %view, [[Y]], {{.*}}, [[ADDS]], {{.*}}, [[EMPTY]][{{.*}}] {is_async}
// CHECK-NEXT:      }
// CHECK:           ttng.tc_gen5_commit [[DONE:%.*]] :
// CHECK:           ttng.wait_barrier
// CHECK:           [[RAN:%.*]] = arith.cmpi sgt, [[N]], [[LOWER]]
// CHECK-NEXT:      scf.if [[RAN]]
// CHECK:             ttng.tmem_load
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %zero
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @sum(%n: i32, %out: !tt.ptr<f32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #bar, #smem, mutable>
    ttg.warp_specialize(%n, %a, %empty, %out)
    default {
      ttg.warp_yield
    }
    partition0(%n1: i32, %a1: !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, %empty1: !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
      %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %slot = arith.remsi %i, %c2 : i32
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
      ttg.warp_return
    } : (i32, !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<2x1xi64, #bar, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// What threads compute goes to tensor memory as A. A result that each turn changes goes back there before the product
// adds to it; each turn waits for the product of the turn before, the first one for none.

// CHECK-LABEL: @rescaled
// CHECK:         %x_buffer = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x64xf16
// CHECK:         partition0
// CHECK:           ttng.tmem_store
// CHECK:           ttng.tc_gen5_commit
// CHECK-NEXT:      scf.for {{.*}} iter_args([[COUNT:%.*]] = {{%.*}}) -> (i32)
// CHECK:             [[PHASE:%.*]] = arith.andi [[COUNT]]
// CHECK:             ttng.wait_barrier {{%.*}}, [[PHASE]]
// CHECK:             ttng.tmem_load
// CHECK:             arith.mulf
// CHECK:             ttng.tmem_store
// CHECK:             ttng.tmem_store
// CHECK:             [[ADDS:%.*]] = arith.constant true
// CHECK:             ttng.tc_gen5_mma {{%.*}}, %view, {{%.*}}, [[ADDS]]
// CHECK:             [[NEXT:%.*]] = arith.addi [[COUNT]]
// CHECK-NEXT:        scf.yield [[NEXT]]
// CHECK:           ttng.wait_barrier
// CHECK:           ttng.tmem_load
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @rescaled(%n: i32, %out: !tt.ptr<f32>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%n, %b, %out)
    default {
      ttg.warp_yield
    }
    partition0(%n1: i32, %b1: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %one = arith.constant dense<1.000000e+00> : tensor<128x64xf32>
      %view = ttg.memdesc_index %b1[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %y = ttg.local_load %view : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16>
      %sum = scf.for %i = %c0 to %n1 step %c1 iter_args(%acc = %one) -> (tensor<128x64xf32>) : i32 {
        %half = arith.mulf %acc, %acc : tensor<128x64xf32>
        %x = arith.truncf %half : tensor<128x64xf32> to tensor<128x64xf16>
        %next = tt.dot %x, %y, %half : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
        scf.yield %next : tensor<128x64xf32>
      }
      %pointers = tt.splat %out1 : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
      tt.store %pointers, %sum : tensor<128x64x!tt.ptr<f32>>
      ttg.warp_return
    } : (i32, !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// A product that tcgen05 can't do is refused.

builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @few_rows(%out: !tt.ptr<f32>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%b, %out)
    default {
      ttg.warp_yield
    }
    partition0(%b1: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %view = ttg.memdesc_index %b1[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %y = ttg.local_load %view : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16>
      %x = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
      %zero = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
      // expected-error @+1 {{not warp-specialised: the tensor cores can't do this product: it has 32 rows, an accumulator in tensor memory 64 or 128}}
      %d = tt.dot %x, %y, %zero : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
      %pointers = tt.splat %out1 : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
      tt.store %pointers, %d : tensor<32x64x!tt.ptr<f32>>
      ttg.warp_return
    } : (!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Other GPUs have no tensor memory.

// CHECK-LABEL: @hopper
// CHECK:         tt.dot
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @hopper(%out: !tt.ptr<f32>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%b, %out)
    default {
      ttg.warp_yield
    }
    partition0(%b1: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %out1: !tt.ptr<f32>) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %view = ttg.memdesc_index %b1[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %y = ttg.local_load %view : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16>
      %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
      %d = tt.dot %y, %y, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %pointers = tt.splat %out1 : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
      tt.store %pointers, %d : tensor<64x64x!tt.ptr<f32>>
      ttg.warp_return
    } : (!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.ptr<f32>) -> ()
    tt.return
  }
}
