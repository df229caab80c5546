"""`scaled_gemm` in the interpreter: all scales, both kinds of sums, ragged sizes; its choices and its refusals."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm, scaled_gemm_launch
from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS, TIMES, ScaledConfig, choose_config
from tlx_xdsl.kernels.gemm.tiles import SHARED_BYTES

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
OUT = {"bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32)}
TOLERANCE = {"bf16": 4e-3, "fp16": 5e-4, "fp32": 1e-6}

TILES = {
    "strips": ScaledConfig("cooperative", 128, 256, stages=2, subtiles=2),
    "buffers": ScaledConfig("cooperative", 128, 64, stages=2, subtiles=2, buffers=2),
    "flat": ScaledConfig("cooperative", 64, 128, stages=2, split_columns=True),
    "flat strips": ScaledConfig("cooperative", 64, 256, stages=2, subtiles=2, split_columns=True, turns=True),
    "pingpong": ScaledConfig("pingpong", 64, 64, stages=3, subtiles=2),
}
"""Tiles with few stages, so that rings turn."""

ONE = np.ones(1, np.float32)
SCALINGS = ("tensors", "rows", "blocks")
ALL_KINDS = [
    (name, scaling, fast)
    for name, scaling, fast in itertools.product(TILES, SCALINGS, (False, True))
    if not (fast and scaling == "blocks") and (fast or name != "pingpong")
]
KINDS = [
    ("buffers", "tensors", False),
    ("strips", "blocks", False),
    ("flat", "blocks", False),
    ("flat strips", "rows", False),
    ("strips", "rows", True),
    ("flat", "tensors", True),
]
POLICY_KINDS = [("buffers", False), ("flat strips", False), ("pingpong", True)]
SIZES = [("strips", False, (65, 129, 128)), ("pingpong", True, (1, 1, 1)), ("pingpong", True, (8, 270, 400))]
MORE_SIZES = [("strips", False, (1, 1, 1)), ("strips", False, (8, 270, 400)), ("pingpong", True, (65, 129, 128))]


def matrix(rows, columns, dtype, seed):
    """A random matrix whose rows are padded to multiples of 16 bytes, as TMA wants; the padding is NaN."""
    memory = np.full((rows, -(-columns // 16) * 16), np.nan, dtype)
    memory[:, :columns] = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)
    return memory[:, :columns]


def operands(m, n, k, a_dtype=E4M3, b_dtype=E4M3):
    return matrix(m, k, a_dtype, 1), matrix(n, k, b_dtype, 2).T


def scales(scaling, m, n, k):
    """The scales, in the order of memory that torch has of blocks."""
    rng = np.random.default_rng(3)
    steps, blocks = -(-k // 128), -(-n // 128)
    shapes = {"tensors": ((1,), (1,)), "rows": ((m, 1), (1, n)), "blocks": ((steps, m), (steps, blocks))}[scaling]
    a, b = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes)
    return (a.T, b) if scaling == "blocks" else (a, b)


def reference(a, b, scale_a, scale_b, scaling):
    """The product of the operands times their scales, in float64."""
    if scaling == "blocks":
        scale_a = np.repeat(scale_a, 128, 1)[:, : a.shape[1]]
        scale_b = np.repeat(np.repeat(scale_b, 128, 0), 128, 1)[: b.shape[0], : b.shape[1]]
    return (a.astype(np.float64) * scale_a) @ (b.astype(np.float64) * scale_b)


def result_memory(m, n, dtype):
    return poisoned((m, -(-n // 8) * 8), dtype)[:, :n]


def run(m, n, k, config, scaling, *, fast=False, out="bf16", types=(E4M3, E4M3), programs=3, **options):
    a, b = operands(m, n, k, *types)
    scale_a, scale_b = scales(scaling, m, n, k)
    c = result_memory(m, n, OUT[out])
    launch = scaled_gemm_launch(a, b, scale_a, scale_b, c, fast=fast, config=config, programs=programs)
    result = launch.interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(c, reference(a, b, scale_a, scale_b, scaling)) < TOLERANCE[out]


@pytest.mark.parametrize(("name", "scaling", "fast"), ALL_KINDS if volume.is_full() else KINDS)
def test_scales_and_sums(name, scaling, fast):
    run(130, 332, 300, TILES[name], scaling, fast=fast)


@pytest.mark.parametrize(("name", "fast", "shape"), SIZES + (MORE_SIZES if volume.is_full() else []))
def test_sizes_that_are_no_multiples_of_the_tiles(name, fast, shape):
    run(*shape, TILES[name], "rows" if fast else "blocks", fast=fast, programs=1)


@pytest.mark.parametrize("types", [(E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)][: 3 if volume.is_full() else 1])
def test_types_of_operands(types):
    run(70, 72, 200, TILES["buffers"], "rows", types=types)


@pytest.mark.parametrize("out", ["fp32", "fp16"][: 2 if volume.is_full() else 1])
def test_types_of_results(out):
    run(130, 136, 272, TILES["buffers"], "rows", out=out)


@pytest.mark.parametrize("policy", POLICIES if volume.is_full() else POLICIES[-1:])
@pytest.mark.parametrize(("name", "fast"), POLICY_KINDS)
def test_text_for_stock_triton(name, fast, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    config = TILES[name]
    for seed in range(5 if volume.is_full() else 1):
        run(
            2 * config.block_m, config.block_n, 256, config, "rows" if fast else "blocks",
            fast=fast, stage="ttgir", schedule=policy, seed=seed, programs=1,
        )  # fmt: skip


@pytest.mark.skipif(not volume.is_full(), reason="the same kernels with more stages")
@pytest.mark.parametrize("name", CONFIGS)
def test_configurations(name):
    fast = name in TIMES["fast"]
    run(100, 280, 200, CONFIGS[name].fitted(2, "blocks"), "rows" if fast else "blocks", fast=fast, programs=2)


def test_scales_of_blocks_lie_in_any_order():
    a, b = operands(40, 136, 300)
    scale_a, scale_b = scales("blocks", 40, 136, 300)
    c = scaled_gemm(a, b, np.ascontiguousarray(scale_a), np.asfortranarray(scale_b))
    assert np.array_equal(c, scaled_gemm(a, b, scale_a, scale_b))


def test_arrays_of_the_cpu_are_interpreted():
    a, b = operands(40, 48, 72)
    scale_a, scale_b = scales("tensors", 40, 48, 72)
    c = scaled_gemm(a, b, scale_a.reshape(()), scale_b.reshape(1, 1), out_dtype=np.float16, fast=True)
    assert c.dtype == np.float16
    assert relative_error(c, reference(a, b, scale_a, scale_b, "tensors")) < TOLERANCE["fp16"]
    out = poisoned((40, 48), OUT["fp32"])
    assert scaled_gemm(a, b, scale_a, scale_b, out=out) is out
    assert relative_error(out, reference(a, b, scale_a, scale_b, "tensors")) < TOLERANCE["fp32"]


def test_rows_of_a_new_result_are_padded():
    """TMA stores rows that start at multiples of 16 bytes."""
    a, b = operands(5, 13, 40)
    c = scaled_gemm(a, b, ONE, ONE)
    assert (c.shape, c.strides) == ((5, 13), (32, 2))
    assert relative_error(c, reference(a, b, ONE, ONE, "tensors")) < TOLERANCE["bf16"]


def test_a_product_over_an_empty_dimension_is_zero():
    c = scaled_gemm(np.ones((3, 0), E4M3), np.ones((8, 0), E4M3).T, ONE, ONE)
    assert np.array_equal(c, np.zeros((3, 8)))
    assert scaled_gemm(np.ones((0, 16), E4M3), np.ones((8, 16), E4M3).T, ONE, ONE).shape == (0, 8)


@pytest.mark.parametrize("name", ["strips", "flat"] if volume.is_full() else ["strips"])
def test_what_is_no_number_spoils_its_rows_and_columns_alone(name):
    """A tile gets no numbers from outside: neither by zeros that TMA reads there, nor by scales."""
    m, n, k = 70, 140, 200
    a, b = operands(m, n, k, E5M2, E4M3)
    scale_a, scale_b = scales("blocks", m, n, k)
    a[3, 190], a[5, 0] = np.inf, np.nan
    b[100, 131] = np.nan
    scale_a[69, 1] = np.nan
    b[190] = np.abs(b[190].astype(np.float32)) + 1
    expected = reference(a, b, scale_a, scale_b, "blocks")
    c = result_memory(m, n, OUT["fp32"])
    scaled_gemm_launch(a, b, scale_a, scale_b, c, config=TILES[name], programs=2).interpret(jobs=1)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-3)
    assert np.isnan(c).sum() == 2 * n + (m - 2)


# --- choices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "fast", "exact", "blocks"),
    [
        ((8192, 8192, 8192), "large", "buffered", "turns"),
        ((2048, 7168, 2048), "pingpong", "medium", "turns"),
        ((128, 7168, 4096), "small", "small", "small"),
        ((64, 24576, 1536), "wide", "wide 3", "wide 3"),
        ((1, 1, 1), "small", "small", "small"),
    ],
)
def test_the_configuration_follows_the_shape(shape, fast, exact, blocks):
    for sums, name in (("fast", fast), ("exact", exact), ("blocks", blocks)):
        assert choose_config(*shape, sums) == CONFIGS[name].fitted(2, sums)


def test_choices_fit_the_shared_memory():
    for sums, names in TIMES.items():
        for name, out_bytes in itertools.product(names, (2, 4)):
            fitted = CONFIGS[name].fitted(out_bytes, sums)
            assert fitted.stages >= 3
            assert fitted.bytes_of(out_bytes, sums) + 2048 <= SHARED_BYTES
    assert set().union(*TIMES.values()) == set(CONFIGS)


# --- mistakes -------------------------------------------------------------------------------------------------------

A, B = np.ones((32, 256), E4M3), np.ones((144, 256), E4M3).T
ROWS, BLOCKS = np.ones((32, 1), np.float32), np.ones((2, 2), np.float32)
A_BLOCKS = np.ones((32, 2), np.float32)


@pytest.mark.parametrize(
    ("a", "b", "scale_a", "scale_b", "options", "error", "text"),
    [
        ([[1.0]], B, ONE, ONE, {}, TypeError, "argument 'a': expected a tensor, got list"),
        (A.astype(np.float32), B, ONE, ONE, {}, TypeError, "'a': expected elements of type float8_e4m3fn, "),
        (A, B[0], ONE, ONE, {}, ValueError, r"'b': expected 2 dimensions, got the shape \(144,\)"),
        (A, B[:240], ONE, ONE, {}, ValueError, "'b': expected 256 rows, as 'a' has columns, got 240"),
        (A, np.ascontiguousarray(B), ONE, ONE, {}, ValueError, "'b': expected contiguous columns that start at"),
        (A.T.copy().T, B, ONE, ONE, {}, ValueError, "'a': expected contiguous rows .* got the strides"),
        (A, B, 1.0, ONE, {}, TypeError, "'scale_a': expected a tensor, got float"),
        (A, B, ONE.astype(np.float64), ONE, {}, TypeError, "'scale_a': expected elements of type float32, got float64"),
        (A, B, ONE[0], ONE, {}, TypeError, "'scale_a': expected a tensor, got float32"),
        (A, B, ROWS, ONE, {}, ValueError, r"shapes \(32, 1\) and \(1, 144\), or \(32, 2\) and \(2, 2\); got"),
        (A, B, A_BLOCKS, BLOCKS, {"fast": True}, ValueError, "'fast': expected False"),
        (A, B, ONE, ONE, {"out_dtype": "fp8e4nv"}, TypeError, "'out_dtype': expected bf16 or fp16 or fp32, got"),
        (A, B, ONE, ONE, {"out": np.ones((32, 100), np.float32)}, ValueError, r"'out': expected the shape \(32, 144\)"),
        (A, B, ONE, ONE, {"out": np.ones((144, 32), np.float32).T}, ValueError, "'out': expected contiguous rows"),
        (A, B, ONE, ONE, {"out": np.ones((32, 144))}, TypeError, "'out': expected elements of type bf16 or"),
        (A, B, ONE, ONE, {"config": CONFIGS["pingpong"]}, ValueError, "'config': expected a cooperative schedule"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(a, b, scale_a, scale_b, options, error, text):
    with pytest.raises(error, match=text):
        scaled_gemm(a, b, scale_a, scale_b, **options)
