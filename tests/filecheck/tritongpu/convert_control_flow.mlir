// RUN: tlx-opt %s -p convert-triton-to-tritongpu --split-input-file | filecheck %s

// What goes round a loop has one layout, whatever made it: the sum is sliced off a matrix in every iteration.

// CHECK:       tt.func public @while_loop
// CHECK:         scf.while (%{{.*}} = %start) : (tensor<64xi32, #[[LINE:.*]]>) -> tensor<64xi32, #[[LINE]]>
// CHECK:         ^{{.*}}(%{{.*}}: tensor<64xi32, #[[LINE]]>
// CHECK:           %[[BACK:.*]] = ttg.convert_layout {{.*}} : tensor<64xi32, #ttg.slice<{{.*}}>> -> tensor<64xi32, #[[LINE]]>
// CHECK-NEXT:      scf.yield %[[BACK]] : tensor<64xi32, #[[LINE]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @while_loop(%go: i1) {
    %start = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %end = scf.while (%a = %start) : (tensor<64xi32>) -> tensor<64xi32> {
      scf.condition(%go) %a : tensor<64xi32>
    } do {
    ^bb0(%b: tensor<64xi32>):
      %column = tt.expand_dims %b {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %sum = "tt.reduce"(%column) <{axis = 1 : i32}> ({
      ^bb1(%x: i32, %y: i32):
        %z = arith.addi %x, %y : i32
        tt.reduce.return %z : i32
      }) : (tensor<64x1xi32>) -> tensor<64xi32>
      scf.yield %sum : tensor<64xi32>
    }
    tt.return
  }
}

// -----

// Blocks, functions and calls agree on default layouts.

// CHECK:       tt.func public @kernel
// CHECK:         cf.cond_br %go, ^[[THEN:.*]](%x : tensor<64xi32, #blocked>), ^[[ELSE:.*]](%x : tensor<64xi32, #blocked>)
// CHECK:         ^[[THEN]](%{{.*}}: tensor<64xi32, #blocked>
// CHECK:         tt.call @twice(%{{.*}}) : (tensor<64xi32, #blocked>) -> tensor<64xi32, #blocked>
// CHECK:       tt.func private @twice(%{{.*}}: tensor<64xi32, #blocked>{{.*}}) -> tensor<64xi32, #blocked>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%go: i1) {
    %x = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    cf.cond_br %go, ^then(%x : tensor<64xi32>), ^else(%x : tensor<64xi32>)
  ^then(%a: tensor<64xi32>):
    %y = tt.call @twice(%a) : (tensor<64xi32>) -> tensor<64xi32>
    tt.return
  ^else(%b: tensor<64xi32>):
    tt.return
  }
  tt.func private @twice(%v: tensor<64xi32>) -> tensor<64xi32> {
    %w = arith.addi %v, %v : tensor<64xi32>
    tt.return %w : tensor<64xi32>
  }
}

// -----

// An accumulator in flight goes round a scf.while, through a branch and out of a warp_yield without a conversion.

// CHECK:       tt.func public @accumulators
// CHECK-NOT:     ttg.convert_layout
// CHECK:         tt.return
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @accumulators(%a: !tile, %b: !tile, %go: i1) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %end = scf.while (%acc = %zero) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
      %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
      scf.condition(%go) %d : tensor<64x64xf32>
    } do {
    ^bb0(%d: tensor<64x64xf32>):
      scf.yield %d : tensor<64x64xf32>
    }
    cf.cond_br %go, ^more(%end : tensor<64x64xf32>), ^done(%end : tensor<64x64xf32>)
  ^more(%in: tensor<64x64xf32>):
    %e = ttng.warp_group_dot %a, %b, %in {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    cf.br ^done(%e : tensor<64x64xf32>)
  ^done(%out: tensor<64x64xf32>):
    %last = ttg.warp_specialize(%a, %b)
    default {
      %f = ttng.warp_group_dot %a, %b, %out {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
      ttg.warp_yield %f : tensor<64x64xf32>
    }
    partition0(%pa: !tile, %pb: !tile) num_warps(1) {
      ttg.warp_return
    } : (!tile, !tile) -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %last {pendings = 0 : i32} : tensor<64x64xf32>
    tt.return
  }
}
