"""Loops that never end are reported at their line, after a number of operations or seconds."""

# covers: tlx run

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.grid import Unlaunched, firsts_of


@tlx_xdsl.jit
def spins(x, n):
    i = n
    while i > 0:
        i = i | 1
    tl.store(x, i)


@tlx_xdsl.jit
def counts(x, n):
    total = 0
    for i in range(n):
        total += i
    tl.store(x, total)


@pytest.mark.parametrize(
    ("kernel", "line"), [(spins, "while i > 0:"), (counts, "for i in range(n):")], ids=["while", "for"]
)
@pytest.mark.parametrize("options", [{"max_operations": 1000}, {"max_seconds": 0.05}], ids=["operations", "seconds"])
def test_a_loop_without_an_end(kernel, line, options):
    with pytest.raises(Fault, match=r"no end after (1,000 operations|0\.05 seconds): this loop still runs") as caught:
        kernel.interpret(1, np.zeros(1, np.int32), 2**31 - 1, **options)
    assert caught.value.source_line.strip() == line


def test_every_program_has_the_whole_budget():
    x = np.zeros(1, np.int32)
    counts.interpret(40, x, 30, max_operations=100, jobs=1)
    assert x == 435


def test_clusters_are_in_order_and_made_when_they_are_needed():
    firsts = firsts_of((4, 3, 2), (2, 1, 2))
    expected = [(x, y, z) for z in (0,) for y in (0, 1, 2) for x in (0, 2)]
    assert [*firsts] == expected
    assert [*firsts[1:5]][1:2] == [expected[2]]
    left = Unlaunched(firsts)
    assert [left.take() for _ in range(len(left))] == expected
    assert not left
    assert len(firsts_of((1 << 24, 1, 1), (1, 1, 1))) == 1 << 24
