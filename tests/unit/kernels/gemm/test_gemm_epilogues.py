"""Epilogues of `gemm` in the interpreter: those with names, users' functions, and operands in every orientation."""

import dataclasses
import itertools

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix, poisoned, relative_error
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.gemm.config import LARGE, TINY, Choice, GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm, gemm_launch
from tlx_xdsl.kernels.gemm.epilogues import EPILOGUES

F16 = np.float16

STRIPS = GemmConfig("cooperative", 64, 32, 64, stages=2, subtiles=2, buffers=2, tail_n=16, consumers=1)
CLUSTER = dataclasses.replace(STRIPS, cluster=2)
SHARING = dataclasses.replace(STRIPS, stages=3)
PAIRS = dataclasses.replace(LARGE, block_n=128, tail_n=128, subtiles=2)
"""What `swiglu` runs."""


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def swiglu(x):
    gate, up = np.split(x, 2, axis=1)
    return silu(gate) * up


REFERENCES = {
    "gelu": gelu,
    "silu": silu,
    "relu": lambda x: np.maximum(x, 0),
    "bias": lambda x, bias: x + bias,
    "bias_gelu": lambda x, bias: gelu(x + bias),
    "bias_silu": lambda x, bias: silu(x + bias),
    "bias_relu": lambda x, bias: np.maximum(x + bias, 0),
    "residual": lambda x, other: x + other,
    "scale_rows": lambda x, scales: x * scales,
    "scale_columns": lambda x, scales: x * scales,
    "scale_both": lambda x, rows, columns: x * rows * columns,
    "swiglu": swiglu,
}


@tlx_xdsl.jit
def everything(sums, row0, row1, column0, column1, other):
    """Combine the operands so that no two of them could be exchanged."""
    return tl.minimum((sums - row0) * column0, row1) + 3.0 * column1 - 2.0 * other


def vector(length, seed, dtype=F16):
    return np.random.default_rng(seed).standard_normal(length).astype(dtype)


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def test_all_names_have_references():
    assert set(REFERENCES) == set(EPILOGUES)


@pytest.mark.parametrize("name", EPILOGUES)
def test_names(name):
    known = EPILOGUES[name]
    a, b = matrix(70, 72, F16, seed=1) / 8, matrix(72, 144 if known.paired else 72, F16, seed=2)
    rows = [vector(70, 3)] * known.rows
    columns = [vector(72, 4)] * known.columns
    other = matrix(70, 72, F16, seed=5) if known.matrix else None
    c = gemm(a, b, epilogue=name, rows=rows, columns=columns, matrix=other)
    wide = [each.astype(np.float64) for each in (*(row[:, None] for row in rows), *columns)]
    wide += [] if other is None else [other.astype(np.float64)]
    expected = REFERENCES[name](product(a, b), *wide)
    assert c.shape == (70, 72)
    assert relative_error(c, expected) < TOLERANCE["fp16"]


CHOICES = {
    "whole": Choice(STRIPS, 2),
    "swapped": Choice(STRIPS, 2, swapped=True),
    "pieces": Choice(STRIPS, 9, share=2),
    "swapped pieces": Choice(STRIPS, 9, swapped=True, share=2),
    "cluster": Choice(CLUSTER, 1),
    "cluster, pieces": Choice(CLUSTER, 6, share=2),
    "ping-pong": Choice(TINY, 1),
    "split": Choice(SHARING, 6, share=1, split=3),
    "swapped split": Choice(SHARING, 6, swapped=True, share=1, split=3),
}


def check_everything(choice, by_columns, dtype=F16, columns=72, **options):
    a, b = matrix(136, 150, F16, seed=1), matrix(150, columns, F16, seed=2)
    rows = vector(136, 3), vector(136, 4, np.float32)
    across = vector(columns, 5, DTYPES["bf16"]), vector(columns, 6)
    c, other = (np.full((columns, 136) if by_columns else (136, columns), np.nan, dtype) for _ in range(2))
    c, other = (c.T, other.T) if by_columns else (c, other)
    other[...] = matrix(136, columns, F16, seed=7)
    launch = gemm_launch(a, b, c, epilogue=everything, rows=rows, columns=across, matrix=other, config=choice)
    result = launch.interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    row0, row1 = (each.astype(np.float64)[:, None] for each in rows)
    column0, column1 = (each.astype(np.float64) for each in across)
    expected = np.minimum((product(a, b) - row0) * column0, row1) + 3 * column1 - 2 * other.astype(np.float64)
    assert relative_error(c, expected) < (1e-6 if dtype == np.float32 else TOLERANCE["fp16"])


EVERY = list(itertools.product(CHOICES, (False, True)))
"""Choices, and whether C lies by columns. Each turns what are rows for the kernel: both are seen in each way."""
SOME = [
    ("split", True),
    ("swapped split", False),
    ("whole", True),
    ("swapped", False),
    ("swapped pieces", True),
    ("pieces", False),
    ("ping-pong", False),
]


@pytest.mark.parametrize(("name", "by_columns"), EVERY if volume.is_full() else SOME)
def test_a_function_of_all_operands(name, by_columns):
    check_everything(CHOICES[name], by_columns)


@pytest.mark.parametrize("name", ["cluster", "cluster, pieces", "split"])
def test_results_of_f32(name):
    check_everything(CHOICES[name], False, np.float32)


@pytest.mark.parametrize("policy", POLICIES if volume.is_full() else ["adversarial"])
@pytest.mark.parametrize("name", ["cluster", "ping-pong"])
def test_text_for_stock_triton(name, policy):
    check_everything(CHOICES[name], False, stage="ttgir", schedule=policy)


