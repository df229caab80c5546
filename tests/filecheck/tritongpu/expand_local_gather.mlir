// RUN: tlx-opt %s -p expand-local-gather | filecheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

// The whole buffer is loaded: the indices may name any part of it. A token orders the load as it ordered the gather.

// CHECK-LABEL: @along_rows
// CHECK:         [[WHOLE:%.*]] = ttg.local_load %buffer token %token : !ttg.memdesc<64x32xf32, {{.*}}> -> tensor<64x32xf32>
// CHECK-NEXT:    [[PICKED:%.*]] = tt.gather [[WHOLE]][%indices] {axis = 0 : i32} : (tensor<64x32xf32>, tensor<16x32xi32>) -> tensor<16x32xf32>
// CHECK-NEXT:    tt.store %p, [[PICKED]]
// CHECK-NOT:     ttg.local_gather
tt.func public @along_rows(%buffer: !ttg.memdesc<64x32xf32, #shared, #smem, mutable>, %indices: tensor<16x32xi32>, %token: !ttg.async.token, %p: tensor<16x32x!tt.ptr<f32>>) {
  %picked = ttg.local_gather %buffer[%indices] token %token {axis = 0 : i32} : !ttg.memdesc<64x32xf32, #shared, #smem, mutable>, tensor<16x32xi32> -> tensor<16x32xf32>
  tt.store %p, %picked : tensor<16x32x!tt.ptr<f32>>
  tt.return
}

// What picks from registers stays.

// CHECK-LABEL: @registers
// CHECK-NEXT:    tt.gather %values[%indices]
tt.func public @registers(%values: tensor<64xf32>, %indices: tensor<32xi32>, %p: tensor<32x!tt.ptr<f32>>) {
  %picked = tt.gather %values[%indices] {axis = 0 : i32} : (tensor<64xf32>, tensor<32xi32>) -> tensor<32xf32>
  tt.store %p, %picked : tensor<32x!tt.ptr<f32>>
  tt.return
}
