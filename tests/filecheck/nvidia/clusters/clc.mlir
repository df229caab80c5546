// RUN: tlx-opt %s -p tlx-lower-clc --split-input-file --verify-diagnostics | filecheck %s --check-prefixes=BOTH,PTX
// RUN: tlx-opt %s -p tlx-lower-clc{native=true} --split-input-file | filecheck %s --check-prefixes=BOTH,NATIVE

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// One thread asks, after all others of its task; each takes the response apart. `native` keeps what Triton knows.

// BOTH-LABEL: @one
// PTX:         ttg.barrier local
// PTX:         tt.make_range {{.*}} : tensor<128xi32
// PTX:         nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$2], [$3]; }"
// PTX:         %[[WORDS:.*]] = ttg.local_load %r : !ttg.memdesc<2xi64, {{.*}}> -> tensor<2xi64, #blocked{{.*}}>
// PTX:         nvvm.inline_ptx "{ .reg .pred p; .reg .b128 r; mov.b128 r, {$1, $2}; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.b32 $0, 1, 0, p; }" ro({{.*}} : i64, i64) -> i32
// PTX:         arith.cmpi ne
// PTX:         nvvm.inline_ptx "{ .reg .b128 r; mov.b128 r, {$1, $2}; clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 $0, r; }"
// PTX-NOT:     ttng.clc
// NATIVE:      ttng.clc_try_cancel
// NATIVE-NEXT: ttng.clc_load_result
// NATIVE-NEXT: ttng.clc_is_canceled
// NATIVE-NEXT: ttng.clc_get_program_id
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @one(%r: !ttg.memdesc<2xi64, #flat, #smem, mutable>, %b: !ttg.memdesc<1xi64, #flat, #smem, mutable>) {
    ttng.clc_try_cancel %r, %b : !ttg.memdesc<2xi64, #flat, #smem, mutable>, !ttg.memdesc<1xi64, #flat, #smem, mutable>
    %0 = ttng.clc_load_result %r : !ttg.memdesc<2xi64, #flat, #smem, mutable> -> i128
    %1 = ttng.clc_is_canceled %0 : i128 -> i1
    %2 = ttng.clc_get_program_id %0, y : i128 -> i32
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Where a predicate holds, for all CTAs of the cluster: no version of Triton has an operation for it.

// BOTH-LABEL: @all
// BOTH:        %[[LEADER:.*]] = arith.select %p, %{{.*}}, %{{.*}} : i32
// BOTH:        nvvm.inline_ptx "{ {{.*}} @p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [$2], [$3]; }" ro(%{{.*}}, %[[LEADER]]
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @all(%r: !ttg.memdesc<2xi64, #flat, #smem, mutable>, %b: !ttg.memdesc<1xi64, #flat, #smem, mutable>, %p: i1) {
    tlx.clc_try_cancel %r, %b, %p : !ttg.memdesc<2xi64, #flat, #smem, mutable>, !ttg.memdesc<1xi64, #flat, #smem, mutable>
    tt.return
  }
}
