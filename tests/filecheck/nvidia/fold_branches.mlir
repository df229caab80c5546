// RUN: tlx-opt %s -p tlx-fold-branches | filecheck %s

// CHECK-LABEL: @absorbed
// Whatever %c is.
// CHECK-NOT: scf.if
// CHECK: tt.store %p, %x
// CHECK-NOT: tt.store
// CHECK: tt.return
tt.func public @absorbed(%c: i1, %p: !tt.ptr<i32>, %x: i32) {
  %true = arith.constant true
  %y = arith.constant 1 : i32
  %0 = arith.ori %c, %true : i1
  scf.if %0 {
    tt.store %p, %x : !tt.ptr<i32>
  } else {
    tt.store %p, %y : !tt.ptr<i32>
  }
  tt.return
}

// CHECK-LABEL: @results
// CHECK-NOT: scf.if
// CHECK: tt.store %p, %y
tt.func public @results(%p: !tt.ptr<i32>, %x: i32, %y: i32) {
  %0 = arith.cmpi ne, %x, %x : i32
  %1 = scf.if %0 -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %y : i32
  }
  tt.store %p, %1 : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: @nested_in_a_live_branch
// CHECK: scf.if %c
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func public @nested_in_a_live_branch(%c: i1, %p: !tt.ptr<i32>, %x: i32) {
  %false = arith.constant false
  scf.if %c {
    tt.store %p, %x : !tt.ptr<i32>
    %0 = arith.andi %c, %false : i1
    scf.if %0 {
      scf.if %c {
        tt.store %p, %x : !tt.ptr<i32>
      }
    }
  }
  tt.return
}

// CHECK-LABEL: @round_a_loop
// The branch that would change the number is decided by the number.
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func public @round_a_loop(%n: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%number = %c0) -> (i32) : i32 {
    %changes = arith.cmpi ugt, %number, %c0 : i32
    %next = scf.if %changes -> (i32) {
      tt.store %p, %i : !tt.ptr<i32>
      scf.yield %i : i32
    } else {
      scf.yield %number : i32
    }
    scf.yield %next : i32
  }
  tt.return
}

// CHECK-LABEL: @changes_round_a_loop
// CHECK: scf.if
tt.func public @changes_round_a_loop(%n: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%number = %c0) -> (i32) : i32 {
    %is_later = arith.cmpi ugt, %number, %c0 : i32
    scf.if %is_later {
      tt.store %p, %i : !tt.ptr<i32>
    }
    %next = arith.addi %number, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// CHECK-LABEL: @in_a_task
// What a partition captures is unknown in it or constant, as outside.
// CHECK: partition0
// CHECK-NOT: scf.if
// CHECK: partition1
// CHECK: scf.if
tt.func public @in_a_task(%p: !tt.ptr<i32>, %x: i32, %c: i1) attributes {noinline = false} {
  %false = arith.constant false
  ttg.warp_specialize(%p, %x, %false, %c)
  default {
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<i32>, %y: i32, %never: i1, %unknown: i1) num_warps(4) {
    scf.if %never {
      tt.store %q, %y : !tt.ptr<i32>
    }
    ttg.warp_return
  }
  partition1(%q: !tt.ptr<i32>, %y: i32, %never: i1, %unknown: i1) num_warps(4) {
    scf.if %unknown {
      tt.store %q, %y : !tt.ptr<i32>
    }
    ttg.warp_return
  } : (!tt.ptr<i32>, i32, i1, i1) -> ()
  tt.return
}

// CHECK-LABEL: @no_turn
// The condition is computed once.
// CHECK-NOT: scf.while
// CHECK: [[NEXT:%.*]] = arith.addi %x
// CHECK-NOT: tt.store %p, %x
// CHECK: tt.store %p, [[NEXT]]
tt.func public @no_turn(%p: !tt.ptr<i32>, %x: i32) {
  %false = arith.constant false
  %c1 = arith.constant 1 : i32
  %0 = scf.while (%a = %x) : (i32) -> i32 {
    %1 = arith.addi %a, %c1 : i32
    scf.condition(%false) %1 : i32
  } do {
  ^bb0(%b: i32):
    tt.store %p, %x : !tt.ptr<i32>
    scf.yield %b : i32
  }
  tt.store %p, %0 : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: @blocks
// CHECK-NOT: cf.cond_br
// CHECK: cf.br
// CHECK-NOT: tt.store %p, %x
// CHECK: tt.store %p, %y
tt.func public @blocks(%p: !tt.ptr<i32>, %x: i32, %y: i32) {
  %false = arith.constant false
  cf.cond_br %false, ^bb1, ^bb2
^bb1:
  tt.store %p, %x : !tt.ptr<i32>
  tt.return
^bb2:
  tt.store %p, %y : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: @of_several_widths
// -1 as a byte is 255 without a sign, and as 32 bits -1.
// CHECK: tt.store %p, %x
// CHECK-NOT: tt.store
// CHECK: tt.return
tt.func public @of_several_widths(%p: !tt.ptr<i32>, %x: i32, %y: i32) {
  %c100 = arith.constant 100 : i8
  %c155 = arith.constant 155 : i8
  %0 = arith.addi %c100, %c155 : i8
  %1 = arith.extui %0 : i8 to i32
  %2 = arith.extsi %0 : i8 to i32
  %c255 = arith.constant 255 : i32
  %c0 = arith.constant 0 : i32
  %3 = arith.cmpi eq, %1, %c255 : i32
  %4 = arith.cmpi slt, %2, %c0 : i32
  %5 = arith.andi %3, %4 : i1
  scf.if %5 {
    tt.store %p, %x : !tt.ptr<i32>
  }
  %6 = arith.cmpi ult, %2, %c255 : i32
  scf.if %6 {
    tt.store %p, %y : !tt.ptr<i32>
  }
  tt.return
}
