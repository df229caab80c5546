"""`gemm` in the interpreter: both schedules, all layouts and types, ragged sizes; its choices and its refusals."""

import dataclasses
import itertools

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.gemm import gemm, gemm_launch
from tlx_xdsl.kernels.gemm_config import CONFIGS, LARGE, MEDIUM, SHARED_BYTES, SMALL, TINY, GemmConfig, choose_config

TILES = {
    "cooperative": GemmConfig("cooperative", 128, 64, 64, stages=2, subtiles=2, buffers=2),
    "pingpong": GemmConfig("pingpong", 64, 64, 64, stages=3, subtiles=1),
}
"""Small tiles, so that programs have several and rings turn."""

BOTH = list(itertools.product(TILES, DTYPES))
LAYOUTS = list(itertools.product((False, True), repeat=2))


def run(m, n, k, config, *, dtype="fp16", a_columns=False, b_columns=False, programs=3, **options):
    a = matrix(m, k, DTYPES[dtype], by_columns=a_columns, seed=1)
    b = matrix(k, n, DTYPES[dtype], by_columns=b_columns, seed=2)
    c = matrix(m, n, DTYPES[dtype])
    c[...] = np.nan
    result = gemm_launch(a, b, c, config=config, programs=programs).interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < TOLERANCE[dtype]


@pytest.mark.parametrize(("a_columns", "b_columns"), LAYOUTS)
@pytest.mark.parametrize(("schedule", "dtype"), BOTH if volume.is_full() else BOTH[1:3])
def test_layouts_and_types(schedule, dtype, a_columns, b_columns):
    run(200, 203, 150, TILES[schedule], dtype=dtype, a_columns=a_columns, b_columns=b_columns)


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 130, 65), (321, 65, 128)])
@pytest.mark.parametrize("schedule", TILES)
def test_sizes_that_are_no_multiples_of_the_tiles(schedule, shape):
    run(*shape, TILES[schedule], programs=2)


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations(name):
    run(300, 520, 200, CONFIGS[name], programs=2)


@pytest.mark.parametrize("group_m", [1, 2, 8])
@pytest.mark.parametrize("shape", [(384, 200, 64), (700, 65, 64), (60, 300, 64)])
def test_order_of_tiles(shape, group_m):
    """Groups that are full, that lack rows, and a last one of a single row: each tile is some program's, once."""
    run(*shape, dataclasses.replace(TILES["cooperative"], group_m=group_m), programs=3)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("schedule", TILES)
def test_text_for_stock_triton(schedule, policy):
    """What is compiled for a GPU, under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run(192, 192, 256, TILES[schedule], stage="ttgir", schedule=policy, seed=seed, programs=2)


def test_arrays_of_the_cpu_are_interpreted():
    a, b = matrix(40, 72, np.float16, seed=1), matrix(72, 48, np.float16, seed=2)
    c = gemm(a, b)
    assert c.dtype == np.float16
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < TOLERANCE["fp16"]


def test_out_by_columns():
    """C^T = B^T A^T: nothing is copied."""
    a, b = matrix(40, 72, np.float16, seed=1), matrix(72, 48, np.float16, seed=2)
    c = poisoned((48, 40), np.float16).T
    assert gemm(a, b, c) is c
    assert np.array_equal(c, gemm(a, b))


def test_a_product_over_an_empty_dimension_is_zero():
    c = gemm(np.ones((3, 0), np.float16), np.ones((0, 8), np.float16))
    assert np.array_equal(c, np.zeros((3, 8)))
    assert gemm(np.ones((0, 8), np.float16), np.ones((8, 8), np.float16)).shape == (0, 8)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2048, 2048, 2048), LARGE),
        ((4096, 4096, 4096), LARGE),
        ((4096, 14336, 4096), LARGE),
        ((8192, 8192, 8192), LARGE),
        ((8192, 8192, 512), MEDIUM),
        ((3072, 3072, 3072), MEDIUM),
        ((1000, 1304, 712), MEDIUM),
        ((1024, 1024, 1024), SMALL),
        ((4096, 256, 4096), SMALL),
        ((512, 512, 512), TINY),
        ((128, 4096, 4096), TINY),
        ((1, 1, 1), TINY),
    ],
)
def test_the_configuration_follows_the_shape(shape, expected):
    assert choose_config(*shape) is expected


def test_choice_counts_multiprocessors():
    """One round of large tiles on 132 becomes two on 100, where half as large ones take three."""
    assert choose_config(2048, 2048, 2048, 132) is LARGE
    assert choose_config(2048, 2048, 2048, 100) is MEDIUM


def test_choices_fit_the_shared_memory():
    for config in CONFIGS.values():
        barriers = 2 * config.stages * 8
        assert config.shared_bytes + barriers <= SHARED_BYTES


F16 = np.float16


@pytest.mark.parametrize(
    ("a", "b", "out", "error", "text"),
    [
        ([[1.0]], np.ones((1, 1), F16), None, TypeError, "argument 'a': expected a tensor, got list"),
        (np.ones((8, 8)), np.ones((8, 8)), None, TypeError, "elements of type fp16 or bf16, got float64"),
        (np.ones((8, 8), F16), np.ones((8, 8), DTYPES["bf16"]), None, TypeError, "expected float16 as 'a' has"),
        (np.ones((8, 8), F16), np.ones(8, F16), None, ValueError, r"'b': expected 2 dimensions, got the shape \(8,\)"),
        (np.ones((8, 8), F16), np.ones((16, 8), F16), None, ValueError, "'b': expected 8 rows"),
        (np.ones((8, 9), F16), np.ones((9, 8), F16), None, ValueError, "'a': expected rows or columns .* of 16"),
        (np.ones((8, 32), F16)[:, ::2], np.ones((16, 8), F16), None, ValueError, r"got the strides \(32, 2\)"),
        (np.ones((8, 8), F16), np.ones((8, 8), F16), np.ones((8, 16), F16), ValueError, r"'out': expected the shape"),
        (np.ones((8, 8), F16), np.ones((8, 8), F16), np.ones((8, 8)), TypeError, "'out': expected elements of type"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(a, b, out, error, text):
    with pytest.raises(error, match=text):
        gemm(a, b, out)
