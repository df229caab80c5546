"""Forms are the numbers that they say, however they are simplified."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.unit.volume import is_full
from tlx_xdsl.addresses.bounds import Bounds, assume
from tlx_xdsl.addresses.intervals import Interval
from tlx_xdsl.addresses.model import Guard, LaunchFacts
from tlx_xdsl.addresses.simplify import Simplifier
from tlx_xdsl.analysis.integers.functions import apply
from tlx_xdsl.analysis.integers.polynomials import Lane, NumPrograms, Pid, Polynomial

pytestmark = pytest.mark.quick

SYMBOLS = (Pid(0), Pid(1), NumPrograms(2), Lane(0, 4))
EXAMPLES = settings(
    max_examples=1000 if is_full() else 25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip


def bounds() -> Bounds:
    """Small ranges, one with negative numbers."""
    made = Bounds(LaunchFacts())
    for symbol, interval in zip(SYMBOLS, ((0, 5), (-4, 3), (1, 6), (0, 3)), strict=True):
        made.known[symbol] = Interval(*interval)
    return made


def values(made: Bounds) -> list[dict[object, int]]:
    """All combinations of the values of the symbols."""
    ranges = [range(made.of(symbol).low, made.of(symbol).high + 1) for symbol in SYMBOLS]
    return [dict(zip(SYMBOLS, numbers, strict=True)) for numbers in product(*ranges)]


def number(form: Polynomial, held: dict[object, int]) -> int:
    return int(form.evaluate(held.__getitem__, apply))


LINEAR = st.tuples(st.lists(st.integers(-40, 40), min_size=4, max_size=4), st.integers(-100, 100))


def linear(drawn: tuple[list[int], int]) -> Polynomial:
    numbers, constant = drawn
    total = Polynomial.constant(constant)
    for symbol, factor in zip(SYMBOLS, numbers, strict=True):
        total = total + Polynomial.of(symbol, factor)
    return total


NAMES = st.sampled_from(("floordiv", "mod", "truncdiv", "truncmod", "min", "max", "less", "equal"))
CALLS = st.lists(st.tuples(NAMES, LINEAR, st.integers(1, 64), st.integers(-8, 8)), min_size=1, max_size=3)


@EXAMPLES
@given(LINEAR, CALLS)
def test_simplified_calls_have_the_value_of_the_call(first: tuple[list[int], int], calls: list) -> None:
    made = bounds()
    simplifier = Simplifier(made)
    form, held = linear(first), values(made)[::7]
    expected = [number(form, each) for each in held]
    for name, other, divisor, factor in calls:
        right = linear(other)
        if "div" in name or "mod" in name:
            # Some divisors are symbols: 1 to 6, and more.
            right = Polynomial.constant(divisor) if divisor % 3 else Polynomial.of(NumPrograms(2)) + divisor // 3
        result = simplifier.call(name, (form, right))
        expected = [
            int(apply(name, [before, number(right, each)])) for before, each in zip(expected, held, strict=True)
        ]
        form = result * factor + linear(other)
        expected = [value * factor + number(linear(other), each) for value, each in zip(expected, held, strict=True)]
        assert [number(form, each) for each in held] == expected
        reach = made.of_form(form)
        assert reach.low <= min(expected)
        assert max(expected) <= reach.high


@EXAMPLES
@given(LINEAR, LINEAR, LINEAR)
def test_forms_are_a_ring(a: tuple, b: tuple, c: tuple) -> None:
    x, y, z = linear(a), linear(b), linear(c)
    assert (x + y) * z == x * z + y * z
    assert x * y == y * x
    assert x - x == Polynomial({})
    assert hash((x + y) + z) == hash(x + (y + z))
    for held in values(bounds())[::17]:
        assert number(x * y - z, held) == number(x, held) * number(y, held) - number(z, held)


@EXAMPLES
@given(LINEAR, LINEAR)
def test_coefficient_and_rest_give_the_form(a: tuple, b: tuple) -> None:
    form = linear(a) * linear(b)
    for symbol in SYMBOLS:
        factor = form.coefficient(symbol)
        if factor is not None:
            rest = form - factor * Polynomial.of(symbol)
            assert not rest.depends_on(symbol)
            assert not factor.depends_on(symbol)


@EXAMPLES
@given(LINEAR, LINEAR, st.sampled_from(("<", "<=", ">", ">=", "==")))
def test_promises_leave_what_keeps_them(a: tuple, b: tuple, sign: str) -> None:
    made = bounds()
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}[sign]
    left, right = linear(a), linear(b)
    kept = [held for held in values(made) if compare(number(left, held), number(right, held))]
    assume(made, Guard(left, sign, right))
    for held in kept:
        assert all(held[symbol] in made.of(symbol) for symbol in SYMBOLS)


def test_forms_read_well() -> None:
    x, y, lane = Polynomial.of(Pid(0)), Polynomial.of(Pid(1)), Polynomial.of(Lane(0, 4))
    assert str(x * 512 + lane * 4 + 16) == "512*pid_x + 4*i0 + 16"
    assert str(y - x) == "-pid_x + pid_y"
    assert str(Polynomial({})) == "0"
    assert str(Simplifier(bounds()).call("floordiv", (x + 1, Polynomial.constant(4)))) == "((pid_x + 1) // 4)"


def test_negative_numbers_are_not_below_a_symbol() -> None:
    divisor = Polynomial.of(NumPrograms(2)) + 4
    form = Simplifier(bounds()).call("mod", (Polynomial.of(Pid(1)), divisor))
    assert str(form) == "(pid_y % (num_programs_z + 4))"
