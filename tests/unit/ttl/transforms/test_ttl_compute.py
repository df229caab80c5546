"""Compute threads from blocks as values to calls: both forms make the same tiles, and the calls keep the rules."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.unit.ttl.transforms.ttl_programs import Block, Program, Shape
from tests.unit.ttl.transforms.ttl_tiles import check
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.dialects import ttl
from tlx_xdsl.ttl.elementwise import BY_NAME, FUNCTIONS

pytestmark = pytest.mark.quick

BINARY = ["add", "sub", "mul", "div", "max", "min", "remainder"]
NUMBERS = {each.name: f"{{parameters = {[1.5 + i for i, _ in enumerate(each.parameters)]}}}" for each in FUNCTIONS}
UNARY = [*NUMBERS]


def numbers(name: str) -> str:
    """Attributes of a function of one block."""
    return NUMBERS[name] if BY_NAME[name].parameters else ""


def inputs(shape: Shape, *names: str, data_type: str = "f32", attributes: str = "") -> tuple[Program, list[Block]]:
    program = Program(data_type, attributes)
    for name in names:
        program.buffer(name, shape)
    return program, [program.wait(name) for name in names]


def test_popped_before_the_result_is_reserved() -> None:
    program, (a, b) = inputs((2, 2), "a", "b")
    total = program.op("add", a, b)
    program.pop("a", "b")
    program.output(total, "o")
    assert check(program).acquires == 2


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("data_type", ["f32", "bf16"])
def test_binary(name: str, data_type: str) -> None:
    program, (a, b) = inputs((1, 3), "a", "b", data_type=data_type)
    program.output(program.op(name, a, b), "o")
    program.pop("a", "b")
    check(program)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    program, (a,) = inputs((3, 1), "a")
    value = program.op(name, a, attributes=numbers(name))
    program.output(program.op("add", value, a), "o")
    program.pop("a")
    check(program)


def test_choice() -> None:
    program, (a, b, c) = inputs((2, 2), "a", "b", "c")
    program.output(program.op("where", program.op("neg", a), b, program.op("add", c, a)), "o")
    program.pop("a", "b", "c")
    check(program)


@pytest.mark.parametrize(("name", "attributes"), [("clamp", "{parameters = [1.0]}"), ("exp", "{parameters = [1.0]}")])
def test_numbers_that_a_function_does_not_take(name: str, attributes: str) -> None:
    program, (a,) = inputs((1, 1), "a")
    program.output(program.op(name, a, attributes=attributes), "o")
    program.pop("a")
    with pytest.raises(CompilationError, match=f"ttl.{name} takes the parameters"):
        check(program)


@pytest.mark.parametrize(
    ("data_type", "attributes", "acquires"),
    [
        # 16 tiles with two registers each for an addition by the vector unit; one each by the matrix unit.
        ("f32", "", 8),
        ("f32", ", dst_full_sync_en", 4),
        ("bf16", "", 2),
        ("bf16", ", dst_full_sync_en", 1),
        ("bf16", ", fp32_dest_acc_en", 4),
    ],
)
def test_capacity(data_type: str, attributes: str, acquires: int) -> None:
    program, (a, b) = inputs((4, 4), "a", "b", data_type=data_type, attributes=attributes)
    program.output(program.op("add", a, b), "o")
    program.pop("a", "b")
    assert check(program).acquires == acquires


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_broadcast(dims: tuple[int, ...]) -> None:
    shape = (1 if 0 in dims else 2, 1 if 1 in dims else 3)
    program, (a,) = inputs((2, 3), "a")
    program.buffer("b", shape)
    narrow = program.wait("b")
    program.output(program.op("mul", a, program.bcast(narrow, (2, 3), *dims)), "o")
    program.pop("a", "b")
    check(program)


def test_broadcast_of_a_computed_block_goes_through_a_buffer() -> None:
    program, (a,) = inputs((2, 1), "a")
    wide = program.bcast(program.op("exp", a), (2, 4), 1)
    program.pop("a")
    program.output(program.op("neg", wide), "o")
    check(program)


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_reduction(kind: str, dims: tuple[int, ...]) -> None:
    program, (a,) = inputs((3, 5), "a")
    program.output(program.reduce(kind, a, *dims), "o")
    program.pop("a")
    check(program)


def test_transpose() -> None:
    program, (a,) = inputs((2, 3), "a")
    program.output(program.op("exp", program.transpose(a)), "o")
    program.pop("a")
    check(program)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 2), (3, 5, 7), (1, 20, 1), (4, 1, 4)])
def test_matmul(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    program = Program()
    program.buffer("a", (rows, inner))
    program.buffer("b", (inner, columns))
    program.output(program.matmul(program.wait("a"), program.wait("b")), "o")
    program.pop("a", "b")
    check(program)


def test_epilogue_of_a_matmul_reads_a_buffer() -> None:
    program, (a, b, c) = inputs((2, 2), "a", "b", "c")
    product = program.matmul(program.op("exp", a), b)
    program.pop("a", "b")
    program.output(program.op("relu", program.op("add", product, c)), "o")
    program.pop("c")
    check(program)


@pytest.mark.parametrize("data_type", ["f32", "bf16"])
def test_softmax_of_rows(data_type: str) -> None:
    # The quotient is of the powers, not of the rounded ones that the sum reads.
    program, (a,) = inputs((2, 3), "a", data_type=data_type)
    largest = program.bcast(program.reduce("max", a, 1), (2, 3), 1)
    powers = program.op("exp", program.op("sub", a, largest))
    total = program.bcast(program.reduce("sum", powers, 1), (2, 3), 1)
    program.output(program.op("div", powers, total), "o")
    program.pop("a")
    check(program)


def test_matrix_unit_adds_to_registers_that_were_written() -> None:
    # The register of a power is free when the sum is computed.
    program, (a, b) = inputs((1, 1), "a", "b", data_type="bf16")
    quotient = program.op("div", program.op("exp", a), program.op("exp", b))
    program.output(program.op("mul", quotient, program.op("add", a, b)), "o")
    program.pop("a", "b")
    check(program)


def test_fill_and_copy() -> None:
    program, (a,) = inputs((2, 2), "a")
    program.output(program.op("fill", shape=(2, 2), attributes="{value = 2.0 : f32}"), "f")
    program.output(a, "o")
    program.pop("a")
    check(program)


def test_several_outputs_of_one_chain() -> None:
    program, (a, b) = inputs((2, 2), "a", "b")
    total = program.op("add", a, b)
    power = program.op("exp", total)
    program.output(power, "p")
    program.output(program.op("mul", total, power), "o")
    program.pop("a", "b")
    check(program)


def test_product_that_is_stored_and_used() -> None:
    program, (a, b) = inputs((2, 2), "a", "b")
    product = program.matmul(a, b)
    program.output(product, "p")
    program.output(program.op("exp", product), "o")
    program.pop("a", "b")
    check(program)


def accumulation() -> Program:
    """Sum of products over a loop, in the place that was reserved before it."""
    program = Program()
    program.buffer("a", (1, 2))
    program.buffer("b", (2, 3))
    program.buffer("o", (1, 3))
    place = program.reserve("o")
    program.add("%c0 = arith.constant 0 : index")
    program.add("affine.for %k = 0 to 3 {")
    a, b = program.wait("a"), program.wait("b")
    program.add("%first = arith.cmpi eq, %k, %c0 : index")
    program.store(program.matmul(a, b), place, "first %first {accumulate}")
    program.pop("a", "b")
    program.add("}")
    program.push("o")
    return program


FORMS = [("ttkernel",), ("linalg", "ttkernel"), ("linalg", "tiled", "ttkernel"), ("tiled", "tiled", "ttkernel")]
"""Ways from computes to calls."""


@pytest.mark.parametrize("forms", FORMS)
def test_accumulation_over_a_loop(forms: tuple[str, ...]) -> None:
    check(accumulation(), forms=forms)


@pytest.mark.parametrize("forms", FORMS)
def test_forms(forms: tuple[str, ...]) -> None:
    program, (a, b) = inputs((5, 3), "a", "b")
    total = program.bcast(program.reduce("max", a, 1), (5, 3), 1)
    program.output(program.op("sub", program.op("exp", b), total), "o")
    program.pop("a", "b")
    check(program, forms=forms)


def test_accumulation_after_a_first_store() -> None:
    program, (a, b) = inputs((2, 2), "a", "b")
    program.buffer("o", (2, 2))
    place = program.reserve("o")
    program.store(a, place)
    program.store(b, place, "{accumulate}")
    program.push("o")
    program.pop("a", "b")
    check(program)


def test_reduction_in_a_loop() -> None:
    program = Program()
    program.buffer("a", (2, 2))
    program.buffer("o", (1, 1), 3)
    program.add("affine.for %k = 0 to 3 {")
    a = program.wait("a")
    total = program.reduce("sum", program.op("exp", a), 0, 1)
    program.pop("a")
    program.output(program.op("neg", total), "o")
    program.add("}")
    check(program)


@pytest.mark.parametrize("name", ["matmul", "add"])
def test_block_that_is_computed_outside_of_a_loop(name: str) -> None:
    # A product reads the powers in a buffer, which is popped after the loop; a sum computes them, and what they are
    # made of is popped after the loop.
    program, (a,) = inputs((2, 2), "a")
    power = program.op("exp", a)
    program.pop("a")
    program.buffer("b", (2, 2))
    program.buffer("o", (2, 2), 3)
    program.add("affine.for %k = 0 to 3 {")
    program.output(program.op(name, power, program.wait("b")), "o")
    program.pop("b")
    program.add("}")
    check(program)


def test_sub_block_with_many_loads_has_loops() -> None:
    program, (a, b, c) = inputs((4, 5), "a", "b", "c", data_type="bf16", attributes=", dst_full_sync_en")
    program.output(program.op("exp", program.op("div", program.op("div", a, b), c)), "o")
    program.pop("a", "b", "c")
    # Eight tiles at once, each with three loads.
    assert check(program).acquires == 3


def test_several_blocks_at_once() -> None:
    program = Program()
    program.buffer("a", (1, 2), 3)
    program.buffer("o", (1, 2), 3)
    several, one = program.type_of((3, 1, 2)), program.type_of((1, 2))
    program.add(f"%a3 = ttl.cb_wait %a {{blocks = 3 : i64}} : {program.cb_type('a')} -> {several}")
    program.add(f"%o3 = ttl.cb_reserve %o {{blocks = 3 : i64}} : {program.cb_type('o')} -> {several}")
    program.add("%c2 = arith.constant 2 : index")
    program.add("affine.for %k = 0 to 3 {")
    program.add("%j = arith.subi %c2, %k : index")
    program.add(f"%ak = ttl.block %a3, %k : {several} -> {one}")
    program.add(f"%al = ttl.block %a3, %c2 : {several} -> {one}")
    program.add(f"%oj = ttl.block %o3, %j : {several} -> {one}")
    program.store(program.op("add", Block("%ak", (1, 2)), Block("%al", (1, 2))), Block("%oj", (1, 2)))
    program.add("}")
    program.add("ttl.cb_pop %a {blocks = 3 : i64}")
    program.add("ttl.cb_push %o {blocks = 3 : i64}")
    check(program)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Random graphs of operations on blocks of one shape, with pops in the end or before the results.

    Products and transpositions need square blocks, so that their results have the shape, too.
    """
    is_square = draw(st.booleans())
    shape = draw(
        st.integers(1, 3).map(lambda size: (size, size))
        if is_square
        else st.tuples(st.integers(1, 3), st.integers(1, 5))
    )
    program, values = inputs(shape, *"abc"[: draw(st.integers(1, 3))], data_type=draw(st.sampled_from(["f32", "bf16"])))
    names = list(program.buffers)
    for _ in range(draw(st.integers(1, 8))):
        pick = st.sampled_from(values)
        match draw(st.integers(0, 9 if is_square else 7)):
            case 0 | 1 | 2 | 3:
                value = program.op(draw(st.sampled_from(BINARY)), draw(pick), draw(pick))
            case 4 | 5:
                name = draw(st.sampled_from(UNARY))
                value = program.op(name, draw(pick), attributes=numbers(name))
            case 6 | 7:
                dims = draw(st.sampled_from([(0,), (1,), (0, 1)]))
                narrow = program.reduce(draw(st.sampled_from(["sum", "max"])), draw(pick), *dims)
                value = program.bcast(narrow, shape, *dims)
            case 8:
                value = program.transpose(draw(pick))
            case _:
                value = program.matmul(draw(pick), draw(pick))
        values.append(value)
    pops_first = draw(st.booleans())
    if pops_first:
        program.pop(*names)
    for number, value in enumerate(draw(st.lists(st.sampled_from(values[len(names) :]), min_size=1, max_size=2))):
        program.output(value, f"o{number}")
    if not pops_first:
        program.pop(*names)
    return program


