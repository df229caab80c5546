"""Values that registers have no place for go through circular buffers: the same tiles are computed."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from tests.unit.ttl.transforms.test_ttl_compute import BINARY, inputs
from tests.unit.ttl.transforms.ttl_programs import Program
from tests.unit.ttl.transforms.ttl_tiles import check, compiled
from tests.unit.volume import is_full
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.ttl.analysis.dst_liveness import Node, Plan, allocate
from tlx_xdsl.ttl.analysis.dst_spilling import cut
from tlx_xdsl.ttl.dialects import ttl

UNARY = ("exp", "neg", "sqrt", "relu")


def tree(depth: int, shape: tuple[int, int] = (1, 1), data_type: str = "f32", attributes: str = "") -> Program:
    """A full tree of differences, of a chain of maxima that all are read again."""
    program, (a, b) = inputs(shape, "a", "b", data_type=data_type, attributes=attributes)
    values = [a, b]
    while len(values) < 2**depth:
        values.append(program.op("max", values[-1], values[-2]))
    while len(values) > 1:
        values = [program.op("sub", x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
    program.output(values[0], "o")
    program.pop("a", "b")
    return program


def checked(program: Program, capacity: int, fpu: str = "auto") -> None:
    options = {"capacity": capacity, "fpu": fpu}
    with collected_diagnostics():
        check(program, capacity=capacity, ttl_spill_dst_registers=options, ttl_assign_dst_registers=options)


def buffers(program: Program, capacity: int) -> list[ttl.CBType]:
    """The types of the buffers that spilling has made."""
    with collected_diagnostics():
        module = compiled(program.text, until="ttl-spill-dst-registers", ttl_spill_dst_registers={"capacity": capacity})
    return [op.result.type for op in ops_of(module, ttl.CreateCBOp) if op.internal is not None]


def test_a_tree_that_fits_in_one_order_is_left_as_it_is() -> None:
    assert not buffers(tree(3), 8)
    assert buffers(tree(3), 2)


def test_buffers_are_used_again_and_small() -> None:
    program = tree(4, shape=(8, 6))
    checked(program, 2)
    types = buffers(program, 2)
    # Not one for each of the 15 sums, and of 8 tiles of the 48.
    assert len(types) < 8
    assert {type_.shape for type_ in types} == {(4, 2)}


def test_registers_of_32_bits_are_kept_whole() -> None:
    assert {str(type_.data_type) for type_ in buffers(tree(3, (1, 1), "bf16", ", fp32_dest_acc_en"), 2)} == {"f32"}
    assert {str(type_.data_type) for type_ in buffers(tree(3, (1, 1), "bf16"), 2)} == {"bf16"}


def test_an_output_that_is_read_again() -> None:
    program, (a, b) = inputs((1, 3), "a", "b")
    values = [program.op(name, a, b) for name in BINARY]
    for number, value in enumerate(values):
        program.output(value, f"o{number}")
    total = values[0]
    for value in values[1:]:
        total = program.op("add", program.op("exp", total), value)
    program.output(total, "o")
    program.pop("a", "b")
    checked(program, 3)


def test_broadcasts_and_numbers_are_made_again() -> None:
    """Broadcasts and numbers cost no more than a load, so no buffer is for one."""
    program, (a, b) = inputs((2, 2), "a", "b")
    program.buffer("c", (1, 2))
    wide = program.bcast(program.wait("c"), (2, 2), 0)
    number = program.op("fill", shape=(2, 2), attributes="{value = 2.0 : f32}")
    x, y = program.op("mul", a, wide), program.op("mul", b, number)
    program.output(program.op("sub", program.op("div", x, y), program.op("max", wide, number)), "o")
    program.pop("a", "b", "c")
    checked(program, 2)
    assert len(buffers(program, 2)) == 2


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Random graphs of element-wise operations."""
    program, values = inputs((draw(st.integers(1, 2)), draw(st.integers(1, 5))), *"abcd"[: draw(st.integers(1, 4))])
    names = list(program.buffers)
    for _ in range(draw(st.integers(6, 16))):
        pick = st.sampled_from(values[-9:])
        if draw(st.booleans()):
            values.append(program.op(draw(st.sampled_from(BINARY)), draw(pick), draw(pick)))
        else:
            values.append(program.op(draw(st.sampled_from(UNARY)), draw(pick)))
    for number, value in enumerate(draw(st.lists(st.sampled_from(values[-5:]), min_size=1, max_size=2, unique=True))):
        program.output(value, f"o{number}")
    program.pop(*names)
    return program


@settings(max_examples=400 if is_full() else 40)
@given(programs(), st.sampled_from([2, 3, 4]), st.sampled_from(["auto", "always", "never"]))
def test_random_programs(program: Program, capacity: int, fpu: str) -> None:
    checked(program, capacity, fpu)


def test_the_fewest_packs_and_loads() -> None:
    """A tree of five operations in two registers."""
    names = "abcdef"
    nodes = [Node("ab", ("a", "b")), Node("cd", ("c", "d")), Node("ef", ("e", "f"))]
    nodes += [Node("abcd", ("ab", "cd")), Node("all", ("abcd", "ef"))]

    def fits(part, wanted):
        return isinstance(allocate(part, wanted, 2), Plan)

    found = cut(nodes, ["all"], fits)
    assert found is not None
    kept = {value for part in found.parts for node in part for value in node.reads} - set(names)
    assert kept
    # Six loads of inputs; a part more for each value that is packed and loaded.
    assert found.cost == 6 + len(found.parts) + 2 * (len(found.parts) - 1)
    assert cut(nodes, ["all"], lambda part, wanted: False) is None
