// RUN: tlx-opt %s -p tlx-ws-prefetch-loads --split-input-file | filecheck %s

// The scale of the next turn is loaded at the start of this one, unless there is no next turn.

// CHECK-LABEL: @scales
// CHECK:         partition0
// CHECK:           [[FIRST:%.*]] = tt.load
// CHECK:           scf.for [[K:%.*]] = {{.*}} iter_args([[SUM:%.*]] = {{%.*}}, [[S:%.*]] = [[FIRST]])
// CHECK:             [[NEXT:%.*]] = arith.addi [[K]], {{%.*}}
// CHECK:             [[IS_THERE:%.*]] = arith.cmpi slt, [[NEXT]]
// CHECK:             [[MASK:%.*]] = tt.splat [[IS_THERE]]
// CHECK:             [[AHEAD:%.*]] = tt.load {{%.*}}, [[MASK]]
// CHECK:             [[TOTAL:%.*]] = arith.addf [[SUM]], [[S]]
// CHECK:             scf.yield [[TOTAL]], [[AHEAD]]

// What the loop writes can't be loaded earlier.

// CHECK-LABEL: @written
// CHECK:         scf.for {{.*}} iter_args({{%[a-z0-9_]+}} = {{%[a-z0-9_]+}}) ->
// CHECK-NOT:     iter_args

// A number is loaded early, too. After the last tile there is no other, but the size of the grid is still not 0.

// CHECK-LABEL: @tiles
// CHECK:         scf.for {{.*}} iter_args({{%.*}} = {{%.*}}) ->
// CHECK:           arith.divsi
// CHECK-NEXT:      tt.addptr
// CHECK-NEXT:      [[IS_THERE:%.*]] = arith.cmpi slt
// CHECK-NEXT:      tt.load {{%.*}}, [[IS_THERE]]

// Another divisor may be 0 then.

// CHECK-LABEL: @other
// CHECK:         scf.for
// CHECK-NOT:     iter_args
// CHECK:         tt.return
"builtin.module"() ({
tt.func public @scales(%p: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  ttg.warp_specialize(%p, %out, %n)
  default {
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %m: i32) num_warps(4) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %sum = scf.for %k = %c0 to %m step %c1 iter_args(%before = %zero) -> (tensor<64xf32>) : i32 {
      %ks = tt.splat %k : i32 -> tensor<64xi32>
      %i = arith.addi %ks, %r : tensor<64xi32>
      %at = tt.addptr %qs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %s = tt.load %at : tensor<64x!tt.ptr<f32>>
      %next = arith.addf %before, %s : tensor<64xf32>
      scf.yield %next : tensor<64xf32>
    }
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %oi = tt.addptr %os, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %oi, %sum : tensor<64x!tt.ptr<f32>>
    ttg.warp_return
  } : (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> ()
  tt.return
}
tt.func public @written(%p: !tt.ptr<f32>, %n: i32) {
  ttg.warp_specialize(%p, %n)
  default {
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<f32>, %m: i32) num_warps(4) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %sum = scf.for %k = %c0 to %m step %c1 iter_args(%before = %zero) -> (tensor<64xf32>) : i32 {
      %ks = tt.splat %k : i32 -> tensor<64xi32>
      %i = arith.addi %ks, %r : tensor<64xi32>
      %at = tt.addptr %qs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %s = tt.load %at : tensor<64x!tt.ptr<f32>>
      %next = arith.addf %before, %s : tensor<64xf32>
      tt.store %at, %next : tensor<64x!tt.ptr<f32>>
      scf.yield %next : tensor<64xf32>
    }
    ttg.warp_return
  } : (!tt.ptr<f32>, i32) -> ()
  tt.return
}
tt.func public @tiles(%p: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %size: i32 {tlx.host_value = "grid[0]"}) {
  ttg.warp_specialize(%p, %out, %n, %size)
  default {
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %m: i32, %grid: i32) num_warps(4) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %tile = %c0 to %m step %c1 : i32 {
      %row = arith.divsi %tile, %grid : i32
      %at = tt.addptr %q, %row : !tt.ptr<f32>, i32
      %s = tt.load %at : !tt.ptr<f32>
      tt.store %o, %s : !tt.ptr<f32>
      scf.yield
    } {tlx.tiles}
    ttg.warp_return
  } : (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()
  tt.return
}
tt.func public @other(%p: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %size: i32) {
  ttg.warp_specialize(%p, %out, %n, %size)
  default {
    ttg.warp_yield
  }
  partition0(%q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %m: i32, %grid: i32) num_warps(4) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %tile = %c0 to %m step %c1 : i32 {
      %row = arith.divsi %tile, %grid : i32
      %at = tt.addptr %q, %row : !tt.ptr<f32>, i32
      %s = tt.load %at : !tt.ptr<f32>
      tt.store %o, %s : !tt.ptr<f32>
      scf.yield
    } {tlx.tiles}
    ttg.warp_return
  } : (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()
  tt.return
}
}) {"ttg.num-warps" = 4 : i32} : () -> ()
