"""Launches in the interpreter through the drop-in: what arguments mean, and errors that are Triton's, too."""

# covers: tl.compile_time

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlx_xdsl import compat
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
InterpreterError = pytest.importorskip("triton.runtime.errors").InterpreterError

pytestmark = pytest.mark.backend


@pytest.fixture
def jit():
    """`triton.jit` of the drop-in; what it makes is launched within the test."""
    with compat.installed(mode="interpret"):
        yield triton.jit


def increment(x):
    return x + 1


def takes_a_tuple(out, things):
    tl.static_assert(things[1] is None)
    tl.static_assert(things[4] == 1)
    at = tl.arange(0, things[0])
    tl.store(out + at, things[2](tl.load(things[3] + at)))


def test_what_a_tuple_holds(jit: Callable[..., Any]):
    given, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    jit(takes_a_tuple)[(1,)](out, (tl.constexpr(8), None, jit(increment), given, 1))
    assert (out == given + 1).all()


def half(out, x: tl.float16, y):
    tl.static_assert(x.dtype == tl.float16)
    tl.static_assert(y.dtype == tl.float32)
    tl.store(out, x)


def test_an_annotation_says_the_type_of_a_number(jit: Callable[..., Any]):
    out = np.zeros(1, np.float32)
    jit(half)[(1,)](out, 0.1, 0.1)
    assert out[0] == np.float16(0.1)


def refused(out):
    tl.store(out, out + "text")


def out_of_bounds(out):
    tl.store(out + 5, 1)


@pytest.mark.parametrize(("kernel", "kind"), [(refused, CompilationError), (out_of_bounds, Fault)])
def test_errors_are_those_of_triton_too(jit: Callable[..., Any], kernel: Any, kind: type[Exception]):
    with pytest.raises(triton.TritonError) as caught:
        jit(kernel)[(1,)](np.zeros(1, np.int32))
    error: Any = caught.value
    assert isinstance(error, kind)
    assert isinstance(error, triton.CompilationError)
    assert isinstance(error, InterpreterError)
    assert error.error_message == error.message
    assert type(error.__cause__) is not type(error)
    assert error.__cause__.__cause__ is not error.__cause__
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_an_integer_of_more_than_64_bits(jit: Callable[..., Any]):
    with pytest.raises(OverflowError):
        jit(out_of_bounds)[(1,)](1 << 64)


def constant(out, N: tl.constexpr):
    tl.store(out, N)


def test_a_constexpr_is_specialised(jit: Callable[..., Any]):
    with pytest.raises(triton.CompilationError, match="N marked as constexpr and listed in do_not_specialize"):
        jit(constant, do_not_specialize=["N"])[(1,)](np.zeros(1, np.int32), 5)
