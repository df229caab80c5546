"""Accesses to global memory that nothing orders, of CTAs and warps: each mistake beside what is right."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel, line_of
from tlx_xdsl.ptx import PtxRace, TensorMap, run_ptx

pytestmark = pytest.mark.quick

# The CTA 0 writes a word and raises a flag; the last one waits for the flag and reads the word.
HANDOVER = """
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r0, 0;
    add.s64 %rd2, %rd0, 128;
    mad.wide.u32 %rd3, %r0, 4, %rd0;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra last;
    st.global.b32 [%rd3], 7;
    {before}
    {raise}
    ret;
last:
    setp.ne.u32 %p3, %r1, {last};
    @%p3 ret;
again:
    {poll}
    setp.eq.u32 %p4, %r2, 0;
    @%p4 bra again;
    {after}
    ld.global.b32 %r3, [%rd3];"""
RELEASE, ACQUIRE = "@%p1 st.release.gpu.global.b32 [%rd2], 1;", "ld.acquire.gpu.global.b32 %r2, [%rd2];"
RELAXED, POLL = "@%p1 st.relaxed.gpu.global.b32 [%rd2], 1;", "ld.relaxed.gpu.global.b32 %r2, [%rd2];"
ADD, ADD_RELAXED = (f"@%p1 {name}.global.{sem}.gpu.add.u32 {to}[%rd2], 1;" for name, sem, to in (
    ("atom", "acq_rel", "%r9, "), ("red", "relaxed", "")
))  # fmt: skip
FENCE = "fence.acq_rel.gpu;"


def text_of(before, raises, poll, after, last=1):
    parts = {"before": before, "raise": raises, "poll": poll, "after": after, "last": last}
    body = HANDOVER
    for name, part in parts.items():
        body = body.replace("{" + name + "}", str(part))
    return kernel(body, threads=32)


def run(text, grid=2, *arrays, **options):
    arrays = arrays or (np.zeros(64, np.uint32),)
    run_ptx(text, grid, list(arrays), filename="k.ptx", max_seconds=60, **{"global_order": True, **options})


def refused(text, message, grid=2, *arrays, **options):
    with pytest.raises(PtxRace, match=message) as error:
        run(text, grid, *arrays, **options)
    return str(error.value)


@pytest.mark.parametrize(
    "parts",
    [
        ("", RELEASE, ACQUIRE, ""),
        (FENCE, RELAXED, ACQUIRE, ""),
        ("membar.gl;", ADD_RELAXED, POLL, "membar.gl;"),
        ("", ADD, ACQUIRE, ""),
        (FENCE, RELAXED, POLL, "fence.acq_rel.sys;"),
        ("bar.sync 0;", RELEASE, ACQUIRE, "bar.sync 0;"),
    ],
)
def test_a_release_and_an_acquire_order(parts):
    run(text_of(*parts))


@pytest.mark.parametrize(
    "parts",
    [
        ("", RELAXED, ACQUIRE, ""),
        ("", RELEASE, POLL, ""),
        ("", RELEASE.replace("gpu", "cta"), ACQUIRE, ""),
        ("", RELEASE, ACQUIRE.replace("gpu", "cta"), ""),
        ("fence.acq_rel.cta;", RELAXED, ACQUIRE, ""),
        (FENCE, RELAXED, POLL, "membar.cta;"),
        ("", ADD_RELAXED, ACQUIRE, ""),
        ("", "@%p1 st.volatile.global.b32 [%rd2], 1;", "ld.volatile.global.b32 %r2, [%rd2];", ""),
        ("fence.mbarrier_init.release.cluster;", RELAXED, ACQUIRE, ""),
    ],
)
def test_what_is_no_release_or_no_acquire(parts):
    refused(text_of(*parts), "nothing orders it after what was (written|read) by warp 0 of CTA")


def test_both_places_and_a_remedy_are_named():
    text = text_of("", RELAXED, ACQUIRE, "")
    said = refused(text, "this reads byte 0 of 'argument 1' in global memory")
    assert said.startswith(f"k.ptx:{line_of(text, 'ld.global.b32 %r3')}:")
    assert f"written at k.ptx:{line_of(text, 'st.global.b32 [%rd3], 7')}" in said
    assert "a release of scope .gpu after that" in said


def test_ctas_that_run_one_after_the_other():
    """The last of 300 CTAs is of another wave than the first one, and reads what that has written long ago."""
    run(text_of("", RELEASE, ACQUIRE, "", 299), 300)
    refused(text_of("", RELAXED, ACQUIRE, "", 299), "of CTA", 300)


def test_a_flag_that_is_no_strong_write():
    refused(text_of(FENCE, "@%p1 st.global.b32 [%rd2], 1;", ACQUIRE, ""), "this (reads|writes) byte 128")


OWN = "mov.u32 %r1, %ctaid.x;\n    mad.lo.s32 %r2, %r1, 32, %r0;\n    mad.wide.u32 %rd1, %r2, 4, %rd0;\n"
ALL = "mad.wide.u32 %rd1, %r0, 4, %rd0;\n"


@pytest.mark.parametrize(("address", "is_right"), [(OWN, True), (ALL, False)])
def test_two_ctas_write_one_element(address, is_right):
    """The same value is no excuse, as in the interpreter: whose is there is not known."""
    text = kernel(address + "st.global.b32 [%rd1], 7;", threads=32)
    if is_right:
        run(text)
    else:
        refused(text, "this writes byte .* and nothing orders it after what was written by")


def test_who_does_not_talk_is_not_asked():
    """Kernels without atomic operations and the like are compared where that is asked for, as in the interpreter."""
    run(kernel(ALL + "st.global.b32 [%rd1], 7;"), global_order=None)
    atomic = "red.relaxed.gpu.global.add.u32 [%rd0+128], 1;\n"
    refused(kernel(ALL + atomic + "st.global.b32 [%rd1], 7;"), "this writes byte", global_order=None)


def test_a_write_after_a_read():
    first = "mov.u32 %r1, %ctaid.x;\n    setp.eq.u32 %p1, %r1, 0;\n" + ALL
    refused(kernel(first + "ld.global.b32 %r3, [%rd1];\n@%p1 st.global.b32 [%rd1], 7;"), "after what was read by warp")
    run(kernel(first + "ld.global.b32 %r3, [%rd1];\n@%p1 st.global.b32 [%rd1+128], 7;"))


def test_narrow_and_wide_accesses():
    """One byte is written of 16 bytes that were read."""
    wide = "mad.wide.u32 %rd1, %r0, 16, %rd0;\n    ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1];\n"
    store = "mov.u32 %r1, %ctaid.x;\n    setp.eq.u32 %p1, %r1, 1;\n    setp.eq.and.u32 %p2, %r0, 0, %p1;\n"
    text = kernel(wide + store + "@%p2 st.global.b8 [%rd0+21], 1;")
    said = refused(text, "this writes byte 21 of 'argument 1'", 2, np.zeros(128, np.uint32))
    assert "read by warp 0 of CTA" in said


@pytest.mark.parametrize("scope", ["gpu", "cta"])
def test_atomic_operations_need_no_order_in_their_scope(scope):
    text = kernel(f"red.relaxed.{scope}.global.add.u32 [%rd0], 1;")
    if scope == "gpu":
        run(text)
    else:
        assert "scope .cta is not enough" in refused(text, "this updates byte 0")
        run(text, 1)


def test_an_atomic_operation_and_a_plain_load():
    text = kernel("red.relaxed.gpu.global.add.u32 [%rd0], 1;\n    ld.global.b32 %r3, [%rd0];")
    refused(text, "this reads byte 0")
    run(text, 1)


def test_a_chain_over_three_ctas():
    """CTA 0 hands over to CTA 1, that to CTA 2, which reads what CTA 0 has written: releases pass on what is known."""
    body = """
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    @!%p1 bra wait;
    st.global.b32 [%rd0+64], 7;
    bra hand;
