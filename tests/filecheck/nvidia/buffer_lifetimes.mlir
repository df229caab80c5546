// RUN: tlx-opt %s -p tlx-extend-buffer-lifetimes --split-input-file | filecheck %s

// A buffer whose address is taken in a partition is given back at every exit of the function.

// CHECK-LABEL: @in_a_partition
// CHECK:         [[BUF:%\w+]] = ttg.local_alloc
// CHECK:         partition0
// CHECK:           builtin.unrealized_conversion_cast
// CHECK:           ttg.warp_return
// CHECK:       cf.cond_br
// CHECK:         ttg.local_dealloc [[BUF]]
// CHECK-NEXT:    tt.return
// CHECK:         ttg.local_dealloc [[BUF]]
// CHECK-NEXT:    tt.return
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @in_a_partition(%c: i1, %i: i32) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #s, #smem, mutable>
    ttg.warp_specialize(%b, %i)
    default {
      ttg.warp_yield
    }
    partition0(%a: !ttg.memdesc<2x64xf32, #s, #smem, mutable>, %j: i32) num_warps(4) {
      %one = ttg.memdesc_index %a[%j] : !ttg.memdesc<2x64xf32, #s, #smem, mutable> -> !ttg.memdesc<64xf32, #s, #smem, mutable>
      %x = builtin.unrealized_conversion_cast %one : !ttg.memdesc<64xf32, #s, #smem, mutable> to !llvm.struct<(!llvm.ptr<3>, i32)>
      ttg.warp_return
    } : (!ttg.memdesc<2x64xf32, #s, #smem, mutable>, i32) -> ()
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    tt.return
  }
}

// -----

// No address is taken of the first one, and the life of the second one is ended by the user.

// CHECK-LABEL: @not_needed
// CHECK:         [[KEPT:%\w+]] = ttg.local_alloc
// CHECK-NOT:     ttg.local_dealloc
// CHECK:         ttng.inval_barrier
// CHECK-NEXT:    tt.return
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @not_needed() {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %v = ttg.local_load %a : !ttg.memdesc<64xf32, #s, #smem, mutable> -> tensor<64xf32>
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    %x = builtin.unrealized_conversion_cast %b : !ttg.memdesc<1xi64, #s, #smem, mutable> to !llvm.struct<(!llvm.ptr<3>, i32)>
    ttng.inval_barrier %b : !ttg.memdesc<1xi64, #s, #smem, mutable>
    tt.return
  }
}
