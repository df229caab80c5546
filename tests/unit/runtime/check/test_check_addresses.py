"""Findings about other sizes: offsets that wrap around, masks that are missing; and writes that a lock orders."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.addresses import LaunchFacts
from tlx_xdsl.addresses.coverage.ordering import ordering
from tlx_xdsl.addresses.wrapping import wraps
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def rows(x, out, n, stride, BLOCK: tl.constexpr, WIDE: tl.constexpr, MASK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n if MASK else columns < BLOCK
    tl.store(out + row * stride + columns, tl.load(x + row * stride + columns, mask=mask), mask=columns < n)


def remarks(*arguments, grid=4):
    before = [each.copy() for each in arguments if isinstance(each, np.ndarray)]
    report = tlx_xdsl.check(rows, grid, *arguments, seconds=0.01)
    assert report, str(report)
    assert all((a == b).all() for a, b in zip(before, arguments, strict=False)), "arrays are as before"
    return {each.rule: each.diagnostic for each in report.remarks}


def arrays(stride=48):
    return np.zeros(4 * stride, np.float32), np.ones(4 * stride, np.float32)


def test_the_size_at_which_an_offset_wraps_around():
    stride = 3 << 18
    found = remarks(*arrays(stride), 30, stride, 32, False, True)["overflow"]
    # 2^31 / stride programs, or rows of 2^31 / 3 elements.
    assert found.message == (
        "the offsets of 'x' wrap around in 32 bits from 2,732 programs along x or stride = 715,827,883 on, with "
        "the other numbers as they are here"
    )
    assert "an array of 2^31 elements has 8.6 GB" in found.notes[0]
    assert "overflow" not in remarks(*arrays(stride), 30, stride, 32, True, True)


def test_no_remark_where_a_launch_must_be_more_than_a_thousand_times_as_large():
    assert "overflow" not in remarks(*arrays(), 30, 48, 32, False, True)


@pytest.mark.parametrize(("factor", "happens"), [(1, False), (1 << 20, True)])
def test_a_wrap_in_the_launch_itself(factor, happens):
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "stride": "i32"}
    module = frontend_module(rows.source, Specialization(signature, {"BLOCK": 32, "WIDE": 0, "MASK": 1}))
    found = wraps(module, LaunchFacts((4096, 1, 1), {"n": 32, "stride": factor}))
    assert {each.happens for each in found} == {happens}


@tlx_xdsl.jit
def far(x, out, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(out + columns, tl.load(x + tl.program_id(0) * stride // (stride // 64) + columns))


def test_an_access_out_of_bounds_says_that_its_offset_has_wrapped():
    with pytest.raises(CompilationError) as caught:
        tlx_xdsl.interpret(far, 3, np.zeros(256, np.float32), np.zeros(32, np.float32), 1 << 30, 32)
    assert "; its offset wraps around in 32 bits: " in caught.value.message
    with pytest.raises(CompilationError) as caught:
        tlx_xdsl.interpret(far, 3, np.zeros(128, np.float32), np.zeros(32, np.float32), 1 << 10, 32)
    assert "wraps around" not in caught.value.message


@tlx_xdsl.jit
def loaded(x, count, out, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for block in range(tl.load(count)):
        total += tl.load(x + block * stride + columns)
    tl.store(out + columns, total)


def test_a_loop_whose_end_is_loaded_may_turn_few_times():
    with pytest.raises(CompilationError) as caught:
        tlx_xdsl.interpret(
            loaded, 1, np.zeros(96, np.float32), np.full(1, 8, np.int32), np.zeros(32, np.float32), 32, 32
        )
    assert "out of bounds" in caught.value.message
    assert "wraps around" not in caught.value.message


@tlx_xdsl.jit
def line(x, out, n, BLOCK: tl.constexpr, MASK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n) if MASK else tl.load(x + at)
    tl.store(out + at, values, mask=at < n)


def test_a_mask_that_is_missing_at_a_size_that_blocks_divide():
    def bounds(size, masked):
        x, out = np.ones(size, np.float32), np.zeros(size, np.float32)
        report = tlx_xdsl.check(line, -(-size // 32), x, out, size, 32, masked, seconds=0.01)
        assert report
        assert not out.any()
        return [each.diagnostic for each in report.remarks if each.rule == "bounds"]

    assert not bounds(128, True)
    (found,) = bounds(128, False)
    assert found.message.startswith(
        "with n = 127 for 128, and arrays of that size: load out of bounds: 4 bytes at byte 508"
    )
    assert found.location is not None
    assert found.severity == "remark"
    # A size that is a compile-time argument, too, is not varied: the two need not be one.
    assert not bounds(32, False)


@tlx_xdsl.jit
def a_row(x, out, rows, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + at, tl.load(x + at) * rows)


def test_a_grid_that_has_a_program_for_each_row_has_one_less_for_a_row_less():
    x, out = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    report = tlx_xdsl.check(a_row, 4, x, out, 4, 32, seconds=0.01)
    assert report
    assert not [each for each in report.remarks if each.rule == "bounds"]


@tlx_xdsl.jit
def ordered(lock, total, flag, KIND: tl.constexpr):
    if KIND == "lock":
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
    elif KIND == "late":
        tl.atomic_add(flag, 1, sem="relaxed")
    tl.store(total, tl.load(total) + 1)
    if KIND == "late":
        tl.atomic_add(flag, 1, sem="acquire")
    tl.atomic_xchg(lock, 0, sem="relaxed" if KIND == "relaxed" else "release")


@pytest.mark.parametrize(("kind", "is_ordered"), [("lock", True), ("", False), ("late", False), ("relaxed", False)])
def test_writes_between_an_acquire_and_a_release(kind, is_ordered):
    signature = {"lock": "*i32", "total": "*i32", "flag": "*i32"}
    module = frontend_module(ordered.source, Specialization(signature, {"KIND": kind}))
    (store,) = (op for op in module.walk() if isinstance(op, tt.StoreOp))
    assert (ordering(store, store) is not None) == is_ordered
