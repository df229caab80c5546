// RUN: tlx-opt %s -p triton-to-linalg | filecheck %s

// A division stays where the kernel makes it: outside of the branch it could be one by 0. What else addresses are made
// of is computed where its values are.
// CHECK-LABEL: @guarded
// CHECK: arith.index_cast %stride
// CHECK: scf.if
// CHECK: arith.divsi %m, %n
// CHECK: scf.while
// CHECK: arith.divsi %m, %n
tt.func public @guarded(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %m: i32, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c = arith.cmpi ne, %n, %c0 : i32
  %a = tt.splat %m : i32 -> tensor<16xi32>
  %b = tt.splat %n : i32 -> tensor<16xi32>
  %s = tt.splat %stride : i32 -> tensor<16xi32>
  scf.if %c {
    %q = arith.divsi %a, %b : tensor<16xi32>
    %o = arith.addi %q, %r : tensor<16xi32>
    %w = arith.remsi %o, %s : tensor<16xi32>
    %f = arith.muli %w, %s : tensor<16xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %g = tt.addptr %p, %f : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %v = tt.load %g : tensor<16x!tt.ptr<f32>>
    scf.if %c {
      %t = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
      %u = tt.addptr %t, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      tt.store %u, %v : tensor<16x!tt.ptr<f32>>
    }
  }
  tt.return
}

// Two divisions that an address is made of.
// CHECK-LABEL: @two
// CHECK: %[[A:.*]] = arith.divsi %m, %n
// CHECK-NEXT: %[[B:.*]] = arith.remsi %n, %m
// CHECK-NEXT: arith.addi
tt.func public @two(%x: !tt.ptr<f32>, %n: i32, %m: i32, %v: tensor<16xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %a = tt.splat %m : i32 -> tensor<16xi32>
  %b = tt.splat %n : i32 -> tensor<16xi32>
  %q = arith.divsi %a, %b : tensor<16xi32>
  %s = arith.remsi %b, %a : tensor<16xi32>
  %o = arith.addi %q, %s : tensor<16xi32>
  %t = arith.addi %o, %r : tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %u = tt.addptr %p, %t : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %u, %v : tensor<16x!tt.ptr<f32>>
  tt.return
}
