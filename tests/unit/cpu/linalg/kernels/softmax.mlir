func.func @softmax(%x: memref<*xf32>, %out: memref<*xf32>, %stride: i32, %columns: i32, %pid: i32, %pid_y: i32, %pid_z: i32) attributes {tt.program_ids = 3 : i32} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %start = arith.muli %pid, %stride : i32
  %offset = arith.index_cast %start : i32 to index
  %count = arith.index_cast %columns : i32 to index
  %some = arith.minsi %count, %c128 : index
  %size = arith.maxsi %some, %c0 : index
  %short = arith.cmpi slt, %size, %c128 : index
  %row = memref.reinterpret_cast %x to offset: [%offset], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %block = memref.alloc() : memref<128xf32>
  scf.if %short {
    linalg.fill ins(%lowest : f32) outs(%block : memref<128xf32>)
  }
  %from = memref.subview %row[0] [%size] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  %to = memref.subview %block[0] [%size] [1] : memref<128xf32> to memref<?xf32, strided<[1]>>
  memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
  %values = bufferization.to_tensor %block restrict writable : memref<128xf32> to tensor<128xf32>

  %empty_scalar = tensor.empty() : tensor<f32>
  %first = tensor.insert %lowest into %empty_scalar[] : tensor<f32>
  %reduced = linalg.reduce ins(%values : tensor<128xf32>) outs(%first : tensor<f32>) dimensions = [0]
    (%in: f32, %init: f32) {
      %m = arith.maxnumf %in, %init : f32
      linalg.yield %m : f32
    }
  %largest = tensor.extract %reduced[] : tensor<f32>
  %empty = tensor.empty() : tensor<128xf32>
  %powers = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%values : tensor<128xf32>) outs(%empty : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.subf %a, %largest : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<128xf32>
  %none = tensor.insert %zero into %empty_scalar[] : tensor<f32>
  %summed = linalg.reduce ins(%powers : tensor<128xf32>) outs(%none : tensor<f32>) dimensions = [0]
    (%in: f32, %init: f32) {
      %s = arith.addf %in, %init : f32
      linalg.yield %s : f32
    }
  %sum = tensor.extract %summed[] : tensor<f32>
  %ratios = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%powers : tensor<128xf32>) outs(%empty : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.divf %a, %sum : f32
    linalg.yield %q : f32
  } -> tensor<128xf32>
  %out_row = memref.reinterpret_cast %out to offset: [%offset], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %part = tensor.extract_slice %ratios[0] [%size] [1] : tensor<128xf32> to tensor<?xf32>
  %out_part = memref.subview %out_row[0] [%size] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  bufferization.materialize_in_destination %part in writable %out_part : (tensor<?xf32>, memref<?xf32, strided<[1], offset: ?>>) -> ()
  return
}
