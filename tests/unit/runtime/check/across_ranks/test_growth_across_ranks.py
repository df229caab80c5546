"""Numbers that grow from launch to launch: what is computed of a form is what the numbers of each period give."""

import itertools
import operator

import numpy as np
import pytest
from xdsl.dialects import arith as upstream, test
from xdsl.dialects.builtin import i32, i64

from tlx_xdsl.dialects import arith
from tlx_xdsl.runtime.check.across_ranks.values import (
    UNKNOWN,
    AtLeast,
    Growing,
    Growth,
    IsTicket,
    LongerPeriodError,
    Ticket,
)

OPERATIONS = {
    upstream.AddiOp: operator.add,
    upstream.SubiOp: operator.sub,
    upstream.MuliOp: operator.mul,
    upstream.DivSIOp: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    upstream.RemSIOp: np.fmod,
    upstream.AndIOp: operator.and_,
    upstream.ShRSIOp: operator.rshift,
}
COMPARISONS = {
    "slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge, "eq": operator.eq,
    "ne": operator.ne,
}  # fmt: skip
FORMS = [Growing(first, step) for first in (-3, 0, 1, 5) for step in (1, 2, 4)]
NUMBERS = [np.int32(each) for each in (-1, 0, 1, 2, 3, 4, 7)]


def made(kind, type_=i32):
    """An operation on two numbers."""
    left, right = test.TestOp(result_types=[type_]).results[0], test.TestOp(result_types=[type_]).results[0]
    return arith.CmpiOp(kind, left, right) if isinstance(kind, str) else kind(left, right)


def at(value, period):
    return value.first + value.step * period if isinstance(value, Growing) else int(value)


@pytest.mark.parametrize("kind", [*OPERATIONS, *COMPARISONS], ids=str)
def test_forms_are_as_the_numbers_of_each_period(kind):
    known = 0
    for left, right in [*itertools.product(FORMS, NUMBERS + FORMS), *itertools.product(NUMBERS, FORMS)]:
        try:
            found = Growth(4).computed(made(kind), [left, right])
        except LongerPeriodError:
            continue
        if found is UNKNOWN:
            continue
        known += 1
        compute = (COMPARISONS if isinstance(kind, str) else OPERATIONS)[kind]
        for period in range(20):
            assert at(found, period) == compute(at(left, period), at(right, period)), (left, right)
    assert known > 10


def test_a_number_that_takes_turns_makes_the_period_longer():
    with pytest.raises(LongerPeriodError) as found:
        Growth(3).computed(made(upstream.RemSIOp), [Growing(1, 3), np.int32(2)])
    assert found.value.launches == 6
    assert Growth(6).computed(made(upstream.RemSIOp), [Growing(1, 6), np.int32(2)]) == 1
    # There are no periods of a hundred launches.
    assert Growth(1).computed(made(upstream.RemSIOp), [Growing(1, 1), np.int32(100)]) is UNKNOWN


def test_numbers_that_wrap_around_limit_the_periods():
    growth = Growth(1)
    growth.computed(made(upstream.MuliOp), [Growing(1, 1), np.int32(4)])
    largest = 4 + 4 * (growth.periods - 1)
    assert largest <= 2**31 - 1 < largest + 8
    assert growth.computed(made(upstream.AddiOp), [Growing(2**31 - 1, 1), np.int32(1)]) is UNKNOWN
    wide = Growth(1)
    wide.computed(made(upstream.MuliOp, i64), [Growing(1, 1), np.int64(4)])
    assert wide.periods > 2**60


def test_casts():
    growth, narrow = Growth(1), test.TestOp(result_types=[i32]).results[0]
    assert growth.computed(arith.ExtSIOp(narrow, i64), [Growing(1, 2)]) == Growing(1, 2)
    assert growth.periods is None
    wide = test.TestOp(result_types=[i64]).results[0]
    assert growth.computed(arith.TruncIOp(wide, i32), [Growing(1, 2)]) == Growing(1, 2)
    assert growth.periods == 2**30
    assert growth.computed(arith.TruncIOp(wide, i32), [Growing(2**40, 2)]) is UNKNOWN


def test_what_a_wait_says_of_a_counter():
    growth, epoch = Growth(1), Growing(1, 1)
    assert not growth.computed(made("slt"), [AtLeast(epoch), epoch])
    assert growth.computed(made("sge"), [AtLeast(epoch), epoch])
    # It may be more.
    assert growth.computed(made("eq"), [AtLeast(epoch), epoch]) is UNKNOWN
    assert growth.computed(made("slt"), [AtLeast(epoch), Growing(2, 1)]) is UNKNOWN


def test_tickets():
    growth = Growth(1)
    assert growth.computed(made("eq"), [Ticket(64), np.int32(3)]) == IsTicket(64, 3)
    assert growth.computed(made("slt"), [Ticket(64), np.int32(3)]) is UNKNOWN
    assert growth.computed(made(upstream.AddiOp), [Ticket(64), np.int32(3)]) is UNKNOWN
