"""Clusters: both CTAs compute what the plain kernel does, and each part of how they share loads is needed."""

from functools import partial

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i1, i32
from xdsl.ir import Operation

from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays, check, expected
from tests.gallery.plain.specialized import Made, goes_wrong, make
from tests.unit.volume import is_full
from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import insert_before, ops_of
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

SIZES = {
    "one tile for two CTAs": {"M": 96, "N": 72, "K": 200},
    "pairs across two columns of tiles": {"M": 360, "N": 520, "K": 72},
    "an odd number of tiles, in two groups": {"M": 1160, "N": 136, "K": 64},
}
PRODUCTS = ("matmul", "matmul_descriptors", "matmul_gelu")


def made_for(name, shape, seed=0, config=None, **decisions):
    family, new = FAMILIES[name], NumpyArrays(seed)
    config = {**family.config, **(config or {})}
    problem = family.problem(shape, new, config)
    given = {"groups": 2, "cluster": 2, "persistent": True, **decisions}
    both = make(family.kernel, problem, family.constexprs(shape, config), config["num_warps"], Decisions(**given))
    # The compiler's own pass: the CTAs wait for each other before the tasks and after them.
    pass_class("tlx-insert-cluster-barriers")().apply(Context(), both.specialized)
    return both, problem, new


def run(both, problem, new, tolerance, schedule):
    assert not both.why_not(problem)
    result = both.run_specialized(problem, schedule=schedule)
    assert not [each for each in result.warnings if each.severity != "remark"]
    new.check_guards()
    check(problem, expected(problem), tolerance)


@pytest.mark.parametrize("schedule", ["adversarial", "random"] if is_full() else ["adversarial"])
@pytest.mark.parametrize("name", PRODUCTS if is_full() else PRODUCTS[:1])
@pytest.mark.parametrize("size", SIZES)
def test_products_are_those_of_the_plain_kernel(size, name, schedule):
    run(*made_for(name, SIZES[size]), FAMILIES[name].tolerance, schedule)


REFUSED = {
    "matmul_grouped": "may turn in a loop, or take a branch, differently",
    "attention_window": "may turn in a loop, or take a branch, differently",
    "matmul_persistent": "clusters are for kernels that",
}


@pytest.mark.parametrize("name", sorted(FAMILIES) if is_full() else ["attention", "gated", *REFUSED])
def test_other_kernels_are_right_or_refused(name):
    """Keys and values of heads are shared, too, and what masks make uneven is refused."""
    family = FAMILIES[name]
    shape = next((each for each in family.shapes[1:] if not each.get("causal")), family.shapes[1])
    if name in REFUSED:
        with pytest.raises(WarpSpecializeRefusal, match=REFUSED[name]):
            made_for(name, shape)
        return
    both, problem, new = made_for(name, shape, depth=2)
    assert ops_of(both.specialized, tlx.AsyncTMALoadOp)
    run(both, problem, new, family.tolerance, "random")


def test_tiles_under_a_causal_mask_are_refused():
    shape = next(each for each in FAMILIES["attention"].shapes if each["causal"])
    with pytest.raises(WarpSpecializeRefusal, match="may turn in a loop, or take a branch, differently"):
        made_for("attention", shape)


@pytest.mark.parametrize("decisions", [{"persistent": False}, {"cluster": 4}], ids=str)
def test_what_clusters_need_is_not_left_out(decisions):
    with pytest.raises(WarpSpecializeRefusal, match="clusters"):
        made_for("matmul", PAIRS, **decisions)


def test_groups_with_programs_of_their_own_are_refused():
    shape = next(each for each in FAMILIES["attention"].shapes if not each["causal"])
    with pytest.raises(WarpSpecializeRefusal, match="clusters are for programs that one CTA does"):
        made_for("attention", shape, join=True)


# Each part is needed --------------------------------------------------------------------------------------------------

PAIRS = {"M": 360, "N": 264, "K": 456}
"""Three rows of tiles in two or three columns: the second pair loads other columns of B."""
SMALL = {"BLOCK_N": 128}


@pytest.fixture(scope="module")
def made() -> Made:
    return made_for("matmul", PAIRS, config=SMALL, depth=2)[0]


def is_found(made: Made, module) -> bool:
    """Return whether runs in some orders find a fault, or another result."""
    mutant = Made(made.plain, module, made.num_warps, made.constexprs)
    for number, schedule in enumerate(("adversarial", "random", "random", "random", "random", "random")):
        new = NumpyArrays(0)
        family = FAMILIES["matmul"]
        problem = family.problem(PAIRS, new, {**family.config, **SMALL})
        run = partial(mutant.run_specialized, problem, schedule=schedule, seed=number)
        if goes_wrong(run, problem, family.tolerance):
            return True
    return False


def erased(op: Operation) -> None:
    op.detach()
    op.erase()


def always(op: Operation) -> None:
    """Let a branch be taken by both CTAs, or for both kinds of pairs."""
    true = insert_before(op, arith.ConstantOp(BoolAttr.from_bool(True), i1))
    op.operands = [true.result, *op.operands[1:]]


def counted_once_more(op: Operation) -> None:
    op.properties["count"] = IntegerAttr(op.count.value.data + 1, i32)


def is_of_far(op: Operation) -> bool:
    view = op.operands[0].owner
    return isinstance(view, ttg.MemDescIndexOp) and (view.src.name_hint or "").startswith("far")


CHANGES = {
    "an arrival is left out": (erased, lambda op: isinstance(op, tlx.ArriveRemoteOp)),
    "a load is left out": (erased, lambda op: isinstance(op, tlx.AsyncTMALoadOp)),
    "both CTAs load": (always, lambda op: isinstance(op, scf.IfOp) and ops_of(op, tlx.AsyncTMALoadOp)),
    "a wait is left out": (erased, lambda op: isinstance(op, ttng.WaitBarrierOp) and is_of_far(op)),
    "a count is one more": (counted_once_more, lambda op: isinstance(op, ttng.InitBarrierOp) and is_of_far(op)),
    "an arrival counts twice": (counted_once_more, lambda op: isinstance(op, tlx.ArriveRemoteOp)),
}


def test_the_unchanged_kernel_is_right(made):
    assert not is_found(made, parse_module(print_module(made.specialized, locations=False)))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(made, name):
    change, is_wanted = CHANGES[name]
    text = print_module(made.specialized, locations=False)
    number = sum(1 for op in parse_module(text).walk() if is_wanted(op))
    assert number
    for index in range(number) if is_full() else (0, number - 1):
        module = parse_module(text)
        change([op for op in module.walk() if is_wanted(op)][index])
        assert is_found(made, module), index
