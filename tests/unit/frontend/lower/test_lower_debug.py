"""Hints, printing, assertions and barriers."""

import re

import pytest

from tests.unit.frontend.kernels import body, compile_source, load
from tests.unit.frontend.one_liners import assert_as_stock, assert_fault, source_of
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

SIGNATURE = {"x": "*fp32", "y": "*i32", "n": "i32", "u": "u32", "f": "fp32", "m": "i64"}
A = "a = tl.arange(0, 64);; "
PREFIXES = ("", "a", "ab", "abc", " a", "  a", "a ", "a:", "a: ", "a:  ", " a ", ":", "::", ": :", " ", "a\\n")

AS_STOCK = [
    "tl.assume(n > 3);; tl.assume(True)",
    A + "a = tl.multiple_of(a, 4);; a = tl.multiple_of(a, 8);; b = tl.max_contiguous(a, [64]);; tl.store(y + b, b)",
    A + "c = tl.max_constancy(a[:, None] + n, [2, 4]);; tl.store(x + c, c)",
    "tl.store(x + tl.multiple_of(n * 3, 8), 1)",
    "tl.store(tl.multiple_of(x, 8), tl.multiple_of(n, (16,)))",
    A + "tl.store(tl.multiple_of(x + a, [8]), 1)",
    "tl.store(y, 1);; tl.debug_barrier();; tl.store(y, 2)",
    A + "tl.device_print('values', n, a, u, f, m, x, n > 3, 3, 1.5, True, hex=True)",
    ";; ".join(f"tl.device_print('{prefix}', n)" for prefix in PREFIXES),
    ";; ".join(f"tl.device_print('{prefix}')" for prefix in PREFIXES),
    # Without debugging these do nothing.
    A + "tl.device_assert(a > 3, 'm', mask=a < n);; tl.store(x, tl.expect_zero(f, n > 3));; assert n < 3, 'text'",
    "tl.static_assert(3 > 2, 'text')",
    "while tl.condition(n > 3): n -= 1",
    "while tl.condition(n > 3, disable_licm=True): n -= 1",
]


@pytest.mark.backend
@pytest.mark.parametrize("statements", AS_STOCK)
def test_hints_and_prints_are_those_of_stock(tmp_path, statements):
    assert_as_stock(tmp_path, SIGNATURE, statements)


def debugged(tmp_path, statements: str) -> list[str]:
    """The operations of a kernel that is compiled for debugging."""
    source = source_of(SIGNATURE, statements, decorators="@tlx_xdsl.jit")
    module = build_module(load(tmp_path, source).kernel.source, SIGNATURE, {}, debug=True)
    verify_module(module)
    return body(print_module(module, locations=False))


def test_assertions_on_the_device_count_where_the_mask_holds(tmp_path):
    lines = debugged(tmp_path, A + "tl.device_assert(a > 3, 'too small', mask=n < 5)")
    assert [re.sub(r"%\w+", "%", line) for line in lines[-5:]] == [
        "% = arith.cmpi slt, %, % : i32",
        "% = arith.xori %, % : i1",
        "% = tt.splat % : i1 -> tensor<64xi1>",
        "% = arith.ori %, % : tensor<64xi1>",
        'tt.assert %, "too small" : tensor<64xi1>',
    ]


def test_values_that_should_be_zero_are_checked(tmp_path):
    lines = debugged(tmp_path, "tl.store(x, tl.expect_zero(f, n > 3))")
    assert any("arith.cmpf oeq, %f," in line for line in lines)
    assert lines[-2].startswith("tt.assert")
    assert lines[-1] == "tt.store %x, %f : !tt.ptr<f32>"


def test_static_print_shows_what_is_known(tmp_path, capsys):
    statements = "tl.static_print('a', 3, n, tl.arange(0, 4), (1, n), sep='-', end='!')"
    compile_source(tmp_path, source_of(SIGNATURE, statements, decorators="@tlx_xdsl.jit"), SIGNATURE)
    assert capsys.readouterr().out == "a-3-int32[]-int32[4]-(1, int32[])!"


FAULTS = [
    ("tl.assume(a > 3)", "'cond' must be a scalar int1, such as a comparison, found a block", "a > 3"),
    ("tl.assume(n)", "'cond' must be a scalar int1", "n)"),
    ("tl.multiple_of(a, [4, 4])", "'values' must have an integer for each of 1 dimensions, found 2", "[4, 4]"),
    ("tl.multiple_of(a, n)", "'values' must be a constexpr integer for each dimension", "n)"),
    ("tl.multiple_of(a, 1.5)", "'values' must be a constexpr integer, found the constexpr 1.5", "1.5"),
    ("tl.multiple_of(a, 0)", "'values' must be positive integers of 32 bits, found the constexpr 0", "0)"),
    ("tl.multiple_of(None, 8)", "'input' must be a runtime value, found None", "None, 8"),
    ("tl.device_print(n)", "'prefix' must be a constexpr string", "n)"),
    ("tl.device_print('a', 'b')", "expected a number or a block, found the constexpr 'b'", "tl.device_print"),
    ("tl.device_print('é', n)", "'prefix' must be ASCII text, found 'é'", "'é'"),
    ("tl.device_print('a', hex=n)", "'hex' must be a constexpr bool", "n)"),
    ("tl.device_assert(n)", "'cond' must be an int1, such as a comparison", "n)"),
    ("tl.device_assert(n > 3, n)", "'msg' must be a constexpr string", "n)"),
    ("tl.device_assert(n > 3, 'm', mask=n)", "'mask' must be an int1", "n)"),
    ("tl.expect_zero(f, n)", "'mask' must be an int1", "n)"),
    ("tl.static_assert(3 < 2, 'sizes')", "the condition is false: sizes", "tl.static_assert"),
    ("tl.static_assert(3 < 2)", "the condition is false", "tl.static_assert"),
    ("tl.static_assert(n > 3)", "'cond' must be known at compile time", "n >"),
    ("tl.static_print(n, file=3)", "'file' must be None or an open file, found the constexpr 3", "3)"),
    ("tl.static_print(n, sep=3)", "'sep' must be a constexpr string", "3)"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_hints_and_prints_are_located(tmp_path, statement, message, at):
    assert_fault(tmp_path, SIGNATURE, A + statement, message, at)
