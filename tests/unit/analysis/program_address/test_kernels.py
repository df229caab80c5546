"""Claims about the addresses of kernels hold on what they touch when they run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.analysis.program_address.ground_truth import Recorder, Tally, compare, run
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle import test_oracle_by_value as by_value
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.plan import make_plan

assert by_value.REFERENCES
TALLY = Tally()
CHECKS = {kernel: checks[0] for kernel, checks in checking.CHECKS.items()}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_oracle_kernel(name: str) -> None:
    check = CHECKS[name]
    rng = np.random.default_rng([0, *name.encode()])
    arguments = {key: make(rng) for key, make in check.arguments.items()}
    names, values = checking._spread(arguments)
    module = running.plan_of(name, "frontend").module
    plan = make_plan(module, watcher=Recorder())
    memory = GlobalMemory()
    bound = bind(plan.function, values, names, memory)
    if check.prepare is not None:
        check.prepare(checking._starts(names, values, bound), arguments)
    events = run(plan, memory, check.grid, (1, 1, 1), bound)
    tally = compare(module, plan, check.grid, bound, events)
    TALLY.add(tally)


def test_most_accesses_are_known() -> None:
    print(TALLY)
    assert TALLY.known > 0.9
