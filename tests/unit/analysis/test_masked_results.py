"""Loads whose masked elements meet others, and those that are harmless."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.analysis.masked_results import reached_by_masked
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import shown_path
from tlx_xdsl.frontend.compile import build_module

pytestmark = pytest.mark.quick


@tlx_xdsl.jit
def kernel(x, y, n, m, CASE: tl.constexpr):  # noqa: C901
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
    at = tl.arange(0, 32)
    block = rows * 32 + columns
    if CASE == "sum":
        tl.store(y, tl.sum(tl.load(x + at, mask=at < n), 0))
    elif CASE == "maximum after arithmetic":
        v = tl.load(x + at, mask=at < n)
        tl.store(y, tl.max(tl.exp(v - 1.0) * v, 0))
    elif CASE == "scan":
        tl.store(y + at, tl.cumsum(tl.load(x + at, mask=at < n), 0), mask=at < n)
    elif CASE == "product":
        a = tl.load(x + block, mask=columns < n)
        tl.store(y + rows * 16 + tl.arange(0, 16)[None, :], tl.dot(a, tl.trans(a)))
    elif CASE == "count":
        tl.store(y + at, tl.histogram(tl.load(x + at, mask=at < n).to(tl.int32), 32).to(tl.float32))
    elif CASE == "carried by a loop":
        total = tl.zeros((32,), tl.float32)
        for i in range(m):
            total += tl.load(x + i * 32 + at, mask=i * 32 + at < n)
        tl.store(y, tl.sum(total, 0))
    elif CASE == "chosen by a branch":
        v = tl.load(x + at, mask=at < n)
        if m > 3:
            v = v + 1.0
        tl.store(y, tl.min(v, 0))
    elif CASE == "columns after rows":
        v = tl.load(x + block, mask=rows < n)
        tl.store(y, tl.sum(tl.sum(v, 1), 0))
    elif CASE == "reshaped":
        v = tl.load(x + at, mask=at < n)
        tl.store(y + tl.arange(0, 4), tl.sum(tl.reshape(v, (4, 8)), 1))
    elif CASE == "atomic":
        tl.store(y, tl.sum(tl.atomic_add(x + at, 1.0, mask=at < n), 0))
    # --- harmless
    elif CASE == "other":
        tl.store(y, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))
    elif CASE == "no mask":
        tl.store(y, tl.sum(tl.load(x + at), 0))
    elif CASE == "where":
        tl.store(y, tl.max(tl.where(at < n, tl.load(x + at, mask=at < n), -1.0), 0))
    elif CASE == "times a mask":
        v = tl.load(x + at, mask=at < n)
        tl.store(y, tl.sum((v - 1.0) * (at < n).to(tl.float32), 0))
    elif CASE == "a mask on the store":
        tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
    elif CASE == "whole rows":
        tl.store(y + tl.arange(0, 16), tl.sum(tl.load(x + block, mask=rows < n), 1), mask=tl.arange(0, 16) < n)
    elif CASE == "rows of a product":
        a, b = tl.load(x + block, mask=rows < n), tl.load(x + block)
        tl.store(y + rows * 16 + tl.arange(0, 16)[None, :], tl.dot(a, tl.trans(b)), mask=rows < n)
    elif CASE == "columns of a product":
        a, b = tl.load(x + block), tl.load(x + block, mask=rows < n)
        tl.store(y + rows * 16 + tl.arange(0, 16)[None, :], tl.dot(a, tl.trans(b)))
    elif CASE == "accumulator":
        square = rows * 16 + tl.arange(0, 16)[None, :]
        a, c = tl.load(x + block), tl.load(y + square, mask=square < n)
        tl.store(y + square, tl.dot(a, tl.trans(a), c), mask=square < n)
    elif CASE == "number":
        tl.store(y, tl.sum(tl.load(x + at) * tl.load(y, mask=n > 0), 0))
    elif CASE == "condition":
        tl.store(y, tl.sum(tl.where(tl.load(x + at, mask=at < n) > 0, tl.load(x + at), 0.0), 0))
    elif CASE == "address":
        at_most = tl.load(x + at, mask=at < n).to(tl.int32)
        tl.store(y, tl.sum(tl.load(x + at_most), 0))


REACHED = {
    "sum": "tt.reduce", "maximum after arithmetic": "tt.reduce", "scan": "tt.scan", "product": "tt.dot",
    "count": "tt.histogram", "carried by a loop": "tt.reduce", "chosen by a branch": "tt.reduce",
    "columns after rows": "tt.reduce", "reshaped": "tt.reduce", "atomic": "tt.reduce",
}  # fmt: skip
HARMLESS = [
    "other", "no mask", "where", "times a mask", "a mask on the store", "whole rows", "rows of a product",
    "columns of a product", "accumulator", "number", "condition", "address",
]  # fmt: skip


def found(case: str) -> list[Any]:
    module = build_module(kernel.source, {"x": "*fp32", "y": "*fp32", "n": "i32", "m": "i32"}, {"CASE": case})
    return [each for op in module.walk() if isinstance(op, tt.FuncOp) for each in reached_by_masked(op)]


@pytest.mark.parametrize("case", REACHED)
def test_what_a_mask_hides_meets_other_elements(case: str):
    """The load is named once, with the first that combines its elements, both at the user's lines."""
    (each,) = found(case)
    assert each.reader.name == REACHED[case]
    assert each.remark.message.startswith(
        f"what the mask hides is 0, and reaches '{REACHED[case]}' at {shown_path(__file__)}:"
    )
    assert each.remark.location.filename == __file__


@pytest.mark.parametrize("case", HARMLESS)
def test_what_another_mask_hides_is_harmless(case: str):
    assert not found(case)


@tlx_xdsl.jit
def taken(x, y, n, CASE: tl.constexpr):
    old = tl.atomic_add(x, 1.0) if CASE == "no mask" else tl.atomic_add(x, 1.0, mask=n > 0)
    if CASE in ("no mask", "stored"):
        tl.store(y, old)
    elif CASE == "masked":
        tl.store(y, old, mask=n > 0)
        tl.store(y + 1, tl.where(n > 0, old, 0.0))
    elif CASE == "under the condition" and n > 0:
        tl.store(y, old)


@pytest.mark.parametrize("case", ["stored", "no mask", "masked", "under the condition", "not used"])
def test_a_masked_atomic_operation_on_a_number_is_anything(case: str):
    module = build_module(taken.source, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"CASE": case})
    reached = [each for op in module.walk() if isinstance(op, tt.FuncOp) for each in reached_by_masked(op)]
    assert len(reached) == (case == "stored")
    for each in reached:
        assert "where the mask is false this number is anything, and reaches 'tt.store'" in each.remark.message


@tlx_xdsl.jit
def normed(x, y, n):
    at = tl.arange(0, 32)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v / tl.sqrt(tl.sum(v * v, 0) / n), mask=at < n)


def test_a_check_remarks_once():
    report = tlx_xdsl.check(normed, 1, np.ones(32, np.float32), np.ones(32, np.float32), 20)
    assert report
    (remark,) = report.remarks
    assert remark.rule == "masked"
    assert "'other=' says what it is to be" in str(remark)
    # Who asks for NaN sees it, and nothing is remarked twice.
    y = np.ones(32, np.float32)
    normed.interpret((1,), np.ones(32, np.float32), y, 20, unwritten="poison")
    assert np.isnan(y[:20]).all()
