// RUN: tlx-opt %s -p 'tlx-annotate-program-addresses{grid=16}' | filecheck %s

// A pointer that moves on, and one whose offset is computed anew: both are the same.
// CHECK-LABEL: tt.func @blocks(
// CHECK: tt.load %q {tlx.access = "PATTERN(PID_AFFINE, block_size=1, stride=4096, coalesced=true)"}
// CHECK: tt.load {{.*}} {tlx.access = "PATTERN(PID_AFFINE, block_size=1, stride=4096, coalesced=true)"}
tt.func @blocks(%p: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c1024 : i32
  %begin = tt.addptr %p, %first : !tt.ptr<f32>, i32
  %r = scf.for %i = %c0 to %c1024 step %c64 iter_args(%q = %begin) -> (!tt.ptr<f32>) : i32 {
    %v = tt.load %q : !tt.ptr<f32>
    %o = arith.addi %first, %i : i32
    %q2 = tt.addptr %p, %o : !tt.ptr<f32>, i32
    %w = tt.load %q2 : !tt.ptr<f32>
    %next = tt.addptr %q, %c64 : !tt.ptr<f32>, i32
    scf.yield %next : !tt.ptr<f32>
  }
  tt.return
}

// A pointer that doubles its offset each time: it depends on the program, in no way that is reported.
// CHECK-LABEL: tt.func @doubles(
// CHECK: tt.load {{.*}}"PATTERN(PID_NONLINEAR, block_size=1, offset=4*?o, coalesced=true)"
tt.func @doubles(%p: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %pid = tt.get_program_id x : i32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %pid) -> (i32) : i32 {
    %q = tt.addptr %p, %o : !tt.ptr<f32>, i32
    %v = tt.load %q : !tt.ptr<f32>
    %next = arith.addi %o, %o : i32
    scf.yield %next : i32
  }
  tt.return
}

// A loop whose steps come from memory.
// CHECK-LABEL: tt.func @linked(
// CHECK: tt.load {{.*}}"PATTERN(UNKNOWN, it depends on 'o', which comes from memory or is not known)"
tt.func @linked(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %c0) -> (i32) : i32 {
    %q = tt.addptr %p, %o : !tt.ptr<i32>, i32
    %next = tt.load %q : !tt.ptr<i32>
    scf.yield %next : i32
  }
  tt.return
}
