"""TTGIR of kernels in the spelling of Meta's Triton."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.compat.fork_text import fork_spelling
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel

pytestmark = pytest.mark.quick


@tlx_xdsl.jit
def single_operations(x, y, N: tl.constexpr):
    begin = tlx.clock64()
    tlx.fence("gpu")
    tlx.fence("sys")
    tlx.prefetch(x + tl.arange(0, N), level="L2")
    tlx.prefetch(x + tl.arange(0, N), level="L1", mask=tl.arange(0, N) < 5)
    votes = tlx.vote_ballot_sync(0xFFFFFFFF, tlx.thread_id(0) < 16)
    tl.store(y, votes + tlx.cluster_cta_rank() + tlx.clock64() - begin)


@tlx_xdsl.jit
def bulk_copies(x, y, N: tl.constexpr):
    buffer, bar = tlx.local_alloc((N,), tl.uint8, 1)[0], tlx.alloc_barriers(1)[0]
    tlx.barrier_expect_bytes(bar, N)
    tlx.async_load(x, buffer, bulk=True, barrier=bar)
    tlx.barrier_wait(bar, 0)
    tlx.async_store(y, buffer, N)
    tlx.async_descriptor_store_wait(0)


def text(kernel, types):
    return compile_text(
        source_of_kernel(kernel), Specialization(types, {"N": 128}, "sm_90a", 4), triton_version="3.9.0"
    ).ttgir


def test_single_operations():
    before = text(single_operations, {"x": "*fp32", "y": "*i64"})
    found = fork_spelling(before)
    for name, count in {
        "= ttg.clock64 : i64": 2,
        'ttng.fence {scope = "gpu"}': 1,
        'ttng.fence {scope = "sys"}': 1,
        "ttng.prefetch L2 %": 1,
        "ttng.prefetch L1 %": 1,
        "= ttng.vote_ballot_sync %": 1,
        "= nvg.cluster_id": 1,
    }.items():
        assert found.count(name) == count, name
    assert "inline_ptx" not in found
    assert "inline_asm" not in found
    assert before.count("inline_ptx") + before.count("inline_asm") == 7


def test_copies_of_bytes():
    found = fork_spelling(text(bulk_copies, {"x": "*u8", "y": "*u8"}))
    assert found.count("ttg.async_copy_global_to_local %") == found.count("{useBulk = true} : i64 -> i32") == 1
    assert found.count("ttng.async_store %") == 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            'nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p cp.async.bulk.prefetch.tensor.2d.L2.global'
            '.tile [$2], {$3, $4}; }" ro(%a, %b, %d, %x, %y : i32, i32, !llvm.ptr, i32, i32) loc(#loc)',
            "ttng.async_tma_prefetch %d[%x, %y] : !llvm.ptr loc(#loc)",
        ),
        (
            'nvvm.inline_ptx "{ .reg .b64 c; createpolicy.fractional.L2::evict_last.b64 c, 1.0; @p cp.async.bulk.tensor'
            '.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [$2], [$3, {$5}], [$4], c; }" '
            "ro(%a, %b, %m, %d, %r, %x : i32, i32, i32, !llvm.ptr, i32, i32)",
            "ttng.async_tma_copy_global_to_local %d[%x] %m, %r evictionPolicy = evict_last : !llvm.ptr, i32 -> i32",
        ),
        ("nvvm.cluster.arrive.relaxed {aligned}", "ttng.cluster_arrive {relaxed = true}"),
        ('nvvm.inline_ptx "bar.sync 3, 256;" loc(#loc)', 'nvvm.inline_ptx "bar.sync 3, 256;" loc(#loc)'),
    ],
)
def test_operations(ours, theirs):
    """PTX that has no other name stays: the numbers of named barriers are not those that the user gave."""
    assert fork_spelling(ours) == theirs