wait:
    ld.acquire.gpu.global.b32 %r2, [%rd0];
    setp.lt.u32 %p2, %r2, %r1;
    @%p2 bra wait;
hand:
    setp.eq.u32 %p3, %r1, 2;
    @%p3 ld.global.b32 %r3, [%rd0+64];
    add.s32 %r4, %r1, 1;
    st.release.gpu.global.b32 [%rd0], %r4;"""
    run(kernel(body, threads=1), 3)
    refused(kernel(body.replace("st.release", "st.relaxed"), threads=1), "reads byte 64", 3)


def test_warps_of_a_cta():
    exchange = "mad.wide.u32 %rd1, %r0, 4, %rd0;\nmul.wide.u32 %rd2, %r0, 4;\nsub.s64 %rd3, %rd0, %rd2;\n"
    exchange += "st.global.b32 [%rd1], %r0;\n{}\nld.global.b32 %r3, [%rd3+252];"
    run(kernel(exchange.format("bar.sync 0;"), threads=64), 1)
    said = refused(kernel(exchange.format(""), threads=64), "this reads .* written by warp . of CTA", 1)
    assert "a barrier must come in between" in said


COPY = """
    mov.u32 %r1, buffer;
    mov.u32 %r2, %ctaid.x;
    st.shared.b32 [%r1], 1;
    st.shared.b32 [%r1+4], 1;
    st.shared.b32 [%r1+8], 1;
    st.shared.b32 [%r1+12], 1;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group{read} 0;
    ld.global.b32 %r3, [%rd0];
    cp.async.bulk.wait_group 0;"""
SHARED = ".shared .align 128 .b8 buffer[512];"


def test_a_store_by_tma_has_written_when_it_was_waited_for():
    run(kernel(COPY.replace("{read}", ""), threads=1, shared=SHARED), 1)
    text = kernel(COPY.replace("{read}", ".read"), threads=1, shared=SHARED)
    assert "TMA write of warp 0" in refused(text, "this reads byte 0", 1)


STORE = """
    mov.u32 %r1, buffer;
    mov.u32 %r2, %ctaid.x;
    {row}
    mad.lo.s32 %r3, %r0, 4, %r1;
    st.shared.b32 [%r3], %r0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.eq.u32 %p1, %r0, 0;
    mov.b64 %rd1, p1;
    cvta.param.u64 %rd1, %rd1;
    @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r4, %r2}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"""


@pytest.mark.parametrize(("row", "is_right"), [("", True), ("mov.u32 %r2, 0;", False)])
def test_stores_by_tma_of_two_ctas(row, is_right):
    array = np.zeros((2, 32), np.uint32)
    text = kernel("mov.u32 %r4, 0;" + STORE.replace("{row}", row), shared=SHARED).replace(
        ".param .u64 p0", ".param .u64 p0,\n    .param .align 64 .b8 p1[128]"
    )
    arrays = np.zeros(1, np.uint32), TensorMap(array, (1, 32), 0)
    if is_right:
        run(text, 2, *arrays)
        assert (array == np.arange(32)).all()
    else:
        refused(text, "this writes byte 0 .* by the TMA write|this writes byte 0 .*TMA write", 2, *arrays)


GRID_WAIT = "griddepcontrol.wait;"
STORE_OWN, LOAD_OWN = "st.global.b32 [%rd1], 7;", "ld.global.b32 %r3, [%rd1];"


def test_what_comes_before_the_wait_for_earlier_launches():
    """The launch before may be of the same kernel, and still run."""
    run(kernel("\n".join((OWN, GRID_WAIT, LOAD_OWN, STORE_OWN))))
    said = refused(kernel("\n".join((OWN, LOAD_OWN, GRID_WAIT, STORE_OWN))), "is read before griddepcontrol.wait")
    assert "may write byte 0 later" in said
    refused(kernel("\n".join((OWN, STORE_OWN, GRID_WAIT))), "is written before griddepcontrol.wait")
    # Without a wait it is a launch that begins when the others have ended.
    run(kernel("\n".join((OWN, LOAD_OWN, "griddepcontrol.launch_dependents;", STORE_OWN))))


def test_an_array_that_is_only_read_before_the_wait():
    text = kernel(
        "\n".join(("ld.param.u64 %rd5, [p1];\n    ld.global.b32 %r5, [%rd5];", OWN, GRID_WAIT, STORE_OWN)), "**"
    )
    done = run_ptx(text, 2, [np.zeros(64, np.uint32), np.zeros(4, np.uint32)])
    assert done.early_reads == ("argument 2",)


def test_one_warp_waits_for_the_others():
    waits = "setp.lt.u32 %p5, %r0, 32;\n@!%p5 bra on;\n" + GRID_WAIT + "\non:\n"
    run(kernel("\n".join((ALL, waits, "bar.sync 0;", STORE_OWN)), threads=64), 1)
    refused(kernel("\n".join((ALL, waits, STORE_OWN)), threads=64), "is written before griddepcontrol.wait", 1)


IN_PLACE = """
    and.b32 %r1, %r0, {mask};
    mad.wide.u32 %rd2, %r1, 4, %rd0;
    ld.global.b32 %r2, [%rd2];
    setp.lt.u32 %p1, %r0, 32;
    xor.b32 %r3, %r1, {moved};
    mad.wide.u32 %rd3, %r3, 4, %rd0;
    @%p1 st.global.b32 [%rd3], %r2;"""


def in_place(mask, moved=0):
    return kernel(IN_PLACE.replace("{mask}", str(mask)).replace("{moved}", str(moved)), threads=64)


def test_copies_of_a_read_are_no_race_with_the_write_of_one_of_them():
    # Triton lets two warps hold each of 32 elements, and one of them stores.
    run(in_place(31), 1)
    # 64 elements have no copies: the first warp writes what the second one has read.
    refused(in_place(63, moved=32), r"writes byte 128 of 'argument 1' in global memory, and nothing orders it after", 1)
    # For another CTA the copies are reads like others.
    refused(in_place(31), "in global memory, and nothing orders it after", 2)


def test_copies_that_all_warps_have():
    """All warps read a word, and one of them writes it: as Triton does it, each has a copy that no other one needs."""
    first = "setp.lt.u32 %p1, %r0, 32;\n"
    update = first + "ld.global.b32 %r3, [%rd0];\n@%p1 st.global.b32 [%rd0], %r3;\nld.global.b32 %r4, [%rd0];"
    run(kernel(update, threads=64), 1)
    refused(kernel(update, threads=64), "nothing orders it after", 2)
    alone = first + "@!%p1 ld.global.b32 %r3, [%rd0];\n@%p1 st.global.b32 [%rd0], %r0;"
    refused(kernel(alone, threads=64), "after what was read by warp 1", 1)
