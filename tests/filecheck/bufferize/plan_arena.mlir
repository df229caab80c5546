// RUN: tlx-opt %s -p memref-plan-arena | filecheck %s

// The first and the third buffer are never needed together; the second is needed with both.
// CHECK-LABEL: @shared
// CHECK-SAME: arena.bytes = 512 : i64
func.func @shared(%m: f32, %i: index) -> f32 {
  // CHECK: memref.alloc() {arena.offset = 0 : i64} : memref<64xf32>
  %0 = memref.alloc() : memref<64xf32>
  linalg.fill ins(%m : f32) outs(%0 : memref<64xf32>)
  // CHECK: memref.alloc() {arena.offset = 256 : i64} : memref<50xf32>
  %1 = memref.alloc() : memref<50xf32>
  linalg.fill ins(%m : f32) outs(%1 : memref<50xf32>)
  %2 = memref.load %0[%i] : memref<64xf32>
  // CHECK: memref.alloc() {arena.offset = 0 : i64} : memref<64xf32>
  %3 = memref.alloc() : memref<64xf32>
  linalg.fill ins(%m : f32) outs(%3 : memref<64xf32>)
  %4 = memref.load %1[%i] : memref<50xf32>
  %5 = memref.load %3[%i] : memref<64xf32>
  func.return %5 : f32
}

// A view keeps its buffer; a bit takes a byte.
// CHECK-LABEL: @views
// CHECK: {arena.offset = 0 : i64} : memref<64xi1>
// CHECK: {arena.offset = 64 : i64} : memref<64xi1>
func.func @views(%m: i1, %i: index) -> i1 {
  %0 = memref.alloc() : memref<64xi1>
  linalg.fill ins(%m : i1) outs(%0 : memref<64xi1>)
  %1 = memref.subview %0[32] [32] [1] : memref<64xi1> to memref<32xi1, strided<[1], offset: 32>>
  %2 = memref.alloc() : memref<64xi1>
  linalg.fill ins(%m : i1) outs(%2 : memref<64xi1>)
  %3 = memref.load %1[%i] : memref<32xi1, strided<[1], offset: 32>>
  func.return %3 : i1
}

// What was allocated before a loop is needed in all of its turns; what is allocated inside, in each turn anew.
// CHECK-LABEL: @loops
// CHECK: {arena.offset = 0 : i64} : memref<16xf32>
// CHECK: {arena.offset = 64 : i64} : memref<16xf32>
// CHECK: {arena.offset = 64 : i64} : memref<16xf32>
func.func @loops(%m: f32, %zero: index, %one: index, %n: index) {
  %0 = memref.alloc() : memref<16xf32>
  scf.for %i = %zero to %n step %one {
    linalg.fill ins(%m : f32) outs(%0 : memref<16xf32>)
    %1 = memref.alloc() : memref<16xf32>
    linalg.fill ins(%m : f32) outs(%1 : memref<16xf32>)
    %2 = memref.alloc() : memref<16xf32>
    linalg.fill ins(%m : f32) outs(%2 : memref<16xf32>)
  }
  func.return
}

// Of the branches one runs.
// CHECK-LABEL: @branches
// CHECK-SAME: arena.bytes = 64 : i64
func.func @branches(%m: f32, %c: i1) {
  scf.if %c {
    %0 = memref.alloc() : memref<16xf32>
    linalg.fill ins(%m : f32) outs(%0 : memref<16xf32>)
  } else {
    %1 = memref.alloc() : memref<16xf32>
    linalg.fill ins(%m : f32) outs(%1 : memref<16xf32>)
  }
  func.return
}

// The arena of a function that is called is beside what is needed during the call.
// CHECK-LABEL: @caller
// CHECK-SAME: arena.bytes = 128 : i64
func.func @caller(%m: f32, %c: i1, %i: index) -> f32 {
  // CHECK: {arena.offset = 0 : i64} : memref<16xf32>
  %0 = memref.alloc() : memref<16xf32>
  linalg.fill ins(%m : f32) outs(%0 : memref<16xf32>)
  // CHECK: func.call @branches(%m, %c) {arena.offset = 64 : i64}
  func.call @branches(%m, %c) : (f32, i1) -> ()
  %1 = memref.load %0[%i] : memref<16xf32>
  func.return %1 : f32
}
