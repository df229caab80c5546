// RUN: tlx-opt %s -p tlx-insert-barriers-at-atomics | filecheck %s

// Before a release, and after an acquire.
// CHECK-LABEL: @sides
// CHECK: ttg.barrier all
// CHECK-NEXT: tt.atomic_rmw exch, release
// CHECK-NEXT: %[[OLD:[^ ]+]] = tt.atomic_rmw exch, acquire
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.atomic_cas acq_rel
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: tt.return
tt.func public @sides(%lock: !tt.ptr<i32>, %n: i32) {
  %0 = tt.atomic_rmw exch, release, gpu, %lock, %n : (!tt.ptr<i32>, i32) -> i32
  %1 = tt.atomic_rmw exch, acquire, gpu, %lock, %n : (!tt.ptr<i32>, i32) -> i32
  ttg.barrier local
  %2 = tt.atomic_cas acq_rel, gpu, %lock, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}

// All threads get the one result, and meet for it; each thread has its own of a tensor.
// CHECK-LABEL: @results
// CHECK: tt.atomic_rmw add, acquire
// CHECK-NEXT: arith.addi
// CHECK: tt.atomic_rmw add, acquire
// CHECK-NEXT: ttg.barrier all
// CHECK-NEXT: arith.addi
tt.func public @results(%lock: !tt.ptr<i32>, %n: i32, %locks: tensor<128x!tt.ptr<i32>>, %ns: tensor<128xi32>) {
  %0 = tt.atomic_rmw add, acquire, gpu, %lock, %n : (!tt.ptr<i32>, i32) -> i32
  %1 = arith.addi %0, %n : i32
  %2 = tt.atomic_rmw add, acquire, gpu, %locks, %ns : (tensor<128x!tt.ptr<i32>>, tensor<128xi32>) -> tensor<128xi32>
  %3 = arith.addi %2, %ns : tensor<128xi32>
  tt.return
}

// A barrier that the user has put there is enough, and a relaxed operation orders nothing.
// CHECK-LABEL: @enough
// CHECK: ttg.barrier all
// CHECK-NEXT: tt.atomic_rmw exch, release
// CHECK-NEXT: tt.atomic_rmw exch, relaxed
// CHECK-NEXT: tt.return
tt.func public @enough(%lock: !tt.ptr<i32>, %n: i32) {
  ttg.barrier all
  %0 = tt.atomic_rmw exch, release, gpu, %lock, %n : (!tt.ptr<i32>, i32) -> i32
  %1 = tt.atomic_rmw exch, relaxed, gpu, %lock, %n : (!tt.ptr<i32>, i32) -> i32
  tt.return
}
