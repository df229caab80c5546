"""Prints and assertions of kernels."""

# covers: tl.debug, tt.debug

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Fault


@tlx_xdsl.jit
def print_kernel(x, n, f):
    index = tl.arange(0, 2)[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.device_print("start")
    tl.device_print("x", tl.load(x + index))
    tl.device_print("both", n, f)
    tl.device_print("bits", n, hex=True)


def test_each_element_is_a_line_of_its_own(capfd):
    tlx_xdsl.interpret(print_kernel, (2,), np.array([1, -2, 3, 4], np.int32), -1, 0.5, jobs=1)
    lines = capfd.readouterr().out.splitlines()
    expected = []
    for pid in range(2):
        begin = f"pid ({pid}, 0, 0)"
        expected += [
            f"{begin} start",
            f"{begin} idx (0, 0) x: 1",
            f"{begin} idx (0, 1) x: -2",
            f"{begin} idx (1, 0) x: 3",
            f"{begin} idx (1, 1) x: 4",
            f"{begin} idx () both: (operand 0) -1",
            f"{begin} idx () both: (operand 1) 0.500000",
            f"{begin} idx () bits: 0xffffffff",
        ]
    assert lines == expected


@tlx_xdsl.jit
def assert_kernel(x, n):
    a = tl.load(x + tl.arange(0, 8))
    tl.device_assert(a < n, "not below n")


def test_an_assertion_names_the_program_and_the_element():
    x = np.arange(8, dtype=np.int32)
    tlx_xdsl.interpret(assert_kernel, (3,), x, 8)
    with pytest.raises(Fault) as found:
        tlx_xdsl.interpret(assert_kernel, (3,), x, 5)
    assert found.value.message == "assertion failed: not below n"
    assert found.value.notes[0] == "in program (0, 0, 0), first at element [5] of [8]"
    assert "tl.device_assert" in (found.value.source_line or "")


@tlx_xdsl.jit
def assume_kernel(x, n):
    tl.assume(n > 3)
    tl.store(x, n)


def test_a_promise_that_does_not_hold_is_reported():
    x = np.zeros(1, np.int32)
    tlx_xdsl.interpret(assume_kernel, (1,), x, 4)
    with pytest.raises(Fault, match="assumes what does not hold"):
        tlx_xdsl.interpret(assume_kernel, (1,), x, 3)
