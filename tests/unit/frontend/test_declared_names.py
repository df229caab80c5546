"""Names that are declared constexpr and assigned later, `:=`, tuples, and conditions of one element."""

# covers: tl.compile_time

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.frontend.one_liners import assert_as_stock, assert_fault
from tlx_xdsl.text.diagnostics import collected_diagnostics

X = {"x": "*i32", "n": "i32"}

AS_STOCK = [
    "a: tl.constexpr;; a, b = (8, 3);; tl.store(x + tl.arange(0, a), b)",
    "a: tl.constexpr;; b: tl.constexpr;; (a, b), c = ((8, 4), n);; tl.store(x + tl.arange(0, a * b), c)",
    # A declaration is for one assignment.
    "a: tl.constexpr;; a = 8;; tl.static_assert(a == 8);; a = 4;; tl.store(x, a.to(tl.int32))",
    # Operations of constants are none of an argument.
    "a: tl.constexpr = 1.0 / tl.sqrt(8 * 2.0);; tl.store(x, (a * n).to(tl.int32))",
    # An annotation that is not `constexpr` keeps nothing.
    "a: tl.constexpr;; a: tl.int32;; a = 8;; tl.static_assert(a.dtype == tl.int32);; tl.store(x, a)",
    "tl.store(x, (a := 8));; tl.static_assert(a.dtype == tl.int32)",
    "a: tl.constexpr;; tl.store(x + tl.arange(0, (a := 8)), a)",
    "q = tl.tuple([n, n + 1]);; tl.store(x, q[1])",
    "if tl.load(x + tl.arange(0, 1)) > n:\n    tl.store(x, n)",
    "if tl.load(x + tl.arange(0, 1)[:, None]):\n    tl.store(x, n);; else:\n    tl.store(x, 0)",
    "v = tl.arange(0, 8)[None, None:];; w = tl.arange(0, 8)[::None, None];; tl.store(x + v, w.T)",
    "tl.static_assert((8).type == tl.constexpr_type(8));; tl.store(x, n)",
    "if hasattr(n, 'dtype') and not hasattr(x, 'items'):\n    tl.store(x, n)",
]


@pytest.mark.backend
@pytest.mark.parametrize("body", AS_STOCK)
def test_as_stock(tmp_path, body):
    assert_as_stock(tmp_path, X, body)


@pytest.mark.parametrize(
    ("body", "message", "at"),
    [
        ("a: tl.constexpr;; a = n", "'a' is declared constexpr, found a runtime value of type int32", "n"),
        ("a: tl.constexpr;; b, a = (1, n)", "'a' is declared constexpr, found a runtime value", "(1"),
        ("a: tl.constexpr = tl.sqrt(n * 2.0)", "'a' is declared constexpr, found a runtime value", "tl.sqrt"),
        ("a: tl.constexpr = tl.program_id(0)", "'a' is declared constexpr, found a runtime value", "tl.program"),
        ("a: tl.constexpr = tl.load(x)", "'a' is declared constexpr, found a runtime value", "tl.load"),
        ("x[0]: tl.constexpr", "an annotation needs a name, found", "x[0]"),
        ("v = tl.arange(0, 8);; v[None, 1:]", "unsupported tensor index", "1:"),
        ("x[10:]", "unsupported tensor index", "x["),
        ("if tl.load(x + tl.arange(0, 2)) > n: pass", "a branch needs a scalar condition", "tl.load"),
    ],
)
def test_faults_are_located(tmp_path, body, message, at):
    assert_fault(tmp_path, X, body, message, at)


@tlx_xdsl.jit
def branches(x, n):
    size: tl.constexpr
    if n > 0:
        size = 8
        tl.store(x + tl.arange(0, size), n)
    else:
        size = 8
        tl.store(x + tl.arange(0, 2 * size), n)


def test_each_branch_has_the_declarations_before_it():
    """Stock Triton 3.9 makes invalid IR of this."""
    out = np.zeros(16, np.int32)
    branches.interpret(1, out, -1)
    assert (out == -1).all()


@tlx_xdsl.jit
def one_element(x, c):
    if tl.load(c + tl.arange(0, 1)):
        tl.store(x, tl.where(tl.load(c), 1, 2))


def test_what_is_taken_for_a_condition_is_warned_of():
    with collected_diagnostics() as said:
        one_element.compile({"x": "*i32", "c": "*i32"})
    assert [each.message.partition(":")[0].partition(",")[0] for each in said if each.severity == "warning"] == [
        "the condition of this branch is a block of type int32[1]",
        "tl.where with a non-boolean condition is deprecated",
    ]
    assert "write (tl.load(c + tl.arange(0, 1))).item()" in said[0].message


@tlx_xdsl.jit
def twice(value):
    return value + value


@tlx_xdsl.jit
def mixed(out, things, BLOCK: tl.constexpr):
    size, function, array, nothing = tuple(things)
    tl.static_assert(nothing is None)
    at = tl.arange(0, things[0])
    tl.store(out + at, function(tl.load(array + at)) * size + BLOCK)


def test_tuples_hold_what_is_known_at_compile_time():
    given, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    mixed.interpret(1, out, (tl.constexpr(8), twice, given, None), BLOCK=3)
    assert (out == given * 16 + 3).all()


@tlx_xdsl.jit
def none_before_a_branch(x_ptr, n):
    loaded = None
    if n > 3:
        loaded = tl.load(x_ptr)
        tl.store(x_ptr + 1, loaded + 1)


@pytest.mark.parametrize("n", [3, 4])
def test_what_is_none_before_a_branch_may_get_a_value_in_it(n):
    x = np.ones(2, np.float32)
    tlx_xdsl.interpret(none_before_a_branch, 1, x, n)
    assert x[1] == (2 if n > 3 else 1)
