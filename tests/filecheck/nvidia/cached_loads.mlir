// RUN: tlx-opt %s -p "tlx-lower-to-ptx-with-layouts{cached-loads=false}" | filecheck %s
// RUN: tlx-opt %s -p tlx-lower-to-ptx-with-layouts | filecheck %s --check-prefix=NATIVE

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// NATIVE-COUNT-3: ttng.async_tma_copy_global_to_local
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  // CHECK-LABEL: @first
  // CHECK:         nvvm.inline_ptx "{{.*}} .reg .b64 c; createpolicy.fractional.L2::evict_first.b64 c, 1.0; @p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [$2], [$3, {$5, $6}], [$4], c; }"
  // CHECK-NOT:     ttng.async_tma_copy_global_to_local
  tt.func public @first(%d: !tt.tensordesc<64x64xf16, #s>, %i: i32, %p: i1, %b: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #v, #smem, mutable>) {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    tt.return
  }

  // Without a policy nothing stands against upstream Triton's own copy.
  // CHECK-LABEL: @none
  // CHECK:         ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p :
  tt.func public @none(%d: !tt.tensordesc<64x64xf16, #s>, %i: i32, %p: i1, %b: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #v, #smem, mutable>) {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    tt.return
  }

  // A policy that PTX does not have: the hint goes.
  // CHECK-LABEL: @normal
  // CHECK:         ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p :
  tt.func public @normal(%d: !tt.tensordesc<64x64xf16, #s>, %i: i32, %p: i1, %b: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #v, #smem, mutable>) {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>} : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    tt.return
  }
}
