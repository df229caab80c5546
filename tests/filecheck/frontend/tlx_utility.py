"""Threads, votes, clocks, types and ring buffers."""
# RUN: tlx compile %s:utility --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def doubled(x, by):
    return x * by


@tlx_xdsl.jit
def utility(out, ptr, n):
    # CHECK: [[Z:%.*]] = gpu.thread_id z
    # CHECK: arith.index_cast [[Z]] : index to i32
    tl.store(out, tlx.thread_id(2))
    # CHECK: tlx.clock64
    time = tlx.clock64()
    x = tl.full((64,), 1.5, tl.float32)
    numbers = tl.arange(0, 64)
    # CHECK: tlx.stoch_round %{{.*}}, %numbers : tensor<64xf32>, tensor<64xi32> -> tensor<64xf8E5M2>
    rounded = tlx.stoch_round(x, tl.float8e5, numbers)
    # CHECK: [[P:%.*]] = arith.cmpi sgt, %n
    # CHECK: tlx.vote_ballot %{{.*}}, [[P]] : i1 -> i32
    votes = tlx.vote_ballot_sync(0xFFFFFFFF, n > 0)
    # CHECK: [[PS:%.*]] = arith.cmpi sgt, %numbers
    # CHECK: tlx.vote_ballot %{{.*}}, [[PS]] : tensor<64xi1> -> tensor<64xi32>
    votes = tlx.vote_ballot_sync(0xFFFF, numbers > 3)
    # CHECK: [[PS:%.*]] = arith.cmpi ne, %numbers
    # CHECK: [[BITS:%.*]] = tlx.vote_ballot %{{.*}}, [[PS]] : tensor<64xi1> -> i32
    # CHECK: arith.cmpi ne, [[BITS]], %c0
    votes = tlx.warp_any(numbers)
    # All hold where no thread has one that does not.
    # CHECK: [[PS:%.*]] = arith.cmpi eq, %numbers
    # CHECK: [[BITS:%.*]] = tlx.vote_ballot %{{.*}}, [[PS]] : tensor<64xi1> -> i32
    # CHECK: arith.cmpi eq, [[BITS]], %c0
    votes = tlx.warp_all(numbers)
    # CHECK: [[BITS:%.*]] = tlx.vote_ballot %{{.*}}, %{{.*}} : tensor<64xi1> -> i32
    # CHECK: arith.extui [[BITS]] : i32 to i64
    votes = tlx.warp_ballot(numbers)
    # CHECK: [[P:%.*]] = arith.cmpi sgt, %numbers
    # CHECK: [[NEW:%.*]] = arith.muli %numbers
    # CHECK: arith.select [[P]], [[NEW]], %numbers : tensor<64xi1>, tensor<64xi32>
    chosen = tlx.warp_predicate(numbers > 7, numbers, doubled, args=(2,))
    tl.static_assert(tlx.num_warps() == 4)
    # CHECK: [[T:%.*]] = arith.index_cast %{{.*}} : index to i32
    # CHECK: arith.divsi [[T]], %{{.*}} : i32
    warp = tlx.warp_id()
    # CHECK: %buffer = arith.remsi %n, %c3
    # CHECK: [[ROUND:%.*]] = arith.divsi %n, %c3
    # CHECK: %phase = arith.andi [[ROUND]], %c1
    buffer, phase = tlx.get_bufidx_phase(n, 3)
    tile = tlx.local_alloc((64, 64), tl.bfloat16, 1)
    tl.static_assert(tlx.dtype_of(tile) == tl.bfloat16)
    tl.static_assert(tlx.size_of(tlx.dtype_of(x)) == 4)
    tl.static_assert(tlx.get_fp8_format_name(tl.float8e4nv) == "e4m3")
    # CHECK: tt.store %out, %n :
    tl.store(out, tlx.assume_uniform(n))


TLX_COMPILE = {"utility": {"signature": {"out": "*i32", "ptr": "*fp16", "n": "i32"}, "target": "sm_100a"}}
