"""Groups of warps with a program of the plain launch each compute what the plain kernel does, at odd sizes, too."""

import pytest
from xdsl.dialects.scf import ForOp

from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays, check, expected
from tests.gallery.plain.specialized import make
from tests.unit.volume import is_full
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

FAMILY = FAMILIES["attention"]
CONFIG = {**FAMILY.config, "BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 4}
SIZES = {
    "a group without a program": (1, 1, 1, 64, True),
    "groups of other lengths": (1, 2, 450, 64, True),
    "another number of heads": (1, 3, 129, 64, False),
}
MORE = {
    "two programs are left": (2, 1, 300, 64, True),
    "one block of keys": (1, 4, 64, 64, False),
    "many blocks": (1, 1, 1000, 64, True),
    "wide heads": (1, 2, 200, 128, True),
}
if is_full():
    SIZES |= MORE
DECISIONS = (
    {"groups": 3, "order": 2},
    {"groups": 2, "order": 1, "outer_depth": 2},
    {"groups": 3, "turns": False, "pipeline": False},
    {"groups": 3, "depth": 1},
)


def problem_of(size, new):
    shape = dict(zip(("batch", "heads", "length", "dim", "causal"), size, strict=True))
    return FAMILY.problem(shape, new, CONFIG), FAMILY.constexprs(shape, CONFIG)


@pytest.mark.parametrize("decisions", DECISIONS if is_full() else DECISIONS[:2], ids=str)
@pytest.mark.parametrize(
    "size", (SIZES | MORE if is_full() else SIZES).values(), ids=SIZES | MORE if is_full() else SIZES
)
def test_joined_programs_compute_what_they_do_alone(size, decisions):
    """A program that the launch does not have writes nothing, and all barriers end as they begin."""
    new = NumpyArrays()
    problem, constexprs = problem_of(size, new)
    both = make(FAMILY.kernel, problem, constexprs, 4, Decisions(join=True, **decisions))
    assert not both.why_not(problem)
    result = both.run_specialized(problem, schedule="adversarial")
    assert not [each for each in result.warnings if each.severity != "remark"]
    new.check_guards()
    check(problem, expected(problem), FAMILY.tolerance)


def test_groups_that_end_earlier_pass_the_rest_on():
    """Groups have other numbers of turns under a causal mask; each gives back what the longest one uses."""
    loops = {}
    for causal in (False, True):
        problem, constexprs = problem_of((1, 1, 300, 64, causal), NumpyArrays())
        made = make(FAMILY.kernel, problem, constexprs, 4, Decisions(join=True, groups=3)).specialized
        loops[causal] = len(ops_of(made, ForOp))
    assert loops[True] == loops[False] + 3


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_other_kernels_are_right_or_refused(name):
    """One group is left where programs load nothing alike, and a branch that one group alone takes is refused."""
    family = FAMILIES[name]
    config = {**family.config, **({"BLOCK_M": 64, "num_warps": 4} if "BLOCK_M" in family.config else {})}
    new, shape = NumpyArrays(), family.shapes[2 if name == "matmul_persistent" else 1]
    problem, constexprs = family.problem(shape, new, config), family.constexprs(shape, config)
    decisions = Decisions(join=True, groups=3, order=2)
    with collected_diagnostics():
        if name == "matmul_grouped":
            with pytest.raises(WarpSpecializeRefusal, match="depends on the number of the consumer"):
                make(family.kernel, problem, constexprs, 4, decisions)
            return
        both = make(family.kernel, problem, constexprs, config["num_warps"], decisions)
    assert not both.why_not(problem)
    both.run_specialized(problem, schedule="random")
    new.check_guards()
    check(problem, expected(problem), family.tolerance)
