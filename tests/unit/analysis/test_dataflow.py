"""The forward walk: joins, loops inside of loops, unknown control flow, and analyses without an end."""

import pytest
from xdsl.ir import Operation

from tlx_xdsl import CompilationError
from tlx_xdsl.analysis.dataflow import Arrivals, ForwardWalk
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.quick


class Reaching(ForwardWalk[frozenset[int]]):
    """The constants that may have been the last `arith.constant` before each operation."""

    def __init__(self):
        self.visits: dict[str, int] = {}
        self.at: dict[str, frozenset[int]] = {}

    def transfer(self, op, state):
        self.visits[op.name] = self.visits.get(op.name, 0) + 1
        self.at[op.name] = state
        return frozenset([op.value.value.data]) if op.name == "arith.constant" else state

    def join(self, arrivals: Arrivals[frozenset[int]]):
        return frozenset().union(*(state for _, state in arrivals))


class Endless(ForwardWalk[int]):
    """An analysis that is not monotone: each turn of a loop finds another state."""

    def transfer(self, op, state):
        return state + 1

    def join(self, arrivals):
        return sum(state for _, state in arrivals)


def function(body: str) -> Operation:
    arguments = "%c: i1, %x: i32, %p: !tt.ptr<i32>"
    module = parse_module(f"tt.func public @k({arguments}) {{\n{body}\n}}")
    return next(iter(module.ops))


def reaching(body: str) -> Reaching:
    func = function(body + "\ntt.return")
    walk = Reaching()
    walk.run(func, frozenset([0]))
    return walk


def constant(number: int) -> str:
    return f"%k{number} = arith.constant {number} : i32\n"


LOOP = "scf.for %{0} = %x to %x step %x : i32 {{\n{1}}}\n"

FLOWS = {
    "straight": (constant(1), {1}),
    "if": (f"scf.if %c {{\n{constant(1)}}}\n", {0, 1}),
    "if with else": (f"scf.if %c {{\n{constant(1)}}} else {{\n{constant(2)}}}\n", {1, 2}),
    "for": (LOOP.format("i", constant(1)), {0, 1}),
    "while": (
        f"scf.while : () -> () {{\n{constant(1)}scf.condition(%c)\n}} do {{\n{constant(2)}scf.yield\n}}\n",
        {1},
    ),
    "tasks": (
        "ttg.warp_specialize()\ndefault {\nttg.warp_yield\n}\n"
        f"partition0() num_warps(4) {{\n{constant(1)}ttg.warp_return\n}} : () -> ()\n",
        {0},
    ),
    "blocks": (
        f"cf.cond_br %c, ^bb1, ^bb2\n^bb1:\n{constant(1)}cf.br ^bb2\n^bb2:\ncf.cond_br %c, ^bb3, ^bb1\n^bb3:\n",
        {0, 1},
    ),
    "unreachable": (f"cf.br ^bb2\n^bb1:\n{constant(1)}cf.br ^bb2\n^bb2:\n", {0}),
}


@pytest.mark.parametrize("name", FLOWS)
def test_what_reaches_the_end(name: str):
    body, expected = FLOWS[name]
    assert reaching(body).at["tt.return"] == expected


def test_a_loop_sees_what_its_body_leaves():
    walk = reaching(LOOP.format("i", "tt.store %p, %x : !tt.ptr<i32>\n" + constant(1)))
    assert walk.at["tt.store"] == {0, 1}


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_nesting_does_not_multiply_visits(depth: int):
    """The innermost body is walked once for each turn of the loops around it that changes something."""
    body = "tt.store %p, %x : !tt.ptr<i32>\n" + constant(1)
    for level in range(depth):
        body = LOOP.format(f"i{level}", body)
    assert reaching(body).visits["tt.store"] <= depth + 1


def test_a_loop_without_an_exit_has_no_state_after_it():
    func = function("cf.br ^bb1\n^bb1:\ncf.br ^bb1")
    assert Reaching().run(func, frozenset()) is None


def test_unknown_control_flow_is_refused():
    segments = "<{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>"
    body = f'"scf.parallel"(%i, %i, %i) {segments} ({{\n^bb0(%n: index):\n}}) : (index, index, index) -> ()\n'
    with pytest.raises(CompilationError, match=r"the control flow of 'scf\.parallel' is not known"):
        reaching("%i = arith.constant 0 : index\n" + body)


def test_an_analysis_without_an_end_is_stopped():
    func = function(LOOP.format("i", constant(1)) + "tt.return")
    with pytest.raises(CompilationError, match="does not come to an end at"):
        Endless().run(func, 1)
