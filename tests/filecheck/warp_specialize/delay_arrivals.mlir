// RUN: tlx-opt %s -p tlx-ws-delay-arrivals --split-input-file | filecheck %s

// With four slots, a turn reports the copy of two turns before, and the last two are reported after the loop.

// CHECK-LABEL: @four_slots
// CHECK:         scf.for [[K:%.*]] = {{.*}} iter_args([[COUNT:%.*]] = {{.*}})
// CHECK:           ttg.async_wait {num = 2 : i32}
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      [[IS_LATER:%.*]] = arith.cmpi sge, [[K]]
// CHECK-NEXT:      [[BEFORE:%.*]] = arith.addi [[COUNT]]
// CHECK-NEXT:      [[SLOT:%.*]] = arith.remsi [[BEFORE]]
// CHECK-NEXT:      [[FULL:%.*]] = ttg.memdesc_index {{.*}}[[[SLOT]]]
// CHECK-NEXT:      ttng.arrive_barrier [[FULL]], 1, [[IS_LATER]]
// CHECK:         ttg.async_wait {num = 0 : i32}
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-COUNT-2: ttng.arrive_barrier {{.*}}, 1, {{%.*}} :
// CHECK:         ttg.warp_yield

// Of two slots none is the producer's alone.

// CHECK-LABEL: @two_slots
// CHECK:         scf.for
// CHECK:           ttg.async_wait {num = 0 : i32}
// CHECK:           ttng.arrive_barrier {{%[a-z0-9_]+}}, 1 :
// CHECK-NOT:     ttng.arrive_barrier
// CHECK:         ttg.warp_yield

// The turn is known by the induction variable, as long as the step is.

// CHECK-LABEL: @a_step_that_is_not_known
// CHECK:         scf.for
// CHECK:           ttg.async_wait {num = 0 : i32}
// CHECK:           ttng.arrive_barrier {{%[a-z0-9_]+}}, 1 :
// CHECK-NOT:     ttng.arrive_barrier
// CHECK:         ttg.warp_yield

// A copy in a branch may be the last one or not.

// CHECK-LABEL: @in_a_branch
// CHECK:         scf.if
// CHECK:           ttg.async_wait {num = 0 : i32}
// CHECK:           ttng.arrive_barrier {{%[a-z0-9_]+}}, 1 :
// CHECK-NOT:     ttng.arrive_barrier
// CHECK:         ttg.warp_yield

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

tt.func public @four_slots(%ps: tensor<64x64x!tt.ptr<f16>>, %n: i32, %odd: i1) {
  %buffers = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<4x1xi64, #flat, #smem, mutable>
  ttg.warp_specialize()
  default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %slots = arith.constant 4 : i32
    %end = scf.for %k = %c0 to %n step %c32 iter_args(%count = %c0) -> (i32) : i32 {
      %stage = arith.remsi %count, %slots : i32
      %view = ttg.memdesc_index %buffers[%stage] : !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %t = ttg.async_copy_global_to_local %ps, %view : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16, #shared, #smem, mutable>
      %g = ttg.async_commit_group tokens %t
      %w = ttg.async_wait {num = 0 : i32}
      ttng.fence_async_shared {bCluster = false}
      %one = ttg.memdesc_index %full[%stage] : !ttg.memdesc<4x1xi64, #flat, #smem, mutable> -> !ttg.memdesc<1xi64, #flat, #smem, mutable>
      ttng.arrive_barrier %one, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    ttg.warp_yield
  } : () -> ()
  tt.return
}

tt.func public @two_slots(%ps: tensor<64x64x!tt.ptr<f16>>, %n: i32, %odd: i1) {
  %buffers = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #flat, #smem, mutable>
  ttg.warp_specialize()
  default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %slots = arith.constant 2 : i32
    %end = scf.for %k = %c0 to %n step %c32 iter_args(%count = %c0) -> (i32) : i32 {
      %stage = arith.remsi %count, %slots : i32
      %view = ttg.memdesc_index %buffers[%stage] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %t = ttg.async_copy_global_to_local %ps, %view : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16, #shared, #smem, mutable>
      %g = ttg.async_commit_group tokens %t
      %w = ttg.async_wait {num = 0 : i32}
      ttng.fence_async_shared {bCluster = false}
      %one = ttg.memdesc_index %full[%stage] : !ttg.memdesc<2x1xi64, #flat, #smem, mutable> -> !ttg.memdesc<1xi64, #flat, #smem, mutable>
      ttng.arrive_barrier %one, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    ttg.warp_yield
  } : () -> ()
  tt.return
}

tt.func public @a_step_that_is_not_known(%ps: tensor<64x64x!tt.ptr<f16>>, %n: i32, %step: i32) {
  %buffers = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<4x1xi64, #flat, #smem, mutable>
  ttg.warp_specialize()
  default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %slots = arith.constant 4 : i32
    %end = scf.for %k = %c0 to %n step %step iter_args(%count = %c0) -> (i32) : i32 {
      %stage = arith.remsi %count, %slots : i32
      %view = ttg.memdesc_index %buffers[%stage] : !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %t = ttg.async_copy_global_to_local %ps, %view : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16, #shared, #smem, mutable>
      %g = ttg.async_commit_group tokens %t
      %w = ttg.async_wait {num = 0 : i32}
      ttng.fence_async_shared {bCluster = false}
      %one = ttg.memdesc_index %full[%stage] : !ttg.memdesc<4x1xi64, #flat, #smem, mutable> -> !ttg.memdesc<1xi64, #flat, #smem, mutable>
      ttng.arrive_barrier %one, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    ttg.warp_yield
  } : () -> ()
  tt.return
}

tt.func public @in_a_branch(%ps: tensor<64x64x!tt.ptr<f16>>, %n: i32, %odd: i1) {
  %buffers = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<4x1xi64, #flat, #smem, mutable>
  ttg.warp_specialize()
  default {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %slots = arith.constant 4 : i32
    %end = scf.for %k = %c0 to %n step %c32 iter_args(%count = %c0) -> (i32) : i32 {
      scf.if %odd {
        %stage = arith.remsi %count, %slots : i32
        %view = ttg.memdesc_index %buffers[%stage] : !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        %t = ttg.async_copy_global_to_local %ps, %view : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16, #shared, #smem, mutable>
        %g = ttg.async_commit_group tokens %t
        %w = ttg.async_wait {num = 0 : i32}
        ttng.fence_async_shared {bCluster = false}
        %one = ttg.memdesc_index %full[%stage] : !ttg.memdesc<4x1xi64, #flat, #smem, mutable> -> !ttg.memdesc<1xi64, #flat, #smem, mutable>
        ttng.arrive_barrier %one, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
      }
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    ttg.warp_yield
  } : () -> ()
  tt.return
}

