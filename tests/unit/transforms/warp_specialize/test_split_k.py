"""Loops that programs share: the sums are those of the plain kernel, in each order, and each part of it is needed."""

from functools import partial

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.numpy_arrays import NumpyArrays, check, expected
from tests.gallery.plain.specialized import Made, goes_wrong, made_by_source, make
from tests.unit.volume import is_full
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.runtime.specialize.host_part import Memory
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize

MATMUL = FAMILIES["matmul"]
SMALL = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}


def made_for(name, shape, seed=0, config=SMALL, **decisions):
    family, new = FAMILIES[name], NumpyArrays(seed)
    config = {**family.config, **config}
    problem = family.problem(shape, new, config)
    given = {"groups": 2, "split": 2, "depth": 2, **decisions}
    made = make(family.kernel, problem, family.constexprs(shape, config), config["num_warps"], Decisions(**given))
    return made, problem, new


def run(made, problem, tolerance, **more):
    assert not made.why_not(problem)
    result = made.run_specialized(problem, **more)
    assert not [each for each in result.warnings if each.severity != "remark"]
    check(problem, expected(problem), tolerance)


CASES = {
    "odd sizes": ("matmul", {"M": 200, "N": 136, "K": 264}, {"split": 4}),
    "parts without turns": ("matmul", {"M": 130, "N": 72, "K": 40}, {"split": 8}),
    "a turn for one part alone": (
        "matmul",
        {"M": 16, "N": 8, "K": 8},
        {"split": 3},
    ),
    "one consumer": ("matmul", {"M": 200, "N": 72, "K": 328}, {"groups": 1, "split": 3}),
    "a grid of several axes": ("matmul_batched", None, {"split": 2}),
    "an epilogue with rows of its own": ("matmul_gelu", {"M": 200, "N": 136, "K": 264}, {"split": 2}),
    "blocks that threads copy": ("matmul_gathered", None, {"groups": 1, "split": 3}),
    "descriptors of the launch": ("matmul_descriptors", {"M": 200, "N": 136, "K": 264}, {"split": 2}),
}


@pytest.mark.parametrize("schedule", ["adversarial", "random"] if is_full() else ["adversarial"])
@pytest.mark.parametrize("case", CASES)
def test_products_are_those_of_the_plain_kernel(case, schedule):
    name, shape, decisions = CASES[case]
    family = FAMILIES[name]
    made, problem, new = made_for(name, shape or family.shapes[1], **decisions)
    run(made, problem, family.tolerance, schedule=schedule)
    new.check_guards()


SHAPE = {"M": 136, "N": 72, "K": 200}


@pytest.fixture(scope="module")
def made() -> Made:
    return made_for("matmul", SHAPE, split=3)[0]


def results(made, **more):
    problem = MATMUL.problem(SHAPE, NumpyArrays(0), {**MATMUL.config, **SMALL})
    run(made, problem, MATMUL.tolerance, **more)
    return problem.arrays["c"].tobytes()


def test_the_order_of_arrival_changes_no_bit(made):
    """The programs of a tile arrive first to last, last to first, and in turns."""
    first = results(made)
    for more in ({"descending": True}, {"overlapping": True, "schedule": "random", "seed": 1}):
        assert results(made, **more) == first


@pytest.mark.skipif(not is_full(), reason="takes ten seconds: at full volume")
def test_final_code_gives_the_same_bits_in_each_order():
    config = {**MATMUL.config, **SMALL}
    problem = MATMUL.problem(SHAPE, NumpyArrays(0), config)
    constants = MATMUL.constexprs(SHAPE, config)
    made = made_by_source(MATMUL.kernel, problem, constants, 8, Decisions(groups=2, split=3, depth=2))
    assert results(made, stage="ptx") == results(made, stage="ptx", descending=True)


def test_what_the_host_gives_has_a_place_for_each_group_and_part(made):
    partials, arrived = (part for part in made.host.parts if isinstance(part, Memory))
    assert (partials.count, partials.is_zero) == (f"grid[0] * grid[1] * grid[2] * {3 * 128 * 64}", False)
    assert (arrived.count, arrived.is_zero) == ("grid[0] * grid[1] * grid[2] * 2", True)
    problem = MATMUL.problem(SHAPE, NumpyArrays(0), {**MATMUL.config, **SMALL})
    grid, values = made._launch(problem)
    assert grid == (12, 1, 1)
    assert values[-2].size == 4 * 3 * 128 * 64
    assert not values[-1].any()


# What is refused ------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def shapes_of_loops(x_desc, out_ptr, n, FORM: tl.constexpr):
    rows = tl.arange(0, 64)
    places = out_ptr + rows[:, None] * 64 + rows[None, :]
    if FORM == "a store before":
        tl.store(out_ptr, 0.0)
    acc = tl.full((64, 64), 1.0 if FORM == "a start" else 0.0, tl.float32)
    step = n if FORM == "a step" else 64
    for k in range(0, n, step):
        x = x_desc.load([0, k])
        if FORM == "a scale":
            acc = acc * 0.5
        acc = tl.dot(x, x.T, acc)
        if FORM == "a store":
            tl.store(places + k, x.to(tl.float32))
        if FORM == "a branch" and k > 64:
            x = x + x
    if FORM == "another product":
        acc += tl.dot(x_desc.load([0, 0]), x_desc.load([0, 0]).T)
    tl.store(places, acc)


