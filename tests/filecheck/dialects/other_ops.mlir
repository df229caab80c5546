// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Operations of other dialects that kernels contain.
// CHECK-LABEL: @nvvm(
tt.func @nvvm(%i: i32, %n: i32, %p: i1, %bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  // CHECK: nvvm.inline_ptx "bar.sync 8, 256;"
  nvvm.inline_ptx "bar.sync 8, 256;"
  // CHECK: %sum = nvvm.inline_ptx "add.s32 $0, $1, $2;" ro(%i, %n : i32, i32) -> i32
  %sum = nvvm.inline_ptx "add.s32 $0, $1, $2;" ro(%i, %n : i32, i32) -> i32
  // CHECK: %one, %two = nvvm.inline_ptx "..." ro(%i : i32) rw(%n : i32), predicate = %p -> i32, i32
  %one, %two = nvvm.inline_ptx "..." ro(%i : i32) rw(%n : i32), predicate = %p -> i32, i32
  // CHECK: %raw = builtin.unrealized_conversion_cast %bar : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable> to !llvm.struct{{.*}}
  %raw = builtin.unrealized_conversion_cast %bar : !ttg.memdesc<1xi64, #shared, #smem, mutable> to !llvm.struct<(ptr<3>, i32)>
  // CHECK: %ptr = llvm.extractvalue %raw[0] : !llvm.struct{{.*}}
  %ptr = llvm.extractvalue %raw[0] : !llvm.struct<(ptr<3>, i32)>
  // CHECK: %remote = nvvm.mapa %ptr, %i : !llvm.ptr<3> -> !llvm.ptr<7>
  %remote = nvvm.mapa %ptr, %i : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK: nvvm.barrier
  nvvm.barrier
  // CHECK: nvvm.barrier id = %i number_of_threads = %n
  nvvm.barrier id = %i number_of_threads = %n
  // CHECK: nvvm.barrier.arrive id = %i number_of_threads = %n
  nvvm.barrier.arrive id = %i number_of_threads = %n
  // CHECK: nvvm.cluster.arrive {aligned}
  nvvm.cluster.arrive {aligned}
  // CHECK: nvvm.cluster.arrive.relaxed
  nvvm.cluster.arrive.relaxed
  // CHECK: nvvm.cluster.wait {aligned}
  nvvm.cluster.wait {aligned}
  // CHECK: nvvm.fence.mbarrier.init
  nvvm.fence.mbarrier.init
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK: %elected = nvvm.elect.sync -> i1
  %elected = nvvm.elect.sync -> i1
  // CHECK: nvvm.setmaxregister increase 232
  nvvm.setmaxregister increase 232
  // CHECK: nvvm.griddepcontrol wait
  nvvm.griddepcontrol wait
  // CHECK: %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  // CHECK: %clock = nvvm.read.ptx.sreg.clock64 : i64
  %clock = nvvm.read.ptx.sreg.clock64 : i64
  tt.return
}

// CHECK-LABEL: @gpu(
tt.func @gpu(%p: i1) {
  // CHECK: gpu.barrier
  gpu.barrier
  // CHECK: %thread = gpu.thread_id x
  %thread = gpu.thread_id x
  // CHECK: %bounded = gpu.thread_id y upper_bound 64
  %bounded = gpu.thread_id y upper_bound 64
  // CHECK: %block = gpu.cluster_block_id x
  %block = gpu.cluster_block_id x
  // CHECK: llvm.intr.assume %p : i1
  llvm.intr.assume %p : i1
  // CHECK: %undefined = ub.poison : tensor<4xi32>
  %undefined = ub.poison : tensor<4xi32>
  tt.return
}

// A loop without arguments, one with arguments, and what LLVM may do with a loop.
// CHECK-LABEL: @loops(
tt.func @loops(%p: i1, %i: i32) {
  // CHECK: scf.while : () -> () {
  scf.while : () -> () {
    // CHECK: scf.condition(%p)
    scf.condition(%p)
  } do {
    // CHECK: scf.yield
    scf.yield
  }
  // CHECK: %last = scf.while (%a = %i) : (i32) -> i32 {
  %last = scf.while (%a = %i) : (i32) -> i32 {
    // CHECK: scf.condition(%p) %a : i32
    scf.condition(%p) %a : i32
  } do {
  ^bb0(%b: i32):
    // CHECK: scf.yield %b : i32
    scf.yield %b : i32
  } attributes {tt.disallow_acc_multi_buffer}
  // CHECK: scf.for %k = %i to %i step %i  : i32 {
  scf.for %k = %i to %i step %i  : i32 {
  } {llvm.loop_annotation = #llvm.loop_annotation<licm = #llvm.loop_licm<disable = true>>, tt.num_stages = 3 : i32}
  tt.return
}