@given(programs(), st.sampled_from([8, 12, 16]), st.sampled_from(["auto", "always", "never"]))
def test_random_programs(program: Program, capacity: int, fpu: str) -> None:
    machine = check(program, capacity=capacity, ttl_assign_dst_registers={"capacity": capacity, "fpu": fpu})
    assert machine.used <= capacity


def test_every_operation_on_blocks_is_covered() -> None:
    # Typecasts are in tests/unit/ttl/runtime/test_ttl_types.py, for numbers matter there.
    others = {"fill", "bcast", "reduce_sum", "reduce_max", "transpose", "matmul", "typecast", "where"}
    classes = [each for each in ttl.TTL.operations if hasattr(each, "TILE")]
    assert {each.name.removeprefix("ttl.") for each in classes} == {*BINARY, *UNARY, *others}


def three_outputs() -> Program:
    """Stores next to each other, of values that are made of each other."""
    program, (a, b) = inputs((2, 2), "a", "b")
    total = program.op("add", a, b)
    power = program.op("exp", total)
    places = [program.reserve(program.buffer(name, (2, 2))) for name in "pqr"]
    for value, place in zip([power, program.op("mul", total, power), total], places, strict=True):
        program.store(value, place)
    program.pop("a", "b")
    program.push(*"pqr")
    return program


@pytest.mark.parametrize(("capacity", "acquires"), [(8, 2), (4, 4), (3, 4), (2, 3 * 4)])
def test_outputs_of_one_compute(capacity: int, acquires: int) -> None:
    # Three registers hold the values of a tile. With two, the sum is computed for each output.
    options = {"capacity": capacity}
    assert check(three_outputs(), capacity=capacity, ttl_assign_dst_registers=options).acquires == acquires


def test_stores_with_a_push_between_are_computed_apart() -> None:
    program, (a, b) = inputs((1, 1), "a", "b")
    total = program.op("add", a, b)
    program.output(total, "p")
    program.output(program.op("exp", total), "q")
    program.pop("a", "b")
    assert check(program).acquires == 2
