"""Every example kernel gives the right numbers, without any report, at every stage and in every schedule."""

# covers: tlx.tasks, tlx.mma, tlx.copies, ttg.warp_specialize, ttng.mma, ttng.tma

import pytest

from tests.gallery.synchronisation.example_runs import CASES
from tests.unit import volume
from tlx_xdsl.interpreter.scheduler import POLICIES

SEEDS = range(3) if volume.is_full() else range(1)
RUNS = [
    (stage, seed, schedule)
    for stage in ("frontend", "aliased")
    for seed in SEEDS
    for schedule in POLICIES
    # In the CI tier one schedule in the midst of the passes; after the frontend and after the passes all of them.
    if stage == "frontend" or schedule == "adversarial" or volume.is_full()
]


def warnings_of(reported):
    """Return the warnings, without the remark that copies of arguments without a known alignment are narrow."""
    return [each for each in reported.warnings if each.severity != "remark"]


@pytest.mark.parametrize(("stage", "seed", "schedule"), RUNS)
@pytest.mark.parametrize("name", CASES)
def test_example_gives_the_reference_without_warnings(name, stage, seed, schedule):
    result = CASES[name]().run(stage=stage, schedule=schedule, seed=seed, jobs=1)
    assert not warnings_of(result)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("name", CASES)
def test_example_as_ttgir(name, schedule):
    """The text that stock Triton gets, but for its layouts of registers, which move no value."""
    result = CASES[name]().run(stage="ttgir", schedule=schedule, jobs=1)
    assert not warnings_of(result)
