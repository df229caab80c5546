// RUN: tlx-opt %s -p 'triton-tlx-fixup{target="cuda:100"}' --split-input-file --verify-diagnostics
// RUN: not tlx-opt %s -p 'triton-tlx-fixup{cluster-dims=2,1}' --split-input-file 2>&1 | filecheck %s

// CHECK: error: Expected 3 cluster dimensions, got 2

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
#alone = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module {
  tt.func @mixed(%a: !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %d: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>, %e: !ttg.memdesc<128x64xf32, #alone, #ttng.tensor_memory, mutable>) {
    %true = arith.constant true
    ttng.tc_gen5_mma %a, %b, %d, %true, %true {two_ctas} : !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>
    // expected-error @below {{Expecting all dot ops to be 2cta together or 1cta together}}
    // expected-note @below {{a product of a pair of CTAs}}
    ttng.tc_gen5_mma %a, %b, %e, %true, %true : !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, !ttg.memdesc<128x64xf32, #alone, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func @shared_tensors(%a: !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    %true = arith.constant true
    // expected-error @below {{num_ctas should not be set for TLX 2cta mode}}
    ttng.tc_gen5_mma %a, %b, %d, %true, %true {two_ctas} : !ttg.memdesc<128x64xf16, #tile, #smem, mutable>, !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module {
  tt.func @no_cluster(%bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %rank: i32) {
    // expected-error @below {{Unexpected buffer remote view in 1cta mode}}
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

builtin.module {
  tt.func @exclusive() {
    // expected-error @below {{tlx.async_tasks(exclusive=True) requires exactly one warp_specialize op in the module, but found 2}}
    // expected-note @below {{another one}}
    ttg.warp_specialize() attributes {tlx.exclusive}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
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
