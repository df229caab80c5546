// RUN: tlx-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: tlx-opt %s --split-input-file --verify-diagnostics --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL:   @layouts
// CHECK-NEXT:      %0 = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
// CHECK-NEXT:      %1 = tlx.release_layout %0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
// CHECK-NEXT:      tlx.dump_layout %0 : tensor<64x64xf32, #mma>
// CHECK-NEXT:      tlx.assert_same_layout %0, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
// CHECK-NEXT:      tlx.assert_same_layout_expected %0 {expected = #mma} : tensor<64x64xf32, #mma>
// CHECK-NEXT:      tlx.dump_layout %z : tensor<64x64xf32, #tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>>
// GENERIC:         "tlx.require_layout"
// GENERIC:         "tlx.assert_same_layout_expected"
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
tt.func @layouts(%x: tensor<64x64xf32>, %y: tensor<64x64xf32, #tlx.user_layout<#mma>>, %z: tensor<64x64xf32, #tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>>) {
  %0 = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
  %1 = tlx.release_layout %0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  tlx.dump_layout %0 : tensor<64x64xf32, #mma>
  tlx.assert_same_layout %0, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
  tlx.assert_same_layout_expected %0 {expected = #mma} : tensor<64x64xf32, #mma>
  tlx.dump_layout %z : tensor<64x64xf32, #tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>>
  tt.return
}

// -----

tt.func @shape(%x: tensor<64xf32>) {
  // expected-error @below {{changes more than the layout: from tensor<64xf32> to tensor<32xf32>}}
  %0 = tlx.require_layout %x : tensor<64xf32> -> tensor<32xf32>
  tt.return
}

// -----

tt.func @nothing_to_release(%x: tensor<64xf32>) {
  // expected-error @below {{requires the source tensor to have a layout encoding}}
  %0 = tlx.release_layout %x : tensor<64xf32> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @no_layout(%x: i32) {
  // expected-error @below {{expected a ranked tensor or a memdesc, found i32}}
  tlx.dump_layout %x : i32
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @buffers_are_not_released(%x: !ttg.memdesc<64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{releases tensors only}}
  %0 = tlx.release_layout %x : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
  tt.return
}
