// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem = #ttg.shared_memory

// Allocations of one region, and the tree that says which of them overlap.
// CHECK-LABEL: @storage_alias(
tt.func @storage_alias() {
  // CHECK: %spec = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
  %spec = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
  // CHECK: %computed = tlx.storage_alias_spec storage = tmem : !tlx.storage_alias_spec<tmem>
  %computed = tlx.storage_alias_spec storage = tmem : !tlx.storage_alias_spec<tmem>
  // CHECK: %a = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>
  %a = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
  // CHECK: %b = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>
  %b = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 65536> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
  // CHECK: %pair = tlx.reuse_group(%a) group_kind = distinct, group_size = 2 : (!ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>) -> !tlx.reuse_group<distinct>
  %pair = tlx.reuse_group(%a) group_kind = distinct, group_size = 2 : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<distinct>
  // CHECK: %tree = tlx.reuse_group(%pair, %b) group_kind = shared : (!tlx.reuse_group<distinct>, !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>) -> !tlx.reuse_group<shared>
  %tree = tlx.reuse_group(%pair, %b) group_kind = shared : (!tlx.reuse_group<distinct>, !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<shared>
  // CHECK: tlx.set_buffer_overlap(%spec, %tree) : (!tlx.storage_alias_spec<smem, 65536>, !tlx.reuse_group<shared>) -> ()
  tlx.set_buffer_overlap(%spec, %tree) : (!tlx.storage_alias_spec<smem, 65536>, !tlx.reuse_group<shared>) -> ()
  // CHECK: %view = tlx.local_alias %a : !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<2x32x64xf32, #{{.*}}, #smem, mutable>
  %view = tlx.local_alias %a : !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable>
  tt.return
}

// Layouts that the user asks for, and placeholders for those that a pass will choose.
// CHECK-LABEL: @layouts(
tt.func @layouts(%x: tensor<64x64xf32>, %y: tensor<64x64xf32, #tlx.user_layout<#mma>>) {
  // CHECK: %required = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
  %required = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #mma>
  // CHECK: %released = tlx.release_layout %required : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  %released = tlx.release_layout %required : tensor<64x64xf32, #mma> -> tensor<64x64xf32>
  // CHECK: tlx.dump_layout %required : tensor<64x64xf32, #mma>
  tlx.dump_layout %required : tensor<64x64xf32, #mma>
  // CHECK: tlx.assert_same_layout %required, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
  tlx.assert_same_layout %required, %y : tensor<64x64xf32, #mma>, tensor<64x64xf32, #tlx.user_layout<#mma>>
  // CHECK: tlx.assert_same_layout_expected %required {expected = #mma} : tensor<64x64xf32, #mma>
  tlx.assert_same_layout_expected %required {expected = #mma} : tensor<64x64xf32, #mma>
  tt.return
}
