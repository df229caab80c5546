"""Affine integers: one form for each value, and maps that compute what Python does."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tlx_xdsl.ttl.frontend.affine import Affine

FIRST, SECOND = Block(arg_types=[IndexType(), IndexType()]).args

Pair = tuple[Affine, str]
"""An expression, and the same in Python."""


def leaves() -> st.SearchStrategy[Pair]:
    return st.one_of(
        st.integers(-7, 7).map(lambda n: (Affine.of(n), f"({n})")),
        st.sampled_from([(Affine.of(FIRST), "i"), (Affine.of(SECOND), "j")]),
    )


def extend(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    two, number = st.tuples(inner, inner), st.tuples(inner, st.integers(1, 6))
    return st.one_of(
        two.map(lambda p: (p[0][0] + p[1][0], f"({p[0][1]} + {p[1][1]})")),
        two.map(lambda p: (p[0][0] - p[1][0], f"({p[0][1]} - {p[1][1]})")),
        number.map(lambda p: (p[0][0].times(p[1] - 3), f"({p[0][1]} * ({p[1] - 3}))")),
        number.map(lambda p: (p[0][0].quotient(p[1]), f"({p[0][1]} // {p[1]})")),
        number.map(lambda p: (p[0][0].remainder(p[1]), f"({p[0][1]} % {p[1]})")),
    )


@given(st.recursive(leaves(), extend, max_leaves=8), st.integers(-20, 20), st.integers(-20, 20))
@settings(max_examples=100, deadline=None)
def test_maps_compute_what_python_does(pair: Pair, i: int, j: int) -> None:
    affine, text = pair
    map_, operands = affine.map()
    values = {FIRST: i, SECOND: j}
    assert map_.eval([values[each] for each in operands], []) == (eval(text, {"i": i, "j": j}),)
    if affine.known is not None:
        assert operands == []


def test_one_form_for_each_value() -> None:
    i, j, one = Affine.of(FIRST), Affine.of(SECOND), Affine.of(1)
    assert (i + one).times(2) - i == one + i + one
    assert hash(i + j) == hash(j + i)
    assert (i.times(4) + j + one).quotient(2) == i.times(2) + (j + one).quotient(2)
    assert (i.times(4) + one).remainder(2).known == 1
    assert (i - i).known == 0
    assert i != j
