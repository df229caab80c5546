"""Passes on the loops of random kernels: each run gives what it gave before, and comes to an end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.unit.transforms.ttl_affine_programs import TILES, Program
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.ttl import run
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.ttl.affine_data_copy_generate import AffineDataCopyGeneratePass
from tlx_xdsl.transforms.ttl.affine_dependence_analysis import AffineDependenceAnalysisPass
from tlx_xdsl.transforms.ttl.affine_loop_fusion import AffineLoopFusionPass
from tlx_xdsl.transforms.ttl.schedule_pipeline import SchedulePipelinePass

PIPELINES = {
    "fusion": [AffineLoopFusionPass()],
    "data copy": [AffineDataCopyGeneratePass()],
    "schedule": [SchedulePipelinePass()],
    "schedule 2": [SchedulePipelinePass(2)],
    "schedule 9": [SchedulePipelinePass(9)],
    "all": [
        AffineLoopFusionPass(),
        AffineDataCopyGeneratePass(),
        AffineDependenceAnalysisPass(),
        SchedulePipelinePass(4),
    ],
}
SCHEDULES = [("round-robin", 0), ("random", 1), ("random", 2)]


def arrays() -> list[np.ndarray]:
    """Tiles of one number each, which are all different."""
    made = []
    for number in range(4):
        tiles = np.arange(TILES * TILES, dtype=np.float32).reshape(TILES, TILES) * 3 + number * 1000
        made.append(np.repeat(np.repeat(tiles, 32, axis=0), 32, axis=1))
    return made


def results(module, schedule: str, seed: int, checks: bool) -> list[np.ndarray]:
    given = arrays()
    run(module, given, schedule=schedule, seed=seed, checks=checks)
    return given


def baseline(text: str) -> tuple[list[np.ndarray], bool] | None:
    """What a kernel computes, and whether it passes the checks of unwritten and overwritten tiles.

    None if it may stop, or if its result follows from the order of its threads.
    """
    module = parse_module(text, filename="kernel.mlir")
    for checks in (True, False):
        try:
            found = [results(module, *each, checks) for each in SCHEDULES]
        except (Fault, CompilationError):
            continue
        same = all(np.array_equal(one, other) for each in found[1:] for one, other in zip(found[0], each, strict=True))
        return (found[0], checks) if same else None
    return None


def check(seed: int, counts: Counter[str]) -> None:
    text = Program(seed).text()
    found = baseline(text)
    if found is None:
        counts["not deterministic"] += 1
        return
    expected, checks = found
    counts["programs"] += 1
    for name, passes in PIPELINES.items():
        module = parse_module(text, filename="kernel.mlir")
        before = str(module)
        for each in passes:
            each.run(module)
        module.verify()
        if str(module) == before:
            continue
        counts[name] += 1
        for schedule in SCHEDULES:
            for found, wanted in zip(results(module, *schedule, checks), expected, strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}, {name}, {schedule}")


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_kernels_keep_their_results(first):
    counts: Counter[str] = Counter()
    for seed in range(first, first + 20):
        check(seed, counts)
    print(dict(counts))
    assert counts["programs"] >= 10
    assert counts["schedule 9"] >= 2
