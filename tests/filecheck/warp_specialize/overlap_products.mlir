// RUN: tlx-opt %s -p tlx-ws-overlap-products --split-input-file | filecheck %s

// The store and the load for the next turn need not come before the product, nor the decay after the wait for it. The
// load that this turn uses stays, and so does what needs the result.

// CHECK-LABEL: @chain
// CHECK:         scf.for
// CHECK-NEXT:      [[NOW:%.*]] = tt.load
// CHECK-NEXT:      arith.truncf
// CHECK-NEXT:      ttg.local_store
// CHECK-NEXT:      ttng.fence_async_shared
// CHECK-NEXT:      [[PRODUCT:%.*]] = ttng.warp_group_dot
// CHECK-NEXT:      tt.descriptor_store
// CHECK-NEXT:      [[NEXT:%.*]] = tt.load
// CHECK-NEXT:      tt.splat
// CHECK-NEXT:      [[DECAYED:%.*]] = arith.mulf
// CHECK-NEXT:      [[RESULT:%.*]] = ttng.warp_group_dot_wait [[PRODUCT]]
// CHECK-NEXT:      [[SUM:%.*]] = arith.addf [[RESULT]], [[DECAYED]]
// CHECK:           scf.yield %{{.*}}, [[NEXT]]

// The loop stores what it loads: their order stays.

// CHECK-LABEL: @ordered
// CHECK:         scf.for
// CHECK-NEXT:      tt.load
// CHECK-NEXT:      tt.store
// CHECK-NEXT:      tt.load
// CHECK:           ttng.warp_group_dot

// Two products are in flight together: all stays.

// CHECK-LABEL: @together
// CHECK:         scf.for
// CHECK-NEXT:      tt.descriptor_store
// CHECK:           ttng.warp_group_dot
// CHECK-NEXT:      ttng.warp_group_dot
// CHECK-NEXT:      ttng.warp_group_dot_wait
// CHECK-NEXT:      ttng.warp_group_dot_wait

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @chain(%buffer: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o: !tt.tensordesc<64x64xf32>, %p: !tt.ptr<f32>, %n: i32) {
    ttg.warp_specialize(%buffer, %o, %p, %n)
    default {
      ttg.warp_yield
    }
    partition0(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o0: !tt.tensordesc<64x64xf32>, %q: !tt.ptr<f32>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %one = arith.constant 1.0 : f32
      %last:2 = scf.for %i = %c0 to %m step %c64 iter_args(%state = %zero, %scale = %one) -> (tensor<64x64xf32>, f32) : i32 {
        tt.descriptor_store %o0[%i, %c0], %state : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
        %next = tt.load %q : !tt.ptr<f32>
        %now = tt.load %q : !tt.ptr<f32>
        %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
        ttg.local_store %half, %b : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
        %d = ttng.warp_group_dot %b, %b, %zero {isAsync = true, inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
        %r = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
        %s = tt.splat %scale : f32 -> tensor<64x64xf32>
        %decayed = arith.mulf %state, %s : tensor<64x64xf32>
        %sum = arith.addf %r, %decayed : tensor<64x64xf32>
        %t = tt.splat %now : f32 -> tensor<64x64xf32>
        %all = arith.addf %sum, %t : tensor<64x64xf32>
        scf.yield %all, %next : tensor<64x64xf32>, f32
      }
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf32>, !tt.ptr<f32>, i32) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @ordered(%buffer: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o: !tt.tensordesc<64x64xf32>, %p: !tt.ptr<f32>, %n: i32) {
    ttg.warp_specialize(%buffer, %o, %p, %n)
    default {
      ttg.warp_yield
    }
    partition0(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o0: !tt.tensordesc<64x64xf32>, %q: !tt.ptr<f32>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %one = arith.constant 1.0 : f32
      %last:2 = scf.for %i = %c0 to %m step %c64 iter_args(%state = %zero, %scale = %one) -> (tensor<64x64xf32>, f32) : i32 {
        %next = tt.load %q : !tt.ptr<f32>
        tt.store %q, %scale : !tt.ptr<f32>
        %now = tt.load %q : !tt.ptr<f32>
        %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
        ttg.local_store %half, %b : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
        %d = ttng.warp_group_dot %b, %b, %zero {isAsync = true, inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
        %r = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
        %s = tt.splat %scale : f32 -> tensor<64x64xf32>
        %decayed = arith.mulf %state, %s : tensor<64x64xf32>
        %sum = arith.addf %r, %decayed : tensor<64x64xf32>
        %t = tt.splat %now : f32 -> tensor<64x64xf32>
        %all = arith.addf %sum, %t : tensor<64x64xf32>
        scf.yield %all, %next : tensor<64x64xf32>, f32
      }
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf32>, !tt.ptr<f32>, i32) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @together(%buffer: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o: !tt.tensordesc<64x64xf32>, %p: !tt.ptr<f32>, %n: i32) {
    ttg.warp_specialize(%buffer, %o, %p, %n)
    default {
      ttg.warp_yield
    }
    partition0(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o0: !tt.tensordesc<64x64xf32>, %q: !tt.ptr<f32>, %m: i32) num_warps(4) {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %one = arith.constant 1.0 : f32
      %last:2 = scf.for %i = %c0 to %m step %c64 iter_args(%state = %zero, %scale = %one) -> (tensor<64x64xf32>, f32) : i32 {
        tt.descriptor_store %o0[%i, %c0], %state : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
        %next = tt.load %q : !tt.ptr<f32>
        %now = tt.load %q : !tt.ptr<f32>
        %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
        ttg.local_store %half, %b : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.fence_async_shared {bCluster = false}
        %d = ttng.warp_group_dot %b, %b, %zero {isAsync = true, inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
        %e = ttng.warp_group_dot %b, %b, %zero {isAsync = true, inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32>
        %r = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
        %r2 = ttng.warp_group_dot_wait %e {pendings = 0 : i32} : tensor<64x64xf32>
        %s = tt.splat %scale : f32 -> tensor<64x64xf32>
        %decayed = arith.mulf %state, %s : tensor<64x64xf32>
        %sum = arith.addf %r, %decayed : tensor<64x64xf32>
        %t = tt.splat %now : f32 -> tensor<64x64xf32>
        %all = arith.addf %sum, %t : tensor<64x64xf32>
        scf.yield %all, %next : tensor<64x64xf32>, f32
      }
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<64x64xf32>, !tt.ptr<f32>, i32) -> ()
    tt.return
  }
}
