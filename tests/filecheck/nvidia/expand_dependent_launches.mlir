// RUN: tlx-opt -p expand-dependent-launches %s | filecheck %s

// Both become PTX, whose result has no use; what is around them stays where it is.
// CHECK-LABEL: tt.func public @dependent
tt.func public @dependent(%p: !tt.ptr<f32>) {
  // CHECK-NEXT: tt.elementwise_inline_asm "griddepcontrol.launch_dependents; mov.b32 $0, 0;"
  // CHECK-SAME: pure = false
  tt.grid_dependency_launch_dependents
  // CHECK-NEXT: tt.elementwise_inline_asm "griddepcontrol.wait; mov.b32 $0, 0;"
  // CHECK-SAME: pure = false
  tt.grid_dependency_wait
  // CHECK-NEXT: tt.load
  %0 = tt.load %p : !tt.ptr<f32>
  tt.store %p, %0 : !tt.ptr<f32>
  tt.return
}
