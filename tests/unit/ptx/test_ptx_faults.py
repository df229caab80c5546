"""Mistakes of a kernel with memory, reported at their lines."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel, line_of
from tests.unit.ptx.test_ptx_threads import REVERSE, SHARED
from tlx_xdsl.ptx import PtxFault, PtxRace, run_ptx

pytestmark = pytest.mark.quick


def report_of(body, *, kind=PtxFault, array=None, **options):
    text = kernel(body, **options)
    with pytest.raises(kind) as error:
        run_ptx(text, 1, [np.zeros(32, np.uint32) if array is None else array], filename="k.ptx")
    return text, str(error.value)


def test_out_of_bounds():
    text, said = report_of("    mad.wide.u32 %rd1, %r0, 8, %rd0;\n    st.global.b32 [%rd1], %r0;")
    assert said.startswith(f"k.ptx:{line_of(text, 'st.global')}:5: error: store out of bounds: 4 bytes at byte 128")


def test_misaligned():
    _, said = report_of("    ld.global.b32 %r1, [%rd0+2];")
    assert "misaligned load: the address" in said
    assert "2 past a multiple of 4" in said


def test_null():
    _, said = report_of("    mov.b64 %rd1, 0;\n    ld.global.b32 %r1, [%rd1];")
    assert "load out of bounds at address 0x0, where there is no array" in said


def test_past_the_end_of_shared_memory():
    body = "    mov.u32 %r1, buffer;\n    st.shared.b32 [%r1+1048576], %r0;"
    _, said = report_of(body, shared=".shared .align 16 .b8 buffer[64];")
    assert "store out of bounds: 4 bytes at byte 1048576 of shared memory" in said


def test_uninitialized():
    body = "    mov.u32 %r1, buffer;\n    ld.shared.b32 %r2, [%r1+8];"
    _, said = report_of(body, shared=".shared .align 16 .b8 buffer[64];")
    assert "byte 8 of shared memory is read, which nothing has written" in said
    run_ptx(kernel(body, shared=".shared .align 16 .b8 buffer[64];"), 1, [np.zeros(1)], uninitialized="allow")


def test_a_missing_barrier_is_a_race():
    text, said = report_of(
        REVERSE.replace("bar.sync 0;", ""), kind=PtxRace, threads=128, shared=SHARED, array=np.zeros(128, np.uint32)
    )
    assert said.startswith(f"k.ptx:{line_of(text, 'ld.shared')}:")
    assert "nothing orders it after what was written by warp 3" in said
    assert f"written at k.ptx:{line_of(text, 'st.shared')}" in said


MBARRIER = """
    mov.u32 %r1, buffer;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], {count};
    bar.sync 0;
    setp.ge.u32 %p2, %r0, 32;
    @%p2 bra wait;
    st.shared.b32 [%r1+16], 42;
    elect.sync %r9|%p3, -1;
    @%p3 mbarrier.arrive.shared::cta.b64 _, [%r1];
    ret;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;
    @!%p4 bra wait;
    ld.shared.b32 %r2, [%r1+16];
    st.global.b32 [%rd0], %r2;"""


def test_an_mbarrier_orders():
    out = np.zeros(1, np.uint32)
    run_ptx(kernel(MBARRIER.replace("{count}", "1"), threads=64, shared=SHARED), 1, [out])
    assert out[0] == 42


WAIT = "    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;\n    @!%p4 bra wait;"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{count}", "2", "deadlock: all threads wait"),
        ("bar.sync 0;", "", "there is no mbarrier at byte 0|nothing orders this use"),
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1], {count};", "", "there is no mbarrier at byte 0"),
        (
            "    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;\n    @!%p4 bra wait;",
            "",
            "nothing has written|nothing orders it",
        ),
        ("@%p3 mbarrier.arrive", "mbarrier.arrive", "too many arrivals at the mbarrier at byte 0 of shared memory"),
        ("[%r1], 0;", "[%r1], 1;", "nothing has written|nothing orders it|deadlock"),
    ],
)
def test_mistakes_at_an_mbarrier(old, new, message):
    assert old in MBARRIER
    body = MBARRIER.replace(old, new).replace("{count}", "1")
    with pytest.raises(PtxFault, match=message):
        run_ptx(kernel(body, threads=64, shared=SHARED), 1, [np.zeros(1, np.uint32)])


def test_threads_that_part_may_not_shuffle_alone():
    body = "    setp.lt.u32 %p1, %r0, 7;\n    @%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;"
    _, said = report_of(body)
    assert "is in the member mask, and does not run this instruction with the others" in said


def test_wrong_arguments():
    text = kernel("", "*i")
    with pytest.raises(TypeError, match="argument 2 must be an array or a number, found str"):
        run_ptx(text, 1, [np.zeros(1), "x"])
    with pytest.raises(TypeError, match="takes fewer arguments"):
        run_ptx(text, 1, [np.zeros(1), 1, 2])
    with pytest.raises(TypeError, match="has 32 bits, which cannot hold"):
        run_ptx(text, 1, [np.zeros(1), 1 << 40])
    with pytest.raises(ValueError, match="expected a grid of one to three numbers"):
        run_ptx(text, (1, 2, 3, 4), [np.zeros(1), 1])
