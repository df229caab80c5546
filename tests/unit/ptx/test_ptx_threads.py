"""Threads that part and meet, warps, barriers, and atomic operations."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import each_thread, kernel
from tlx_xdsl.ptx import PtxBudget, PtxDeadlock, PtxFault, run_ptx

pytestmark = pytest.mark.quick

LANES = np.arange(32)


def test_threads_leave_a_loop_one_after_the_other_and_meet():
    """Each thread adds 3 as often as its number says; all vote after that, together."""
    body = """
    mov.b32 %r1, 0;
    mov.b32 %r2, 0;
again:
    setp.ge.u32 %p1, %r2, %r0;
    @%p1 bra done;
    add.s32 %r1, %r1, 3;
    add.s32 %r2, %r2, 1;
    bra again;
done:
    vote.sync.ballot.b32 %r3, %p1, 0xffffffff;
    setp.ne.u32 %p2, %r3, 0xffffffff;
    @%p2 mov.b32 %r1, -1;"""
    np.testing.assert_array_equal(each_thread(body), 3 * LANES)


def test_both_ways_of_a_branch():
    body = """
    setp.lt.u32 %p1, %r0, 10;
    @%p1 bra small;
    mul.lo.s32 %r1, %r0, 2;
    bra end;
small:
    add.s32 %r1, %r0, 1000;
end:
    shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;"""
    expected = np.where(LANES < 10, LANES + 1000, 2 * LANES)[LANES ^ 1]
    np.testing.assert_array_equal(each_thread(body), expected)


@pytest.mark.parametrize(
    ("mode", "by", "bounds", "source"),
    [
        ("bfly", 4, 31, LANES ^ 4),
        ("up", 3, 0, np.where(LANES >= 3, LANES - 3, LANES)),
        ("down", 5, 31, np.where(LANES <= 26, LANES + 5, LANES)),
        ("idx", 9, 31, np.full(32, 9)),
        ("idx", 1, 0x181F, LANES // 8 * 8 + 1),
    ],
)
def test_shuffles(mode, by, bounds, source):
    found = each_thread(f"    shfl.sync.{mode}.b32 %r1, %r0, {by}, {bounds}, -1;")
    np.testing.assert_array_equal(found, source)


def test_votes_and_leaders():
    ballot = each_thread("    setp.lt.u32 %p1, %r0, 5;\n    vote.sync.ballot.b32 %r1, %p1, -1;")
    assert (ballot == 31).all()
    leader = each_thread("    elect.sync %r2|%p1, 0xfff0;\n    selp.b32 %r1, 1, 0, %p1;")
    np.testing.assert_array_equal(leader, LANES == 4)
    total = each_thread("    redux.sync.add.s32 %r1, %r0, -1;")
    assert (total == LANES.sum()).all()


def test_a_table_of_branches():
    body = """
    and.b32 %r2, %r0, 3;
    targets: .branchtargets zero, one, two, one;
    brx.idx %r2, targets;
zero:
    mov.b32 %r1, 10;
    bra end;
one:
    mov.b32 %r1, 11;
    bra end;
two:
    mov.b32 %r1, 12;
end:"""
    np.testing.assert_array_equal(each_thread(body), np.array([10, 11, 12, 11])[LANES % 4])


REVERSE = """
    mov.u32 %r1, buffer;
    shl.b32 %r2, %r0, 2;
    add.s32 %r3, %r1, %r2;
    st.shared.b32 [%r3], %r0;
    bar.sync 0;
    sub.s32 %r4, %r1, %r2;
    ld.shared.b32 %r5, [%r4+508];
    add.s64 %rd1, %rd0, 0;
    mad.wide.u32 %rd2, %r0, 4, %rd1;
    st.global.b32 [%rd2], %r5;"""
SHARED = ".shared .align 16 .b8 buffer[512];"


def test_warps_exchange_through_shared_memory():
    out = np.zeros(128, np.uint32)
    done = run_ptx(kernel(REVERSE, threads=128, shared=SHARED), 1, [out])
    np.testing.assert_array_equal(out, np.arange(128)[::-1])
    assert done.counts["st.shared.b32"] == 4


def test_additions_to_one_address():
    body = """
    atom.global.add.u32 %r1, [%rd0], 1;
    mad.wide.u32 %rd1, %r1, 4, %rd0;
    st.global.b32 [%rd1+4], %r0;"""
    out = np.zeros(65, np.uint32)
    run_ptx(kernel(body, threads=64), 1, [out])
    assert out[0] == 64
    assert sorted(out[1:]) == list(range(64))


def test_ctas_hand_over_through_global_memory():
    """The first CTA waits for the flag of the last one, which may be of another wave."""
    body = """
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra raise;
again:
    ld.acquire.gpu.global.b32 %r2, [%rd0];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra again;
    setp.eq.u32 %p4, %r0, 0;
    @%p4 st.global.b32 [%rd0+4], %r2;
    ret;
raise:
    setp.eq.u32 %p3, %r1, 39;
    @%p3 st.release.gpu.global.b32 [%rd0], 5;"""
    out = np.zeros(2, np.uint32)
    run_ptx(kernel(body, threads=256), 40, [out], max_seconds=60)
    assert out.tolist() == [5, 5]


def test_a_barrier_that_some_never_reach():
    body = "    setp.lt.u32 %p1, %r0, 32;\n    @%p1 bar.sync 1, 64;\n"
    with pytest.raises(PtxDeadlock, match="barrier 1, where 32 of 64 threads have arrived"):
        run_ptx(kernel(body, threads=64), 1, [np.zeros(1, np.uint32)])


def test_a_loop_that_never_ends():
    with pytest.raises(PtxBudget, match="no end after the steps"):
        run_ptx(kernel("again:\n    bra again;"), 1, [np.zeros(1, np.uint32)], max_blocks=10_000)


def test_a_trap():
    with pytest.raises(PtxFault, match="the kernel stops at a trap"):
        run_ptx(kernel("    setp.eq.u32 %p1, %r0, 3;\n    @%p1 trap;"), 1, [np.zeros(1, np.uint32)])


def test_functions_take_the_place_of_their_calls():
    function = """
.func (.param .b32 result) twice(.param .b32 value)
{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    ld.param.b32 %r1, [value];
    setp.lt.u32 %p1, %r1, 4;
    @%p1 bra small;
    add.s32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
small:
    st.param.b32 [result], -1;
    ret;
}
"""
    call = """
    {
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], %r0;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r1, [retval0];
    }
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.b32 [%rd1], %r1;"""
    out = np.zeros(32, np.int32)
    run_ptx(kernel(call, shared=function), 1, [out])
    np.testing.assert_array_equal(out, np.where(LANES < 4, -1, 2 * LANES))
