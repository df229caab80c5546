// RUN: tlx-opt %s -p tlx-ws-structure-returns | filecheck %s

// CHECK-LABEL: @early
// CHECK:         [[STAY:%.*]] = arith.xori %c, {{%.*}} : i1
// CHECK-NEXT:    scf.if [[STAY]] {
// CHECK:           arith.xori %d
// CHECK:           tt.store
// CHECK:         tt.return
// CHECK-NEXT:  }
tt.func public @early(%p: !tt.ptr<f32>, %x: f32, %c: i1, %d: i1) {
  cf.cond_br %c, ^leave, ^next
^leave:
  tt.return
^next:
  cf.cond_br %d, ^also, ^rest
^also:
  tt.return
^rest:
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// A block that others jump to is no rest.

// CHECK-LABEL: @jumps
// CHECK:         cf.cond_br
// CHECK:         cf.br
tt.func public @jumps(%p: !tt.ptr<f32>, %x: f32, %c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^b
^b:
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}
