// RUN: tlx-opt %s -p tlx-finish-stores --split-input-file | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// The store may still write when the signal releases it.

// CHECK-LABEL: @released
// CHECK:         ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:    tt.atomic_rmw add, release, sys
// It is waited for once.
// CHECK-NEXT:    tt.atomic_rmw add, release, sys
builtin.module {
  tt.func public @released(%tile: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<i32>, %x: i32, %t: i1) {
    ttng.async_tma_copy_local_to_global %d[%x, %x] %tile : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    %0 = tt.atomic_rmw add, release, sys, %p, %x, %t : (!tt.ptr<i32>, i32, i1) -> i32
    %1 = tt.atomic_rmw add, release, sys, %p, %x, %t : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// The kernel waits itself; a relaxed operation, and one for the same thread block, release nothing to others.

// CHECK-LABEL: @waited
// CHECK:         ttng.async_tma_copy_local_to_global
// CHECK-NEXT:    tt.atomic_rmw add, relaxed, gpu
// CHECK-NEXT:    tt.atomic_rmw add, release, cta
// CHECK-NEXT:    ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:    tt.atomic_rmw add, release, gpu
builtin.module {
  tt.func public @waited(%tile: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<i32>, %x: i32, %t: i1) {
    ttng.async_tma_copy_local_to_global %d[%x, %x] %tile : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %0 = tt.atomic_rmw add, relaxed, gpu, %p, %x, %t : (!tt.ptr<i32>, i32, i1) -> i32
    %1 = tt.atomic_rmw add, release, cta, %p, %x, %t : (!tt.ptr<i32>, i32, i1) -> i32
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %2 = tt.atomic_rmw add, release, gpu, %p, %x, %t : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// The store of one turn is what the fence of the next turn releases.

// CHECK-LABEL: @turns
// CHECK:         scf.for
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT:      tlx.fence sys
// CHECK-NEXT:      ttng.async_tma_copy_local_to_global
builtin.module {
  tt.func public @turns(%tile: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<64x64xf16>, %x: i32) {
    scf.for %i = %x to %x step %x : i32 {
      tlx.fence sys
      ttng.async_tma_copy_local_to_global %d[%x, %x] %tile : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    tt.return
  }
}
