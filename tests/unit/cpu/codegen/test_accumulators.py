"""Accumulators that their first product does not read, and that are filled where something else does.

Temporary memory begins as NaN, so what is read and was never written shows. Numbers are integers: sums are exact.
"""

# covers: target.cpu

import functools

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.codegen.native import Guarded, bufferized, compiled
from tlx_xdsl.cpu.codegen.postponed import unfilled_accumulators
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization

S, K = 16, 16


@tlx_xdsl.jit
def operands(a, b, turn, S: tl.constexpr, K: tl.constexpr):
    s, k = tl.arange(0, S), tl.arange(0, K)
    x = tl.load(a + turn * S * K + s[:, None] * K + k[None, :])
    return x, tl.load(b + turn * S * K + k[:, None] * S + s[None, :])


@tlx_xdsl.jit
def written(c, total, S: tl.constexpr):
    s = tl.arange(0, S)
    tl.store(c + s[:, None] * S + s[None, :], total)


@tlx_xdsl.jit
def summed(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    total = tl.full((S, S), 3.0, tl.float32)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        total = tl.dot(x, y, total, input_precision="ieee")
    written(c, total, S)


@tlx_xdsl.jit
def rescaled(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    """Read and write the accumulator before each product."""
    total = tl.full((S, S), 3.0, tl.float32)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        total = tl.dot(x, y, total * 2, input_precision="ieee")
    written(c, total, S)


@tlx_xdsl.jit
def each_turn(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    """An accumulator of its own in each turn of a loop."""
    total = tl.full((S, S), 3.0, tl.float32)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        total += tl.dot(x, y, input_precision="ieee")
    written(c, total, S)


@tlx_xdsl.jit
def some_turns(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    """A branch without a product."""
    total = tl.full((S, S), 3.0, tl.float32)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        if turn % 2 == 1:
            total = tl.dot(x, y, total, input_precision="ieee")
    written(c, total, S)


@tlx_xdsl.jit
def as_a_nest(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    """A product that is a plain loop nest: its sums are f16."""
    total = tl.full((S, S), 3.0, tl.float16)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        total = tl.dot(x.to(tl.float16), y.to(tl.float16), total, out_dtype=tl.float16)
    written(c, total.to(tl.float32), S)


@tlx_xdsl.jit
def of_another(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    """The sums are an operand of another product."""
    total = tl.full((S, S), 3.0, tl.float32)
    for turn in range(n):
        x, y = operands(a, b, turn, S, K)
        total = tl.dot(x, y, total, input_precision="ieee")
    s = tl.arange(0, S)
    ones = (s[:, None] == s[None, :]).to(tl.float32)
    written(c, tl.dot(total, ones, input_precision="ieee"), S)


KERNELS = [summed, rescaled, each_turn, some_turns, as_a_nest, of_another]


def module_of(kernel):
    signature = dict.fromkeys("abc", "*fp32") | {"n": "i32"}
    return plain_module(source_of(kernel), Specialization(signature, {"S": S, "K": K}))


@functools.cache
def native(kernel, checks):
    return compiled(module_of(kernel), checks=checks)


def expected(kernel, a, b):
    total = np.full((S, S), 3.0, np.float32)
    for turn, (x, y) in enumerate(zip(a, b, strict=True)):
        if kernel is rescaled:
            total = total * 2
        if kernel is not some_turns or turn % 2:
            total = total + x @ y
    return total


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_begin_with_a_number(kernel, checks):
    rng = np.random.default_rng(52)
    for n in (0, 1, 2, 3):
        a = rng.integers(-3, 4, (n, S, K)).astype(np.float32)
        b = rng.integers(-3, 4, (n, K, S)).astype(np.float32)
        held = [Guarded(each) for each in (a, b, np.full((S, S), np.nan, np.float32))]
        assert native(kernel, checks).run((1, 1, 1), [*(each.array for each in held), n]) is None
        assert (held[2].array == expected(kernel, a, b)).all(), n
        for each in held:
            each.check()


@pytest.mark.parametrize(("kernel", "fills"), [(summed, 1), (each_turn, 1), (of_another, 2)])
def test_fills_that_products_do_without(kernel, fills):
    waits = unfilled_accumulators(bufferized(module_of(kernel))).values()
    assert len({id(wait) for each in waits for wait in each}) == fills


def test_a_fill_of_something_else_stays():
    assert not unfilled_accumulators(bufferized(module_of(plain)))


@tlx_xdsl.jit
def plain(a, b, c, n, S: tl.constexpr, K: tl.constexpr):
    written(c, tl.sort(tl.zeros((S, S), tl.float32) + n), S)
