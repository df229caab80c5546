"""Claims about the addresses of kernels hold on what they touch when they run."""

# covers: tlx-annotate-program-addresses

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.addresses.ground_truth import NoMemory, Recorder, Tally, compare, run
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value as by_value
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.plan import make_plan

assert by_value.REFERENCES
CHECKS = {kernel: checks[0] for kernel, checks in checking.CHECKS.items()}
WIDE = (3, 2, 2)
"""More programs than most of these kernels are meant for: where they touch is looked at, not what is there."""


def outcome(name: str, grid: tuple[int, int, int] | None = None) -> Tally:
    """Run a kernel and compare; on another grid than its own, without memory."""
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
    if grid is None:
        events = run(plan, memory, check.grid, (1, 1, 1), bound)
    else:
        # Without numbers in memory, some wait for ever; what they have touched before counts.
        with suppress(Fault):
            run(plan, NoMemory(), grid, (1, 1, 1), bound)
        assert isinstance(plan.watcher, Recorder)
        events = plan.watcher.events
    return compare(module, plan, grid or check.grid, bound, events)


@pytest.mark.filterwarnings("ignore")
def test_no_claim_is_false() -> None:
    total = Tally()
    for name in list(CHECKS)[:: 1 if volume.is_full() else 4]:
        total.add(outcome(name))
        if volume.is_full() and CHECKS[name].prepare is None:
            outcome(name, WIDE)
    assert total.compared > 200
    assert total.known > 0.9
