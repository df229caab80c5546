"""Forms are the numbers that they say, however they are simplified."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.volume import is_full
from tlx_xdsl.addresses.bounds import Bounds, learn
from tlx_xdsl.addresses.forms import Form, Lane, NumPrograms, Pid
from tlx_xdsl.addresses.intervals import Interval
from tlx_xdsl.addresses.model import Guard, LaunchFacts
from tlx_xdsl.addresses.simplify import Simplifier
from tlx_xdsl.analysis.integers.functions import apply

ATOMS = (Pid(0), Pid(1), NumPrograms(2), Lane(0, 4))
EXAMPLES = settings(
    max_examples=1000 if is_full() else 25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip


def bounds() -> Bounds:
    """Small ranges, one with negative numbers."""
    made = Bounds(LaunchFacts())
    for atom, interval in zip(ATOMS, ((0, 5), (-4, 3), (1, 6), (0, 3)), strict=True):
        made.known[atom] = Interval(*interval)
    return made


def values(made: Bounds) -> list[dict[object, int]]:
    """All combinations of the values of the atoms."""
    ranges = [range(made.of(atom).low, made.of(atom).high + 1) for atom in ATOMS]
    return [dict(zip(ATOMS, numbers, strict=True)) for numbers in product(*ranges)]


def number(form: Form, held: dict[object, int]) -> int:
    return int(form.evaluate(held.__getitem__, apply))


LINEAR = st.tuples(st.lists(st.integers(-40, 40), min_size=4, max_size=4), st.integers(-100, 100))


def linear(drawn: tuple[list[int], int]) -> Form:
    numbers, constant = drawn
    total = Form.constant(constant)
    for atom, factor in zip(ATOMS, numbers, strict=True):
        total = total + Form.of(atom, factor)
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
            right = Form.constant(divisor) if divisor % 3 else Form.of(NumPrograms(2)) + divisor // 3
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
    assert x - x == Form({})
    assert hash((x + y) + z) == hash(x + (y + z))
    for held in values(bounds())[::17]:
        assert number(x * y - z, held) == number(x, held) * number(y, held) - number(z, held)


@EXAMPLES
@given(LINEAR, LINEAR)
def test_coefficient_and_rest_give_the_form(a: tuple, b: tuple) -> None:
    form = linear(a) * linear(b)
    for atom in ATOMS:
        factor = form.coefficient(atom)
        if factor is not None:
            rest = form - factor * Form.of(atom)
            assert not rest.depends_on(atom)
            assert not factor.depends_on(atom)


@EXAMPLES
@given(LINEAR, LINEAR, st.sampled_from(("<", "<=", ">", ">=", "==")))
def test_promises_leave_what_keeps_them(a: tuple, b: tuple, sign: str) -> None:
    made = bounds()
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}[sign]
    left, right = linear(a), linear(b)
    kept = [held for held in values(made) if compare(number(left, held), number(right, held))]
    learn(made, Guard(left, sign, right))
    for held in kept:
        assert all(held[atom] in made.of(atom) for atom in ATOMS)


def test_forms_read_well() -> None:
    x, y, lane = Form.of(Pid(0)), Form.of(Pid(1)), Form.of(Lane(0, 4))
    assert str(x * 512 + lane * 4 + 16) == "512*pid_x + 4*i0 + 16"
    assert str(y - x) == "-pid_x + pid_y"
    assert str(Form({})) == "0"
    assert str(Simplifier(bounds()).call("floordiv", (x + 1, Form.constant(4)))) == "((pid_x + 1) // 4)"


def test_negative_numbers_are_not_below_a_symbol() -> None:
    divisor = Form.of(NumPrograms(2)) + 4
    form = Simplifier(bounds()).call("mod", (Form.of(Pid(1)), divisor))
    assert str(form) == "(pid_y % (num_programs_z + 4))"
