"""Edges of region control flow: of each kind of operation, and what holds of all edges in real modules."""

from collections import defaultdict
from pathlib import Path

import pytest
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.regions import call_edges, edges, forwarded, incoming, region_edges
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.quick

TESTS = Path(__file__).parents[2]
TEXTS = [
    *sorted((TESTS / "unit" / "interpreter" / "texts").glob("*.ttgir")),
    *((TESTS / "filecheck" / "dialects" / f"{name}.mlir") for name in ("tt_ops", "ttg_ops")),
]

FLOW = """
tt.func private @g(%x: i32) -> i32 {
  tt.return %x : i32
}
tt.func public @k(%c: i1, %n: index, %lo: i32, %a: i32, %b: i32) {
  %for = scf.for %i = %lo to %a step %b iter_args(%s = %a) -> (i32) : i32 {
    scf.yield %s : i32
  }
  %w:2 = scf.while (%p = %a) : (i32) -> (i32, i1) {
    scf.condition(%c) %p, %c : i32, i1
  } do {
  ^bb0(%q: i32, %r: i1):
    scf.yield %q : i32
  }
  %if = scf.if %c -> (i32) {
    scf.yield %a : i32
  } else {
    scf.yield %b : i32
  }
  scf.if %c {
  }
  %switch = "scf.index_switch"(%n) <{cases = array<i64: 4>}> ({
    "scf.yield"(%a) : (i32) -> ()
  }, {
    "scf.yield"(%b) : (i32) -> ()
  }) : (index) -> i32
  %run = "scf.execute_region"() ({
    "scf.yield"(%b) : (i32) -> ()
  }) : () -> i32
  %ws = ttg.warp_specialize(%a, %b)
  default {
    ttg.warp_yield %a : i32
  }
  partition0(%x0: i32, %y0: i32) num_warps(4) {
    ttg.warp_return
  }
  partition1(%x1: i32, %y1: i32) num_warps(4) {
    ttg.warp_return
  } : (i32, i32) -> i32
  %t = tt.splat %a : i32 -> tensor<4xi32>
  %sum = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%l: i32, %m: i32):
    tt.reduce.return %l : i32
  }) : (tensor<4xi32>) -> i32
  %called = tt.call @g(%sum) : (i32) -> i32
  cf.cond_br %c, ^bb1(%a, %b : i32, i32), ^bb2(%b : i32)
^bb1(%d: i32, %e: i32):
  cf.br ^bb2(%e : i32)
^bb2(%f: i32):
  tt.return
}
"""


@pytest.fixture
def kernel():
    module = parse_module(FLOW)
    _, kernel = module.ops
    return kernel


def one(root: Operation, name: str) -> Operation:
    return next(op for op in root.walk() if op.name == name)


def shown(leaving) -> list[tuple[str, str]]:
    """Each edge as source and target, with the names of what is forwarded and defined."""

    def names(values):
        return [value.name_hint or "?" for value in values]

    return [
        (
            edge.source.name,
            "past" if isinstance(edge.target, Operation) else "into",
            *(f"{a}->{b}" for a, b in zip(names(edge.operands), names(edge.inputs), strict=True)),
        )
        for edge in leaving
    ]


