"""The plain kernels of the gallery: right as they are, and right when the passes have specialised them.

TLX_TEST_VOLUME=full runs all shapes and orders, else two shapes of each kernel.
"""

import pytest

from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays, check, expected
from tests.gallery.plain.specialized import make
from tests.unit.volume import is_full
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

SPECIALIZED = {"matmul_descriptors", "matmul_persistent"}
"""Kernels that the passes must not refuse."""
SHAPES = 99 if is_full() else 2
SCHEDULES = ("round-robin", "adversarial", "random") if is_full() else ("adversarial",)
CASES = [
    pytest.param(family, shape, id=f"{family.name}-{at}")
    for family in FAMILIES.values()
    for at, shape in enumerate(family.shapes[:SHAPES])
]


@pytest.mark.parametrize(("family", "shape"), CASES)
def test_the_plain_kernel_is_right(family, shape):
    new = NumpyArrays()
    problem = family.problem(shape, new)
    num_warps = family.config["num_warps"]
    family.kernel.interpret(problem.grid, **problem.arguments, **family.constexprs(shape), num_warps=num_warps, jobs=1)
    new.check_guards()
    check(problem, expected(problem), family.tolerance)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("family", "shape"), CASES)
def test_the_specialized_kernel_is_right(family, shape, groups):
    """Uninitialized memory is NaN or an error, and nothing is written beside an array."""
    for schedule in SCHEDULES:
        new = NumpyArrays()
        problem = family.problem(shape, new)
        constants, num_warps = family.constexprs(shape), family.config["num_warps"]
        try:
            both = make(family.kernel, problem, constants, num_warps, Decisions(groups=groups))
        except WarpSpecializeRefusal as refusal:
            if family.name in SPECIALIZED:
                raise
            pytest.skip(refusal.message)
        if reason := both.why_not(problem):
            pytest.skip(reason)
        result = both.run_specialized(problem, schedule=schedule)
        assert not [each for each in result.warnings if each.severity != "remark"]
        new.check_guards()
        check(problem, expected(problem), family.tolerance)


def test_a_family_has_what_the_benchmarks_need():
    for family in FAMILIES.values():
        assert len(family.shapes) >= 20
        assert len(family.large) == 4
        assert any(family.fits(family.large[0], config) for config in family.configs)
