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
