// RUN: tlx-opt %s -p tlx-lower-2cta-mma --split-input-file | filecheck %s

// Two steps of 16 along K, of which only the first one may start anew; then the barriers of both CTAs.

// CHECK:       #tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
// CHECK:       builtin.module {{.*}}"ttng.two-ctas" = true
// CHECK-LABEL: @pair
// CHECK-SAME:    #tmem
// CHECK:         [[RANK:%\w+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:         [[EVEN:%\w+]] = arith.cmpi eq
// CHECK:         [[ISSUES:%\w+]] = arith.andi %p, [[EVEN]]
// CHECK:         [[USE:%\w+]] = arith.extui %use
// CHECK:         ttg.barrier local
// CHECK:         arith.select [[ISSUES]]
// CHECK:         mov.b32 i, 270598160; @p tcgen05.mma.cta_group::2.kind::f16 [$5], a, b, i, d; }" ro({{.*}}, [[USE]], {{%\w+}} :
// CHECK:         [[ONE:%\w+]] = arith.constant 1 : i32
// CHECK:         tcgen05.mma.cta_group::2.kind::f16 [$5], a, b, i, d; }" ro({{.*}}, [[ONE]], {{%\w+}} :
// CHECK-NOT:     tcgen05.mma
// CHECK:         tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [$2], m; }"
// CHECK:         tcgen05.commit.cta_group::2
// CHECK-NOT:     ttng.tc_gen5
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @pair(%a: !ttg.memdesc<128x32xf16, #s, #smem>, %b: !ttg.memdesc<32x64xf16, #n, #smem>, %d: !ttg.memdesc<128x128xf32, #t, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi64, #v, #smem, mutable>, %use: i1, %p: i1) {
    %true = arith.constant true
    ttng.tc_gen5_mma %a, %b, %d, %use, %p, %bar[%true] {is_async, two_ctas} : !ttg.memdesc<128x32xf16, #s, #smem>, !ttg.memdesc<32x64xf16, #n, #smem>, !ttg.memdesc<128x128xf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #v, #smem, mutable>
    ttng.tc_gen5_commit %bar, %p : !ttg.memdesc<1xi64, #v, #smem, mutable>
    tt.return
  }
}

// -----

// Block scales: the copy of B's 256 x 8 scales is four, word by word for the rows of each; then four steps take a scale of
// each row (the fields of the descriptor), and the next four the words after 4 columns of A's and 8 of B's.

// CHECK-LABEL: @scaled
// CHECK:         tcgen05.cp.cta_group::2.32x128b.warpx4 [$3+0], s;
// CHECK:         tcgen05.cp.cta_group::2.32x128b.warpx4 [$3+8], s;
// CHECK:         tcgen05.cp.cta_group::2.32x128b.warpx4 [$3+4], s;
// CHECK:         tcgen05.cp.cta_group::2.32x128b.warpx4 [$3+12], s;
// CHECK:         mov.b32 i, 281018368; @p tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X [$5], a, b, i, [$6+0], [$7+0], d;
// CHECK:         mov.b32 i, 817889296; @p tcgen05.mma{{.*}} [$6+0], [$7+0], d;
// CHECK:         tcgen05.mma{{.*}} [$6+0], [$7+0], d;
// CHECK:         tcgen05.mma{{.*}} [$6+0], [$7+0], d;
// CHECK:         mov.b32 i, 281018368; @p tcgen05.mma{{.*}} [$6+4], [$7+8], d;
// CHECK-NOT:     ttng.tmem_copy
#a = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1, twoCTAs = true>
#sc = #ttng.tensor_memory_scales_encoding<>
#l = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [32, 0], [64, 0], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4], [128, 0]]}, alignment = 128>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @scaled(%a: !ttg.memdesc<128x256xf8E4M3FN, #a, #smem>, %b: !ttg.memdesc<256x128xf8E4M3FN, #b, #smem>, %d: !ttg.memdesc<128x256xf32, #t, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<256x8xi8, #l, #smem, mutable>, %as: !ttg.memdesc<128x8xi8, #sc, #ttng.tensor_memory, mutable>, %bs: !ttg.memdesc<256x8xi8, #sc, #ttng.tensor_memory, mutable>, %p: i1) {
    ttng.tmem_copy %s, %bs : !ttg.memdesc<256x8xi8, #l, #smem, mutable>, !ttg.memdesc<256x8xi8, #sc, #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma_scaled %a, %b, %d, %as, %bs, %p, %p lhs = e4m3 rhs = e4m3 {is_async, two_ctas} : !ttg.memdesc<128x256xf8E4M3FN, #a, #smem>, !ttg.memdesc<256x128xf8E4M3FN, #b, #smem>, !ttg.memdesc<128x256xf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x8xi8, #sc, #ttng.tensor_memory, mutable>, !ttg.memdesc<256x8xi8, #sc, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

// Products of one CTA, and their commits, are Triton's.

// CHECK-LABEL: @alone
// CHECK:         ttng.tc_gen5_commit
// CHECK-NOT:     two-ctas
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @alone(%bar: !ttg.memdesc<1xi64, #v, #smem, mutable>) {
    ttng.tc_gen5_commit %bar : !ttg.memdesc<1xi64, #v, #smem, mutable>
    tt.return
  }
}
