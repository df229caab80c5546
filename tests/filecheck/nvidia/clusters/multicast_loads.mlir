// RUN: tlx-opt %s -p tlx-lower-multicast-loads --split-input-file | filecheck %s

// 128 columns of f16 are two boxes under a swizzle of 128 bytes: two copies, whose coordinates come fastest first.

// CHECK-LABEL: @boxes
// CHECK:         [[DESC:%\w+]] = llvm.ptrtoint {{%\w+}} : !llvm.ptr to i64
// CHECK:         ttg.barrier local
// CHECK:         nvvm.inline_ptx "{{.*}} .reg .b16 m; cvt.u16.u32 m, $7; @p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$2], [$3, {$5, $6}], [$4], m; }" ro({{%\w+}}, {{%\w+}}, {{%\w+}}, [[DESC]], {{%\w+}}, %j, %i, %mask :
// CHECK:         [[C8192:%\w+]] = arith.constant 8192 : i32
// CHECK:         arith.addi {{%\w+}}, [[C8192]]
// CHECK:         [[C64:%\w+]] = arith.constant 64 : i32
// CHECK:         [[NEXT:%\w+]] = arith.addi %j, [[C64]]
// CHECK-NOT:     ttg.barrier
// CHECK:         multicast::cluster {{.*}}, [[NEXT]], %i, %mask :
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @boxes(%d: !tt.tensordesc<64x128xf16, #s>, %i: i32, %j: i32, %mask: i32, %p: i1) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #s, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #v, #smem, mutable>
    tlx.async_tma_load %d[%i, %j] %b, %bar, %p multicast %mask : !tt.tensordesc<64x128xf16, #s>, !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<64x128xf16, #s, #smem, mutable>
    tt.return
  }
}

// -----

// A pair's bytes complete on the barrier of its even CTA. A vector has one coordinate.

// CHECK-LABEL: @pair
// CHECK:         [[RANK:%\w+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:         [[EVEN:%\w+]] = arith.andi [[RANK]]
// CHECK:         [[BAR:%\w+]] = nvvm.inline_ptx "mapa.shared::cluster.u32 $0, $1, $2;" ro({{%\w+}}, [[EVEN]] :
// CHECK:         cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [$2], [$3, {$5}], [$4]; }"
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @pair(%d: !tt.tensordesc<64xf32, #v>, %i: i32, %p: i1) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #v, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #v, #smem, mutable>
    tlx.async_tma_load %d[%i] %b, %bar, %p {two_ctas} : !tt.tensordesc<64xf32, #v>, !ttg.memdesc<1xi64, #v, #smem, mutable> -> !ttg.memdesc<64xf32, #v, #smem, mutable>
    tt.return
  }
}
