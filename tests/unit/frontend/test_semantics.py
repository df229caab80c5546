"""Meaning of a kernel's expressions and statements."""

import pytest

from tests.unit.frontend.kernels import body, compile_source

pytestmark = pytest.mark.quick


def scalar_kernel(expression: str) -> str:
    return f"""
@tlx_xdsl.jit
def kernel(out, x, y, N: tl.constexpr):
    tl.store(out, {expression})
"""


SIGNATURE = {"out": "*i32", "x": "i32", "y": "i32"}


@pytest.mark.parametrize(
    ("expression", "operation"),
    [
        ("x + y", "arith.addi %x, %y : i32"),
        ("x - y", "arith.subi %x, %y : i32"),
        ("x * y", "arith.muli %x, %y : i32"),
        ("x // y", "arith.divsi %x, %y : i32"),
        ("x % y", "arith.remsi %x, %y : i32"),
        ("x & y", "arith.andi %x, %y : i32"),
        ("x | y", "arith.ori %x, %y : i32"),
        ("x ^ y", "arith.xori %x, %y : i32"),
        ("x << y", "arith.shli %x, %y : i32"),
        ("x >> y", "arith.shrsi %x, %y : i32"),
        ("min(x, y)", "arith.minsi %x, %y : i32"),
        ("tl.maximum(x, y)", "arith.maxsi %x, %y : i32"),
    ],
)
def test_integer_operators(tmp_path, expression, operation):
    lines = body(compile_source(tmp_path, scalar_kernel(expression), SIGNATURE, N=1))
    assert any(line.endswith(operation) for line in lines), lines


def test_unsigned_integers_divide_shift_and_compare_unsigned(tmp_path):
    signature = {"out": "*u32", "x": "u32", "y": "u32"}
    for expression, operation in (
        ("x // y", "arith.divui"),
        ("x >> y", "arith.shrui"),
        ("tl.where(x < y, x, y)", "arith.cmpi ult"),
    ):
        assert operation in compile_source(tmp_path, scalar_kernel(expression), signature, N=1)


def test_constexprs_are_folded_by_python(tmp_path):
    lines = body(compile_source(tmp_path, scalar_kernel("(N * 2 + 1) // 3 if N > 4 else x"), SIGNATURE, N=7))
    assert lines == ["%c5 = arith.constant 5 : i32", "tt.store %out, %c5 : !tt.ptr<i32>"]


def test_equal_constants_are_one_operation_at_the_start(tmp_path):
    lines = body(compile_source(tmp_path, scalar_kernel("(x + 3) * (y + 3)"), SIGNATURE, N=1))
    assert lines[0] == "%c3 = arith.constant 3 : i32"
    assert sum("arith.constant" in line for line in lines) == 1


def test_wider_and_floating_types_win(tmp_path):
    signature = {"out": "*fp32", "x": "i64", "y": "fp32"}
    text = compile_source(tmp_path, scalar_kernel("x + 1 + y"), signature, N=1)
    assert "arith.constant 1 : i64" in text
    assert "arith.sitofp" in text
    assert "arith.addf" in text


def test_blocks_broadcast_and_masks_follow(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(x, out, n, B: tl.constexpr):
    rows = tl.arange(0, B)
    columns = tl.arange(0, 2 * B)
    offsets = rows[:, None] * n + columns[None, :]
    values = tl.load(x + offsets, mask=columns[None, :] < n, other=0.0)
    tl.store(out + offsets, values)
"""
    text = compile_source(tmp_path, source, {"x": "*fp32", "out": "*fp32", "n": "i32"}, B=4)
    assert "tt.expand_dims %rows {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>" in text
    assert "tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>" in text
    assert "arith.cmpi slt" in text
    assert "tt.load" in text


def test_loops_carry_what_they_assign(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    total = 0
    twice = n * 2
    for i in range(n):
        local = i * twice
        total += local
    tl.store(out, total)
"""
    text = compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert "iter_args(%total_1 = %c0) -> (i32)" in text
    assert "scf.yield %total_2 : i32" in text


def test_static_range_is_unrolled(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, N: tl.constexpr):
    for i in tl.static_range(N):
        tl.store(out + i, i)
"""
    text = compile_source(tmp_path, source, {"out": "*i32"}, N=3)
    assert "scf.for" not in text
    assert text.count("tt.store") == 3


def test_a_constexpr_if_picks_a_branch_and_a_dynamic_one_merges(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n, FLAG: tl.constexpr):
    if FLAG:
        value = n
    else:
        value = undefined_and_never_seen
    if n > 4:
        value = value + 1
    else:
        value = 7
    tl.store(out, value)
"""
    text = compile_source(tmp_path, source, {"out": "*i32", "n": "i32"}, FLAG=True)
    assert "-> (i32)" in text
    assert "scf.yield %c7 : i32" in text


def test_boolean_operators_short_circuit_at_compile_time(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n, NONE: tl.constexpr):
    if NONE is not None and NONE > 3:
        tl.store(out, 1)
    if n > 1 and not n > 5:
        tl.store(out, 2)
"""
    text = compile_source(tmp_path, source, {"out": "*i32", "n": "i32"}, NONE=None)
    assert text.count("tt.store") == 1
    assert "arith.andi" in text


def test_descriptors_know_their_shape(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(desc, out):
    tl.store(out, desc.shape[0] + desc.block_shape[1])
"""
    text = compile_source(tmp_path, source, {"desc": "tensordesc<fp16[64, 32]>", "out": "*i32"})
    assert "%desc: !tt.tensordesc<64x32xf16>, %desc.shape.0: i32, %desc.shape.1: i32, %desc.stride.0: i64" in text
    assert "arith.addi %desc.shape.0, %c32 : i32" in text


def test_divisibility_becomes_an_argument_attribute(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, n)
"""
    text = compile_source(tmp_path, source, {"out": "*i32:16", "n": "i32"})
    assert "%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32" in text


def test_names_with_numeric_endings_print_once(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    a = n + 1
    a_1 = n + 2
    a_1_1 = n + 3
    tl.store(out, a + a_1 + a_1_1)
"""
    lines = body(compile_source(tmp_path, source, {"out": "*i32", "n": "i32"}))
    names = [line.split(" = ")[0] for line in lines if " = " in line]
    assert len(set(names)) == len(names)
