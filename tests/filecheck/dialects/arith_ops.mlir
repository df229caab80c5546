// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// Comparisons, choices and casts work on scalars and on tensors, with a layout or without one.
// CHECK-LABEL: @scalars(
tt.func @scalars(%i: i32, %x: f32, %p: i1) {
  // CHECK: %less = arith.cmpi slt, %i, %i : i32
  %less = arith.cmpi slt, %i, %i : i32
  // CHECK: %equal = arith.cmpf oeq, %x, %x : f32
  %equal = arith.cmpf oeq, %x, %x : f32
  // CHECK: %choice = arith.select %p, %x, %x : f32
  %choice = arith.select %p, %x, %x : f32
  // CHECK: %wide = arith.extsi %i : i32 to i64
  %wide = arith.extsi %i : i32 to i64
  // CHECK: %float = arith.sitofp %i : i32 to f32
  %float = arith.sitofp %i : i32 to f32
  // CHECK: %rest = arith.remf %x, %x : f32
  %rest = arith.remf %x, %x : f32
  tt.return
}

// CHECK-LABEL: @tensors(
tt.func @tensors(%i: tensor<128xi32, #blocked>, %x: tensor<128xf32, #blocked>, %b: tensor<128xi8>, %p: i1) {
  // CHECK: %less = arith.cmpi ult, %i, %i : tensor<128xi32, #{{.*}}>
  %less = arith.cmpi ult, %i, %i : tensor<128xi32, #blocked>
  // CHECK: %ordered = arith.cmpf ord, %x, %x : tensor<128xf32, #{{.*}}>
  %ordered = arith.cmpf ord, %x, %x : tensor<128xf32, #blocked>
  // CHECK: %each = arith.select %less, %x, %x : tensor<128xi1, #{{.*}}>, tensor<128xf32, #{{.*}}>
  %each = arith.select %less, %x, %x : tensor<128xi1, #blocked>, tensor<128xf32, #blocked>
  // CHECK: %all = arith.select %p, %x, %x : tensor<128xf32, #{{.*}}>
  %all = arith.select %p, %x, %x : tensor<128xf32, #blocked>
  // CHECK: %wide = arith.extui %b : tensor<128xi8> to tensor<128xi32>
  %wide = arith.extui %b : tensor<128xi8> to tensor<128xi32>
  // CHECK: %short = arith.trunci %i : tensor<128xi32, #{{.*}}> to tensor<128xi16, #{{.*}}>
  %short = arith.trunci %i : tensor<128xi32, #blocked> to tensor<128xi16, #blocked>
  // CHECK: %half = arith.truncf %x : tensor<128xf32, #{{.*}}> to tensor<128xf16, #{{.*}}>
  %half = arith.truncf %x : tensor<128xf32, #blocked> to tensor<128xf16, #blocked>
  // CHECK: %single = arith.extf %half : tensor<128xf16, #{{.*}}> to tensor<128xf32, #{{.*}}>
  %single = arith.extf %half : tensor<128xf16, #blocked> to tensor<128xf32, #blocked>
  // CHECK: %signed = arith.fptosi %x : tensor<128xf32, #{{.*}}> to tensor<128xi32, #{{.*}}>
  %signed = arith.fptosi %x : tensor<128xf32, #blocked> to tensor<128xi32, #blocked>
  // CHECK: %unsigned = arith.fptoui %x : tensor<128xf32, #{{.*}}> to tensor<128xi32, #{{.*}}>
  %unsigned = arith.fptoui %x : tensor<128xf32, #blocked> to tensor<128xi32, #blocked>
  // CHECK: %back = arith.uitofp %unsigned : tensor<128xi32, #{{.*}}> to tensor<128xf32, #{{.*}}>
  %back = arith.uitofp %unsigned : tensor<128xi32, #blocked> to tensor<128xf32, #blocked>
  // CHECK: %rest = arith.remf %x, %x : tensor<128xf32, #{{.*}}>
  %rest = arith.remf %x, %x : tensor<128xf32, #blocked>
  tt.return
}

// A hexadecimal number is the bits of the float: minus infinity here, not 4286578688.
// CHECK-LABEL: @hexadecimal(
tt.func @hexadecimal() {
  // CHECK: %scalar = arith.constant 0x{{[fF][fF]}}800000 : f32
  %scalar = arith.constant 0xFF800000 : f32
  // CHECK: %dense = arith.constant dense<0x{{[fF][fF]}}800000> : tensor<4xf32>
  %dense = arith.constant dense<0xFF800000> : tensor<4xf32>
  // CHECK: %sum = arith.addf %dense, %dense : tensor<4xf32>
  %sum = arith.addf %dense, %dense : tensor<4xf32>
  tt.return
}
