"""Programmatic dependent launch: what comes before the wait for the launches before, and may not."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

pytestmark = pytest.mark.quick


def ones(count=256):
    return np.ones(count, np.float32)


@tlx_xdsl.jit
def scale(x, weights, out, LOADS: tl.constexpr, CLEARS: tl.constexpr, WAITS: tl.constexpr):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    factor = tl.load(weights + at)
    if LOADS == "before":
        values = tl.load(x + at)
    if CLEARS:
        tl.store(out + at, 0.0)
    if WAITS:
        tl.extra.cuda.gdc_wait()
    if LOADS == "after":
        values = tl.load(x + at)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(x + at, values + 1)
    tl.store(out + at, values * factor)


def check(loads="after", clears=False, waits=True, **options):
    return tlx_xdsl.check(scale, 2, ones(), ones(), ones(), loads, clears, waits, seconds=0, **options)


@pytest.mark.parametrize("launches", [None, 1, 2])
def test_what_waits_is_right_where_nothing_else_writes_what_is_read_before(launches):
    report = check(launches=launches)
    assert report
    (remark,) = report.remarks
    assert remark.rule == "dependent"
    assert "'weights' is read before gdc_wait: right only where no launch before" in remark.diagnostic.message


def test_a_read_before_the_wait_of_what_the_kernel_writes():
    report = check("before", launches=2)
    (finding,) = report.findings
    assert finding.rule == "dependent"
    assert "'x' is read before gdc_wait: a launch before of this kernel" in finding.diagnostic.message
    assert "may write byte 0 later" in finding.diagnostic.message
    assert "values = tl.load(x + at)" in str(finding)
    assert "after gdc_launch_dependents: this launch may have begun then" in str(finding)


def test_a_write_before_the_wait():
    (finding,) = check(clears=True, launches=2).findings
    assert "'out' is written before gdc_wait" in finding.diagnostic.message


def test_without_a_number_of_launches_it_is_a_remark():
    report = check("before")
    assert report
    assert {each.rule for each in report.remarks} == {"dependent"}
    assert any("'x' is read before gdc_wait" in each.diagnostic.message for each in report.remarks)


def test_a_kernel_that_others_depend_on_alone_needs_no_wait():
    report = check(waits=False, launches=2)
    assert report
    assert not report.remarks


@tlx_xdsl.jit
def by_tasks(x, out, WHO: tl.constexpr):
    """One task waits, and the other one by an mbarrier for it."""
    ready = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.extra.cuda.gdc_wait()
            tlx.barrier_arrive(ready[0])
        with tlx.async_task(num_warps=4):
            at = tl.arange(0, 128)
            if WHO == "waits":
                tlx.barrier_wait(ready[0], 0)
            tl.store(out + at, tl.load(x + at))
            tl.store(x + at, 0.0)
            if WHO != "waits":
                tlx.barrier_wait(ready[0], 0)


def test_a_task_that_waits_for_one_that_waits():
    assert tlx_xdsl.check(by_tasks, 1, ones(128), ones(128), "waits", launches=2, seconds=0)
    findings = tlx_xdsl.check(by_tasks, 1, ones(128), ones(128), "", launches=2, seconds=0).findings
    assert {each.rule for each in findings} == {"dependent"}
    assert {each.diagnostic.message.split()[0] for each in findings} == {"'x'", "'out'"}


@tlx_xdsl.jit
def counts(count, x, out, PLAIN: tl.constexpr):
    if PLAIN:
        tl.store(out, tl.load(count))
    else:
        tl.atomic_add(count, 1, sem="relaxed")
    tl.extra.cuda.gdc_wait()
    tl.atomic_add(count, 1, sem="relaxed")
    tl.store(x, 1.0)


def test_atomic_operations_do_not_conflict_with_each_other():
    arrays = np.zeros(1, np.int32), ones(1), np.zeros(1, np.int32)
    assert tlx_xdsl.check(counts, 1, *arrays, False, launches=2, seconds=0)
    findings = tlx_xdsl.check(counts, 1, *arrays, True, launches=2, seconds=0).findings
    assert any("'count' is read before gdc_wait" in each.diagnostic.message for each in findings)
    assert any("may update byte 0 later" in each.diagnostic.message for each in findings)
