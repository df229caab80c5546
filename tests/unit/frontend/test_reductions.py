"""Reductions and scans: the operations, their regions, and values."""

# covers: tt.reduce

import re

import numpy as np
import pytest

from tests.unit.frontend.kernels import compile_source
from tests.unit.frontend.oracle.test_library import evaluate, random_block
from tlx_xdsl import CompilationError

COMBINE = """
@tlx_xdsl.jit
def product(a, b):
    return a * b

@tlx_xdsl.jit
def capped(a, b):
    total = a + b
    if total > 100:
        total = 100
    return total

@tlx_xdsl.jit
def affine(a, b, c, d):
    return a * c, b * c + d

@tlx_xdsl.jit
def wide(a, b):
    return (a + b).to(tl.int64)

@tlx_xdsl.jit
def lone(a, b, c, d):
    return a + c

@tlx_xdsl.jit
def broken(a, b):
    return a + missing

@tlx_xdsl.jit
def blocks(a, b):
    return tl.sum(a + b + tl.zeros((4,), tl.int32), 0)

@tlx_xdsl.jit
def asks(a, b):
    return a + b if (a + tl.zeros((4,), tl.int32)).dtype.is_int() else a
"""


def kernel(*statements: str) -> str:
    lines = "\n    ".join(statements)
    return f"""{COMBINE}
@tlx_xdsl.jit
def kernel(out, n):
    x = tl.full((4, 8), n, tl.int32)
    {lines}
"""


def compiled(tmp_path, *statements: str) -> str:
    return compile_source(tmp_path, kernel(*statements), {"out": "*i32", "n": "i32"})


# --- operations -----------------------------------------------------------------------------------------------------


def region(text: str) -> list[str]:
    """The operations of the first region of a reduction or scan."""
    match = re.search(r'"tt\.(?:reduce|scan)".*?\^\w+\(.*?\):\n(.*?)\n\s*\}\)', text, re.S)
    return [re.sub(r"%[\w.]+", "%", line.strip()) for line in match[1].splitlines()]


def test_the_combining_function_is_compiled_into_the_region(tmp_path):
    text = compiled(tmp_path, "tl.store(out + tl.arange(0, 4), tl.reduce(x, 1, product))")
    assert region(text) == ["% = arith.muli %, % : i32", "tt.reduce.return % : i32"]
    assert "<{axis = 1 : i32}>" in text
    assert ": (tensor<4x8xi32>) -> tensor<4xi32>" in text


def test_a_branch_of_the_combining_function_stands_in_the_region(tmp_path):
    text = compiled(tmp_path, "tl.store(out + tl.arange(0, 4), x.reduce(-1, combine_fn=capped))")
    assert "% = scf.if % -> (i32) {" in region(text)


def test_a_tuple_is_reduced_together(tmp_path):
    text = compiled(tmp_path, "a, b = tl.reduce((x, x + 1), 0, affine)", "tl.store(out + tl.arange(0, 8), a * b)")
    assert region(text)[-1] == "tt.reduce.return %, % : i32, i32"
    assert ": (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<8xi32>, tensor<8xi32>)" in text


def test_without_an_axis_the_block_is_flattened_first(tmp_path):
    text = compiled(tmp_path, "tl.store(out, tl.reduce(x, None, product))")
    assert "allow_reorder : tensor<4x8xi32> -> tensor<32xi32>" in text
    assert ": (tensor<32xi32>) -> i32" in text


@pytest.mark.parametrize(("arguments", "shape"), [("1", "4x1"), ("0", "1x8"), ("-2", "1x8"), ("None", "1x1")])
def test_kept_dimensions_have_size_1(tmp_path, arguments, shape):
    sizes = shape.split("x")
    pointers = f"out + tl.full(({sizes[0]}, {sizes[1]}), 0, tl.int32)"
    text = compiled(tmp_path, f"tl.store({pointers}, tl.sum(x, {arguments}, keep_dims=True))")
    assert f"-> tensor<{shape}xi32>" in text


