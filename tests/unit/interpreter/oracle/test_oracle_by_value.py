"""The oracle's kernels on random inputs, against references in numpy."""

from __future__ import annotations

import pytest

from tests.unit.interpreter.oracle import (
    checking,
)

CHECKS = [
    pytest.param(check, id=f"{kernel}-{number}")
    for kernel, checks in checking.CHECKS.items()
    for number, check in enumerate(checks)
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("check", CHECKS)
def test_kernel_stores_what_its_reference_says(check: checking.Check, seed: int) -> None:
    checking.run_check(check, seed)
