// RUN: tlx-opt %s -p triton-tlx-fixup --split-input-file | filecheck %s

// Without a cluster a CTA has rank 0: what a kernel for several CTAs does on the others is left out.
// CHECK-LABEL: @reaches_others
// CHECK-NOT: tlx.map_to_remote
// CHECK-NOT: scf.if
// CHECK: tt.return
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @reaches_others(%bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  %zero = arith.constant 0 : i32
  %rank = tlx.cluster_cta_rank
  %others = arith.cmpi ne, %rank, %zero : i32
  scf.if %others {
    %r = tlx.map_to_remote %bar, %zero : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
  }
  tt.return
}

// -----

// In a cluster all of it stays.
// CHECK-LABEL: @in_a_cluster
// CHECK: tlx.cluster_cta_rank
// CHECK: tlx.map_to_remote
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.cluster-dim-x" = 2 : i32} {
  tt.func @in_a_cluster(%bar: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
    %zero = arith.constant 0 : i32
    %rank = tlx.cluster_cta_rank
    %others = arith.cmpi ne, %rank, %zero : i32
    scf.if %others {
      %r = tlx.map_to_remote %bar, %zero : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
    }
    tt.return
  }
}
