"""Results that must be used, and globals that are only annotated."""

# covers: tl.compile_time

from __future__ import annotations

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import CompilationError
from tlx_xdsl.language.marks import must_use_result

ANNOTATED: tl.constexpr = 42
MADE = tl.constexpr(42)


@must_use_result("It has no side effect.")
@tlx_xdsl.jit
def cube(x):
    return x * x * x


@tlx_xdsl.jit
def unused(x):
    cube(tl.load(x))


@tlx_xdsl.jit
def used(x):
    y = cube(tl.load(x))
    tl.store(x, y + cube(y) + MADE)


@tlx_xdsl.jit
def annotated(x):
    tl.store(x, ANNOTATED)


def test_a_result_that_nothing_uses_is_refused():
    with pytest.raises(CompilationError, match=r"The result of cube is not being used\. It has no") as error:
        unused.compile({"x": "*fp32"})
    assert error.value.location.line == unused.source.fn.__code__.co_firstlineno + 2


def test_a_result_that_is_used_is_not():
    assert used.compile({"x": "*fp32"}).ttgir


def test_an_annotated_global_is_no_constexpr():
    with pytest.raises(CompilationError, match="Cannot access global variable 'ANNOTATED'"):
        annotated.compile({"x": "*i32"})


@tlx_xdsl.jit
def scaled(out):
    a = tl.full((32, 64), 0, tl.uint8)
    b = tl.full((64, 32), 0, tl.uint8)
    fine, coarse = tl.full((32, 4), 0, tl.uint8), tl.full((32, 2), 0, tl.uint8)
    tl.store(out, tl.sum(tl.dot_scaled(a, fine, "e5m2", b, coarse, "e5m2")))


def test_scales_of_different_groups_are_refused():
    with pytest.raises(CompilationError, match=r"Operands must have the same scale factor; \(lhs: 16 vs rhs: 32\)"):
        scaled.compile({"out": "*fp32"})