EXPECTED = {
    "scf.for": [
        ("scf.for", "into", "a->s"),
        ("scf.for", "past", "a->for"),
        ("scf.yield", "into", "s->s"),
        ("scf.yield", "past", "s->for"),
    ],
    "scf.while": [
        ("scf.while", "into", "a->p"),
        ("scf.condition", "into", "p->q", "c->r"),
        ("scf.condition", "past", "p->w", "c->w"),
        ("scf.yield", "into", "q->p"),
    ],
    "scf.if": [
        ("scf.if", "into"),
        ("scf.if", "into"),
        ("scf.yield", "past", "a->if"),
        ("scf.yield", "past", "b->if"),
    ],
    "scf.index_switch": [
        ("scf.index_switch", "into"),
        ("scf.index_switch", "into"),
        ("scf.yield", "past", "a->switch"),
        ("scf.yield", "past", "b->switch"),
    ],
    "scf.execute_region": [("scf.execute_region", "into"), ("scf.yield", "past", "b->run")],
    "ttg.warp_specialize": [
        ("ttg.warp_specialize", "into"),
        ("ttg.warp_specialize", "into"),
        ("ttg.warp_yield", "past", "a->ws"),
    ],
    "ttg.warp_specialize.partitions": [
        ("ttg.warp_specialize.partitions", "into", "a->x0", "b->y0"),
        ("ttg.warp_specialize.partitions", "into", "a->x1", "b->y1"),
    ],
    "tt.reduce": [("tt.reduce", "into"), ("tt.reduce.return", "into"), ("tt.reduce.return", "past")],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_regions(kernel, name: str):
    assert shown(region_edges(one(kernel, name))) == EXPECTED[name]


def test_an_if_without_else_may_be_passed(kernel):
    passed = [op for op in kernel.walk() if op.name == "scf.if"][1]
    assert shown(edges(passed)) == [("scf.if", "into"), ("scf.if", "past")]


def test_branches_and_returns(kernel):
    jumps = [op for op in kernel.walk() if op.name in ("cf.cond_br", "cf.br")]
    assert [shown(edges(jump)) for jump in jumps] == [
        [("cf.cond_br", "into", "a->d", "b->e"), ("cf.cond_br", "into", "b->f")],
        [("cf.br", "into", "e->f")],
    ]
    assert edges(jumps[0])[1].target is kernel.body.blocks[2]
    assert shown(region_edges(kernel)) == [("tt.func", "into"), ("tt.return", "past")]


def test_a_call_enters_the_callee_and_returns(kernel):
    call, (callee, _) = one(kernel, "tt.call"), kernel.parent_op().ops
    assert edges(call) == ()
    assert shown(call_edges(call, callee)) == [("tt.call", "into", "sum->x"), ("tt.return", "past", "x->called")]


def test_operands_and_inputs_by_each_other(kernel):
    loop, test = one(kernel, "scf.for"), one(kernel, "scf.condition")
    assert forwarded(loop) == {3: [loop.body.block.args[1], loop.results[0]]}
    after, results = test.parent_op().after_region.block.args, test.parent_op().results
    assert forwarded(test) == {1: [after[0], results[0]], 2: [after[1], results[1]]}
    argument, yielded = loop.body.block.args[1], loop.body.block.last_op.operands[0]
    assert incoming(region_edges(loop))[argument] == [loop.operands[3], yielded]


UNKNOWN = """
tt.func public @k(%i: index, %f: i32) {
  "scf.parallel"(%i, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%n: index):
    "scf.yield"() : () -> ()
  }) : (index, index, index) -> ()
  "cf.switch"(%f) [^bb1] <{case_operand_segments = array<i32>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> ()
^bb1:
  tt.return
}
"""


@pytest.mark.parametrize("name", ["scf.parallel", "scf.yield", "cf.switch", "builtin.module"])
def test_what_is_not_listed_is_unknown(name: str):
    op = one(parse_module(UNKNOWN), name)
    assert edges(op) is None
    assert region_edges(op) is None
    assert forwarded(op) == {}


def test_a_region_that_ends_in_what_is_unknown_is_unknown():
    module = parse_module("tt.func public @k(%c: i1) { scf.if %c {\n} \n tt.return }")
    branch = one(module, "scf.if")
    block = branch.true_region.block
    block.erase_op(block.last_op)
    block.add_op(ttg.WarpReturnOp())
    assert region_edges(branch) is not None
    block.erase_op(block.last_op)
    block.add_op(one(parse_module(UNKNOWN), "cf.switch").clone_without_regions())
    assert edges(block.last_op) is None


COMPUTED = {tt.FuncOp, tt.ReduceOp, tt.ScanOp, tt.MapElementwiseOp}
"""Operations that compute what their regions begin with, and their results."""


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_all_edges_of_a_module(path: Path):
    """Types agree, all edges to a target define the same values, and each value of a region's border is defined."""
    module = parse_module(path.read_text(), filename=str(path))
    reached = defaultdict(list)
    for op in module.walk():
        if op is module:
            continue
        leaving = edges(op)
        assert leaving is not None, op.name
        assert bool(leaving) or not (op.regions or op.successors), op.name
        for edge in leaving:
            reached[edge.target].append(edge)
            assert [value.type for value in edge.operands] == [value.type for value in edge.inputs]
            values = edge.target.args if isinstance(edge.target, Block) else edge.target.results
            assert set(edge.inputs) <= set(values)
    for target, arriving in reached.items():
        assert len({tuple(edge.inputs) for edge in arriving}) == 1
        owner = target.parent_op() if isinstance(target, Block) else target
        if type(owner) in COMPUTED and not (isinstance(target, Block) and target.prev_block):
            continue
        values = list(target.args if isinstance(target, Block) else target.results)
        counters = 1 if isinstance(target, Block) and owner.name == "scf.for" else 0
        assert list(arriving[0].inputs) == values[counters:]
    for op in module.walk():
        if op.regions and op is not module:
            assert all(block in reached for region in op.regions for block in region.blocks), op.name
        if op.has_trait(IsTerminator) and op.name != "ttg.warp_return":
            assert edges(op), op.name
