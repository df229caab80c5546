func.func @vector_add(%x: memref<*xf32>, %y: memref<*xf32>, %out: memref<*xf32>, %n: i32, %pid: i32, %pid_y: i32, %pid_z: i32) attributes {tt.program_ids = 3 : i32} {
  %c128_i32 = arith.constant 128 : i32
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %start = arith.muli %pid, %c128_i32 : i32
  %offset = arith.index_cast %start : i32 to index
  %count = arith.index_cast %n : i32 to index
  %left = arith.subi %count, %offset : index
  %some = arith.minsi %left, %c128 : index
  %size = arith.maxsi %some, %c0 : index
  %short = arith.cmpi slt, %size, %c128 : index

  %x_row = memref.reinterpret_cast %x to offset: [%offset], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %x_block = memref.alloc() : memref<128xf32>
  scf.if %short {
    linalg.fill ins(%zero : f32) outs(%x_block : memref<128xf32>)
  }
  %x_from = memref.subview %x_row[0] [%size] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  %x_to = memref.subview %x_block[0] [%size] [1] : memref<128xf32> to memref<?xf32, strided<[1]>>
  memref.copy %x_from, %x_to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
  %xs = bufferization.to_tensor %x_block restrict writable : memref<128xf32> to tensor<128xf32>

  %y_row = memref.reinterpret_cast %y to offset: [%offset], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %y_block = memref.alloc() : memref<128xf32>
  %y_from = memref.subview %y_row[0] [%size] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  %y_to = memref.subview %y_block[0] [%size] [1] : memref<128xf32> to memref<?xf32, strided<[1]>>
  memref.copy %y_from, %y_to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
  %ys = bufferization.to_tensor %y_block restrict writable : memref<128xf32> to tensor<128xf32>

  %empty = tensor.empty() : tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%xs, %ys : tensor<128xf32>, tensor<128xf32>) outs(%empty : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>

  %out_row = memref.reinterpret_cast %out to offset: [%offset], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %part = tensor.extract_slice %sum[0] [%size] [1] : tensor<128xf32> to tensor<?xf32>
  %out_part = memref.subview %out_row[0] [%size] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  bufferization.materialize_in_destination %part in writable %out_part : (tensor<?xf32>, memref<?xf32, strided<[1], offset: ?>>) -> ()
  return
}
