// RUN: tlx-opt %s --split-input-file -p tlx-check-target --verify-diagnostics

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// An mbarrier of sm_80 counts arrivals one by one, and no bytes.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {
  tt.func public @bytes(%true: i1) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.arrive_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    // expected-error @+1 {{tlx.barrier_expect_bytes needs mbarriers that count bytes and several arrivals (sm_90a or later); target is sm_80}}
    ttng.barrier_expect %bar, 64, %true : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    tt.return
  }
}

// -----

// An attribute may be what makes the difference.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:86"} {
  tt.func public @registers(%p: !tt.ptr<f32>, %x: f32) {
    ttg.warp_specialize(%p, %x)
    default {
      ttg.warp_yield
    }
    partition0(%q: !tt.ptr<f32>, %y: f32) num_warps(4) {
      tt.store %q, %y : !tt.ptr<f32>
      ttg.warp_return
    } : (!tt.ptr<f32>, f32) -> ()
    // expected-error @+1 {{tlx.async_task with registers needs setmaxnreg (sm_90a or later); target is sm_86}}
    ttg.warp_specialize(%p, %x) attributes {requestedRegisters = array<i32: 24>}
    default {
      ttg.warp_yield
    }
    partition0(%q: !tt.ptr<f32>, %y: f32) num_warps(4) {
      tt.store %q, %y : !tt.ptr<f32>
      ttg.warp_return
    } : (!tt.ptr<f32>, f32) -> ()
    tt.return
  }
}

// -----

// So may an element type: fp8e5 is converted everywhere.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {
  tt.func public @conversions(%x: f32) {
    %0 = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E5M2
    // expected-error @+1 {{tl.cast needs fp8e4nv conversions (sm_89 or later); target is sm_80}}
    %1 = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E4M3FN
    tt.return
  }
}

// -----

// wgmma exists on one architecture alone, older and newer ones lack it.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @wait(%d: tensor<64x64xf32, #mma>) {
    // expected-error @+1 {{tlx.async_dot_wait needs wgmma (sm_90a); target is sm_100a}}
    %done = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return
  }
}

// -----

// expected-error @+1 {{unknown target 'sm_75': the targets are sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_107a, sm_110a, sm_120a, sm_121a}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:75"} {
}

// -----

// Stock Triton's verifier lets pass what no GPU has an instruction for.
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
tt.func @wgmma_elements(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem, mutable>, %c: tensor<64x64xf32>) {
  // expected-error @+1 {{tlx.async_dot into registers: operands have different element types: f16 and bf16}}
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xbf16, #shared, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}
}
// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
tt.func @scaled_elements(%a: !ttg.memdesc<128x64xf16, #shared, #smem>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, %p: i1) {
  // expected-error @+1 {{tlx.async_dot_scaled: lhs elements of type e5m2 are held in 8 bits, found f16}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %p, %p lhs = e5m2 rhs = e5m2 : !ttg.memdesc<128x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory>
  tt.return
}
}

// -----

// Upstream Triton would read the order and forget it.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func @ordered(%x: tensor<64xf32>) {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32, reduction_ordering = "unordered"}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<64xf32>) -> f32
    // expected-error @+1 {{tt.reduce: upstream Triton does not keep reduction_ordering = "inner_tree"}}
    %1 = "tt.reduce"(%x) <{axis = 0 : i32, reduction_ordering = "inner_tree"}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<64xf32>) -> f32
    tt.return
  }
}
