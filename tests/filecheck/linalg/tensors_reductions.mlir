// RUN: tlx-opt %s -p linalg-lower-tensors | filecheck %s

// A sum of bf16 is accumulated in f32 and rounded once; one of all elements is in memory of its own.
// CHECK-LABEL: @narrow_sum
// CHECK-NEXT: [[Z:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: [[M:%.*]] = bufferization.alloc_tensor() : tensor<f32>
// CHECK-NEXT: [[I:%.*]] = tensor.insert [[Z]] into [[M]][] : tensor<f32>
// CHECK-NEXT: [[R:%.*]] = linalg.reduce ins(%x : tensor<128xbf16>) outs([[I]] : tensor<f32>) dimensions = [0] ([[A:%.*]]: bf16, [[B:%.*]]: f32) {
// CHECK-NEXT:   [[W:%.*]] = arith.extf [[A]] : bf16 to f32
// CHECK-NEXT:   [[S:%.*]] = arith.addf [[W]], [[B]] : f32
// CHECK-NEXT:   linalg.yield [[S]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: [[V:%.*]] = tensor.extract [[R]][] : tensor<f32>
// CHECK-NEXT: arith.truncf [[V]] : f32 to bf16
tt.func public @narrow_sum(%x: tensor<128xbf16>) -> bf16 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: bf16, %b: bf16):
    %1 = arith.addf %a, %b : bf16
    tt.reduce.return %1 : bf16
  }) : (tensor<128xbf16>) -> bf16
  tt.return %0 : bf16
}

// Rows, from the neutral element on: for maxnumf that is NaN, which every number wins against.
// CHECK-LABEL: @rows
// CHECK: [[NAN:%.*]] = arith.constant 0x7fc00000 : f32
// CHECK: [[I:%.*]] = linalg.fill ins([[NAN]] : f32) outs(%{{.*}} : tensor<4xf32>) -> tensor<4xf32>
// CHECK: linalg.reduce ins(%x : tensor<4x8xf32>) outs([[I]] : tensor<4xf32>) dimensions = [1] ([[A:%.*]]: f32, [[B:%.*]]: f32) {
// CHECK-NEXT: arith.maxnumf [[B]], [[A]] : f32
// CHECK: arith.constant 0xff800000 : f32
// CHECK: arith.maximumf
// CHECK: arith.constant -2147483648 : i32
// CHECK: arith.maxsi
// CHECK: arith.constant -1 : i32
// CHECK: arith.minui
tt.func public @rows(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<8xi32>) {
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.maxnumf %a, %b : f32
    tt.reduce.return %1 : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %3 = arith.maximumf %a, %b : f32
    tt.reduce.return %3 : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  %4 = "tt.reduce"(%i) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %5 = arith.maxsi %a, %b : i32
    tt.reduce.return %5 : i32
  }) : (tensor<4x8xi32>) -> tensor<4xi32>
  %6 = "tt.reduce"(%i) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %7 = arith.minui %a, %b : i32
    tt.reduce.return %7 : i32
  }) : (tensor<4x8xi32>) -> tensor<8xi32>
  tt.return %0, %2, %4, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<8xi32>
}

// Any other region begins with the first elements; those combined so far are its first arguments.
// CHECK-LABEL: @place_of_maximum
// CHECK-DAG: [[V0:%.*]] = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
// CHECK-DAG: [[I0:%.*]] = tensor.extract_slice %i[0, 0] [1, 8] [1, 1] : tensor<4x8xi32> to tensor<8xi32>
// CHECK-DAG: [[V:%.*]] = tensor.extract_slice %x[1, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
// CHECK-DAG: [[I:%.*]] = tensor.extract_slice %i[1, 0] [3, 8] [1, 1] : tensor<4x8xi32> to tensor<3x8xi32>
// CHECK: linalg.reduce ins([[V]], [[I]] : tensor<3x8xf32>, tensor<3x8xi32>) outs([[V0]], [[I0]] : tensor<8xf32>, tensor<8xi32>) dimensions = [0] ([[B:%.*]]: f32, [[J:%.*]]: i32, [[A:%.*]]: f32, [[H:%.*]]: i32) {
// CHECK-NEXT: [[C:%.*]] = arith.cmpf oge, [[A]], [[B]] : f32
// CHECK-NEXT: arith.select [[C]], [[A]], [[B]] : f32
// CHECK-NEXT: arith.select [[C]], [[H]], [[J]] : i32
tt.func public @place_of_maximum(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0, %1 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %h: i32, %b: f32, %j: i32):
    %2 = arith.cmpf oge, %a, %b : f32
    %3 = arith.select %2, %a, %b : f32
    %4 = arith.select %2, %h, %j : i32
    tt.reduce.return %3, %4 : f32, i32
  }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  tt.return %0, %1 : tensor<8xf32>, tensor<8xi32>
}

