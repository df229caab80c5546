"""Storage aliasing: specs, allocations in them, overlap trees, and the older way to reuse one allocation's memory."""
# RUN: tlx compile %s:aliases --emit ttir -o - | filecheck %s --check-prefix=ALIASES
# RUN: tlx compile %s:tensor_memory --emit ttir -o - | filecheck %s --check-prefix=TMEM
# RUN: tlx compile %s:chosen --constexpr BLOCK=128 --emit ttir -o - | filecheck %s --check-prefix=SHARED
# RUN: tlx compile %s:chosen --constexpr BLOCK=64 --emit ttir -o - | filecheck %s --check-prefix=DISTINCT
# RUN: tlx compile %s:reuse --emit ttir -o - 2>&1 | filecheck %s --check-prefix=REUSE

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def aliases():
    # ALIASES: %spec = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    # ALIASES: %sized = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
    sized = tlx.storage_alias_spec(buffer_size_bytes=65536)
    tl.static_assert(sized.buffer_size_bytes == 65536 and spec.buffer_size_bytes is None)
    tl.static_assert(spec.storage == tlx.storage_kind.smem)
    # ALIASES: %qk = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable>
    qk = tlx.local_alloc((64, 64), tl.float32, 2, tlx.storage_kind.smem, reuse=spec)
    # ALIASES: %p = tlx.storage_alias_local_alloc %spec : {{.*}} -> !ttg.memdesc<4x32x64xbf16, #{{.*}}, #smem, mutable>
    p = tlx.local_alloc((32, 64), tl.bfloat16, 4, tlx.storage_kind.smem, reuse=spec)
    # ALIASES: %alpha = tlx.storage_alias_local_alloc %spec : {{.*}} -> !ttg.memdesc<2x64xf32, #{{.*}}, #smem, mutable>
    alpha = tlx.local_alloc((64,), tl.float32, 2, tlx.storage_kind.smem, reuse=spec)
    # ALIASES: [[P:%.*]] = tlx.reuse_group(%p) group_kind = shared, group_size = 2 : (!ttg.memdesc<4x32x64xbf16,
    # ALIASES: [[PA:%.*]] = tlx.reuse_group([[P]], %alpha) group_kind = distinct : (!tlx.reuse_group<shared>, !ttg.memdesc<2x64xf32,
    # ALIASES: [[ROOT:%.*]] = tlx.reuse_group(%qk, [[PA]]) group_kind = shared : {{.*}} -> !tlx.reuse_group<shared>
    # ALIASES: tlx.set_buffer_overlap(%spec, [[ROOT]]) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<shared>) -> ()
    spec.set_buffer_overlap(
        tlx.reuse_group(
            qk,
            tlx.reuse_group(
                tlx.reuse_group(p, group_size=2),
                alpha,
                group_type=tlx.reuse_group_type.distinct,
            ),
        )
    )


@tlx_xdsl.jit
def tensor_memory():
    # TMEM: %spec = tlx.storage_alias_spec storage = tmem, size = 65536 : !tlx.storage_alias_spec<tmem, 65536>
    spec = tlx.storage_alias_spec(tlx.storage_kind.tmem, 65536)
    # TMEM: tlx.storage_alias_local_alloc %spec : {{.*}} -> !ttg.memdesc<1x128x128xf32, #tmem, #ttng.tensor_memory, mutable>
    qk = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem, reuse=spec)
    # TMEM: tlx.storage_alias_local_alloc %spec : {{.*}} -> !ttg.memdesc<1x128x128xf16, #tmem, #ttng.tensor_memory, mutable>
    p = tlx.local_alloc((128, 128), tl.float16, 1, tlx.storage_kind.tmem, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(qk, p))


@tlx_xdsl.jit
def chosen(BLOCK: tl.constexpr):
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((BLOCK, 64), tl.float32, 2, reuse=spec)
    b = tlx.local_alloc((BLOCK, 64), tl.float32, 2, reuse=spec)
    # The tree may depend on compile-time values.
    # SHARED: tlx.reuse_group(%a, %b) group_kind = shared
    # SHARED-NOT: distinct
    # DISTINCT: tlx.reuse_group(%a, %b) group_kind = distinct
    if BLOCK >= 128:
        spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    else:
        spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.distinct))


@tlx_xdsl.jit
def reuse():
    a = tlx.local_alloc((64, 64), tl.float32, 2)
    # REUSE: tlx_storage.py:{{[0-9]+}}:9: remark: these buffers begin at the first byte of
    # REUSE: %b = tlx.local_alias %a : !ttg.memdesc<2x64x64xf32, #{{.*}}, #smem, mutable> -> !ttg.memdesc<4x64x64xf16, #{{.*}}, #smem, mutable>
    b = tlx.local_alloc((64, 64), tl.float16, 4, reuse=a)


TLX_COMPILE = {"tensor_memory": {"target": "sm_100a"}}