@pytest.mark.parametrize("config", [STRIPS, TINY])
def test_results_where_tma_can_not_write(config):
    a, b, bias = matrix(70, 72, F16, seed=1), matrix(72, 71, F16, seed=2), vector(71, 3)
    c = poisoned((70, 71), F16)
    gemm(a, b, c, epilogue="bias", columns=(bias,), config=config)
    assert relative_error(c, product(a, b) + bias.astype(np.float64)) < TOLERANCE["fp16"]


@pytest.mark.parametrize(("columns", "by_columns"), [(3, True), (203, True), (200, False)])
def test_two_halves_in_the_tile_of_pairs(columns, by_columns):
    """The second half begins at any column, where columns are contiguous; the last tile is ragged in both."""
    a, b = matrix(150, 136, F16, seed=1) / 8, matrix(136, 2 * columns, F16, seed=2)
    if by_columns:
        b = np.asfortranarray(b)
    c = matrix(150, columns, F16)
    c[...] = np.nan
    result = gemm_launch(a, b, c, epilogue="swiglu", config=Choice(PAIRS, 3)).interpret(jobs=1)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(c, swiglu(product(a, b))) < TOLERANCE["fp16"]


def test_a_second_half_that_tma_can_not_begin_at():
    a, b = matrix(16, 16, F16), matrix(16, 8, F16)
    with pytest.raises(ValueError, match="got halves of 4 columns by rows"):
        gemm(a, b, epilogue="swiglu")


@pytest.mark.parametrize("split", [1, 3])
def test_halves_in_parts_along_k(split):
    a, b = matrix(16, 600, F16), matrix(600, 32, F16)
    with pytest.raises(ValueError, match="expected whole tiles for this epilogue"):
        gemm(a, b, epilogue="swiglu", config=Choice(PAIRS, 1 if split > 1 else 3, share=4, split=split))


def test_a_product_over_an_empty_dimension_has_its_epilogue():
    bias = vector(8, 1)
    c = gemm(np.ones((3, 0), F16), np.ones((0, 8), F16), epilogue="bias", columns=(bias,))
    assert np.array_equal(c, np.broadcast_to(bias, (3, 8)))


def test_nan_stays_nan():
    a = np.eye(8, dtype=F16)
    a[2, 2] = np.nan
    for name in ("gelu", "silu", "relu"):
        assert np.isnan(gemm(a, np.eye(8, dtype=F16), epilogue=name)).sum() == 8


@tlx_xdsl.jit
def of_two(sums, bias):
    return sums + bias


def test_a_function_that_wants_other_operands_is_an_error_of_the_kernel():
    with pytest.raises(CompilationError, match="of_two"):
        gemm(EYE, EYE, epilogue=of_two)


EYE = np.eye(8, dtype=F16)
ONES = np.ones(8, F16)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"epilogue": "gelo"}, ValueError, "argument 'epilogue': expected gelu, silu, .*, swiglu, got 'gelo'"),
        ({"epilogue": gelu}, TypeError, "argument 'epilogue': expected a name or a function with @tlx_xdsl.jit"),
        ({"columns": (ONES,)}, TypeError, "argument 'epilogue': expected a function for 'rows', 'columns' or 'matrix'"),
        ({"epilogue": "bias"}, TypeError, "epilogue 'bias': expected 0 .*, 1 in 'columns' .*, got 0, 0 and none"),
        ({"epilogue": "residual"}, TypeError, "epilogue 'residual': expected .* a 'matrix', got 0, 0 and none"),
        ({"epilogue": everything, "rows": (ONES,) * 3}, ValueError, "argument 'rows': expected at most 2 .*, got 3"),
        ({"epilogue": "bias", "columns": (1,)}, TypeError, r"argument 'columns\[0\]': expected a tensor, got int"),
        ({"epilogue": "bias", "columns": (EYE,)}, ValueError, r"argument 'columns\[0\]': expected 1 dimension"),
        ({"epilogue": "bias", "columns": (ONES[1:],)}, ValueError,
         r"argument 'columns\[0\]': expected the shape \(8,\) \(columns of the result\), got \(7,\)"),
        ({"epilogue": "bias", "columns": (np.ones(8),)}, TypeError, r"argument 'columns\[0\]': .* fp32, got float64"),
        ({"epilogue": "bias", "columns": (np.ones(16, F16)[::2],)}, ValueError,
         r"argument 'columns\[0\]': expected contiguous elements, got the stride 2"),
        ({"epilogue": "scale_rows", "rows": (ONES[1:],)}, ValueError, r"argument 'rows\[0\]': .* .8,. .rows of 'a'"),
        ({"epilogue": "residual", "matrix": EYE[1:]}, ValueError, r"argument 'matrix': expected the shape \(8, 8\)"),
        ({"epilogue": "residual", "matrix": EYE.astype(np.float32)}, TypeError,
         "argument 'matrix': expected float16 as the result has, got float32"),
        ({"epilogue": "residual", "matrix": np.ones((8, 8), F16).T}, ValueError,
         "argument 'matrix': expected it by rows or by columns as the result is"),
        ({"epilogue": "swiglu", "out": EYE}, ValueError, r"argument 'out': expected the shape \(8, 4\)"),
        ({"epilogue": "swiglu", "out": np.ones((4, 8), F16).T}, ValueError,
         "argument 'out': expected a result by rows for this epilogue, got it by columns"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(options, error, text):
    with pytest.raises(error, match=f"^gemm: {text}"):
        gemm(EYE, EYE, **options)


def test_halves_of_an_odd_number_of_columns_are_refused():
    with pytest.raises(
        ValueError, match="argument 'b': expected two halves of columns for this epilogue, got 7 columns"
    ):
        gemm(EYE, EYE[:, 1:], epilogue="swiglu")
