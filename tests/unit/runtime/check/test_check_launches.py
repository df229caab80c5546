"""`tlx_xdsl.check` with several launches over the same arrays: what only a later one does wrong, and why."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl

pytestmark = pytest.mark.quick

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def zeros(count, dtype=np.int32):
    return np.zeros(count, dtype)


@tlx_xdsl.jit
def meet(arrived, scratch, RESET: tl.constexpr):
    """A barrier of all programs, whose counter the last one may set back."""
    programs = tl.num_programs(0)
    tl.store(scratch + tl.program_id(0), 1)
    if tl.atomic_add(arrived, 1) == programs - 1 and RESET:
        tl.atomic_xchg(arrived, 0)
    else:
        while tl.atomic_add(arrived, 0) % 4 != 0 or tl.atomic_add(arrived, 0) > programs:
            pass


@tlx_xdsl.jit
def hand_over(x, flag, out, SET_BACK: tl.constexpr):
    """Program 1 hands a block to program 0 by a flag."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 1:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))
        if SET_BACK:
            tl.atomic_xchg(flag, 0)


@tlx_xdsl.jit
def split(sums, count, out, SET_BACK: tl.constexpr):
    """Programs leave partial sums, which the last one adds up."""
    offsets = tl.arange(0, 32)
    tl.store(sums + tl.program_id(0) * 32 + offsets, 1.0)
    if tl.atomic_add(count, 1) == tl.num_programs(0) - 1:
        total = tl.zeros((32,), tl.float32)
        for at in range(tl.num_programs(0)):
            total += tl.load(sums + at * 32 + offsets)
        tl.store(out + offsets, total)
        if SET_BACK:
            tl.atomic_xchg(count, 0)


def handed_over(set_back, **options):
    arrays = zeros(32), zeros(1), zeros(32)
    report = tlx_xdsl.check(hand_over, 2, *arrays, set_back, seconds=0, stages=("frontend",), **options)
    assert not any(each.any() for each in arrays)
    return report


def test_a_flag_that_stays_set_is_a_race_in_the_second_launch():
    (finding,) = handed_over(False, launches=2).findings
    assert finding.rule == "relaunch"
    assert "writes byte 0 of 'x' in global memory, and nothing orders it" in finding.diagnostic.message
    note = "in the second launch: 'flag' is left at 1 by the first, which was 0; the kernel must set it back"
    assert note in str(finding)


