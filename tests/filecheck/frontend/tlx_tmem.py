"""Tensor memory of Blackwell GPUs."""
# RUN: tlx compile %s:tmem --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def tmem(n):
    # CHECK-DAG: #[[ACC:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
    # CHECK-DAG: #[[ROWS:.*]] = #ttng.tensor_memory_encoding<blockM = 64, blockN = 32, colStride = 2>
    # CHECK-DAG: #[[WIDE:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>
    # CHECK-DAG: #[[SCALES:.*]] = #ttng.tensor_memory_scales_encoding<>
    # CHECK: %acc = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x64xf32, #[[ACC]], #ttng.tensor_memory, mutable>
    acc = tlx.local_alloc((128, 64), tl.float32, 2, tlx.storage_kind.tmem)
    # CHECK: %wide = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x512xf16, #[[WIDE]], #ttng.tensor_memory, mutable>
    wide = tlx.local_alloc((128, 512), tl.float16, 1, tlx.storage_kind.tmem)
    # CHECK: %rows = ttng.tmem_alloc : () -> !ttg.memdesc<1x64x32xf16, #tlx.user_layout<#[[ROWS]]>, #ttng.tensor_memory, mutable>
    rows = tlx.local_alloc(
        (64, 32), tl.float16, 1, tlx.storage_kind.tmem, layout=tlx.tensor_memory_layout_encoding(64, 32, colStride=2)
    )
    # Bytes that are no floats are scales or an operand: a pass looks at what uses them.
    # CHECK: %scales = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
    scales = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)
    # CHECK: [[ONE:%.*]] = ttg.memdesc_index %acc[%n] :
    one = acc[n]
    # Which register layouts tensor memory can be loaded into depends on the warps: a pass chooses one.
    # CHECK: [[X:%.*]] = ttng.tmem_load [[ONE]] : {{.*}} -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    # CHECK: %x = tlx.release_layout [[X]] : {{.*}} -> tensor<128x64xf32>
    x = tlx.local_load(one)
    # CHECK: [[Y:%.*]] = tlx.require_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    # CHECK: ttng.tmem_store [[Y]], [[ONE]], %true :
    tlx.local_store(one, x)
    # CHECK: ttng.tmem_subslice [[ONE]] {offset = 32 : i32} : {{.*}} -> !ttg.memdesc<128x32xf32, #[[ACC]], #ttng.tensor_memory, mutable, 128x64>
    right = tlx.subslice(one, 32, 32)
    # CHECK: ttng.tmem_subslice [[ONE]] {offset = 16 : i32} : {{.*}} -> !ttg.memdesc<128x16xf32, #[[ACC]], #ttng.tensor_memory, mutable, 128x64>
    part = tlx.local_slice(one, (0, 16), (128, 16))
    # CHECK: ttg.memdesc_reinterpret [[ONE]] : {{.*}} -> !ttg.memdesc<128x128xf16, #{{.*}}, #ttng.tensor_memory, mutable>
    halves = tlx.local_reinterpret(one, tl.float16, (128, 128))
    # CHECK: tlx.tmem_shift [[ONE]] : !ttg.memdesc<128x64xf32, #[[ACC]], #ttng.tensor_memory, mutable>
    tlx.tmem_shift(one)
    # CHECK: ttng.tmem_alloc : () -> !ttg.memdesc<1x128x4xi8, #tlx.user_layout<#[[SCALES]]>, #ttng.tensor_memory, mutable>
    named = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem, layout=tlx.make_tensor_memory_scales_layout())
    staged = tlx.local_alloc((128, 4), tl.uint8, 1)
    # CHECK: ttng.tmem_copy %{{.*}}, %{{.*}} : !ttg.memdesc<128x4xi8, #{{.*}}, #smem, mutable>, !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
    tlx.tmem_copy(staged[0], scales[0])


TLX_COMPILE = {"tmem": {"signature": {"n": "i32"}, "target": "sm_100a"}}
