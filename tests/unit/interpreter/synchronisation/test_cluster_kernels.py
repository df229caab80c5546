"""Kernels for clusters and for Blackwell give the right numbers, without any report, in every schedule."""

# covers: tlx.clc, tlx.cluster, tlx.mma, ttng.tcgen05

import os

import pytest

from tests.gallery.synchronisation.cluster_runs import CASES
from tlx_xdsl.interpreter.scheduler import POLICIES

FULL = os.environ.get("TLX_TEST_VOLUME") == "full"
SEEDS = range(3) if FULL else range(1)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stage", ["frontend", "aliased"])
@pytest.mark.parametrize("name", CASES)
def test_cluster_kernel_gives_the_reference_without_warnings(name, stage, seed, schedule):
    result = CASES[name]().run(stage=stage, schedule=schedule, seed=seed, jobs=1)
    assert list(result.warnings) == []
