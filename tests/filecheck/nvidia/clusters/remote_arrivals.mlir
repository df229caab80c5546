// RUN: tlx-opt %s -p tlx-relax-remote-arrivals --split-input-file | filecheck %s

// TMA writes the tile for both CTAs, and only the tensor cores read it: all that the threads access is their own.

// CHECK-LABEL: @awaited
// CHECK:         ttng.warp_group_dot_wait
// CHECK-NEXT:    tlx.arrive_remote %{{.*}}, 1 releases cta :
#acc = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @awaited(%desc: !tt.tensordesc<64x64xf16, #tile>, %acc: tensor<64x64xf32, #acc>, %rank: i32, %mask: i32, %x: !tt.ptr<i32>) {
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %tile = ttg.local_alloc : () -> !tile
    %own = ttg.local_alloc : () -> !tile
    %full = ttg.local_alloc : () -> !bar
    %empty = ttg.local_alloc : () -> !bar
    tlx.async_tma_load %desc[%c0, %c0] %tile, %full, %true multicast %mask : !tt.tensordesc<64x64xf16, #tile>, !bar -> !tile
    ttng.wait_barrier %full, %c0 : !bar
    %d = ttng.warp_group_dot %tile, %tile, %acc {inputPrecision = 0 : i32, isAsync = true} : !tile * !tile -> tensor<64x64xf32, #acc>
    %r = tlx.map_to_remote %empty, %rank : !bar -> !there
    %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32, #acc>
    tlx.arrive_remote %r, 1 : !there
    // Nothing is released after these.
    %v = arith.truncf %w : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    ttg.local_store %v, %tile : tensor<64x64xf16, #acc> -> !tile
    ttg.local_store %v, %own : tensor<64x64xf16, #acc> -> !tile
    %n = tt.load %x : !tt.ptr<i32>
    tt.store %x, %n : !tt.ptr<i32>
    tt.return
  }
}

// -----

// Threads read the tile that other CTAs write.

// CHECK-LABEL: @read_by_threads
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases shared :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf16, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @read_by_threads(%desc: !tt.tensordesc<64xf16, #one>, %rank: i32, %mask: i32) {
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %bufs = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #one, #smem, mutable>
    %empty = ttg.local_alloc : () -> !bar
    %full = ttg.local_alloc : () -> !bar
    %buf = ttg.memdesc_index %bufs[%c0] : !ttg.memdesc<2x64xf16, #one, #smem, mutable> -> !buf
    tlx.async_tma_load %desc[%c0] %buf, %full, %true multicast %mask : !tt.tensordesc<64xf16, #one>, !bar -> !buf
    ttng.wait_barrier %full, %c0 : !bar
    %v = ttg.local_load %buf : !buf -> tensor<64xf16>
    %r = tlx.map_to_remote %empty, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
}

// -----

// The same of a tile without another writer.

// CHECK-LABEL: @read_by_threads_alone
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases cta :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf16, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @read_by_threads_alone(%rank: i32, %x: tensor<64xf16>) {
    %buf = ttg.local_alloc %x : (tensor<64xf16>) -> !buf
    %empty = ttg.local_alloc : () -> !bar
    %v = ttg.local_load %buf : !buf -> tensor<64xf16>
    %r = tlx.map_to_remote %empty, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
}

// -----

// Another CTA copies to it, in another place of the kernel.

// CHECK-LABEL: @copied_to
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases shared :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf16, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!buf_there = !ttg.memdesc<64xf16, #one, #tlx.shared_cluster_memory, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @copied_to(%rank: i32, %x: tensor<64xf16>) {
    %buf = ttg.local_alloc : () -> !buf
    %full = ttg.local_alloc : () -> !bar
    %empty = ttg.local_alloc : () -> !bar
    %buf_there = tlx.map_to_remote %buf, %rank : !buf -> !buf_there
    %full_there = tlx.map_to_remote %full, %rank : !bar -> !there
    tlx.async_remote_store %x, %buf_there, %full_there : tensor<64xf16> -> !buf_there, !there
    %v = ttg.local_load %buf : !buf -> tensor<64xf16>
    %r = tlx.map_to_remote %empty, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
}

// -----

// Two tasks access a buffer: one may hear of the other one by way of another CTA.

// CHECK-LABEL: @two_tasks
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases shared :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf16, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @two_tasks(%rank: i32, %x: tensor<64xf16>) {
    %buf = ttg.local_alloc : () -> !buf
    %bar = ttg.local_alloc : () -> !bar
    ttg.warp_specialize(%buf)
    default {
      ttg.local_store %x, %buf : tensor<64xf16> -> !buf
      %r = tlx.map_to_remote %bar, %rank : !bar -> !there
      tlx.arrive_remote %r, 1 : !there
      ttg.warp_yield
    }
    partition0(%b: !buf) num_warps(4) {
      %v = ttg.local_load %b : !buf -> tensor<64xf16>
      ttg.warp_return
    } : (!buf) -> ()
    tt.return
  }
}

// -----

// Global memory is read before the arrival and written after it, by whichever CTA; what is cached of it when
// another CTA arrives is out of date.

// CHECK-LABEL: @global_memory
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
// CHECK:         ttng.wait_barrier %mine
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.cluster;"
// CHECK-NEXT:    ttng.wait_barrier %local
// CHECK-NOT:     fence.acquire
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @global_memory(%rank: i32, %x: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %mine = ttg.local_alloc : () -> !bar
    %local = ttg.local_alloc : () -> !bar
    %n = tt.load %x : !tt.ptr<i32>
    %r = tlx.map_to_remote %mine, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    ttng.wait_barrier %mine, %c0 : !bar
    ttng.wait_barrier %local, %c0 : !bar
    tt.store %x, %n : !tt.ptr<i32>
    tt.return
  }
}

