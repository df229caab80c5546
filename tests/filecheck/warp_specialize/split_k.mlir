// RUN: tlx-opt %s -p tlx-ws-split-k{parts=4} --split-input-file --verify-diagnostics | filecheck %s
// RUN: tlx-opt %s -p tlx-ws-split-k --split-input-file | filecheck %s --check-prefix ALONE

// Part 1 takes the turns after those of part 0. Who is last sets the count back and adds up all sums, in their order.

// CHECK-LABEL: @sum
// CHECK-SAME:    %partials: !tt.ptr<f32> {tlx.host_memory = {count = "grid[0] * grid[1] * grid[2] * 16384", zero = false}
// CHECK-SAME:    %arrived: !tt.ptr<i32> {tlx.host_memory = {count = "grid[0] * grid[1] * grid[2] * 1", zero = true}
// CHECK-SAME:    tlx.launch_conditions = ["grid[1] == 1", "grid[2] == 1"], tlx.split = 4 : i32
// CHECK:         %program = tt.get_program_id x : i32
// CHECK-NEXT:    %part = arith.remsi %program, [[PARTS:%.*]] : i32
// CHECK-NEXT:    %m = arith.divsi %program, [[PARTS]] : i32
// CHECK:         %begin = arith.muli %part, %share : i32
// CHECK-NEXT:    [[NEXT:%.*]] = arith.addi %begin, %share : i32
// CHECK-NEXT:    %end = arith.minsi [[NEXT]], %turns : i32
// CHECK-NEXT:    %sum = scf.for %k = %begin to %end
// CHECK:         tt.store [[OWN:%.*]], %sum
// CHECK:         %counter = tt.addptr %arrived, %m
// CHECK:         %before = tt.atomic_rmw add, acq_rel, gpu, %counter
// CHECK-NEXT:    [[LAST:%.*]] = arith.constant 3 : i32
// CHECK-NEXT:    %is_last = arith.cmpi eq, %before, [[LAST]] : i32
// CHECK-NEXT:    scf.if %is_last {
// CHECK:           tt.store %counter
// CHECK-NEXT:      [[FIRST:%.*]] = tt.load %places
// CHECK:           [[LOADED:%.*]] = tt.load
// CHECK-NEXT:      arith.addf [[FIRST]], [[LOADED]]
// CHECK:           tt.descriptor_store %c{{.*}}, %acc
// CHECK-NOT:     tt.descriptor_store

// ALONE-NOT: tt.atomic_rmw
builtin.module {
  tt.func public @sum(%a: !tt.tensordesc<64x64xf16>, %c: !tt.tensordesc<64x64xf32>, %turns: i32) {
    %m = tt.get_program_id x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = scf.for %k = %c0 to %turns step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tt.descriptor_store %c[%m, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
    tt.return
  }
}

// -----

builtin.module {
  tt.func public @starts_elsewhere(%a: !tt.tensordesc<64x64xf16>, %c: !tt.tensordesc<64x64xf32>, %turns: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1.0> : tensor<64x64xf32>
    // expected-error @+1 {{not warp-specialised: the sum of a split loop begins at zero}}
    %sum = scf.for %k = %c0 to %turns step %c1 iter_args(%acc = %one) -> (tensor<64x64xf32>) : i32 {
      %x = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tt.descriptor_store %c[%c0, %c0], %sum : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
    tt.return
  }
}
