// RUN: not tlx-opt %s --split-input-file -p tlx-rewrite-local-alias 2>&1 | filecheck %s

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!bytes = !ttg.memdesc<24x1024xi8, #bytes, #smem, mutable>

// An alias of an alias is a view of the allocation itself.
// CHECK-LABEL: @chain
tt.func @chain() {
  // CHECK: %s = ttg.local_alloc
  %s = ttg.local_alloc {alignment = 1024 : i32} : () -> !bytes
  // CHECK-NEXT: %a = ttg.memdesc_reinterpret %s : !ttg.memdesc<24x1024xi8, {{.*}} -> !ttg.memdesc<3x64x64xf16,
  %a = tlx.local_alias %s : !bytes -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
  // CHECK-NEXT: %b = ttg.memdesc_reinterpret %s : !ttg.memdesc<24x1024xi8, {{.*}} -> !ttg.memdesc<1x64x64xf16,
  %b = tlx.local_alias %a : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!bytes = !ttg.memdesc<24x1024xi8, #bytes, #smem, mutable>

// CHECK: kernel.py:4:3: error: LocalAliasOp must refer to a local_alloc or local_alias op
tt.func @argument(%s: !bytes) {
  %a = tlx.local_alias %s : !bytes -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> loc("kernel.py":4:3)
  tt.return
}
