"""The plain kernels of the gallery: right as they are, and right when the passes have specialised them.

TLX_TEST_VOLUME=full runs all shapes, with one group of warps and two, persistent and not, in several orders; else one
shape of each kernel that is no multiple of its blocks. Random kernels are at `tests/fuzz/plain_kernels.py`.
"""

import pytest

from tests.fuzz import plain_kernels
from tests.fuzz.pool import volume
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays, check, expected
from tests.gallery.plain.specialized import make
from tests.unit.volume import is_full
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

QUICK = {name: 1 for name in FAMILIES} | {"attention": 5, "matmul_persistent": 2}
"""The shape of each family that CI runs."""
CASES = [
    pytest.param(family, at, id=f"{family.name}-{at}")
    for family in FAMILIES.values()
    for at in (range(len(family.shapes)) if is_full() else [QUICK[family.name]])
]
DECISIONS = (
    (Decisions(groups=1), Decisions(groups=2), Decisions(groups=2, persistent=True), Decisions(groups=1, depth=2))
    if is_full()
    else (Decisions(groups=2),)
)
SCHEDULES = ("adversarial", "random", "round-robin")


@pytest.mark.parametrize(("family", "at"), CASES)
def test_the_plain_kernel_is_right(family, at):
    new = NumpyArrays()
    shape = family.shapes[at]
    problem = family.problem(shape, new)
    num_warps = family.config["num_warps"]
    family.kernel.interpret(problem.grid, **problem.arguments, **family.constexprs(shape), num_warps=num_warps, jobs=1)
    new.check_guards()
    check(problem, expected(problem), family.tolerance)


@pytest.mark.parametrize("decisions", DECISIONS, ids=lambda each: "-".join(f"{k}{v}" for k, v in each.given().items()))
@pytest.mark.parametrize(("family", "at"), CASES)
def test_the_specialized_kernel_is_right(family, at, decisions):
    """Uninitialized memory is NaN or an error, and nothing is written beside an array."""
    new = NumpyArrays()
    shape = family.shapes[at]
    problem = family.problem(shape, new)
    with collected_diagnostics():  # decisions that a pass can't follow, in remarks
        both = make(family.kernel, problem, family.constexprs(shape), family.config["num_warps"], decisions)
    if reason := both.why_not(problem):
        assert at != QUICK[family.name], reason
        pytest.skip(reason)
    result = both.run_specialized(problem, schedule=SCHEDULES[at % len(SCHEDULES)])
    assert not [each for each in result.warnings if each.severity != "remark"]
    new.check_guards()
    check(problem, expected(problem), family.tolerance)


def test_random_kernels_end_well():
    ends = {number: plain_kernels.trial(number) for number in range(volume(2, 300))}
    bad = {number: how for number, how in ends.items() if how.kind in plain_kernels.FAILED}
    assert not bad, "\n".join(f"{number}: {how.kind}: {how.detail}" for number, how in bad.items())


def test_random_kernels_are_always_the_same():
    assert plain_kernels.program(7).text == plain_kernels.program(7).text != plain_kernels.program(8).text


def test_a_family_has_what_the_benchmarks_need():
    for family in FAMILIES.values():
        assert len(family.shapes) >= 20
        assert len(family.large) == 4
        assert any(family.fits(family.large[0], config) for config in family.configs)
