// RUN: tlx-opt %s -p tlx-legalize-async-copies --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// The pointer may be aligned for one element only. The data is there at once; the group that is waited for stays.

// CHECK-LABEL: @unaligned
// CHECK:         [[POINTERS:%.*]] = tt.addptr
// CHECK-NEXT:    [[DATA:%.*]] = tt.load [[POINTERS]] : tensor<512x!tt.ptr<f16>>
// CHECK-NEXT:    ttg.local_store [[DATA]], %buffer :
// CHECK-NEXT:    [[GROUP:%.*]] = ttg.async_commit_group
// CHECK-NEXT:    ttg.async_wait [[GROUP]]
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @unaligned(%p: !tt.ptr<f16>, %buffer: !ttg.memdesc<512xf16, #shared, #smem, mutable>) {
    %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %base = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %range : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
    // expected-remark@+1 {{a thread can copy 16 bits at a time here, and cp.async copies at least 32}}
    %token = ttg.async_copy_global_to_local %pointers, %buffer : tensor<512x!tt.ptr<f16>> -> <512xf16, #shared, #smem, mutable>
    %group = ttg.async_commit_group tokens %token
    %done = ttg.async_wait %group {num = 0 : i32}
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// An aligned pointer, and a bound that is not: the mask may differ from one element to the next. Elements that are not
// copied are zero.

// CHECK-LABEL: @mask
// CHECK:         [[MASK:%.*]] = arith.cmpi
// CHECK-NEXT:    [[ZERO:%.*]] = arith.constant dense<0.{{0*e[+]?0*}}> : tensor<512xf16>
// CHECK-NEXT:    tt.load %{{.*}}, [[MASK]], [[ZERO]]
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @mask(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %buffer: !ttg.memdesc<512xf16, #shared, #smem, mutable>) {
    %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %base = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %range : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
    %bound = tt.splat %n : i32 -> tensor<512xi32>
    %mask = arith.cmpi slt, %range, %bound : tensor<512xi32>
    // expected-remark@+1 {{this copy is made by loads and stores}}
    %token = ttg.async_copy_global_to_local %pointers, %buffer mask %mask : tensor<512x!tt.ptr<f16>> -> <512xf16, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// What can be copied stays: where pointer and bound are aligned, and elements of 32 bits in any case.

// CHECK-LABEL: @wide
// CHECK:         ttg.async_copy_global_to_local
// CHECK:         ttg.async_copy_global_to_local
// CHECK-NOT:     tt.load
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @wide(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32>, %n: i32 {tt.divisibility = 16 : i32},
      %buffer: !ttg.memdesc<512xf16, #shared, #smem, mutable>, %words: !ttg.memdesc<512xf32, #shared, #smem, mutable>) {
    %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %base = tt.splat %p : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %range : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
    %bound = tt.splat %n : i32 -> tensor<512xi32>
    %mask = arith.cmpi slt, %range, %bound : tensor<512xi32>
    %token = ttg.async_copy_global_to_local %pointers, %buffer mask %mask : tensor<512x!tt.ptr<f16>> -> <512xf16, #shared, #smem, mutable>
    %base2 = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %pointers2 = tt.addptr %base2, %range : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %token2 = ttg.async_copy_global_to_local %pointers2, %words : tensor<512x!tt.ptr<f32>> -> <512xf32, #shared, #smem, mutable>
    tt.return
  }
}
