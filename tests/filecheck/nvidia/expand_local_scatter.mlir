// RUN: tlx-opt %s -p expand-local-scatter --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32} {
  // CHECK-LABEL: @elements
  // Others have read, and others will.
  // CHECK:         ttg.barrier local
  // CHECK:         [[BASE:%.*]] = llvm.ptrtoint
  // CHECK:         [[BYTES:%.*]] = arith.shli {{%.*}}, {{%.*}} : tensor<32xi32>
  // CHECK:         [[FROM:%.*]] = tt.splat [[BASE]] : i32 -> tensor<32xi32>
  // CHECK:         [[AT:%.*]] = arith.addi [[FROM]], [[BYTES]]
  // CHECK:         tt.elementwise_inline_asm "st.shared.b32 [$1], $2; mov.u32 $0, 0;" {constraints = "=r,r,r", packed_element = 1 : i32, pure = false} [[AT]], {{%.*}} :
  // CHECK-NEXT:    ttg.barrier local
  // CHECK-NOT:     ttg.local_scatter
  tt.func public @elements(%buffer: !ttg.memdesc<1024xf32, #shared, #smem, mutable>, %indices: tensor<32xi32>, %values: tensor<32xf32>) {
    ttg.local_scatter %buffer[%indices], %values {axis = 0 : i32} : !ttg.memdesc<1024xf32, #shared, #smem, mutable>, tensor<32xi32>, tensor<32xf32>
    tt.return
  }

  // The other index of an element is its own place. Bytes are extended to a register.
  // CHECK-LABEL: @rows
  // CHECK:         tt.make_range {start = 0 : i32, end = 16 : i32}
  // CHECK:         tt.expand_dims {{.*}} {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  // CHECK:         tt.broadcast {{.*}} : tensor<1x16xi32> -> tensor<8x16xi32>
  // CHECK:         arith.extui %values : tensor<8x16xi8> to tensor<8x16xi32>
  // CHECK:         "st.shared.b8 [$1], $2;
  tt.func public @rows(%buffer: !ttg.memdesc<64x16xi8, #rows, #smem, mutable>, %indices: tensor<8x16xi16>, %values: tensor<8x16xi8>) {
    ttg.local_scatter %buffer[%indices], %values {axis = 0 : i32} : !ttg.memdesc<64x16xi8, #rows, #smem, mutable>, tensor<8x16xi16>, tensor<8x16xi8>
    tt.return
  }

  // CHECK-LABEL: @wide
  // CHECK:         "st.shared.b64 [$1], $2; mov.u32 $0, 0;" {constraints = "=r,r,l"
  tt.func public @wide(%buffer: !ttg.memdesc<64xi64, #shared, #smem, mutable>, %indices: tensor<32xi64>, %values: tensor<32xi64>) {
    ttg.local_scatter %buffer[%indices], %values {axis = 0 : i32} : !ttg.memdesc<64xi64, #shared, #smem, mutable>, tensor<32xi64>, tensor<32xi64>
    tt.return
  }
}

// -----

#padded = #ttg.padded_shared<[64:+4] {order = [0], shape = [1024]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32} {
  tt.func public @padded(%buffer: !ttg.memdesc<1024xf32, #padded, #smem, mutable>, %indices: tensor<32xi32>, %values: tensor<32xf32>) {
    // expected-error @below {{the place of an element in a padded layout is no linear function}}
    ttg.local_scatter %buffer[%indices], %values {axis = 0 : i32} : !ttg.memdesc<1024xf32, #padded, #smem, mutable>, tensor<32xi32>, tensor<32xf32>
    tt.return
  }
}
