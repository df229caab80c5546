// RUN: tlx-opt %s -p ttl-allocate-circular-buffers --split-input-file --verify-diagnostics | filecheck %s

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>
!row = !ttl.cb<[1, 20], bf16, 1>

// All that threads share is in use at the same time: one after the other, each at a multiple of 32 bytes.
// CHECK-LABEL: @concurrent
// CHECK: %a = ttl.create_cb {{.*}} {cb_index = 0 : i32, l1_address = 0 : i32}
// CHECK: %b = ttl.create_cb {{.*}} {cb_index = 1 : i32, l1_address = 16384 : i32}
// CHECK: %c = ttl.create_cb {{.*}} {cb_index = 2 : i32, l1_address = 16448 : i32}
ttl.kernel @concurrent() {
  %a = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  %b = ttl.create_cb shape=[1, 20], element_type=bf16, buffer_factor=1 : !row
  %c = ttl.create_cb shape=[2, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.datamovement_thread @fill {
    %0 = ttl.cb_reserve %a : !cb -> tensor<2x1x!tile>
    ttl.cb_push %a
    %1 = ttl.cb_reserve %b : !row -> tensor<1x20xbf16>
    ttl.cb_push %b
    %2 = ttl.cb_reserve %c : !cb -> tensor<2x1x!tile>
    ttl.cb_push %c
    ttl.thread_return
  }
  ttl.datamovement_thread @empty {
    %0 = ttl.cb_wait %a : !cb -> tensor<2x1x!tile>
    ttl.cb_pop %a
    %1 = ttl.cb_wait %b : !row -> tensor<1x20xbf16>
    ttl.cb_pop %b
    %2 = ttl.cb_wait %c : !cb -> tensor<2x1x!tile>
    ttl.cb_pop %c
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>

// The compiler's own buffers take turns in each iteration, and share memory; the one around the loop does not.
// CHECK-LABEL: @turns
// CHECK: %around = ttl.create_cb {{.*}} {internal, cb_index = 0 : i32, l1_address = 0 : i32}
// CHECK: %first = ttl.create_cb {{.*}} {internal, cb_index = 1 : i32, l1_address = 4096 : i32}
// CHECK: %second = ttl.create_cb {{.*}} {internal, cb_index = 2 : i32, l1_address = 4096 : i32}
ttl.kernel @turns() {
  %around = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal} : !cb
  %first = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal} : !cb
  %second = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal} : !cb
  ttl.compute_thread {
    %one = ttl.fill {value = 1.0 : f32} : tensor<1x1x!tile>
    %v = ttl.cb_reserve %around : !cb -> tensor<1x1x!tile>
    ttl.store %one, %v : tensor<1x1x!tile>, tensor<1x1x!tile>
    affine.for %i = 0 to 4 {
      %0 = ttl.cb_reserve %first : !cb -> tensor<1x1x!tile>
      ttl.store %one, %0 : tensor<1x1x!tile>, tensor<1x1x!tile>
      ttl.cb_push %first
      %1 = ttl.cb_wait %first : !cb -> tensor<1x1x!tile>
      ttl.cb_pop %first
      %2 = ttl.cb_reserve %second : !cb -> tensor<1x1x!tile>
      ttl.store %one, %2 : tensor<1x1x!tile>, tensor<1x1x!tile>
      ttl.cb_push %second
      %3 = ttl.cb_wait %second : !cb -> tensor<1x1x!tile>
      ttl.cb_pop %second
    }
    ttl.cb_push %around
    %w = ttl.cb_wait %around : !cb -> tensor<1x1x!tile>
    ttl.cb_pop %around
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 1>

// One that an iteration leaves full is in use together with what the next iteration fills.
// CHECK-LABEL: @carried
// CHECK: %first = {{.*}} l1_address = 0 : i32
// CHECK: %second = {{.*}} l1_address = 4096 : i32
ttl.kernel @carried() {
  %first = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal} : !cb
  %second = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=1 {internal} : !cb
  ttl.compute_thread {
    %one = ttl.fill {value = 1.0 : f32} : tensor<1x1x!tile>
    %0 = ttl.cb_reserve %first : !cb -> tensor<1x1x!tile>
    ttl.store %one, %0 : tensor<1x1x!tile>, tensor<1x1x!tile>
    ttl.cb_push %first
    affine.for %i = 0 to 4 {
      %1 = ttl.cb_wait %first : !cb -> tensor<1x1x!tile>
      ttl.cb_pop %first
      %2 = ttl.cb_reserve %second : !cb -> tensor<1x1x!tile>
      ttl.store %one, %2 : tensor<1x1x!tile>, tensor<1x1x!tile>
      ttl.cb_push %second
      %3 = ttl.cb_wait %second : !cb -> tensor<1x1x!tile>
      ttl.cb_pop %second
      %4 = ttl.cb_reserve %first : !cb -> tensor<1x1x!tile>
      ttl.store %one, %4 : tensor<1x1x!tile>, tensor<1x1x!tile>
      ttl.cb_push %first
    }
    %5 = ttl.cb_wait %first : !cb -> tensor<1x1x!tile>
    ttl.cb_pop %first
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!big = !ttl.cb<[8, 12], !ttcore.tile<32x32, f32>, 3>
!small = !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 100>

// With one block less of each it would fit.
ttl.kernel @factor() {
  %big = ttl.create_cb shape=[8, 12], element_type=!tile, buffer_factor=3 : !big // expected-error {{the circular buffers of 'factor' need 1,589,248 B of a core's memory, there are 1,499,136: use a smaller buffer_factor}}
  %small = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=100 : !small
  ttl.datamovement_thread {
    %0 = ttl.cb_reserve %big : !big -> tensor<8x12x!tile>
    %1 = ttl.cb_reserve %small : !small -> tensor<1x1x!tile>
    ttl.cb_push %big
    ttl.cb_push %small
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!huge = !ttl.cb<[16, 25], !ttcore.tile<32x32, f32>, 1>

// One block is too large by itself.
ttl.kernel @block() {
  %huge = ttl.create_cb shape=[16, 25], element_type=!tile, buffer_factor=1 : !huge // expected-error {{need 1,638,400 B of a core's memory, there are 1,499,136: use smaller blocks than 16x25 ('huge' is the largest buffer)}}
  ttl.kernel_return
}
