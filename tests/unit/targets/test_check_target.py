"""Every operation that needs something is refused, at its line, on every target that lacks it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.operation import display_name, needs_of
from tlx_xdsl.dialects.registry import all_dialects, make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import NO_TARGETS, TARGETS, Feature, Target, refusal, target_named, target_of
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.nvidia.check_target import CheckTargetPass

pytestmark = pytest.mark.quick

TEXTS = Path(__file__).parents[2] / "filecheck" / "dialects"
FILES = ("tt_ops", "ttg_ops", "ttng_ops", "ttng_cluster_ops", "tlx_ops", "other_ops", "older_spellings")
"""The texts that hold every operation of the dialects."""
OURS = ("tt.", "ttg.", "ttng.", "tlx.", "nvvm.", "gpu.")


def all_operations() -> Iterator[Operation]:
    for name in FILES:
        path = TEXTS / f"{name}.mlir"
        yield from parse_module(path.read_text(), filename=path.name).walk()


NEEDY = {(op.name, needs_of(op)): op for op in all_operations() if needs_of(op)}
"""One operation for each name and set of needs."""


def alone(op: Operation, target: Target) -> ModuleOp:
    """A module for `target` whose function does nothing but `op`."""
    inside = {value for inner in op.walk() for value in inner.results}
    inside |= {arg for inner in op.walk() for region in inner.regions for each in region.blocks for arg in each.args}
    outer = list(dict.fromkeys(value for inner in op.walk() for value in inner.operands if value not in inside))
    block = Block(arg_types=[value.type for value in outer])
    block.add_op(op.clone(dict(zip(outer, block.args, strict=True))))
    block.add_op(tt.ReturnOp(operands=[[]]))
    func = tt.FuncOp("k", FunctionType.from_lists([arg.type for arg in block.args], []), Region(block))
    attributes = {
        "ttg.num-ctas": IntegerAttr(1, i32),
        "ttg.num-warps": IntegerAttr(4, i32),
        "ttg.target": StringAttr(f"cuda:{target.capability}"),
    }
    return ModuleOp([func], attributes)


def check(module: ModuleOp, **options: bool) -> None:
    CheckTargetPass(**options).apply(make_context(), module)


def test_the_texts_hold_every_operation_that_states_a_need():
    stated = {
        op.name
        for load in all_dialects().values()
        for op in load().operations
        if op.name.startswith(OURS) and (hasattr(op, "NEEDS") or hasattr(op, "also_needs"))
    }
    seen = {op.name for op in all_operations()}
    missing = {name for name in stated - seen if not name.startswith(("nvvm.read.", "gpu.cluster_"))}
    assert missing == set()
    assert len(NEEDY) > 60


ANYWHERE = {
    "nvvm": {"barrier", "barrier.arrive", "inline_ptx"},
    "ttng": set[str](),
    "tlx": {
        "assert_same_layout",
        "assert_same_layout_expected",
        "clock64",
        "dump_layout",
        "fence",
        "leave",
        "local_alias",
        "memdesc_dynamic_subslice",
        "named_barrier_arrive",
        "named_barrier_wait",
        "prefetch",
        "release_layout",
        "replica_id",
        "require_layout",
        "reuse_group",
        "set_buffer_overlap",
        "storage_alias_local_alloc",
        "vote_ballot",
        "wait_signal",
    },
}
"""What every GPU can do, of the dialects that are about what some can."""


@pytest.mark.parametrize("dialect", ANYWHERE)
def test_a_new_operation_says_what_it_needs(dialect: str):
    silent = {
        op.name.removeprefix(f"{dialect}.")
        for op in all_dialects()[dialect]().operations
        if not hasattr(op, "NEEDS") and not op.name.startswith("nvvm.read.ptx.sreg.")
    }
    assert silent == ANYWHERE[dialect]


@pytest.mark.parametrize("key", NEEDY, ids=lambda key: f"{key[0]}-{'-'.join(each.name for each in key[1])}")
def test_it_is_refused_at_its_line_where_it_is_lacking(key: tuple[str, tuple[Feature, ...]]):
    op = NEEDY[key]
    for target in TARGETS:
        text = print_module(alone(op, target), locations=False)
        module = parse_module(text, filename="kernel.mlir")
        lacking = [feature for feature in needs_of(op) if not target.has(feature)]
        if not lacking:
            check(module)
            continue
        with pytest.raises(CompilationError) as error:
            check(module)
        assert error.value.message == refusal(display_name(op), lacking[:1], target)
        assert error.value.location is not None
        assert op.name in text.splitlines()[error.value.location.line - 1]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize(
    ("attribute", "what"), [("ttg.num-ctas", "num_ctas above 1"), ("ttg.cluster-dim-y", "a launch in clusters")]
)
def test_a_cluster_needs_clusters(target: Target, attribute: str, what: str):
    module = alone(tt.ReturnOp(operands=[[]]), target)
    module.attributes[attribute] = IntegerAttr(2, i32)
    if target.has(Feature.CLUSTER):
        check(module)
        return
    with pytest.raises(CompilationError, match=f"{what} needs thread-block clusters .*; target is {target.name}"):
        check(module)


def operation(name: str) -> Operation:
    return next(op for (each, _), op in NEEDY.items() if each == name)


def test_descriptors_of_plain_kernels_need_no_tma():
    """Stock Triton makes pointers of them where there is none; where there is one, it has to gather, too."""
    load, gather = operation("tt.descriptor_load"), operation("tt.descriptor_gather")
    check(alone(load, target_named("sm_80")), plain=True)
    check(alone(gather, target_named("sm_80")), plain=True)
    with pytest.raises(CompilationError, match="needs TMA gather"):
        check(alone(gather, target_named("sm_90a")), plain=True)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (StringAttr("cuda:75"), "unknown target 'sm_75': the targets are sm_80,"),
        (StringAttr("hip:gfx942"), 'expected a target such as "cuda:90" in \'ttg.target\', found "hip:gfx942"'),
        (IntegerAttr(90, i32), "expected a target such as"),
        (None, "the module needs the attribute 'ttg.target'; the pass triton-tlx-fixup sets it"),
    ],
)
def test_a_module_says_what_it_is_for(written: Attribute | None, message: str):
    module = alone(tt.ReturnOp(operands=[[]]), target_named("sm_80"))
    del module.attributes["ttg.target"]
    if written is not None:
        module.attributes["ttg.target"] = written
    with pytest.raises(CompilationError, match=re.escape(message)):
        check(module)


def test_the_wording():
    features = [*needs_of(operation("ttng.warp_group_dot")), *needs_of(operation("ttng.tc_gen5_commit"))]
    said = refusal("tlx.async_dot", features, target_named("sm_89"))
    assert said == "tlx.async_dot needs wgmma (sm_90a) or tcgen05 (sm_100a); target is sm_89"


@pytest.mark.parametrize("name", ["sm_75", "sm_90b", "sm_80f", "cuda:90", "90", "", "SM_90a", "sm_100f"])
def test_for_an_unknown_target_the_known_ones_are_listed(name: str):
    with pytest.raises(ValueError, match=re.escape(f"unknown target '{name}': the targets are sm_80, sm_86, ")):
        target_named(name)


@pytest.mark.parametrize("name", NO_TARGETS)
def test_what_is_no_target_has_a_reason(name: str):
    with pytest.raises(ValueError, match=f"sm_121a; {re.escape(NO_TARGETS[name])}$"):
        target_named(name)


def test_both_spellings_of_a_target_are_one():
    assert target_named("sm_90") is target_named("sm_90a") is target_of(90)