// -----

// It is only read.

// CHECK-LABEL: @global_memory_is_read
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases cta :
// CHECK-NOT:     fence.acquire
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @global_memory_is_read(%rank: i32, %x: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %mine = ttg.local_alloc : () -> !bar
    %n = tt.load %x : !tt.ptr<i32>
    %r = tlx.map_to_remote %mine, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    ttng.wait_barrier %mine, %c0 : !bar
    tt.return
  }
}

// -----

// It is written in a loop, whose next iteration has the release.

// CHECK-LABEL: @loop
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @loop(%rank: i32, %x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %bar = ttg.local_alloc : () -> !bar
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    scf.for %i = %c0 to %n step %c1 : i32 {
      tlx.arrive_remote %r, 1 : !there
      tt.store %x, %i : !tt.ptr<i32>
      scf.yield
    }
    tt.return
  }
}

// -----

// Threads store to the other CTA: a fence for the own shared memory does not release that. It has no caches, so that
// the other side's fence is one for shared memory.

// CHECK-LABEL: @remote_store
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
// CHECK:         ttng.wait_barrier %bar
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.sync_restrict::shared::cluster.cluster;"
// CHECK:         ttng.wait_barrier %local
// CHECK-NOT:     fence.acquire
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf16, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!buf_there = !ttg.memdesc<64xf16, #one, #tlx.shared_cluster_memory, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @remote_store(%rank: i32, %x: tensor<64xf16>) {
    %c0 = arith.constant 0 : i32
    %buf = ttg.local_alloc : () -> !buf
    %bar = ttg.local_alloc : () -> !bar
    %local = ttg.local_alloc : () -> !bar
    %buf_there = tlx.map_to_remote %buf, %rank : !buf -> !buf_there
    tlx.remote_store %x, %buf_there : tensor<64xf16> -> !buf_there
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    ttng.wait_barrier %bar, %c0 : !bar
    ttng.wait_barrier %local, %c0 : !bar
    tt.return
  }
}

// -----

// Asynchronous stores complete on the barrier, at which no thread arrives.

// CHECK-LABEL: @asynchronous_store
// CHECK:         ttng.wait_barrier %bar
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.sync_restrict::shared::cluster.cluster;"
// CHECK:         ttng.wait_barrier %local
// CHECK-NOT:     fence.acquire
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!buf = !ttg.memdesc<64xf32, #one, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!buf_there = !ttg.memdesc<64xf32, #one, #tlx.shared_cluster_memory, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @asynchronous_store(%rank: i32, %x: tensor<64xf32>) {
    %c0 = arith.constant 0 : i32
    %buf = ttg.local_alloc : () -> !buf
    %bar = ttg.local_alloc : () -> !bar
    %local = ttg.local_alloc : () -> !bar
    %buf_there = tlx.map_to_remote %buf, %rank : !buf -> !buf_there
    %there = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.async_remote_store %x, %buf_there, %there : tensor<64xf32> -> !buf_there, !there
    ttng.wait_barrier %bar, %c0 : !bar
    ttng.wait_barrier %local, %c0 : !bar
    tt.return
  }
}

// -----

// Code of the user's may do anything, as may fences and calls, and a function does not know its callers.

// CHECK-LABEL: @assembly
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
// CHECK:         ttng.wait_barrier
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.cluster;"
// CHECK-LABEL: @fence
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
// CHECK-LABEL: tt.func public @call(
// CHECK:         ttng.wait_barrier
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.cluster;"
// CHECK-LABEL: tt.func private @called
// CHECK:         tlx.arrive_remote %{{.*}}, 1 :
// CHECK:         ttng.wait_barrier
// CHECK-NEXT:    nvvm.inline_ptx "fence.acquire.cluster;"
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @assembly(%rank: i32, %x: i32) {
    %bar = ttg.local_alloc : () -> !bar
    %y = tt.elementwise_inline_asm "st.global.b32 [$1], 0;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : i32 -> i32
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    ttng.wait_barrier %bar, %x : !bar
    tt.return
  }
  tt.func public @fence(%rank: i32) {
    %bar = ttg.local_alloc : () -> !bar
    tlx.fence gpu
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
  tt.func public @call(%rank: i32) {
    %bar = ttg.local_alloc : () -> !bar
    tt.call @called(%rank, %bar) : (i32, !bar) -> ()
    ttng.wait_barrier %bar, %rank : !bar
    tt.return
  }
  tt.func private @called(%rank: i32, %bar: !bar) {
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    ttng.wait_barrier %bar, %rank : !bar
    tt.return
  }
}

// -----

// No CTA arrives for another one.

// CHECK-LABEL: @no_arrival
// CHECK-NOT:     fence
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func private @no_arrival(%bar: !bar, %x: !tt.ptr<i32>, %n: i32) {
    tt.store %x, %n : !tt.ptr<i32>
    ttng.arrive_barrier %bar, 1 : !bar
    ttng.wait_barrier %bar, %n : !bar
    tt.return
  }
}

// -----

// What computes only is none of that, and what the text says of an arrival stays.

// CHECK-LABEL: @pure_assembly
// CHECK:         tlx.arrive_remote %{{.*}}, 1 releases cta :
// CHECK:         tlx.arrive_remote %{{.*}}, 2 releases shared :
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @pure_assembly(%rank: i32, %x: i32) {
    %bar = ttg.local_alloc : () -> !bar
    %y = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    %r = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tlx.arrive_remote %r, 2 releases shared : !there
    tt.return
  }
}