def test_a_scan_keeps_the_shape(tmp_path):
    text = compiled(
        tmp_path,
        "y = tl.associative_scan(x, -1, product, reverse=True)",
        "tl.store(out + tl.arange(0, 4)[:, None] + tl.arange(0, 8)[None, :], y)",
    )
    assert region(text) == ["% = arith.muli %, % : i32", "tt.scan.return % : i32"]
    assert "<{axis = 1 : i32, reverse = true}>" in text
    assert ": (tensor<4x8xi32>) -> tensor<4x8xi32>" in text


# --- named functions, by value --------------------------------------------------------------------------------------


def reduced(x: np.ndarray, function, axis, dtype) -> np.ndarray:
    return np.atleast_1d(function(x.astype(dtype), axis=axis)).astype(dtype)


@pytest.mark.parametrize(
    ("name", "function", "given", "found"),
    [
        ("sum", np.sum, "float32", "float32"),
        ("sum", np.sum, "int8", "int32"),
        ("sum", np.sum, "int64", "int64"),
        ("max", np.max, "float16", "float32"),
        ("max", np.max, "int8", "int32"),
        ("min", np.min, "float64", "float64"),
        ("min", np.min, "int16", "int32"),
        ("xor_sum", np.bitwise_xor.reduce, "int8", "int8"),
        ("reduce_or", np.bitwise_or.reduce, "int64", "int64"),
        ("argmax", np.argmax, "float32", "int32"),
        ("argmin", np.argmin, "int8", "int32"),
    ],
)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_named_reductions(tmp_path, name, function, given, found, axis):
    # Integers repeat, so that positions have ties.
    x = random_block((2, 4, 8), given) if np.dtype(given).kind == "f" else random_block((2, 4, 8), given) % 5
    expected = function(x.astype(given if name.startswith("arg") else found), axis=axis)
    call = f"tl.{name}(x, {axis - 3})"
    np.testing.assert_allclose(evaluate(tmp_path, call, expected.astype(found), x), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extreme_with_its_position(tmp_path, name):
    x = random_block((4, 8), "int32") % 3
    position = getattr(np, f"arg{name}")(x, axis=1).astype("int32")
    for arguments in ("return_indices=True", "True, return_indices_tie_break_left=False"):
        call = f"tl.{name}(x, 1, {arguments})"
        assert (evaluate(tmp_path, f"{call}[0]", position, x) == getattr(np, name)(x, axis=1)).all()
        places = evaluate(tmp_path, f"{call}[1]", position, x)
        assert (np.take_along_axis(x, places[:, None], 1)[:, 0] == getattr(np, name)(x, axis=1)).all()
        if "left" not in arguments:
            assert (places == position).all()


def test_nan_is_no_extreme_but_among_nan(tmp_path):
    x = np.array([[1, np.nan, 3, 2], [np.nan] * 4], "float32")
    np.testing.assert_equal(evaluate(tmp_path, "tl.max(x, 1)", np.zeros(2, "float32"), x), [3, np.nan])
    np.testing.assert_equal(evaluate(tmp_path, "x.min(1)", np.zeros(2, "float32"), x), [1, np.nan])


@pytest.mark.parametrize(("name", "function"), [("cumsum", np.cumsum), ("cumprod", np.cumprod)])
@pytest.mark.parametrize("axis", [0, 1])
def test_named_scans(tmp_path, name, function, axis):
    x = random_block((4, 8))
    np.testing.assert_allclose(evaluate(tmp_path, f"tl.{name}(x, {axis})", x, x), function(x, axis), rtol=1e-4)
    reverse = np.flip(function(np.flip(x, axis), axis), axis)
    found = evaluate(tmp_path, f"x.{name}(axis={axis}, reverse=True)", x, x)
    np.testing.assert_allclose(found, reverse, rtol=1e-4)


def test_sums_are_taken_in_the_type_that_is_asked_for(tmp_path):
    x = random_block((8,), "int8")
    wide = np.zeros(8, "int64")
    assert (evaluate(tmp_path, "tl.cumsum(x, 0, dtype=tl.int64)", wide, x) == np.cumsum(x, dtype="int64")).all()
    text = compiled(tmp_path, "tl.store(out, tl.sum(x > 0, 0, dtype=tl.float32).sum().to(tl.int32))")
    assert "arith.addf" in text
    # Sums of unsigned integers are unsigned.
    assert "arith.divui" in compiled(tmp_path, "tl.store(out, tl.sum(x > 0) // n.to(tl.uint32))")


# --- mistakes -------------------------------------------------------------------------------------------------------

MISTAKES = [
    ("tl.reduce(x, 2, product)", "tl.reduce: 'axis' must be at least -2 and less than 2, found 2", 22),
    ("tl.reduce(x, n, product)", "'axis' must be a constexpr integer, found a runtime value of type int32", 22),
    (
        "tl.reduce(n, 0, product)",
        "'input' must be a block or a tuple of blocks, found a runtime value of type int32",
        19,
    ),
    ("tl.reduce((), 0, product)", "'input' must be a block or a tuple of blocks", 19),
    ("tl.reduce((x, x.sum(1)), 0, affine)", "the blocks must have one shape", 19),
    ("tl.reduce(x, 0, tl.maximum)", "'combine_fn' must be a jitted function", 25),
    ("tl.reduce(x, 0, affine)", "'combine_fn' must take 2 elements, two of each block, found affine(a, b, c, d)", 25),
    ("tl.reduce(x, 0, wide)", "'wide' must return int32, found a runtime value of type int64", 25),
    ("tl.reduce((x, x), 0, lone)", "'lone' must return int32, int32, found a runtime value of type int32", 30),
    ("tl.associative_scan(x, None, product)", "'axis' must be a constexpr integer, found None", 32),
    ("tl.sum(x, 2)", "tl.sum: 'axis' must be at least -2 and less than 2, found 2", 9),
    ("x.argmax(-3)", "tl.argmax: 'axis' must be at least -2 and less than 2, found -3", 9),
    ("tl.argmax(x, None)", "tl.argmax: positions are counted along one axis: 'axis' can't be None", 9),
    ("tl.max(n, 0, True)", "tl.max: 'input' must be a block, found a scalar int32", 9),
    ("tl.max(x, 0, n)", "the parameter 'return_indices' of 'max' is a constexpr", 22),
    ("tl.sum('a')", "tl.sum: expected a number or a block, found the constexpr 'a'", 9),
    ("tl.sum(n, 0)", "tl.sum: 'input' must be a block", 9),
    ("tl.xor_sum(x.to(tl.float32), 0)", "tl.xor_sum: 'input' must hold integers, found fp32", 9),
    ("tl.cumsum(x, axis=5)", "tl.cumsum: 'axis' must be at least -2 and less than 2, found 5", 9),
    ("tl.sum(x, dtype=n)", "the parameter 'dtype' of 'sum' is a constexpr", 25),
]


@pytest.mark.parametrize(("call", "message", "column"), MISTAKES)
def test_a_mistake_is_located(tmp_path, call, message, column):
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compiled(tmp_path, f"y = {call}")
    assert error.value.source_line.strip() == f"y = {call}"
    assert error.value.location.column == column


def test_an_error_in_the_combining_function_stands_there_with_the_call_as_a_note(tmp_path):
    with pytest.raises(CompilationError, match="name 'missing' is not defined") as error:
        compiled(tmp_path, "y = tl.reduce(x, 0, broken)")
    assert error.value.source_line.strip() == "return a + missing"
    assert any("'broken' is called here" in note for note in error.value.notes)


def test_a_block_in_the_combining_function_is_refused_where_it_is_made(tmp_path):
    """Stock Triton ends in the words of MLIR's rewriter. What nothing uses, as inductor has it, is taken."""
    with pytest.raises(CompilationError, match="'blocks' combines one element with another, and this makes a") as error:
        compiled(tmp_path, "y = tl.reduce(x, 0, blocks)")
    assert error.value.source_line.strip() == "return tl.sum(a + b + tl.zeros((4,), tl.int32), 0)"
    compiled(tmp_path, "y = tl.reduce(x, 0, asks)")
