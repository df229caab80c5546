// RUN: tlx-opt %s -p tlx-finalize-user-layouts --split-input-file --verify-diagnostics | filecheck %s

// Marks go from values, constants, functions and expectations, also from inside of each other; a conversion that
// converts nothing goes with them.

// CHECK-LABEL: @marks
// CHECK-SAME:    (%x: tensor<128xf32, #blocked>) -> tensor<128xf32, #blocked>
// CHECK-NEXT:    %c = arith.constant dense<1.000000e+00> : tensor<128xf32, #blocked>
// CHECK-NEXT:    %s = arith.addf %x, %c : tensor<128xf32, #blocked>
// CHECK-NEXT:    tlx.assert_same_layout_expected %s {expected = #blocked} : tensor<128xf32, #blocked>
// CHECK-NEXT:    tt.return %s : tensor<128xf32, #blocked>
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @marks(%x: tensor<128xf32, #blocked>) -> tensor<128xf32, #tlx.user_layout<#blocked>> {
    %0 = ttg.convert_layout %x : tensor<128xf32, #blocked> -> tensor<128xf32, #tlx.user_layout<#tlx.user_layout<#blocked>>>
    %1 = ttg.convert_layout %0 : tensor<128xf32, #tlx.user_layout<#tlx.user_layout<#blocked>>> -> tensor<128xf32, #tlx.user_layout<#blocked>>
    %c = arith.constant dense<1.000000e+00> : tensor<128xf32, #tlx.user_layout<#blocked>>
    %s = arith.addf %1, %c : tensor<128xf32, #tlx.user_layout<#blocked>>
    tlx.assert_same_layout_expected %s {expected = #tlx.user_layout<#blocked>} : tensor<128xf32, #tlx.user_layout<#blocked>>
    tt.return %s : tensor<128xf32, #tlx.user_layout<#blocked>>
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @elsewhere() {
  // expected-error @below {{unresolved TLX user layout after finalization: 'arith.constant' has one}}
  %c = arith.constant {note = [#tlx.user_layout<#blocked>]} 1 : i32
  tt.return
}
