"""The oracle's kernels on random inputs, against references in numpy."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit import volume
from tests.unit.interpreter.oracle import (
    accesses,
    assembly,
    checking,
    control,
    floating,
    integers,
    mathematics,
    products,
    reductions,
    running,
)

REFERENCES: list[ModuleType] = [
    accesses, assembly, control, floating, integers, mathematics, products, reductions,
]  # fmt: skip
"""The modules that hold the references."""
ELSEWHERE = {
    "inline_assembly": "reads %laneid, which differs between the threads of a task: a fault (test_inline_asm.py)",
    "device_library": "tests of libdevice compare each function",
    "random_numbers": "tests of the library compare the streams with stock's",
}
"""Kernels without a reference here, and why."""
RUNS = [(stage, seed) for stage in running.STAGES for seed in range(20 if volume.is_full() else 1)]

CHECKS = [
    pytest.param(check, id=f"{kernel}-{number}")
    for kernel, checks in checking.CHECKS.items()
    for number, check in enumerate(checks)
]


@pytest.mark.parametrize(("stage", "seed"), RUNS)
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.filterwarnings("ignore:tl.softmax")
def test_kernel_stores_what_its_reference_says(check: checking.Check, seed: int, stage: str) -> None:
    checking.run_check(check, seed, stage)


def test_all_kernels_have_a_reference() -> None:
    assert all(module.__name__.startswith(__package__ or "") for module in REFERENCES)
    covered = set(checking.CHECKS)
    assert covered | set(ELSEWHERE) == set(running.cases())
    assert not covered & set(ELSEWHERE)
    assert len(covered) >= 117
