// RUN: tlx-opt -p ttkernel-hoist-inits %s | filecheck %s

!cb = !ttkernel.cb<2, !ttcore.tile<32x32, f32>>

// One buffer is read and one function computed: all is prepared once.
// CHECK-LABEL: func.func @once
// CHECK: ttkernel.init_sfpu
// CHECK-NEXT: ttkernel.copy_tile_init
// CHECK-NEXT: ttkernel.exp_tile_init
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttkernel.copy_tile(
// CHECK-NEXT: ttkernel.exp_tile(
// CHECK-NEXT: }
func.func @once(%a: !cb, %o: !cb, %n: index, %c0: index, %c1: index) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  scf.for %i = %c0 to %n step %c1 {
    ttkernel.init_sfpu(%a, %o) : (!cb, !cb) -> ()
    ttkernel.copy_tile_init(%a) : (!cb) -> ()
    ttkernel.copy_tile(%a, %c0, %c0) : (!cb, index, index) -> ()
    ttkernel.exp_tile_init() : () -> ()
    ttkernel.exp_tile(%c0) : (index) -> ()
    ttkernel.exp_tile_init() : () -> ()
  }
  func.return
}

// The unpacker goes from one buffer to the other in each run; the vector unit does not.
// CHECK-LABEL: func.func @two_buffers
// CHECK-NEXT: ttkernel.add_binary_tile_init
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttkernel.init_sfpu
// CHECK-NEXT: ttkernel.copy_tile_init(%a)
// CHECK-NEXT: ttkernel.copy_tile_init(%b)
// CHECK-NEXT: ttkernel.add_binary_tile(
func.func @two_buffers(%a: !cb, %b: !cb, %o: !cb, %n: index, %c0: index, %c1: index) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  scf.for %i = %c0 to %n step %c1 {
    ttkernel.init_sfpu(%a, %o) : (!cb, !cb) -> ()
    ttkernel.copy_tile_init(%a) : (!cb) -> ()
    ttkernel.copy_tile_init(%b) : (!cb) -> ()
    ttkernel.add_binary_tile_init() : () -> ()
    ttkernel.add_binary_tile(%c0, %c1, %c0) : (index, index, index) -> ()
  }
  func.return
}

// What a unit is prepared for already is left out, unless the formats were set in between.
// CHECK-LABEL: func.func @again
// CHECK-NEXT: ttkernel.copy_tile_init(%a)
// CHECK-NEXT: ttkernel.exp_tile_init
// CHECK-NEXT: ttkernel.init_sfpu
// CHECK-NEXT: ttkernel.copy_tile_init(%a)
// CHECK-NEXT: func.return
func.func @again(%a: !cb, %o: !cb) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  ttkernel.copy_tile_init(%a) : (!cb) -> ()
  ttkernel.exp_tile_init() : () -> ()
  ttkernel.copy_tile_init(%a) : (!cb) -> ()
  ttkernel.exp_tile_init() : () -> ()
  ttkernel.init_sfpu(%a, %o) : (!cb, !cb) -> ()
  ttkernel.copy_tile_init(%a) : (!cb) -> ()
  func.return
}

// The mode of a broadcast is ended by the C++, so it is begun again; the copy after it needs its own.
// CHECK-LABEL: func.func @modes
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttkernel.unary_bcast_init
// CHECK-NEXT: ttkernel.copy_tile_init
// CHECK-NEXT: }
func.func @modes(%a: !cb, %o: !cb, %n: index, %c0: index, %c1: index) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  scf.for %i = %c0 to %n step %c1 {
    ttkernel.unary_bcast_init(%a, %o) {dims = [1]} : (!cb, !cb) -> ()
    ttkernel.copy_tile_init(%a) : (!cb) -> ()
  }
  func.return
}

// A branch may not run: nothing is known after it.
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK-NEXT: ttkernel.copy_tile_init(%o)
// CHECK-NEXT: }
// CHECK-NEXT: ttkernel.copy_tile_init(%a)
func.func @branch(%a: !cb, %o: !cb, %c: i1) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  ttkernel.copy_tile_init(%a) : (!cb) -> ()
  scf.if %c {
    ttkernel.copy_tile_init(%o) : (!cb) -> ()
  }
  ttkernel.copy_tile_init(%a) : (!cb) -> ()
  func.return
}
