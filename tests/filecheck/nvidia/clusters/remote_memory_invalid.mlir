// RUN: tlx-opt %s -p tlx-lower-remote-memory --split-input-file --verify-diagnostics

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @carried(%c: i1, %i: i32, %j: i32) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %a = tlx.map_to_remote %bar, %i : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    %b = tlx.map_to_remote %bar, %j : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    %r = scf.if %c -> (!ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>) {
      scf.yield %a : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    } else {
      scf.yield %b : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    }
    // expected-error @+1 {{a view of another CTA's memory can't be carried by control flow: make it where it is used}}
    tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// Half of the columns of a row-major tile are not one run of bytes.

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @scattered(%rank: i32) {
    %t = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #s, #smem, mutable>
    %b = ttg.memdesc_subslice %t[0, 16] : !ttg.memdesc<32x32xf32, #s, #smem, mutable> -> !ttg.memdesc<32x16xf32, #s, #smem, mutable, 32x32>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #v, #smem, mutable>
    %r = tlx.map_to_remote %b, %rank : !ttg.memdesc<32x16xf32, #s, #smem, mutable, 32x32> -> !ttg.memdesc<32x16xf32, #s, #tlx.shared_cluster_memory, mutable, 32x32>
    %rb = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<1xi64, #v, #tlx.shared_cluster_memory, mutable>
    // expected-error @+1 {{an asynchronous copy moves bytes that follow each other}}
    tlx.async_remote_copy %b, %r, %rb : !ttg.memdesc<32x16xf32, #s, #smem, mutable, 32x32> -> !ttg.memdesc<32x16xf32, #s, #tlx.shared_cluster_memory, mutable, 32x32>, !ttg.memdesc<1xi64, #v, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}
