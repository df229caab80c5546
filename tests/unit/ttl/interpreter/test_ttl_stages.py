"""Every form of a kernel computes the same, in any order: blocks as values and in memory, and calls of TT-Metalium."""

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.ttl.interpreter.ttl_kernels import CASES, stages as made_stages
from tlx_xdsl.ttl import interpreter as ttl
from tlx_xdsl.ttl.interpreter import ttkernel

BLOCKS = (
    "ttl-insert-synchronization", "ttl-infer-dst-requirements", "ttl-bufferize", "ttl-allocate-circular-buffers",
    "ttl-expand-threads", "ttl-assign-dst-registers",
)  # fmt: skip
"""Passes after which the kernel is of the `ttl` dialect, with all its waits."""

every_case = pytest.mark.parametrize("name", CASES)


@cache
def stages(name: str) -> dict[str, ModuleOp]:
    return made_stages(CASES[name])


@every_case
def test_blocks_compute_what_numpy_does(name: str):
    arrays = CASES[name].arrays()
    ttl.run(stages(name)[BLOCKS[0]], arrays)
    np.testing.assert_allclose(arrays[-1], CASES[name].result(*arrays[:-1]), rtol=1e-5)


@every_case
@pytest.mark.parametrize("stage", BLOCKS)
def test_forms_of_blocks_compute_the_same(name: str, stage: str):
    expected, arrays = CASES[name].arrays(), CASES[name].arrays()
    ttl.run(stages(name)[BLOCKS[0]], expected)
    ttl.run(stages(name)[stage], arrays, schedule="random", seed=5)
    np.testing.assert_array_equal(arrays[-1], expected[-1])


@every_case
@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_the_final_form_computes_the_same(name: str, schedule: str):
    """Bit by bit: the machine does the same arithmetic, in the same order."""
    expected, arrays = CASES[name].arrays(), CASES[name].arrays()
    ttl.run(stages(name)[BLOCKS[0]], expected)
    report = ttkernel.run(stages(name)["ttl-lower-affine"], arrays, schedule=schedule, seed=3)
    np.testing.assert_array_equal(arrays[-1], expected[-1])
    assert report.warnings == ()


@every_case
def test_a_run_can_be_repeated(name: str):
    plan = ttkernel.make_plan(stages(name)["ttl-lower-affine"])
    first = ttkernel.run(plan, CASES[name].arrays(), schedule="random", seed=1)
    again = ttkernel.run(plan, CASES[name].arrays(), schedule=first.choices)
    assert again.choices == first.choices


@every_case
def test_no_order_goes_wrong(name: str):
    for found in (
        ttkernel.explore(stages(name)["ttl-lower-affine"], CASES[name].arrays()),
        ttl.explore(stages(name)[BLOCKS[0]], CASES[name].arrays()),
    ):
        assert found.fault is None
        assert found.complete
        assert (found.runs > 1) == (name == "shared")