@tlx_xdsl.jit
def hand_up(x, flag, out):
    """Program 0 hands a block to program 1: in rising order even a flag that stays set does no harm."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))


def test_a_reader_that_starts_before_its_writer():
    (finding,) = tlx_xdsl.check(hand_up, 2, zeros(32), zeros(1), zeros(32), seconds=0, launches=2).findings
    assert finding.rule == "relaunch"
    assert "programs started with the last one (tlx run --descending)" in str(finding)
    assert "in the second launch: 'flag' is left at 1 by the first, which was 0" in str(finding)


@tlx_xdsl.jit
def ticket(count, out):
    """The program with the second ticket is to be the last one, which nothing promises."""
    if tl.atomic_add(count, 1) % 2 == 1:
        tl.store(out + tl.program_id(0) * 2 - 2, 1)


def test_what_the_order_of_programs_shows_is_no_fault_of_a_second_launch():
    (finding,) = tlx_xdsl.check(ticket, 2, zeros(2), zeros(1), seconds=0).findings
    assert finding.rule == "fault"
    assert "store out of bounds" in finding.diagnostic.message
    assert "tlx run --descending" in str(finding)
    assert "launch:" not in str(finding)


def test_a_flag_that_is_set_back_is_right_in_any_number_of_launches():
    assert handed_over(True, launches=4)
    assert not handed_over(True, launches=4).remarks


def test_by_default_it_is_a_remark():
    """The host may set the flag back before each launch."""
    report = handed_over(False)
    assert report
    (remark,) = report.remarks
    assert (remark.rule, remark.diagnostic.severity) == ("relaunch", "remark")
    assert "'flag' is left at 1" in str(report)
    assert str(report).endswith("nothing found, 1 remark")
    assert not handed_over(False, launches=1).remarks


@tlx_xdsl.jit
def two_flags(x, flag, out, RESETS: tl.constexpr):
    """Program 1 hands a block to program 0 by two flags, of which program 0 sets back some."""
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 1:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem="release")
        tl.atomic_xchg(flag + 1, 1, sem="release")
    else:
        while tl.atomic_add(flag + 1, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))
        if RESETS:
            tl.atomic_xchg(flag, 0)
        if RESETS == 2:
            tl.store(flag + tl.arange(0, 2), tl.zeros((2,), tl.int32))


@pytest.mark.parametrize(("resets", "what"), [(0, "remark"), (1, "finding"), (2, "nothing")])
def test_what_a_kernel_sets_back_in_part_is_a_finding_by_default(resets, what):
    """Some resets in the kernel mean that the host is not the one to do it."""
    arrays = zeros(32), zeros(2), zeros(32)
    report = tlx_xdsl.check(two_flags, 2, *arrays, resets, seconds=0, stages=("frontend",))
    assert [each.rule for each in report.findings] == ["relaunch"] * (what == "finding")
    assert [each.rule for each in report.remarks] == ["relaunch"] * (what == "remark")
    for each in (*report.findings, *report.remarks):
        assert each.diagnostic.severity == ("error" if what == "finding" else "remark")
        assert each.left is not None
        assert (each.left.array, each.left.before) == ("flag", 0)


@tlx_xdsl.jit
def accumulates(sums, out):
    offsets = tl.arange(0, 32)
    tl.atomic_add(sums + offsets, 1.0)
    tl.store(out + tl.program_id(0) * 32 + offsets, 0.0)


def test_a_workspace_that_nothing_fills_is_a_finding():
    report = tlx_xdsl.check(accumulates, 2, tlx_xdsl.uninitialized((32,), np.float32), zeros(64, np.float32), seconds=0)
    assert report.findings[0].diagnostic.message.startswith("'sums' in global memory is read before it is written")
    assert tlx_xdsl.check(accumulates, 2, zeros(32, np.float32), zeros(64, np.float32), seconds=0)


@pytest.mark.parametrize("given", [{"launches": 1}, {"launches": 3}])
def test_a_deadlock_of_a_later_launch(given):
    arrays = zeros(1), zeros(4)
    report = tlx_xdsl.check(meet, 4, *arrays, RESET=False, seconds=0, stages=("frontend",), **given)
    assert bool(report) == (given["launches"] == 1)
    if not report:
        (finding,) = report.findings
        assert finding.diagnostic.message.startswith("deadlock: ")
        assert "in the second launch: 'arrived' is left at 4 by the first, which was 0" in str(finding)


def test_a_result_that_no_program_of_the_second_launch_writes():
    arrays = zeros(128, np.float32), zeros(1), zeros(32, np.float32)
    assert tlx_xdsl.check(split, 4, *arrays, True, seconds=0, launches=2)
    (finding,) = tlx_xdsl.check(split, 4, *arrays, False, seconds=0, launches=2).findings
    assert finding.diagnostic.message == "'out' is written by the first launch, and not by the second"
    assert "'count' is left at 4 by the first, which was 0" in str(finding)
    (remark,) = tlx_xdsl.check(split, 4, *arrays, False, seconds=0).remarks
    assert remark.diagnostic.message == finding.diagnostic.message


@tlx_xdsl.jit
def in_place(x):
    offsets = tl.arange(0, 32)
    tl.store(x + offsets, tl.load(x + offsets) + 1)


def test_other_numbers_in_the_second_launch_are_no_fault():
    report = tlx_xdsl.check(in_place, 1, zeros(32), seconds=0, launches=3)
    assert report
    assert not report.remarks


def test_the_number_of_launches_is_checked():
    with pytest.raises(ValueError, match="launches must be at least 1, found 0"):
        tlx_xdsl.check(in_place, 1, zeros(32), launches=0)
