// RUN: tlx-opt %s -p tlx-chain-reductions | filecheck %s

#a = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32} {

// The maximum, then the sum of what follows from it: each of the two row reductions of a softmax.
// CHECK-LABEL: @softmax
// CHECK: [[S:%.*]] = ttng.warp_group_dot_wait
// CHECK-NEXT: [[R:%.*]] = tt.reshape [[S]] : tensor<64x32xf32> -> tensor<64x2x16xf32>
// CHECK-NEXT: [[T:%.*]] = tt.trans [[R]] {order = array<i32: 0, 2, 1>} : tensor<64x2x16xf32> -> tensor<64x16x2xf32>
// CHECK-NEXT: [[L:%.*]], [[H:%.*]] = tt.split [[T]]
// CHECK: [[A:%.*]], [[B:%.*]] = tt.split {{.*}} -> tensor<64x8xf32>
// CHECK: [[C:%.*]], [[D:%.*]] = tt.split {{.*}} -> tensor<64x8xf32>
// CHECK-NEXT: [[AB:%.*]] = arith.maxnumf [[A]], [[B]] : tensor<64x8xf32>
// CHECK-NEXT: [[ABC:%.*]] = arith.maxnumf [[AB]], [[C]] : tensor<64x8xf32>
// CHECK-NEXT: [[ALL:%.*]] = arith.maxnumf [[ABC]], [[D]] : tensor<64x8xf32>
// CHECK-NEXT: "tt.reduce"([[ALL]]) <{axis = 1 : i32}>
// CHECK: arith.maxnumf {{.*}} : f32
// CHECK: (tensor<64x8xf32>) -> tensor<64xf32>
// CHECK: [[P:%.*]] = math.exp2
// CHECK-NEXT: tt.reshape [[P]] : tensor<64x32xf32> -> tensor<64x2x16xf32>
// CHECK: arith.addf {{.*}} : tensor<64x8xf32>
// CHECK: arith.addf {{.*}} : tensor<64x8xf32>
// CHECK: arith.addf {{.*}} : tensor<64x8xf32>
// CHECK-NEXT: "tt.reduce"
tt.func public @softmax(%q: !ttg.memdesc<64x16xf16, #a, #smem>, %k: !ttg.memdesc<16x32xf16, #a, #smem>, %out: tensor<64x!tt.ptr<f32>>, %n: i32, %scale: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : !ttg.memdesc<64x16xf16, #a, #smem> * !ttg.memdesc<16x32xf16, #a, #smem> -> tensor<64x32xf32>
    %s = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x32xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %m2 = tt.broadcast %m1 : tensor<64x1xf32> -> tensor<64x32xf32>
    %less = arith.subf %s, %m2 : tensor<64x32xf32>
    %p = math.exp2 %less : tensor<64x32xf32>
    %t = "tt.reduce"(%p) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    tt.store %out, %t : tensor<64x!tt.ptr<f32>>
  }
  tt.return
}

// What is the same in all rows or columns, such as what a mask compares, takes the layout of the accumulator.
// CHECK-LABEL: @masked
// CHECK: arith.select
// CHECK-NEXT: tt.reshape
tt.func public @masked(%q: !ttg.memdesc<64x16xf16, #a, #smem>, %k: !ttg.memdesc<16x32xf16, #a, #smem>, %out: tensor<64x!tt.ptr<f32>>, %rows: tensor<64x1xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x32xf32>
  %columns = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %columns1 = tt.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %column = tt.broadcast %columns1 : tensor<1x32xi32> -> tensor<64x32xi32>
  %row = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x32xi32>
  %end = tt.splat %n : i32 -> tensor<64x32xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : !ttg.memdesc<64x16xf16, #a, #smem> * !ttg.memdesc<16x32xf16, #a, #smem> -> tensor<64x32xf32>
    %s = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x32xf32>
    %seen = arith.cmpi sle, %column, %row : tensor<64x32xi32>
    %there = arith.cmpi slt, %column, %end : tensor<64x32xi32>
    %both = arith.andi %seen, %there : tensor<64x32xi1>
    %masked = arith.select %both, %s, %low : tensor<64x32xi1>, tensor<64x32xf32>
    %m = "tt.reduce"(%masked) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maximumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    tt.store %out, %m : tensor<64x!tt.ptr<f32>>
  }
  tt.return
}

// A tensor from memory has a layout of its own, in which columns are other threads' as often as not.
// CHECK-LABEL: @from_memory
// CHECK-NOT: tt.split
// CHECK: tt.return
tt.func public @from_memory(%q: !ttg.memdesc<64x16xf16, #a, #smem>, %k: !ttg.memdesc<16x32xf16, #a, #smem>, %bias: tensor<64x32x!tt.ptr<f32>>, %out: tensor<64x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : !ttg.memdesc<64x16xf16, #a, #smem> * !ttg.memdesc<16x32xf16, #a, #smem> -> tensor<64x32xf32>
    %s = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x32xf32>
    %b = tt.load %bias : tensor<64x32x!tt.ptr<f32>>
    %sum = arith.addf %s, %b : tensor<64x32xf32>
    %m = "tt.reduce"(%sum) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    tt.store %out, %m : tensor<64x!tt.ptr<f32>>
  }
  tt.return
}

// Once is not worth the operations, nor is a loop around another loop; columns of another axis are other threads'.
// CHECK-LABEL: @outside
// CHECK-NOT: tt.split
// CHECK: tt.return
tt.func public @outside(%q: !ttg.memdesc<64x16xf16, #a, #smem>, %k: !ttg.memdesc<16x32xf16, #a, #smem>, %out: tensor<64x!tt.ptr<f32>>, %columns: tensor<32x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : !ttg.memdesc<64x16xf16, #a, #smem> * !ttg.memdesc<16x32xf16, #a, #smem> -> tensor<64x32xf32>
    %s = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x32xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    tt.store %out, %m : tensor<64x!tt.ptr<f32>>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %e = ttng.warp_group_dot %q, %k, %zero {isAsync = true} : !ttg.memdesc<64x16xf16, #a, #smem> * !ttg.memdesc<16x32xf16, #a, #smem> -> tensor<64x32xf32>
      %f = ttng.warp_group_dot_wait %e {pendings = 0 : i32} : tensor<64x32xf32>
      %u = "tt.reduce"(%f) <{axis = 0 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        tt.reduce.return %z : f32
      }) : (tensor<64x32xf32>) -> tensor<32xf32>
      tt.store %columns, %u : tensor<32x!tt.ptr<f32>>
    }
  }
  tt.return
}
}
