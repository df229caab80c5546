"""Lanes of one warp against each other in shared memory: PTX orders them at `bar.warp.sync` and other barriers."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel, line_of
from tlx_xdsl.ptx import PtxRace, run_ptx

pytestmark = pytest.mark.quick

SHARED = ".shared .align 128 .b8 buffer[512];"
ADDRESSES = """
    mov.u32 %r1, buffer;
    shl.b32 %r2, %r0, 2;
    add.s32 %r3, %r1, %r2;
    sub.s32 %r4, %r1, %r2;
    setp.eq.u32 %p1, %r0, 3;
"""
WRITE, READ_ANOTHER = "st.shared.b32 [%r3], %r0;", "ld.shared.b32 %r5, [%r4+124];"
READ, WRITE_ANOTHER = "ld.shared.b32 %r5, [%r3];", "st.shared.b32 [%r4+124], %r0;"
MEET = "bar.warp.sync 0xffffffff;"


def run(*lines, threads=32):
    body = "\n    ".join((ADDRESSES, *lines))
    text = kernel(body, threads=threads, shared=SHARED)
    run_ptx(text, 1, [np.zeros(threads, np.uint32)], filename="k.ptx")
    return text


def refused(message, *lines):
    with pytest.raises(PtxRace, match=message) as error:
        run(*lines)
    return str(error.value)


@pytest.mark.parametrize("meet", [MEET, "bar.sync 0;", "barrier.sync 1, 32;"])
@pytest.mark.parametrize(
    ("first", "last"), [(WRITE, READ_ANOTHER), (WRITE, WRITE_ANOTHER), (f"{WRITE} bar.sync 0; {READ}", WRITE_ANOTHER)]
)
def test_what_lanes_exchange_needs_a_meeting(first, last, meet):
    run(first, meet, last)
    said = refused("nothing orders it after what was (written|read) by another lane of the warp", first, last)
    assert "bar.warp.sync must come in between" in said


def test_both_places_are_named():
    text = kernel("\n    ".join((ADDRESSES, WRITE, READ_ANOTHER)), shared=SHARED)
    said = refused("another lane", WRITE, READ_ANOTHER)
    assert said.startswith(f"k.ptx:{line_of(text, 'ld.shared')}:")
    assert f"written at k.ptx:{line_of(text, 'st.shared')}" in said


def test_a_lane_is_in_order_with_itself():
    run(WRITE, READ, WRITE, READ)


def test_a_vote_orders_no_memory():
    """The programming guide says so of shuffles, votes and matches."""
    refused("another lane", WRITE, "vote.sync.ballot.b32 %r9, %p1, -1;", READ_ANOTHER)


def test_an_old_meeting_is_none():
    refused("another lane", MEET, WRITE, READ_ANOTHER)
    run(WRITE, MEET, READ_ANOTHER, MEET, WRITE, MEET, READ_ANOTHER)


def test_accesses_of_one_instruction():
    """All lanes write one word: which of them wins is not known, and that they write is no race with themselves."""
    run("st.shared.b32 [%r1], 7;")
    refused("written by another lane", "st.shared.b32 [%r1], 7;", "st.shared.b32 [%r3], 7;")


def test_threads_that_parted():
    """A lane writes on its way alone, and meets the others again, which is no barrier."""
    alone = "@!%p1 bra on;\n    st.shared.b32 [%r1], 7;\non:"
    run(WRITE, MEET, alone, MEET, "ld.shared.b32 %r5, [%r1];")
    refused("read|written", WRITE, MEET, alone, "ld.shared.b32 %r5, [%r1];")


def test_updates_need_no_order():
    atom = "atom.shared.add.u32 %r5, [%r1], 1;"
    run(WRITE, MEET, atom, "@%p1 " + atom)
    refused("written by another lane", WRITE, MEET, atom, "ld.shared.b32 %r5, [%r1];")


def test_matrices_are_read_by_all_lanes():
    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];"
    address = "and.b32 %r6, %r0, 7;\n    shl.b32 %r6, %r6, 4;\n    add.s32 %r6, %r6, %r1;"
    run(WRITE, address, MEET, load)
    refused("written by another lane", WRITE, address, load)
    refused("read by another lane", WRITE, address, MEET, load, WRITE)


COPY = """
    shl.b32 %r7, %r0, 2;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    cp.async.ca.shared.global [%r3], [%rd1], 4;
    cp.async.commit_group;
    cp.async.wait_group 0;"""


def test_a_wait_for_copies_is_that_of_one_thread():
    run(COPY, READ)
    run(COPY, MEET, READ_ANOTHER)
    refused("written by another lane of the warp, by the cp.async of warp 0", COPY, READ_ANOTHER)


BULK = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 128;"


def test_a_bulk_copy_is_of_the_lane_that_issues_it():
    fence, wait = "fence.proxy.async.shared::cta;", "cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;"
    run(WRITE, fence, MEET, BULK, wait)
    refused("written by another lane", WRITE, fence, BULK, wait)
