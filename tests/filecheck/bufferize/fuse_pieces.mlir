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

// The mask leaves the positions from %first to %end of each piece, if %holds. Those are read without a mask, and those
// before and after them as a few with one; both are none, and all of the piece is before, where nothing is left. The
// loop around the pieces goes into them, since their length is the same in all turns; what is left over follows it.
// There are no pieces where it has no turns: a length may be the remainder of a division by 0 then.
// CHECK-LABEL: @interval_in_a_loop
// CHECK-NOT: scf.for
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %zero, %turns
// CHECK: %[[END:.*]] = arith.select %[[SOME]], %n, %zero
// CHECK: scf.while
// CHECK-NEXT: arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK: ^bb0(%[[P:.*]]: index):
// CHECK: %[[LENGTH:.*]] = arith.remsi %[[P]], %w
// CHECK: %[[FIRST:.*]] = arith.minsi %{{.*}}, %[[LENGTH]]
// CHECK: %[[USUAL:.*]] = arith.andi %holds
// CHECK: arith.select %[[USUAL]], %[[FIRST]], %[[LENGTH]]
// CHECK: scf.for %[[C:.*]] =
// CHECK: arith.muli %[[C]], %w
// CHECK: scf.if %[[USUAL]] {
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: linalg.fill ins(%filled
// CHECK: linalg.generic {{.*}} attrs = {nest.few}
// CHECK: scf.if
// CHECK: linalg.fill ins(%filled
// CHECK: linalg.generic {{.*}} attrs = {nest.few}
// CHECK: scf.yield
// CHECK: scf.for
// CHECK-NOT: scf.while
// CHECK: scf.if
// CHECK: arith.addf %{{.*}}, %filled
func.func @interval_in_a_loop(%x: memref<*xf32>, %n: index, %w: index, %l: index, %h: index, %turns: index,
                              %holds: i1, %filled: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %total = memref.alloc() : memref<64xf32>
  scf.for %c = %zero to %turns step %one {
    %image = arith.muli %c, %w : index
    %tile = memref.alloc() : memref<64xf32>
    linalg.fill ins(%filled : f32) outs(%tile : memref<64xf32>)
    %last = scf.while (%p = %zero) : (index) -> index {
      %more = arith.cmpi slt, %p, %n : index
      scf.condition(%more) %p : index
    } do {
    ^bb0(%at: index):
      %length = arith.remsi %at, %w : index
      %low = arith.maxsi %zero, %l : index
      %first = arith.minsi %low, %length : index
      %end = arith.minsi %length, %h : index
      %left = arith.subi %end, %first : index
      %some = arith.maxsi %left, %zero : index
      %count = arith.select %holds, %some, %zero : index
      %start = arith.addi %at, %first : index
      %offset = arith.addi %image, %start : index
      %from = memref.reinterpret_cast %x to offset: [%offset], sizes: [%count], strides: [1]
          : memref<*xf32> to memref<?xf32, strided<[1], offset: ?>>
      %to = memref.subview %tile[%start] [%count] [1] : memref<64xf32> to memref<?xf32, strided<[1], offset: ?>>
      memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
      %next = arith.addi %at, %length : index
      scf.yield %next : index
    }
    linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}
        ins(%tile, %total : memref<64xf32>, memref<64xf32>) outs(%total : memref<64xf32>) {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %c2 = arith.addf %b, %a : f32
      linalg.yield %c2 : f32
    }
  }
  func.return
}

// The length is another one in each turn: the loop over pieces stays in the loop.
// CHECK-LABEL: @length_of_a_turn
// CHECK: scf.for %[[C:.*]] =
// CHECK: scf.while
// CHECK: arith.remsi %{{.*}}, %[[C]]
// CHECK: linalg.generic
func.func @length_of_a_turn(%x: memref<*xf32>, %n: index, %turns: index, %filled: f32) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %total = memref.alloc() : memref<64xf32>
  scf.for %c = %one to %turns step %one {
    %tile = memref.alloc() : memref<64xf32>
    linalg.fill ins(%filled : f32) outs(%tile : memref<64xf32>)
    %last = scf.while (%p = %zero) : (index) -> index {
      %more = arith.cmpi slt, %p, %n : index
      scf.condition(%more) %p : index
    } do {
    ^bb0(%at: index):
      %length = arith.remsi %at, %c : index
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
      %c2 = arith.addf %b, %a : f32
      linalg.yield %c2 : f32
    }
  }
  func.return
}

// What a turn reads, the turn before has written: the pieces of one turn come before those of the next.
// CHECK-LABEL: @reads_what_was_written
// CHECK: scf.for
// CHECK: memref.load
// CHECK: scf.while
func.func @reads_what_was_written(%x: memref<*xf32>, %n: index, %w: index, %turns: index, %filled: f32) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %total = memref.alloc() : memref<64xf32>
  scf.for %c = %one to %turns step %one {
    %before = memref.load %total[%zero] : memref<64xf32>
    %tile = memref.alloc() : memref<64xf32>
    linalg.fill ins(%filled : f32) outs(%tile : memref<64xf32>)
    %last = scf.while (%p = %zero) : (index) -> index {
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
      %c2 = arith.addf %before, %a : f32
      linalg.yield %c2 : f32
    }
  }
  func.return
}
