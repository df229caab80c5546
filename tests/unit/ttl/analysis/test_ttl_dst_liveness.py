"""DST registers: every read finds the tile that the program means, and the capacity is never exceeded."""

from collections.abc import Hashable
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from tlx_xdsl.ttl.analysis.dst_liveness import Node, Overflow, Plan, Step, allocate
from tlx_xdsl.ttl.analysis.dst_orders import orders

pytestmark = pytest.mark.quick

INPUTS = ("a", "b", "c", "d", "p", "q")


def unary(result: str, value: str) -> Node:
    return Node(result, (value,), in_place=True)


def binary(result: str, first: str, second: str) -> Node:
    return Node(result, (first, second))


def run(plan: Plan, outputs: list[Hashable]) -> None:
    """Run a plan on tiles that are names, and check what each node reads and what the outputs are."""
    registers: dict[int, Hashable] = {}
    written: set[int] = set()
    for step in plan.steps:
        if step.node is None:
            assert [registers[each] for each in step.reads] in ([], [step.value])
        else:
            assert tuple(registers[each] for each in step.reads) == step.node.reads
            if step.node.in_place:
                assert step.reads == (step.register,)
            if step.node.accumulates:
                assert step.register not in written
        registers[step.register] = step.value
        written.add(step.register)
    assert [registers[each] for each in plan.outputs] == outputs


def planned(nodes: list[Node], outputs: list[Hashable], capacity: int, *, reload: bool = False) -> Plan:
    found = allocate(nodes, outputs, capacity, reload=reload)
    assert isinstance(found, Plan)
    run(found, outputs)
    return found


def test_registers_are_used_again() -> None:
    nodes = [binary("u", "a", "b"), binary("v", "u", "c"), binary("w", "v", "d")]
    assert planned(nodes, ["w"], 2).registers == 2


def test_unary_result_is_in_the_register_of_its_operand() -> None:
    # Where the operand's interval ends in the middle of others, a result with an interval of its own could be put
    # into another register than the operand, which the hardware's unary operations can't write.
    nodes = [
        binary("u", "p", "q"),
        binary("w", "a", "b"),
        binary("s", "c", "d"),
        binary("x", "u", "w"),
        unary("y", "s"),
        binary("z", "x", "y"),
    ]
    plan = planned(nodes, ["z"], 8)
    where = {step.value: step.register for step in plan.steps}
    assert where["y"] == where["s"]


def test_operand_that_is_read_later_is_copied_for_a_unary() -> None:
    nodes = [binary("u", "a", "b"), unary("e", "u"), binary("v", "e", "u")]
    plan = planned(nodes, ["v"], 4)
    copy = next(step for step in plan.steps if step.node is None and step.reads)
    assert copy == Step(None, "u", copy.register, copy.reads)
    assert copy.register not in copy.reads


def test_tile_of_a_buffer_is_loaded_twice_rather_than_copied() -> None:
    nodes = [unary("e", "a"), binary("v", "e", "a")]
    plan = planned(nodes, ["v"], 4)
    assert [step.value for step in plan.steps] == ["a", "e", "a", "v"]


def test_operand_that_is_an_output_is_copied() -> None:
    nodes = [binary("u", "a", "b"), unary("e", "u")]
    plan = planned(nodes, ["u", "e"], 4)
    assert len(set(plan.outputs)) == 2


def test_tile_of_a_buffer_as_an_output() -> None:
    assert planned([], ["a"], 1).registers == 1


def test_no_register_is_free() -> None:
    nodes = [binary("u", "a", "b"), binary("v", "c", "d"), binary("w", "u", "v")]
    assert allocate(nodes, ["w"], 2) == Overflow("d", ("u", "c"))


def test_accumulating_node_gets_a_register_that_was_not_written() -> None:
    nodes = [binary("u", "a", "b"), Node("f", (), accumulates=True), binary("v", "u", "f")]
    assert planned(nodes, ["v"], 3).registers == 3
    assert isinstance(allocate(nodes, ["v"], 2), Overflow)


def test_another_order_needs_less() -> None:
    # Breadth first: all sums are alive before the first two are used.
    nodes = [binary(f"s{i}", "a", "b") for i in range(4)]
    nodes += [unary(f"e{i}", f"s{i}") for i in range(4)]
    nodes += [binary("x", "e0", "e1"), binary("y", "e2", "e3"), binary("z", "x", "y")]
    assert isinstance(allocate(nodes, ["z"], 4, reload=True), Overflow)
    assert any(isinstance(allocate(order, ["z"], 4, reload=True), Plan) for order in orders(nodes, ["z"]))


@st.composite
def programs(draw: st.DrawFn, size: int = 12) -> tuple[list[Node], list[Hashable]]:
    """Random directed acyclic graphs."""
    values: list[str] = list(INPUTS[: draw(st.integers(1, 4))])
    nodes: list[Node] = []
    for number in range(draw(st.integers(1, size))):
        name = f"v{number}"
        pick = st.sampled_from(values)
        match draw(st.integers(0, 4)):
            case 0 | 1:
                nodes.append(unary(name, draw(pick)))
            case 2 | 3:
                nodes.append(binary(name, draw(pick), draw(pick)))
            case _:
                nodes.append(Node(name, (), accumulates=draw(st.booleans())))
        values.append(name)
    used = {value for node in nodes for value in node.reads}
    outputs = [node.result for node in nodes if node.result not in used]
    return nodes, outputs + draw(st.lists(st.sampled_from(values), max_size=2))


@given(programs(), st.integers(1, 8), st.booleans())
def test_random_programs(program: tuple[list[Node], list[Hashable]], capacity: int, reload: bool) -> None:
    nodes, outputs = program
    assert isinstance(allocate(nodes, outputs, 64, reload=reload), Plan)
    for order in orders(nodes, outputs):
        assert sorted(order) == sorted(nodes)
        found = allocate(order, outputs, capacity, reload=reload)
        if isinstance(found, Plan):
            run(found, outputs)
            assert found.registers <= capacity


@given(programs(size=6))
def test_last_order_needs_the_fewest_registers(program: tuple[list[Node], list[Hashable]]) -> None:
    nodes = [node._replace(accumulates=False) for node in program[0]]
    outputs = [value for value in program[1] if value not in INPUTS]
    *_, best = orders(nodes, outputs)
    found = allocate(best, outputs, 64, reload=True)
    assert isinstance(found, Plan)
    for order in permutations(nodes):
        places = {node.result: number for number, node in enumerate(order)}
        if all(places.get(value, -1) < number for number, node in enumerate(order) for value in node.reads):
            other = allocate(order, outputs, 64, reload=True)
            assert isinstance(other, Plan)
            assert found.registers <= other.registers


def test_plan_without_steps_has_a_register() -> None:
    assert Plan((), ()).registers == 1


def test_chain_of_additions_needs_two_registers() -> None:
    nodes = [binary(f"v{i}", f"v{i - 1}" if i else "a", "b") for i in range(12)]
    assert planned(nodes, ["v11"], 8).registers == 2
