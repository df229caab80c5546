"""Facts about indices hold for the numbers that they are."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.unit.volume import is_full
from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.dialects import tt
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.quick

SHAPE = (8, 32)
TENSOR = "tensor<8x32xi32>"
MASK = "tensor<8x32xi1>"
ARGUMENTS = "%n: i32 {tt.divisibility = 16 : i32}, %m: i32"


def infos(body, arguments=ARGUMENTS):
    """The facts about each value of a function, by its name."""
    module = parse_module(f"module {{ tt.func @f({arguments}) {{\n{body}\ntt.return }} }}")
    verify_module(module)
    (function,) = module.ops
    assert isinstance(function, tt.FuncOp)
    return {value.name_hint: info for value, info in axis_infos(function).items() if value.name_hint}


def check(info, numbers):
    """Compare the facts with an array."""
    for axis, size in enumerate(numbers.shape):
        lines = np.moveaxis(numbers, axis, -1).reshape(-1, size)
        contiguity, divisibility, constancy = (
            getattr(info, name)[axis] for name in ("contiguity", "divisibility", "constancy")
        )
        groups = lines.reshape(len(lines), -1, contiguity)
        assert (groups == groups[..., :1] + np.arange(contiguity)).all()
        assert (groups[..., 0] % divisibility == 0).all()
        groups = lines.reshape(len(lines), -1, constancy)
        assert (groups == groups[..., :1]).all()
    if info.value is not None:
        assert (numbers == info.value).all()


OPERATIONS = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": lambda a, b: a // b,
    "remsi": lambda a, b: a % b,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
}
COMPARISONS = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal, "eq": np.equal}


def leaves(n, m, start):
    """Statements that make indices, and the numbers that they are."""
    lines = [
        "%row1 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>",
        "%row2 = tt.expand_dims %row1 {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>",
        f"%v0 = tt.broadcast %row2 : tensor<8x1xi32> -> {TENSOR}",
        f"%column1 = tt.make_range {{start = {start} : i32, end = {start + 32} : i32}} : tensor<32xi32>",
        "%column2 = tt.expand_dims %column1 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>",
        f"%v1 = tt.broadcast %column2 : tensor<1x32xi32> -> {TENSOR}",
        f"%v2 = tt.splat %n : i32 -> {TENSOR}",
        f"%v3 = tt.splat %m : i32 -> {TENSOR}",
    ]
    values = {
        "v0": np.broadcast_to(np.arange(8)[:, None], SHAPE),
        "v1": np.broadcast_to(np.arange(start, start + 32)[None, :], SHAPE),
        "v2": np.full(SHAPE, n),
        "v3": np.full(SHAPE, m),
    }
    for constant in (0, 1, 2, 4, 6, 16):
        name = f"v{len(values)}"
        lines.append(f"%{name} = arith.constant dense<{constant}> : {TENSOR}")
        values[name] = np.full(SHAPE, constant)
    return lines, values


def fits(kind, right):
    """Return whether an operation is defined for this operand on its right."""
    return not kind.startswith(("div", "rem", "sh")) or (right.min() > 0 and (kind[0] != "s" or right.max() < 8))


@pytest.mark.parametrize("start", [0, 4, 16])
def test_each_operation_on_each_pair_of_indices(start):
    lines, values = leaves(16, 7, start)
    for left, right in product(list(values), repeat=2):
        for kind, function in OPERATIONS.items():
            if fits(kind, values[right]) and (result := function(values[left], values[right])).min() >= 0:
                name = f"{kind}_{left}_{right}"
                lines.append(f"%{name} = arith.{kind} %{left}, %{right} : {TENSOR}")
                values[name] = result
        for kind, function in COMPARISONS.items():
            name = f"{kind}_{left}_{right}"
            lines.append(f"%{name} = arith.cmpi {kind}, %{left}, %{right} : {TENSOR}")
            values[name] = function(values[left], values[right])
    found = infos("\n".join(lines))
    for name, numbers in values.items():
        check(found[name], numbers)


@st.composite
def programs(draw):
    """Statements over 8x32 indices, and the numbers that they compute."""
    lines, values = leaves(
        16 * draw(st.integers(1, 5)), draw(st.integers(1, 50)), draw(st.sampled_from([0, 4, 32, 48]))
    )
    masks = {}
    for _ in range(draw(st.integers(1, 8))):
        left, right = (draw(st.sampled_from(sorted(values))) for _ in range(2))
        if draw(st.integers(0, 3)) == 0:
            kind, name = draw(st.sampled_from(sorted(COMPARISONS))), f"c{len(masks)}"
            lines.append(f"%{name} = arith.cmpi {kind}, %{left}, %{right} : {TENSOR}")
            masks[name] = COMPARISONS[kind](values[left], values[right])
            if draw(st.booleans()):
                chosen = f"v{len(values)}"
                lines.append(f"%{chosen} = arith.select %{name}, %{left}, %{right} : {MASK}, {TENSOR}")
                values[chosen] = np.where(masks[name], values[left], values[right])
            continue
        kind, name = draw(st.sampled_from(sorted(OPERATIONS))), f"v{len(values)}"
        if not fits(kind, values[right]):
            continue
        result = OPERATIONS[kind](values[left], values[right])
        if (result < 0).any() or (result >= 2**31).any():
            continue
        lines.append(f"%{name} = arith.{kind} %{left}, %{right} : {TENSOR}")
        values[name] = result
    return "\n".join(lines), values | masks


@settings(
    max_examples=2000 if is_full() else 150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(programs())
def test_arithmetic_of_indices(program):
    text, values = program
    found = infos(text)
    for name, numbers in values.items():
        check(found[name], numbers)


ROW_MAJOR = f"""
%c64 = arith.constant dense<64> : tensor<8x1xi32>
%rows = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
%rows2 = tt.expand_dims %rows {{axis = 1 : i32}} : tensor<8xi32> -> tensor<8x1xi32>
%lines = arith.muli %rows2, %c64 : tensor<8x1xi32>
%all_lines = tt.broadcast %lines : tensor<8x1xi32> -> {TENSOR}
%columns = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
%columns2 = tt.expand_dims %columns {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
%all_columns = tt.broadcast %columns2 : tensor<1x32xi32> -> {TENSOR}
%offsets = arith.addi %all_lines, %all_columns : {TENSOR}
"""
POINTERS = """
%bases = tt.splat %p : !tt.ptr<f16> -> tensor<8x32x!tt.ptr<f16>>
%pointers = tt.addptr %bases, %offsets : tensor<8x32x!tt.ptr<f16>>, tensor<8x32xi32>
"""


def test_pointers_into_rows_are_contiguous_and_aligned_in_bytes():
    found = infos(ROW_MAJOR + POINTERS, "%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}")
    assert found["pointers"].contiguity == (1, 32)
    assert found["pointers"].divisibility[1] == 16
    assert infos(ROW_MAJOR + POINTERS, "%p: !tt.ptr<f16>")["pointers"].divisibility[1] == 1


def moving_pointers(step):
    return f"""
{ROW_MAJOR}{POINTERS}
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c9 = arith.constant 9 : i32
%by = arith.constant dense<{step}> : tensor<8x32xi32>
%end = scf.for %i = %c0 to %c9 step %c1 iter_args(%now = %pointers) -> (tensor<8x32x!tt.ptr<f16>>) : i32 {{
  %next = tt.addptr %now, %by : tensor<8x32x!tt.ptr<f16>>, tensor<8x32xi32>
  scf.yield %next : tensor<8x32x!tt.ptr<f16>>
}}
"""


def test_what_goes_round_a_loop_is_as_aligned_as_its_steps():
    argument = "%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}"
    for step, bytes_ in ((64, 16), (8, 16), (2, 4), (1, 2)):
        found = infos(moving_pointers(step), argument)
        for name in ("now", "next", "end"):
            assert found[name].contiguity == (1, 32), (step, name)
            assert found[name].divisibility[1] == bytes_, (step, name)


def test_promises_of_the_kernel_hold():
    body = """
%x = tt.splat %m : i32 -> tensor<32xi32>
%y = arith.muli %x, %x {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<8> : tensor<1xi32>}
    : tensor<32xi32>
"""
    found = infos(body)["y"]
    assert (found.contiguity, found.divisibility) == ((8,), (8,))


def test_partitions_know_what_is_captured():
    body = """
ttg.warp_specialize(%n)
default { ttg.warp_yield }
partition0(%inside: i32) num_warps(1) { ttg.warp_return } : (i32) -> ()
"""
    assert infos(body)["inside"].divisibility == (16,)
