// RUN: tlx-opt %s -p linalg-fuse-pieces | filecheck %s

#same = affine_map<(i) -> (i)>

// The nest reads each piece as it comes; for the rest it has the number that the tile was filled with.
// CHECK-LABEL: @sum
// CHECK: scf.while (%[[P:.*]] = %zero)
// CHECK: ^bb0(%[[AT:.*]]: index):
// CHECK: %[[LENGTH:.*]] = arith.remsi
// CHECK: memref.alloc() : memref<64xf32>
// CHECK: memref.copy
// CHECK: %[[OLD:.*]] = memref.subview %total[%[[AT]]] [%[[LENGTH]]] [1]
// CHECK: %[[NEW:.*]] = memref.subview %total[%[[AT]]] [%[[LENGTH]]] [1]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[OLD]] : {{.*}}) outs(%[[NEW]] : {{.*}}) {
// CHECK: scf.yield
// CHECK: scf.if
// CHECK: memref.subview %total[%n]
// CHECK: linalg.generic
// CHECK: arith.addf %{{.*}}, %filled
func.func @sum(%x: memref<*xf32>, %n: index, %w: index, %filled: f32) {
  %zero = arith.constant 0 : index
  %total = memref.alloc() : memref<64xf32>
  %tile = memref.alloc() : memref<64xf32>
  linalg.fill ins(%filled : f32) outs(%tile : memref<64xf32>)
  %end = scf.while (%p = %zero) : (index) -> index {
    %more = arith.cmpi slt, %p, %n : index
    scf.condition(%more) %p : index
  } do {
  ^bb0(%at: index):
    %length = arith.remsi %at, %w : index
    %from = memref.reinterpret_cast %x to offset: [%at], sizes: [%length], strides: [1]
        : memref<*xf32> to memref<?xf32, strided<[1], offset: ?>>
    %to = memref.subview %tile[%at] [%length] [1] : memref<64xf32> to memref<?xf32, strided<[1], offset: ?>>
    memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    %next = arith.addi %at, %length : index
    scf.yield %next : index
  }
  linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}
      ins(%tile, %total : memref<64xf32>, memref<64xf32>) outs(%total : memref<64xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  func.return
}

// What is written in between may be what was read: the tile is a copy of what was there before.
// CHECK-LABEL: @written_in_between
// CHECK: linalg.fill
// CHECK: scf.while
// CHECK-NOT: linalg.generic
// CHECK: scf.yield
// CHECK: memref.copy %total, %y
// CHECK-NEXT: linalg.generic {{.*}} ins(%tile, %total
func.func @written_in_between(%x: memref<*xf32>, %y: memref<64xf32>, %n: index, %w: index, %filled: f32) {
  %zero = arith.constant 0 : index
  %total = memref.alloc() : memref<64xf32>
  %tile = memref.alloc() : memref<64xf32>
  linalg.fill ins(%filled : f32) outs(%tile : memref<64xf32>)
  %end = scf.while (%p = %zero) : (index) -> index {
    %more = arith.cmpi slt, %p, %n : index
    scf.condition(%more) %p : index
  } do {
  ^bb0(%at: index):
    %length = arith.remsi %at, %w : index
    %from = memref.reinterpret_cast %x to offset: [%at], sizes: [%length], strides: [1]
        : memref<*xf32> to memref<?xf32, strided<[1], offset: ?>>
    %to = memref.subview %tile[%at] [%length] [1] : memref<64xf32> to memref<?xf32, strided<[1], offset: ?>>
    memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    %next = arith.addi %at, %length : index
    scf.yield %next : index
  }
  memref.copy %total, %y : memref<64xf32> to memref<64xf32>
  linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}
      ins(%tile, %total : memref<64xf32>, memref<64xf32>) outs(%total : memref<64xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
