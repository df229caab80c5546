// RUN: tlx-opt %s -p tlx-lower-remote-memory --split-input-file | filecheck %s

// One thread arrives for all, after what all have done; a second arrival needs no barrier of its own.

// CHECK-LABEL: @arrive
// CHECK:         [[RANK:%\w+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:         nvvm.read.ptx.sreg.cluster.nctarank
// CHECK:         [[STRUCT:%\w+]] = builtin.unrealized_conversion_cast %bar
// CHECK:         [[POINTER:%\w+]] = llvm.extractvalue [[STRUCT]][0]
// CHECK:         [[HERE:%\w+]] = llvm.ptrtoint [[POINTER]] : !llvm.ptr<3> to i32
// CHECK:         [[THERE:%\w+]] = nvvm.inline_ptx "mapa.shared::cluster.u32 $0, $1, $2;" ro([[HERE]], [[RANK]] :
// CHECK-NEXT:    ttg.barrier local
// CHECK:         [[LEADER:%\w+]] = arith.select %p
// CHECK:         [[THREAD:%\w+]] = llvm.extractvalue
// CHECK:         nvvm.inline_ptx "{{.*}}setp.eq.s32 p, $0, $1; @p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$2], 3; }" ro([[THREAD]], [[LEADER]], [[THERE]] :
// CHECK-NOT:     ttg.barrier
// CHECK:         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$2], 1;
// CHECK-NOT:     tlx.
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @arrive(%p: i1) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %rank = tlx.cluster_cta_rank
    %size = tlx.cluster_size
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 3, %p : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// To the own CTA.

// CHECK-LABEL: @arrive_for_own_cta
// CHECK-NOT:     fence
// CHECK:         @p mbarrier.arrive.release.cta.shared::cluster.b64 _, [$2], 1; }"
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @arrive_for_own_cta(%rank: i32) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1 releases cta : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// A fence for accesses to the own shared memory serves the next arrivals that have the same condition, or any where it
// has none; after another access it takes another one.

// CHECK-LABEL: @arrive_after_fence
// CHECK:         ttg.barrier local
// CHECK:         setp.eq.s32 p, $0, $1; @p fence.release.sync_restrict::shared::cta.cluster; @p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$2], 1; }"
// CHECK:         setp.eq.s32 p, $0, $1; @p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$2], 2; }"
// CHECK:         setp.eq.s32 p, $0, $1; @p fence.release.sync_restrict::shared::cta.cluster; @p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$2], 3; }"
// CHECK:         setp.eq.s32 p, $0, $1; @p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$2], 4; }"
// CHECK:         ttg.local_store
// CHECK:         ttg.barrier local
// CHECK:         setp.eq.s32 p, $0, $1; @p fence.release.sync_restrict::shared::cta.cluster; @p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$2], 5; }"
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @arrive_after_fence(%rank: i32, %p: i1, %v: tensor<128xi32, #one>) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %buf = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #s, #smem, mutable>
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1, %p releases shared : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 2, %p releases shared : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 3 releases shared : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 4, %p releases shared : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    ttg.local_store %v, %buf : tensor<128xi32, #one> -> !ttg.memdesc<128xi32, #s, #smem, mutable>
    tlx.arrive_remote %r, 5 releases shared : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// Four elements side by side in a thread are one store, and each of the two rows of a thread is at a fixed distance.

// CHECK-LABEL: @store
// CHECK:         tt.bitcast
// CHECK:         nvvm.inline_ptx "st.shared::cluster.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK:         nvvm.inline_ptx "st.shared::cluster.v4.b32 [$0+2048], {$1, $2, $3, $4};"
// CHECK-NOT:     st.shared
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @store(%rank: i32, %v: tensor<32x32xf32, #rows>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #s, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<32x32xf32, #s, #smem, mutable> -> !ttg.memdesc<32x32xf32, #s, #tlx.shared_cluster_memory, mutable>
    tlx.remote_store %v, %r : tensor<32x32xf32, #rows> -> !ttg.memdesc<32x32xf32, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// Eight elements in 128 threads: those whose number is below 8 store, since the bytes are counted.

// CHECK-LABEL: @copies
// CHECK:         [[MASK:%\w+]] = arith.constant 120 : i32
// CHECK:         [[OWNER:%\w+]] = arith.andi {{%\w+}}, [[MASK]]
// CHECK:         nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $3, 0; @p st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2]; }" ro({{.*}}, [[OWNER]] :
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @copies(%rank: i32, %v: tensor<8xi32, #one>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<8xi32, #s, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<8xi32, #s, #smem, mutable> -> !ttg.memdesc<8xi32, #s, #tlx.shared_cluster_memory, mutable>
    %rb = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.async_remote_store %v, %r, %rb : tensor<8xi32, #one> -> !ttg.memdesc<8xi32, #s, #tlx.shared_cluster_memory, mutable>, !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// Pairs of 2-byte elements are what an asynchronous store takes at least, so the tensor is converted first.

// CHECK-LABEL: @pairs
// CHECK:         ttg.convert_layout {{.*}} -> tensor<64xi16, #blocked1>
// CHECK:         st.async.shared::cluster.mbarrier::complete_tx::bytes.b32
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @pairs(%rank: i32, %v: tensor<64xf16, #one>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64xf16, #s, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<64xf16, #s, #smem, mutable> -> !ttg.memdesc<64xf16, #s, #tlx.shared_cluster_memory, mutable>
    %rb = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.async_remote_store %v, %r, %rb : tensor<64xf16, #one> -> !ttg.memdesc<64xf16, #s, #tlx.shared_cluster_memory, mutable>, !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}
