"""Buffers that are live at the same time never share memory."""

# covers: memref-plan-arena

import pytest
from hypothesis import given, settings, strategies as st

from tlx_xdsl.cpu.bufferize.plan_arena import ALIGNMENT, Lifetime, aligned, pack

pytestmark = pytest.mark.quick

_LIFETIMES = st.builds(
    lambda size, first, length: Lifetime(size, first, first + length),
    st.integers(0, 1000),
    st.integers(0, 30),
    st.integers(0, 10),
)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(_LIFETIMES, max_size=20))
def test_what_is_live_together_is_apart(lifetimes):
    offsets, total = pack(lifetimes)
    for number, (one, at) in enumerate(zip(lifetimes, offsets, strict=True)):
        assert at % ALIGNMENT == 0
        assert at + one.size <= total or not one.size
        for other, other_at in zip(lifetimes[:number], offsets, strict=False):
            moments = set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1))
            if moments and one.size and other.size:
                assert at + one.size <= other_at or other_at + other.size <= at


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_one_after_the_other_take_no_more_than_the_largest(sizes):
    lifetimes = [Lifetime(size, moment, moment) for moment, size in enumerate(sizes)]
    assert pack(lifetimes) == ([0] * len(sizes), aligned(max(sizes)))


def test_a_gap_between_two_is_used():
    # The small one ends when the third begins, and lies between the two others.
    lifetimes = [Lifetime(256, 0, 9), Lifetime(64, 0, 4), Lifetime(128, 0, 9), Lifetime(64, 5, 9)]
    offsets, total = pack(lifetimes)
    assert offsets == [0, 384, 256, 384]
    assert total == 448
