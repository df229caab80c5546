"""Claims about the addresses of the examples hold on what they touch when they run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gallery.synchronisation.example_runs import CASES
from tests.unit import volume
from tests.unit.addresses.ground_truth import Recorder, Tally, compare
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.runtime.simulate import interpret

QUICK = ("portable-gemm-ragged", "pipelined-attention-causal")
"""The others take longer, and run at full volume."""


def outcome(name: str, monkeypatch: pytest.MonkeyPatch) -> Tally:
    """Run an example and compare."""
    launches: list[Launch] = []

    def planned(module: Any, function: str | None = None, **options: Any) -> Plan:
        return make_plan(module, function, **{**options, "watcher": Recorder()})

    def launched(*arguments: Any, **options: Any) -> Launch:
        launches.append(Launch(*arguments, **options))
        return launches[-1]

    monkeypatch.setattr(interpret, "make_plan", planned)
    monkeypatch.setattr(interpret, "Launch", launched)
    CASES[name]().run(jobs=1)
    (launch,) = launches
    plan = launch.plan
    assert isinstance(plan.watcher, Recorder)
    return compare(plan.module, plan, launch.grid, launch.arguments, plan.watcher.events)


@pytest.mark.parametrize("name", CASES if volume.is_full() else QUICK)
@pytest.mark.filterwarnings("ignore")
def test_no_claim_is_false(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = outcome(name, monkeypatch)
    assert tally.compared
    assert not tally.classes["UNKNOWN"]
