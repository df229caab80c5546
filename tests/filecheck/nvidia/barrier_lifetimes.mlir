// RUN: tlx-opt %s -p tlx-end-barrier-lifetimes --split-input-file | filecheck %s

// A kernel's barriers keep their memory to its end; it is released there.

// CHECK-LABEL: @kernel
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    ttg.local_dealloc %bars : !ttg.memdesc<2x1xi64, #shared, #smem, mutable>
// CHECK-NEXT:    tt.return
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @kernel() {
  %c0 = arith.constant 0 : i32
  %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #shared, #smem, mutable>
  %bar = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

// After the return of a function that is called, others use the memory: each barrier of an array is invalidated.

// CHECK-LABEL: @called
// CHECK:         ttng.init_barrier
// CHECK-DAG:     %[[I0:.*]] = arith.constant 0 : i32
// CHECK:         %[[B0:.*]] = ttg.memdesc_index %bars[%[[I0]]]
// CHECK-NEXT:    ttng.inval_barrier %[[B0]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT:    %[[I1:.*]] = arith.constant 1 : i32
// CHECK-NEXT:    %[[B1:.*]] = ttg.memdesc_index %bars[%[[I1]]]
// CHECK-NEXT:    ttng.inval_barrier %[[B1]]
// CHECK-NEXT:    tt.return
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func private @called() {
  %c0 = arith.constant 0 : i32
  %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #shared, #smem, mutable>
  %bar = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

// A barrier that lives in a loop ends with each iteration, not with the function.

// CHECK-LABEL: @loop
// CHECK:         scf.for
// CHECK:           ttng.init_barrier %bar
// CHECK-NEXT:      ttng.inval_barrier %bar
// CHECK-NEXT:    }
// CHECK-NEXT:    tt.return
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @loop(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  }
  tt.return
}

// -----

// Only exits that the allocation dominates end it: none on the return before it.

// CHECK-LABEL: @early_return
// CHECK:       ^[[EARLY:.*]]:
// CHECK-NEXT:    tt.return
// CHECK:         ttng.init_barrier %bar
// CHECK-NEXT:    ttg.local_dealloc %bar
// CHECK-NEXT:    tt.return
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @early_return(%stop: i1) {
  cf.cond_br %stop, ^early, ^late
^early:
  tt.return
^late:
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// -----

// A barrier that the user ends is left alone, and so is a buffer that is no barrier.

// CHECK-LABEL: @ended
// CHECK-COUNT-1: ttng.inval_barrier
// CHECK-NOT:     ttng.inval_barrier
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @ended() {
  %numbers = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}
