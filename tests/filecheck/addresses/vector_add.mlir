// Section 7 of the design of this analysis, with what its text leaves out: the splat, the other accesses, the return.
// RUN: tlx-opt %s -p 'tlx-annotate-program-addresses{table=true}' 2>&1 >/dev/null | filecheck %s --match-full-lines --strict-whitespace --check-prefix=TABLE
// RUN: tlx-opt %s -p tlx-annotate-program-addresses | filecheck %s
// RUN: tlx-opt %s -p 'tlx-annotate-program-addresses{grid=1000}' | filecheck %s --check-prefix=GRID
// RUN: tlx-opt %s -p 'tlx-annotate-program-addresses{strict=true}' | filecheck %s --check-prefix=STRICT

tt.func @vector_add(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: !tt.ptr<f32>) {
  %c128 = arith.constant 128 : i32
  // TABLE:%pid:       PID_INFO(axis=0, stride=1, offset=0)
  // TABLE-NEXT:%block_start: PID_INFO(axis=0, stride=128, offset=0)
  // TABLE-NEXT:%start:     PID_INFO(axis=0, stride=128, offset=0)
  // TABLE-NEXT:%indices:   PID_INFO(axis=0, stride=128, offset=[0,127], elem_range)
  // TABLE-NEXT:%ptrs_a:    ADDR_INFO(base=%arg0, axis=0, stride=512, offset=[0,508], coalesced=true)
  // TABLE-NEXT:%a (load):  PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)
  // TABLE-NEXT:%ptrs_b:    ADDR_INFO(base=%arg1, axis=0, stride=512, offset=[0,508], coalesced=true)
  // TABLE-NEXT:%b (load):  PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)
  // TABLE-NEXT:%ptrs_c:    ADDR_INFO(base=%arg2, axis=0, stride=512, offset=[0,508], coalesced=true)
  // TABLE-NEXT:%ptrs_c (store): PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)

  // CHECK: %pid = tt.get_program_id x {tlx.pid_info = "PID_INFO(axis=0, stride=1, offset=0)"} : i32
  %pid = tt.get_program_id x : i32
  // CHECK-NEXT: %block_start = arith.muli %pid, %c128 {tlx.pid_info = "PID_INFO(axis=0, stride=128, offset=0)"} : i32
  %block_start = arith.muli %pid, %c128 : i32
  // What does not depend on the program gets nothing.
  // CHECK-NEXT: %offsets = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %offsets = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %start = tt.splat %block_start : i32 -> tensor<128xi32>
  // CHECK: %indices = arith.addi {{.*}}"PID_INFO(axis=0, stride=128, offset=[0,127], elem_range)"
  %indices = arith.addi %start, %offsets : tensor<128xi32>
  %ptr_a = tt.splat %arg0 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  // CHECK: %ptrs_a = tt.addptr {{.*}}"ADDR_INFO(base=%arg0, axis=0, stride=512, offset=[0,508], coalesced=true)"
  %ptrs_a = tt.addptr %ptr_a, %indices : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  // In a grid of more programs the 32 bits of the offset wrap around, unless the grid is known, or nothing may be assumed.
  // CHECK-NEXT: tt.load {{.*}}"PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)", tlx.holds_while = ["pid_x <= 16777215"]
  // GRID: tt.load %ptrs_a {tlx.access = "PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)"} :
  // STRICT: tt.load {{.*}}"PATTERN(UNKNOWN, the offset 'indices' may wrap around in 32 bits)"
  %a = tt.load %ptrs_a : tensor<128x!tt.ptr<f32>>
  %ptr_b = tt.splat %arg1 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %ptrs_b = tt.addptr %ptr_b, %indices : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %b = tt.load %ptrs_b : tensor<128x!tt.ptr<f32>>
  %sum = arith.addf %a, %b : tensor<128xf32>
  %ptr_c = tt.splat %arg2 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %ptrs_c = tt.addptr %ptr_c, %indices : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %ptrs_c, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