@tlx_xdsl.jit
def two_sums(x_desc, out_ptr, n, FORM: tl.constexpr):
    rows = tl.arange(0, 64)
    acc, most = tl.zeros((64, 64), tl.float32), tl.zeros((64, 64), tl.float16)
    for k in range(0, n, 64):
        x = x_desc.load([0, k])
        acc = tl.dot(x, x.T, acc)
        most = tl.maximum(most, x)
    tl.store(out_ptr + rows[:, None] * 64 + rows[None, :], acc + most)


REFUSED = {
    "a start": "the sum of a split loop begins at zero",
    "a step": "the step of a split loop is a constant",
    "a scale": "a split loop only adds up products",
    "another value": "it carries more than the sum of its products",
    "a store": "each part of a split loop would do this once more",
    "a store before": "each part of a split loop would do this once more",
    "a branch": "a split loop has neither branches nor loops in its turns",
    "another product": "a loop is split where it has the only product of the kernel",
}


def specialised(form, **decisions):
    kernel = two_sums if form == "another value" else shapes_of_loops
    module = build_module(
        kernel.source, {"x_desc": "tensordesc<fp16[64, 64]>", "out_ptr": "*fp32:16", "n": "i32"},
        {"FORM": form}, num_warps=4,
    )  # fmt: skip
    specialize(module, make_context(), Decisions(**{"split": 2, **decisions}))
    return module


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_more_than_a_sum_is_refused(form):
    with pytest.raises(WarpSpecializeRefusal, match=REFUSED[form]) as found:
        specialised(form)
    assert found.value.location is not None
    assert found.value.location.filename == __file__


def test_a_sum_alone_is_split():
    assert len(ops_of(specialised(""), tt.AtomicRMWOp)) == 1


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [
        ({"persistent": True}, "programs take one tile each"),
        ({"persistent": True, "cluster": 2}, "programs take one tile each|clusters"),
        ({"split": 17}, "up to 16 programs"),
    ],
    ids=str,
)
def test_other_forms_of_launches_are_refused(decisions, reason):
    with pytest.raises(WarpSpecializeRefusal, match=reason):
        made_for("matmul", SHAPE, **decisions)


# Each part is needed --------------------------------------------------------------------------------------------------


def is_found(made: Made, module) -> bool:
    """Return whether two launches with the same memory, in some orders of programs, show a fault or another result."""
    mutant = Made(made.plain, module, made.num_warps, made.constexprs)
    orders = ({}, {"descending": True}, {"overlapping": True, "schedule": "random", "seed": 2})
    for more in orders:
        problem = MATMUL.problem(SHAPE, NumpyArrays(0), {**MATMUL.config, **SMALL})
        launch = mutant._launch(problem)
        assert not isinstance(launch, str)
        launch[1][-2].fill(np.nan)
        for _ in range(2):
            problem.arrays["c"].fill(np.nan)
            if goes_wrong(partial(mutant._run, module, *launch, more), problem, MATMUL.tolerance):
                return True
    return False


def erased(op: Operation) -> None:
    op.detach()
    op.erase()


def relaxed(op: Operation) -> None:
    op.properties["sem"] = tt.MemSemantic.RELAXED.attr


def only_acquiring(op: Operation) -> None:
    op.properties["sem"] = tt.MemSemantic.ACQUIRE.attr


def only_releasing(op: Operation) -> None:
    op.properties["sem"] = tt.MemSemantic.RELEASE.attr


def of_a_block(op: Operation) -> None:
    op.properties["scope"] = tt.MemSyncScope.CTA.attr


def one_less(op: Operation) -> None:
    """Let the last but one add up."""
    last = op.operands[1].owner
    assert isinstance(last, arith.ConstantOp)
    last.properties["value"] = IntegerAttr(1, i32)


def is_count(op: Operation) -> bool:
    return isinstance(op, tt.AtomicRMWOp)


def is_comparison(op: Operation) -> bool:
    return bool(op.results) and op.results[0].name_hint == "is_last"


def is_of(name: str):
    return lambda op: isinstance(op, tt.StoreOp) and (op.ptr.name_hint or "").startswith(name)


CHANGES = {
    "the count orders nothing": (relaxed, is_count),
    "the count releases nothing": (only_acquiring, is_count),
    "the count acquires nothing": (only_releasing, is_count),
    "the count is of one block": (of_a_block, is_count),
    "sums are added up before all are there": (one_less, is_comparison),
    "the count is not set back": (erased, is_of("counter")),
    "sums are not stored": (erased, lambda op: isinstance(op, tt.StoreOp) and not is_of("counter")(op)),
}


def test_the_unchanged_kernel_is_right_twice(made):
    assert not is_found(made, parse_module(print_module(made.specialized, locations=False)))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(made, name):
    change, is_wanted = CHANGES[name]
    module = parse_module(print_module(made.specialized, locations=False))
    found = [op for op in module.walk() if is_wanted(op)]
    assert found
    change(found[0])
    assert is_found(made, module)