// With one element along the axis nothing is combined.
// CHECK-LABEL: @one_element
// CHECK-NEXT: [[V:%.*]] = tensor.extract_slice %x[0] [1] [1] : tensor<1xf32> to tensor<f32>
// CHECK-NEXT: tensor.extract [[V]][] : tensor<f32>
// CHECK-NEXT: tt.return
tt.func public @one_element(%x: tensor<1xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.subf %a, %b : f32
    tt.reduce.return %1 : f32
  }) : (tensor<1xf32>) -> f32
  tt.return %0 : f32
}

// A loop that carries the row combined so far, and the result.
// CHECK-LABEL: @scan
// CHECK: [[ROW:%.*]] = tensor.extract_slice %x[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
// CHECK: [[FIRST:%.*]] = tensor.insert_slice [[ROW]] into %{{.*}}[3, 0] [1, 8] [1, 1]
// CHECK: scf.for [[N:%.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args([[A:%.*]] = [[ROW]], [[R:%.*]] = [[FIRST]])
// CHECK: [[AT:%.*]] = arith.subi %{{.*}}, [[N]] : index
// CHECK: [[NEXT:%.*]] = tensor.extract_slice %x[[[AT]], 0] [1, 8] [1, 1]
// CHECK: [[NEW:%.*]] = linalg.generic {{.*}} ins([[A]], [[NEXT]] : tensor<8xf32>, tensor<8xf32>)
// CHECK: [[ALL:%.*]] = tensor.insert_slice [[NEW]] into [[R]][[[AT]], 0] [1, 8] [1, 1]
// CHECK: scf.yield [[NEW]], [[ALL]]
tt.func public @scan(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tt.scan.return %1 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: @histogram
// CHECK: scf.for [[N:%.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args([[C:%.*]] = %{{.*}}) -> (tensor<4xi32>)
// CHECK: [[V:%.*]] = tensor.extract %x[[[N]]] : tensor<16xi32>
// CHECK: [[IN:%.*]] = arith.cmpi ult, [[V]], %{{.*}} : i32
// CHECK: [[ON:%.*]] = tensor.extract %m[[[N]]] : tensor<16xi1>
// CHECK: [[COUNTS:%.*]] = arith.andi [[IN]], [[ON]] : i1
// CHECK: scf.if [[COUNTS]]
// CHECK: tensor.insert
tt.func public @histogram(%x: tensor<16xi32>, %m: tensor<16xi1>) -> tensor<4xi32> {
  %0 = tt.histogram %x, %m : tensor<16xi32> -> tensor<4xi32>
  tt.return %0 : tensor<4xi32>
}

// Pairs of neighbours are the columns of a matrix.
// CHECK-LABEL: @map
// CHECK: tensor.expand_shape %x {{\[\[}}0, 1]] output_shape [4, 2]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4xi32>, tensor<4xi32>) outs(%{{.*}}, %{{.*}} : tensor<4xi32>, tensor<4xi32>)
// CHECK: [[A:%.*]], [[B:%.*]] = scf.execute_region -> (i32, i32)
// CHECK: cf.cond_br
// One end for both ways through the region.
// CHECK-COUNT-2: cf.br ^[[END:.*]](
// CHECK: ^[[END]]([[P:%.*]]: i32, [[Q:%.*]]: i32):
// CHECK-NEXT: scf.yield [[P]], [[Q]] : i32, i32
// CHECK: linalg.yield [[A]], [[B]] : i32, i32
tt.func public @map(%x: tensor<8xi32>) -> tensor<8xi32> {
  %0 = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %1 = arith.cmpi slt, %a, %b : i32
    cf.cond_br %1, ^bb1, ^bb2
  ^bb1:
    tt.map_elementwise.return %a, %b : i32, i32
  ^bb2:
    tt.map_elementwise.return %b, %a : i32, i32
  }) : (tensor<8xi32>) -> tensor<8xi32>
  tt.return %0 : tensor<8xi32>
}
