// RUN: tlx-opt %s -p tlx-ws-fold-loops | filecheck %s

// The loop of one turn is its turn; the one of two turns stays, and so does one that is in no loop over tiles.

// CHECK-LABEL: @tiles
// CHECK:         scf.for %tile
// CHECK-NEXT:      [[ONE:%.*]] = arith.addi %c0, %c64
// CHECK-NEXT:      [[SUM:%.*]] = arith.addi %zero, [[ONE]]
// CHECK-NEXT:      [[TWO:%.*]] = scf.for
// CHECK:           tt.store %p, [[SUM]]
// CHECK-NEXT:      tt.store %p, [[TWO]]
// CHECK:         scf.for
// CHECK-NEXT:      tt.store
builtin.module {
  tt.func public @tiles(%p: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant 0 : i32
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %sum = scf.for %k = %c0 to %c64 step %c64 iter_args(%s = %zero) -> (i32) : i32 {
        %next = arith.addi %k, %c64 : i32
        %more = arith.addi %s, %next : i32
        scf.yield %more : i32
      }
      %two = scf.for %k = %c0 to %c128 step %c64 iter_args(%s = %zero) -> (i32) : i32 {
        %more = arith.addi %s, %k : i32
        scf.yield %more : i32
      }
      tt.store %p, %sum : !tt.ptr<i32>
      tt.store %p, %two : !tt.ptr<i32>
    } {tlx.tiles}
    scf.for %k = %c0 to %c64 step %c64 : i32 {
      tt.store %p, %k : !tt.ptr<i32>
    }
    tt.return
  }
}
