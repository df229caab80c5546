"""Verdicts on an answer to an exercise: numbers that differ, and what the interpreter reports."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.runtime.answers import difference, judged

pytestmark = pytest.mark.quick


@tlx_xdsl.jit
def doubled(x, y, n, BLOCK: tl.constexpr, SPREAD: tl.constexpr):
    at = tl.program_id(0) * SPREAD + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def verdict(x, y, *, grid=2, expected=None, **named):
    return judged(doubled, grid, x, y, 100, expected={"y": (y, x * 2 if expected is None else expected)}, **named)


def test_a_right_answer():
    x = np.arange(100, dtype=np.float32)
    found = verdict(x, np.zeros_like(x), BLOCK=64, SPREAD=64)
    assert found
    assert str(found).startswith("right: in 3 orders of the tasks")
    assert "#2e7d32" in found._repr_html_()


def test_what_is_not_written():
    x = np.arange(100, dtype=np.float32)
    found = verdict(x, x * 2, grid=1, BLOCK=64, SPREAD=64)
    assert not found
    assert str(found).startswith("y[64] is NaN: not written, ")
    assert str(found).endswith("So are 36 of 100 elements.")


def test_programs_that_write_the_same_elements():
    x = np.arange(100, dtype=np.float32)
    found = verdict(x, np.zeros_like(x), BLOCK=64, SPREAD=36)
    assert not found
    assert "test_answers.py:16:5: error: " in str(found)
    assert "&#x27;y&#x27;" in found._repr_html_()


def test_arguments_that_do_not_fit():
    x = np.arange(100, dtype=np.float32)
    assert "missing a required argument: 'SPREAD'" in str(verdict(x, np.zeros_like(x), BLOCK=64))


def test_where_numbers_differ_first():
    right = np.array([[1.0, 2.0], [4.0, np.nan]])
    assert difference("a", right, right, 1e-3) is None
    assert difference("a", right + np.array([[0, 0.003], [0, 0]]), right, 1e-3) is None
    assert difference("a", right + np.array([[0, 0.25], [0, 0]]), right, 1e-3) == (
        "a[0, 1] is 2.25, expected 2. Wrong is 1 of 4 elements."
    )
    assert difference("a", np.array([np.inf, np.nan]), np.array([1.0, 1.0]), 1e-3).startswith("a[1] is NaN")
    assert difference("a", np.array([np.inf, 1.0]), np.array([1.0, 1.0]), 1e-3).startswith("a[0] is inf, expected 1.")
