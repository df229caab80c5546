"""Claims about the addresses of random programs hold on what they touch when they run."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.addresses.ground_truth import NoMemory, Recorder, Tally, compare, run
from tests.unit.addresses.random_programs import make_program
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

PROGRAMS = 500


HUGE = ((1 << 31) - 1, 65535, 65535)
FAR = ((0, 0, 0), (1, 0, 0), (1 << 16, 1, 1), (1 << 24, 65534, 0), ((1 << 24) + 1, 65534, 0), (HUGE[0] - 1, 0, 65534))
"""Programs of a huge grid, whose ids wrap around when they are multiplied."""


def outcome(seed: int, *, far: bool = False) -> Tally:
    """Run a program and compare; with `far`, at some places of the largest grid that there is."""
    program = make_program(seed)
    module = parse_module(program.text)
    verify_module(module)
    plan = make_plan(module, watcher=Recorder())
    pointer, *numbers = program.arguments
    bound = [np.int64(pointer), *map(np.int32, numbers)]
    grid, programs = (HUGE, FAR) if far else (program.grid, None)
    events = run(plan, NoMemory(), grid, (1, 1, 1), bound, programs)
    return compare(module, plan, grid, bound, events)


def test_no_claim_is_false() -> None:
    step = 1 if volume.is_full() else 12
    total = Tally()
    for seed in range(0, PROGRAMS, step):
        total.add(outcome(seed))
    assert total.compared > 1000 // step
    assert total.known > 0.6


def test_no_claim_is_false_far_out() -> None:
    step = 1 if volume.is_full() else 12
    total = Tally()
    for seed in range(0, PROGRAMS, step):
        total.add(outcome(seed, far=True))
    assert total.compared > 1000 // step


@pytest.mark.parametrize("name", ["div", "rem", "select"])
def test_programs_divide_and_choose(name: str) -> None:
    drawn = [
        line
        for seed in range(PROGRAMS)
        for line in make_program(seed).text.splitlines()
        if re.search(r"= arith\.(?!constant|cmpi|extsi)", line)
    ]
    assert sum(f"arith.{name}" in line for line in drawn) / len(drawn) > 0.1
