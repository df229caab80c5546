// RUN: tlx-opt %s -p 'tlx-hide-alignment{remainders=true shifts=true}' | filecheck %s --check-prefix=HIDE
// RUN: tlx-opt %s -p tlx-keep-sums-of-products | filecheck %s --check-prefix=SUM
// RUN: tlx-opt %s -p tlx-guard-flattened-loops | filecheck %s --check-prefix=LOOP

// Quotients of what may be negative are hidden, others not; so are shifts by what is not known, and remainders by what
// changes within a range: those of a whole range by one number are not, whether it is known or not.
// HIDE-LABEL: @offsets
tt.func public @offsets(%s: i32) {
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %below = arith.subi %i, %c8 : tensor<64xi32>
  %by = tt.splat %s : i32 -> tensor<64xi32>
  // HIDE: [[BELOW:%.*]] = tt.elementwise_inline_asm "mov.b32 $0, $1;" {{.*}} %below
  // HIDE-NEXT: arith.divsi [[BELOW]], %c8
  %0 = arith.divsi %below, %c8 : tensor<64xi32>
  // HIDE-NEXT: arith.divsi %i, %c8
  %1 = arith.divsi %i, %c8 : tensor<64xi32>
  // HIDE-NEXT: arith.remsi %i, %by
  %2 = arith.remsi %i, %by : tensor<64xi32>
  // HIDE-NEXT: [[STEPS:%.*]] = arith.muli
  %steps = arith.muli %1, %c8 : tensor<64xi32>
  // HIDE-NEXT: [[RANGE:%.*]] = tt.elementwise_inline_asm "mov.b32 $0, $1;" {{.*}} %i
  // HIDE-NEXT: arith.remsi [[RANGE]], [[STEPS]]
  %5 = arith.remsi %i, %steps : tensor<64xi32>
  // HIDE-NEXT: arith.remui %steps, %steps
  %6 = arith.remui %steps, %steps : tensor<64xi32>
  // HIDE-NEXT: arith.remsi %i, %c8
  %3 = arith.remsi %i, %c8 : tensor<64xi32>
  // HIDE-NEXT: tt.elementwise_inline_asm
  // HIDE-NEXT: arith.shli
  %4 = arith.shli %i, %by : tensor<64xi32>
  tt.return
}

// The factors change places where upstream Triton would see a dot, along whatever axis, and nowhere else.
// SUM-LABEL: @products
tt.func public @products(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %columns = tt.expand_dims %x {axis = 2 : i32} : tensor<32x32xf32> -> tensor<32x32x1xf32>
  %rows = tt.expand_dims %y {axis = 0 : i32} : tensor<32x32xf32> -> tensor<1x32x32xf32>
  %l = tt.broadcast %columns : tensor<32x32x1xf32> -> tensor<32x32x32xf32>
  %r = tt.broadcast %rows : tensor<1x32x32xf32> -> tensor<32x32x32xf32>
  // SUM: arith.mulf %r, %l
  %product = arith.mulf %l, %r : tensor<32x32x32xf32>
  %sum = "tt.reduce"(%product) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<32x32x32xf32>) -> tensor<32x32xf32>
  // SUM: arith.mulf %x, %y
  %others = arith.mulf %x, %y : tensor<32x32xf32>
  tt.return %sum, %others : tensor<32x32xf32>, tensor<32x32xf32>
}

// LOOP-LABEL: @loops
tt.func public @loops(%end: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  // LOOP: scf.for
  scf.for %i = %c0 to %end step %c1 : i32 {
    // LOOP-NEXT: [[END:%.*]] = arith.maxsi %c5, %end : i32
    // LOOP-NEXT: scf.for %j = %c5 to [[END]] step %c1
    scf.for %j = %c5 to %end step %c1 : i32 {
      scf.yield
    }
    scf.yield
  } {tt.flatten}
  // LOOP: scf.for %k = %c5 to %end step %c1
  scf.for %k = %c5 to %end step %c1 : i32 {
    scf.yield
  }
  tt.return
}
