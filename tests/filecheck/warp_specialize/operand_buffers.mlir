// RUN: tlx-opt %s -p tlx-ws-stage-stores --split-input-file | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// The block that a product reads from shared memory is stored from there: TMA waits for the fence that is there for
// the product, and the task before the next write for TMA. The other block has no buffer that TMA could read.

// CHECK-LABEL: @state
// CHECK:         ttg.local_alloc {{.*}} -> !ttg.memdesc<1x64x64xf32,
// CHECK-NEXT:    ttg.warp_specialize
// CHECK:         scf.for
// CHECK:           [[VIEW:%.*]] = ttg.memdesc_index [[OPERAND:%.*]][
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 1 : i32, read_only}
// CHECK-NEXT:      ttg.local_store %{{.*}}, [[VIEW]]
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      ttng.async_tma_copy_local_to_global [[H:%.*]][%{{.*}}, %{{.*}}] [[VIEW]]
// CHECK-NEXT:      ttng.warp_group_dot [[VIEW]], [[VIEW]]
// CHECK:           ttng.async_tma_store_wait {pendings = 1 : i32, read_only}
// CHECK-NEXT:      ttg.memdesc_index
// CHECK-NEXT:      ttg.local_store
// Two loops that follow each other write the same buffer. Before the second one TMA is done, so that both store from it.

// CHECK-LABEL: @two_loops
// CHECK-NEXT:    ttg.local_alloc
// CHECK-NEXT:    ttg.warp_specialize
// CHECK:         scf.for
// CHECK:           ttg.local_store %{{.*}}, [[FIRST:%.*]] :
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      ttng.async_tma_copy_local_to_global {{.*}} [[FIRST]]
// CHECK:         ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:    scf.for
// CHECK:           ttg.local_store %{{.*}}, [[SECOND:%.*]] :
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      ttng.async_tma_copy_local_to_global {{.*}} [[SECOND]]

// A write of the buffer in no loop waits for none of that: the stores have a buffer of their own.

// CHECK-LABEL: @another_write
// CHECK:         ttg.local_alloc {{.*}} -> !ttg.memdesc<1x64x64xf16,
// CHECK-NEXT:    ttg.local_alloc {{.*}} -> !ttg.memdesc<1x64x64xf16,
// CHECK-NEXT:    ttg.warp_specialize
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @state(%h: !tt.tensordesc<64x64xf16>, %o: !tt.tensordesc<64x64xf32>, %n: i32) {
    %operand = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%operand, %h, %o, %n)
    default {
      ttg.warp_yield
    }
    partition0(%buffer: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %h0: !tt.tensordesc<64x64xf16>, %o0: !tt.tensordesc<64x64xf32>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %last = scf.for %i = %c0 to %m step %c64 iter_args(%state = %zero) -> (tensor<64x64xf32>) : i32 {
        %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
        tt.descriptor_store %h0[%i, %c0], %half : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
        %again = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
        %view = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttg.local_store %again, %view : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
        %sum = ttng.warp_group_dot %view, %view, %state {isAsync = true, inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
        %next = ttng.warp_group_dot_wait %sum {pendings = 0 : i32} : tensor<64x64xf32>
        tt.descriptor_store %o0[%i, %c0], %next : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
        scf.yield %next : tensor<64x64xf32>
      }
      ttg.warp_return
    } : (!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf32>, i32) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @two_loops(%h: !tt.tensordesc<64x64xf16>, %n: i32) {
    %operand = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%operand, %h, %n)
    default {
      ttg.warp_yield
    }
    partition0(%buffer: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %h0: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %end = arith.muli %m, %c64 : i32
      %half = arith.constant dense<0.0> : tensor<64x64xf16>
      scf.for %i = %c0 to %m step %c64 : i32 {
        tt.descriptor_store %h0[%i, %c0], %half : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
        %view = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttg.local_store %half, %view : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
      }
      scf.for %i = %m to %end step %c64 : i32 {
        tt.descriptor_store %h0[%i, %c0], %half : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
        %view = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttg.local_store %half, %view : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
      }
      ttg.warp_return
    } : (!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @another_write(%h: !tt.tensordesc<64x64xf16>, %n: i32) {
    %operand = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%operand, %h, %n)
    default {
      ttg.warp_yield
    }
    partition0(%buffer: !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, %h0: !tt.tensordesc<64x64xf16>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %end = arith.muli %m, %c64 : i32
      %half = arith.constant dense<0.0> : tensor<64x64xf16>
      %early = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.local_store %half, %early : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.fence_async_shared {bCluster = false}
      scf.for %i = %c0 to %m step %c64 : i32 {
        tt.descriptor_store %h0[%i, %c0], %half : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
        %view = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttg.local_store %half, %view : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
      }
      scf.for %i = %m to %end step %c64 : i32 {
        tt.descriptor_store %h0[%i, %c0], %half : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
        %view = ttg.memdesc_index %buffer[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttg.local_store %half, %view : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
      }
      ttg.warp_return
    } : (!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}
