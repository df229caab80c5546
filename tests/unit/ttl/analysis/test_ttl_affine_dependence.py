"""Dependence tests against enumeration of all pairs of iterations: none is missed."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from tlx_xdsl.ttl.analysis.affine_dependence import Access, Loop, conflicts
from tlx_xdsl.ttl.analysis.linear import Linear

I_, J_, X_ = Linear.of("i"), Linear.of("j"), Linear.of("x")


def loop(variable: str, upper: int | Linear, lower: int | Linear = 0, step: int = 1) -> Loop:
    low, high = (Linear(each) if isinstance(each, int) else each for each in (lower, upper))
    return Loop(variable, (low,), (high,), step)


def access(loops: list[Loop], *firsts: Linear | None, extent: int = 1, write: bool = True) -> Access:
    return Access(tuple(loops), tuple((first, extent) for first in firsts), write)


def iterations(loops, values):
    if not loops:
        yield values
        return
    for value in loops[0].values(values):
        yield from iterations(loops[1:], {**values, loops[0].variable: value})


def brute(source: Access, sink: Access, parameters: list[Loop], common: int) -> set[tuple[int, ...]]:
    """The distances, by trying all pairs."""
    found = set()
    for setting in iterations(parameters, {}):
        for one, other in product(
            list(iterations(list(source.loops), setting)), list(iterations(list(sink.loops), setting))
        ):
            if all(
                first.value(one) < second.value(other) + n and second.value(other) < first.value(one) + m
                for (first, m), (second, n) in zip(source.box, sink.box, strict=True)
            ):
                found.add(tuple(other[each.variable] - one[each.variable] for each in source.loops[:common]))
    return found


@pytest.mark.parametrize("enumerated", [4096, 0])
@pytest.mark.parametrize(
    ("first", "second", "extent", "expected"),
    [
        pytest.param(I_, I_, 1, {(0,)}, id="the same tile"),
        pytest.param(I_ + 1, I_, 1, {(1,)}, id="the one before"),
        pytest.param(I_ * 2, I_ * 2 + 1, 1, set(), id="even and odd: the greatest common divisor"),
        pytest.param(I_, I_ + 8, 1, set(), id="the other half: the bounds"),
        pytest.param(I_ * 2, I_ * 2, 2, {(0,)}, id="blocks of two side by side"),
        pytest.param(I_, I_, 2, {(-1,), (0,), (1,)}, id="blocks of two that overlap"),
        pytest.param(I_.floordiv(2), I_.floordiv(2), 1, {(-1,), (0,), (1,)}, id="quotients"),
        pytest.param(I_.mod(2), Linear(2), 1, set(), id="remainders"),
    ],
)
def test_one_loop(first, second, extent, expected, enumerated):
    loops = [loop("i", 8)]
    found = conflicts(access(loops, first, extent=extent), access(loops, second, extent=extent), enumerated=enumerated)
    if enumerated:
        assert found.exact
        assert {tuple(low for low, _ in each) for each in found.distances} == expected
    # Without enumeration: each distance is in an interval, and no direction is one too many.
    assert found.directions >= {tuple((d > 0) - (d < 0) for d in each) for each in expected}
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("enumerated", [4096, 0])
def test_transposed_in_two_loops(enumerated):
    loops = [loop("i", 4), loop("j", 4)]
    found = conflicts(access(loops, I_, J_), access(loops, J_, I_), enumerated=enumerated)
    assert found.carried(0)
    assert not found.carried(1)
    assert found.any_backward
    assert found.any_forward
    assert found.in_same_iteration


def test_the_nearest_distance_is_in_indices_not_in_iterations():
    loops = [loop("i", 12, step=3)]
    for enumerated in (4096, 0):
        found = conflicts(access(loops, I_), access(loops, I_ + 6), enumerated=enumerated)
        assert found.nearest(0) == 6
        assert found.any_backward
        assert not found.any_forward


def test_a_parameter_is_the_same_on_both_sides():
    x = loop("x", 1000)
    for enumerated in (4096, 0):
        assert not conflicts(
            access([loop("i", 4)], X_ * 4 + I_), access([loop("j", 4)], X_ * 4 + J_ + 4), [x], enumerated=enumerated
        )
        assert conflicts(
            access([loop("i", 4)], X_ * 4 + I_), access([loop("j", 4)], X_ * 4 + J_ + 3), [x], enumerated=enumerated
        )


def test_a_name_without_bounds_is_one_unknown_number():
    loops = [loop("i", 8)]
    assert not conflicts(access(loops, I_ + X_ * 3), access(loops, I_ + X_ * 3 + 8))
    assert conflicts(access(loops, I_ + X_ * 16), access(loops, I_ + 4))
    assert not conflicts(access(loops, I_ + X_ * 16), access(loops, I_ + 8))


def test_an_unknown_index_may_be_any():
    loops = [loop("i", 8)]
    found = conflicts(access(loops, None), access(loops, I_))
    assert found
    assert not found.exact
    assert found.carried(0)


def test_a_second_index_can_exclude_what_the_unknown_one_does_not():
    loops = [loop("i", 8)]
    assert not conflicts(access(loops, None, Linear(0)), access(loops, I_, Linear(1)))


def test_loops_without_an_iteration_conflict_with_nothing():
    for enumerated in (4096, 0):
        assert not conflicts(access([loop("i", 0)], I_), access([loop("j", 4)], J_), enumerated=enumerated)


def test_loops_of_unknown_length_are_not_enumerated():
    endless = Loop("i", (Linear(0),), ())
    found = conflicts(access([endless], I_ * 2), access([endless], I_ * 2 + 1))
    assert not found
    assert conflicts(access([endless], I_), access([endless], I_ + 1)).directions == {(-1,)}


def test_triangles():
    loops = [loop("i", 1000), loop("j", I_)]
    # The lower triangle without its diagonal never meets itself transposed.
    assert not conflicts(access(loops, I_, J_), access(loops, J_, I_)).in_same_iteration


def test_large_loops_are_not_enumerated():
    loops = [loop("i", 10**6), loop("j", 10**6)]
    found = conflicts(access(loops, I_ * 10**6 + J_), access(loops, I_ * 10**6 + J_))
    assert not found.carried(1)
    assert conflicts(access(loops, I_, J_), access(loops, I_, J_)).directions == {(0, 0)}


SMALL = st.integers(-3, 3)


@st.composite
def expressions(draw, names: list[str]) -> Linear:
    total = Linear(draw(SMALL))
    for name in names:
        total += Linear.of(name) * draw(SMALL)
    match draw(st.integers(0, 5)):
        case 0:
            return total.floordiv(draw(st.integers(1, 3)))
        case 1:
            return total.mod(draw(st.integers(1, 4))) + draw(SMALL)
        case _:
            return total


@st.composite
def problems(draw):
    """Two accesses with some common loops, and a parameter."""
    parameters = [loop("x", draw(st.integers(1, 3)))]
    names, common = ["x"], []
    for name in draw(st.sampled_from([[], ["i"], ["i", "j"]])):
        upper: int | Linear = draw(st.integers(0, 5))
        if names[1:] and draw(st.booleans()):
            upper = Linear.of(names[-1]) + draw(st.integers(0, 2))
        common.append(loop(name, upper, draw(st.integers(0, 1)), draw(st.integers(1, 2))))
        names.append(name)
    sides = []
    dimensions = draw(st.integers(1, 2))
    for own in ("a", "b"):
        loops, known = [*common], [*names]
        if draw(st.booleans()):
            loops.append(loop(own, draw(st.integers(1, 4))))
            known.append(own)
        box = tuple((draw(expressions(known)), draw(st.integers(1, 2))) for _ in range(dimensions))
        sides.append(Access(tuple(loops), box, True))
    return sides[0], sides[1], parameters, len(common)


RATE: Counter[str] = Counter()


@given(problems())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_conflict_is_missed(problem):
    source, sink, parameters, _ = problem
    expected = brute(*problem)
    exact = conflicts(source, sink, parameters)
    assert exact.exact
    assert {tuple(low for low, _ in each) for each in exact.distances} == expected
    bounds = conflicts(source, sink, parameters, enumerated=0)
    for distance in expected:
        assert any(
            all(low <= number <= high for number, (low, high) in zip(distance, each, strict=True))
            for each in bounds.distances
        ), f"{distance} is missing in {bounds}"
    RATE["pairs"] += 1
    RATE["conflict or not"] += bool(bounds) == bool(expected)
    RATE["directions"] += bounds.directions == exact.directions


def test_most_answers_are_exact_without_enumeration():
    """Count how often the inequalities alone give the right answer, after the test above."""
    if not RATE["pairs"]:
        pytest.skip("counts what test_no_conflict_is_missed has tried")
    print({name: f"{count / RATE['pairs']:.1%}" for name, count in RATE.items()})
    assert RATE["conflict or not"] / RATE["pairs"] > 0.8
    assert RATE["directions"] / RATE["pairs"] > 0.6
