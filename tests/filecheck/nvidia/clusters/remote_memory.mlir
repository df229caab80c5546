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

// Half of the columns of an accumulator is stored from the registers in which the tensor cores leave it, whatever layout
// it went through: two columns side by side at once. A tensor that no accumulator gave keeps its layout.

// CHECK:       [[COLUMNS:#\w+]] = #ttg.linear<{register = {{\[\[}}0, 1], [8, 0], [0, 8]],
// CHECK-LABEL: @store_half_of_sums
// CHECK:         [[HALF:%\w+]], {{%\w+}} = tt.split
// CHECK-NEXT:    [[WHERE:%\w+]] = ttg.convert_layout [[HALF]] : tensor<64x16xf32, {{#\w+}}> -> tensor<64x16xf32, [[COLUMNS]]>
// CHECK-NEXT:    tt.bitcast [[WHERE]]
// CHECK-COUNT-4: nvvm.inline_ptx "st.shared::cluster.v2.b32
// CHECK-NOT:     st.shared::cluster
// CHECK-LABEL: @store_half_of_others
// CHECK-NOT:     ttg.convert_layout
// CHECK:         nvvm.inline_ptx "st.shared::cluster.b32
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#parts = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 2, 16], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
#turned = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 16, 2], warpsPerCTA = [4, 1, 1], order = [1, 2, 0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = [2, 16, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
#half = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @store_half_of_sums(%rank: i32, %sums: tensor<64x32xf32, #mma>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x16xf32, #s, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<64x16xf32, #s, #smem, mutable> -> !ttg.memdesc<64x16xf32, #s, #tlx.shared_cluster_memory, mutable>
    %0 = ttg.convert_layout %sums : tensor<64x32xf32, #mma> -> tensor<64x32xf32, #rows>
    %1 = tt.reshape %0 : tensor<64x32xf32, #rows> -> tensor<64x2x16xf32, #parts>
    %2 = tt.trans %1 {order = array<i32: 0, 2, 1>} : tensor<64x2x16xf32, #parts> -> tensor<64x16x2xf32, #turned>
    %3 = ttg.convert_layout %2 : tensor<64x16x2xf32, #turned> -> tensor<64x16x2xf32, #pairs>
    %left, %right = tt.split %3 : tensor<64x16x2xf32, #pairs> -> tensor<64x16xf32, #half>
    tlx.remote_store %left, %r : tensor<64x16xf32, #half> -> !ttg.memdesc<64x16xf32, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
  tt.func public @store_half_of_others(%rank: i32, %pairs: tensor<64x16x2xf32, #pairs>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x16xf32, #s, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<64x16xf32, #s, #smem, mutable> -> !ttg.memdesc<64x16xf32, #s, #tlx.shared_cluster_memory, mutable>
    %left, %right = tt.split %pairs : tensor<64x16x2xf32, #pairs> -> tensor<64x16xf32, #half>
    tlx.remote_store %left, %r : tensor<64x16xf32, #half> -> !ttg.memdesc<64x16xf32, #s, #tlx.shared_cluster_memory, mutable>
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
