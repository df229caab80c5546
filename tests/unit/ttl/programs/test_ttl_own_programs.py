"""Programs as users write them, on three machines, in f32 and bf16: what numpy computes in float64."""

# covers: ttl.kernel, ttl.buffers, ttl.tensors, ttl.math, ttl.pipes

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.ttl import has_compiler
from tests.unit import volume
from tests.unit.ttl.programs import (
    ttl_attention_programs,
    ttl_core_programs,
    ttl_element_programs,
    ttl_iteration_programs,
    ttl_norm_programs,
    ttl_product_programs,
    ttl_shape_programs,
)
from tests.unit.ttl.programs.ttl_cases import DTYPES, Case, error_of, outputs, run_case, tolerance_of
from tlx_xdsl.ttl.runtime import MACHINES

MODULES = (
    ttl_attention_programs,
    ttl_core_programs,
    ttl_element_programs,
    ttl_iteration_programs,
    ttl_norm_programs,
    ttl_product_programs,
    ttl_shape_programs,
)
DEFINED = {made.__name__: made for module in MODULES for made in module.PROGRAMS}
OF_ONE_TYPE = {made.__name__: made for made in ttl_element_programs.OF_ONE_TYPE}
CASES = [
    *((name, dtype) for name in DEFINED for dtype in DTYPES),
    ("sorted_tiles", "i32"),
    *((name, "mixed") for name in OF_ONE_TYPE),
]
EVERYWHERE = ("split_k", "block_float")
"""Programs that all machines run also where there is less time."""


def machines(name: str, dtype: str) -> list[str]:
    """All machines; where there is less time, one for one type of most programs, the calls for a tenth of them."""
    usable = [each for each in MACHINES if each != "cpp" or has_compiler()]
    if volume.is_full() or (name in EVERYWHERE and dtype != "f32"):
        return usable
    if dtype == "bf16":
        return []
    return ["ttkernel" if CASES.index((name, dtype)) // 2 % 10 == 4 else "tensors"]


def case_of(name: str, dtype: str) -> Case:
    return (DEFINED | OF_ONE_TYPE)[name](dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "machine"), [(*each, machine) for each in CASES for machine in machines(*each)]
)
def test_program(name: str, dtype: str, machine: str) -> None:
    made = case_of(name, dtype)
    error = run_case(made, dtype, machine, range(1, 6 if volume.is_full() else 2))
    assert error <= tolerance_of(made, dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_other_numbers_are_no_results(name: str, dtype: str) -> None:
    """Numbers one place further, the values before a run, and one that is missing are errors in each case."""
    made = case_of(name, dtype)
    tolerance = tolerance_of(made, dtype)
    moved = [np.roll(each, (1, 1), (-2, -1)) for each in made.results]
    assert error_of(made, made.results) == 0
    assert error_of(made, moved) > 4 * tolerance
    for number in range(len(made.results)):
        found = [each.copy() for each in made.results]
        found[number] = outputs(made, dtype)[number]
        assert not error_of(made, found) <= tolerance
        found[number] = made.results[number].astype(np.float64)
        found[number].flat[-1] = np.nan
        assert not error_of(made, found) <= tolerance
