// RUN: tlx-opt %s -p 'triton-tlx-fixup{target="cuda:100" cluster-dims=2,1,1}' --split-input-file | filecheck %s

// What the module has is said in it; what it has not, is not.

// CHECK: "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32, tlx.has_tlx_ops, tlx.has_explicit_local_mem_access, tlx.has_warp_spec_ops, tlx.enable_paired_cta_mma}
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module {
  tt.func @all(%a: !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %d: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    %c0 = arith.constant 0 : i32
    %true = arith.constant true
    %r = tlx.map_to_remote %bar, %c0 : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
    ttng.tc_gen5_mma %a, %b, %d, %true, %true {two_ctas} : !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// CHECK: builtin.module attributes {"ttg.cluster-dim-x" = 4 : i32, {{.*}}"ttg.cluster-dim-z" = 1 : i32} {
builtin.module attributes {"ttg.cluster-dim-x" = 4 : i32} {
  tt.func @none() {
    tt.return
  }
}
