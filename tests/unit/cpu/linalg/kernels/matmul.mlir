func.func @matmul(%a: memref<*xf16>, %b: memref<*xf16>, %c: memref<*xf32>, %n: i32, %k: i32, %pid_x: i32, %pid_y: i32, %pid_z: i32) attributes {tt.program_ids = 3 : i32} {
  %c0_i32 = arith.constant 0 : i32
  %c16_i32 = arith.constant 16 : i32
  %c32_i32 = arith.constant 32 : i32
  %zero = arith.constant 0.0 : f32
  %columns = arith.index_cast %n : i32 to index
  %inner = arith.index_cast %k : i32 to index
  %row0_i32 = arith.muli %pid_x, %c32_i32 : i32
  %column0_i32 = arith.muli %pid_y, %c32_i32 : i32
  %row0 = arith.index_cast %row0_i32 : i32 to index
  %column0 = arith.index_cast %column0_i32 : i32 to index
  %a_row = arith.muli %row0, %inner : index
  %empty = tensor.empty() : tensor<32x32xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %product = scf.for %step = %c0_i32 to %k step %c16_i32 iter_args(%sum = %none) -> (tensor<32x32xf32>) : i32 {
    %at = arith.index_cast %step : i32 to index
    %a_offset = arith.addi %a_row, %at : index
    %a_tile = memref.reinterpret_cast %a to offset: [%a_offset], sizes: [32, 16], strides: [%inner, 1] : memref<*xf16> to memref<32x16xf16, strided<[?, 1], offset: ?>>
    %a_block = memref.alloc() : memref<32x16xf16>
    memref.copy %a_tile, %a_block : memref<32x16xf16, strided<[?, 1], offset: ?>> to memref<32x16xf16>
    %left = bufferization.to_tensor %a_block restrict writable : memref<32x16xf16> to tensor<32x16xf16>
    %b_row = arith.muli %at, %columns : index
    %b_offset = arith.addi %b_row, %column0 : index
    %b_tile = memref.reinterpret_cast %b to offset: [%b_offset], sizes: [16, 32], strides: [%columns, 1] : memref<*xf16> to memref<16x32xf16, strided<[?, 1], offset: ?>>
    %b_block = memref.alloc() : memref<16x32xf16>
    memref.copy %b_tile, %b_block : memref<16x32xf16, strided<[?, 1], offset: ?>> to memref<16x32xf16>
    %right = bufferization.to_tensor %b_block restrict writable : memref<16x32xf16> to tensor<16x32xf16>
    %next = linalg.matmul ins(%left, %right : tensor<32x16xf16>, tensor<16x32xf16>) outs(%sum : tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %c_row = arith.muli %row0, %columns : index
  %c_offset = arith.addi %c_row, %column0 : index
  %c_tile = memref.reinterpret_cast %c to offset: [%c_offset], sizes: [32, 32], strides: [%columns, 1] : memref<*xf32> to memref<32x32xf32, strided<[?, 1], offset: ?>>
  bufferization.materialize_in_destination %product in writable %c_tile : (tensor<32x32xf32>, memref<32x32xf32, strided<[?, 1], offset: ?>>) -> ()
  return
}
