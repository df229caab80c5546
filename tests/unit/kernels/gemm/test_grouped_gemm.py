"""`grouped_gemm` in the interpreter: groups of all sizes, layouts, types and tiles; its choices and its refusals.

Rows that belong to no group, and matrices of empty groups, are NaN: one that is read where it must not be is found.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm, grouped_gemm_launch
from tlx_xdsl.kernels.gemm.grouped.config import CONFIGS, LARGE, MEDIUM, SMALL, TINY, GroupedConfig, choose_config
from tlx_xdsl.kernels.gemm.tiles import SHARED_BYTES

BY_ROWS = GroupedConfig(128, 64, 64, stages=2, subtiles=2, buffers=2)
BY_COLUMNS = GroupedConfig(64, 128, 64, stages=3, subtiles=1)
TILES = {"rows": BY_ROWS, "columns": BY_COLUMNS}
"""Small tiles, so that programs have several and rings turn; by what the consumers split."""

SIZES = (0, 5, 130, 0, 0, 64, 200, 0)
"""Groups with less than a part of a tile, a tile and a bit, exactly one product, and more; empty ones anywhere."""


def ends_of(sizes):
    return np.cumsum(sizes).astype(np.int32)


def stacked(matrices):
    """Matrices as one array of three dimensions, each by rows or by columns as `matrix` makes them."""
    by_columns = matrices[0].strides[0] < matrices[0].strides[1]
    if by_columns:
        return stacked([each.T for each in matrices]).swapaxes(1, 2)
    rows, columns = matrices[0].shape
    memory = poisoned((len(matrices), rows, -(-columns // 8) * 8), matrices[0].dtype)
    memory[..., :columns] = matrices
    return memory[..., :columns]


def inputs_of_rows(sizes, k, n, *, dtype="fp16", w_columns=False, spare=9):
    ends, element = ends_of(sizes), DTYPES[dtype]
    x = matrix(ends[-1] + spare, k, element, by_columns=False, seed=1)
    w = stacked([matrix(k, n, element, by_columns=w_columns, seed=2 + g) for g in range(len(sizes))])
    x[ends[-1] :] = np.nan
    w[np.asarray(sizes) == 0] = np.nan
    return x, w, ends


def expected_rows(x, w, ends):
    groups = zip(np.split(x, ends)[:-1], w, strict=True)
    return np.concatenate([rows.astype(np.float64) @ each.astype(np.float64) for rows, each in groups])


def clean(result):
    return [each for each in result.warnings if each.severity != "remark"] == []


def run_rows(sizes, k, n, config, *, dtype="fp16", programs=3, w_columns=False, **options):
    x, w, ends = inputs_of_rows(sizes, k, n, dtype=dtype, w_columns=w_columns)
    out = matrix(x.shape[0], n, DTYPES[dtype])
    out[...] = np.nan
    result = grouped_gemm_launch(x, w, ends, out, config=config, programs=programs).interpret(jobs=1, **options)
    assert clean(result)
    assert relative_error(out[: ends[-1]], expected_rows(x, w, ends)) < TOLERANCE[dtype]
    assert np.isnan(out[ends[-1] :]).all(), "rows of no group are written"


def inputs_of_sums(sizes, m, n, dtype="fp16", spare=9):
    ends = ends_of(sizes)
    x, y = (matrix(ends[-1] + spare, extent, DTYPES[dtype], seed=extent) for extent in (m, n))
    x[ends[-1] :] = y[ends[-1] :] = np.nan
    return x.T, y, ends


def expected_sums(x, y, ends):
    groups = zip(np.split(x.T, ends)[:-1], np.split(y, ends)[:-1], strict=True)
    return np.stack([rows.T.astype(np.float64) @ each.astype(np.float64) for rows, each in groups])


def run_sums(sizes, m, n, config, *, dtype="fp16", programs=3, **options):
    x, y, ends = inputs_of_sums(sizes, m, n, dtype)
    out = stacked([matrix(m, n, DTYPES[dtype])] * len(sizes))
    out[...] = np.nan
    result = grouped_gemm_launch(x, y, ends, out, config=config, programs=programs).interpret(jobs=1, **options)
    assert clean(result)
    assert relative_error(out, expected_sums(x, y, ends)) < TOLERANCE[dtype]


ALL_OF_ROWS = list(itertools.product(TILES, DTYPES, (False, True)))
SOME_OF_ROWS = [("rows", "fp16", True), ("columns", "bf16", False)]


@pytest.mark.parametrize(("split", "dtype", "w_columns"), ALL_OF_ROWS if volume.is_full() else SOME_OF_ROWS)
def test_layouts_and_types(split, dtype, w_columns):
    run_rows(SIZES, 104, 203, TILES[split], dtype=dtype, w_columns=w_columns)


@pytest.mark.parametrize("dtype", DTYPES if volume.is_full() else ["bf16"])
def test_sums(dtype):
    run_sums(SIZES, 136, 203, BY_ROWS, dtype=dtype)


@pytest.mark.parametrize("split", TILES)
def test_sizes_of_groups(split):
    """The smallest, those that tiles hold exactly, and those that end one row before and after."""
    run_rows((1,), 1, 1, TILES[split], programs=2)
    for sizes in ((0, 0, 1), (128, 128), (64, 65, 63)) if volume.is_full() else ((129, 0, 64, 127, 65, 63),):
        run_rows(sizes, 72, 130, TILES[split], programs=4)


def test_sizes_of_summed_groups():
    run_sums((1,), 1, 1, BY_ROWS)
    run_sums((128, 0, 63, 65), 130, 40, BY_ROWS, programs=2)


def test_many_groups():
    """More than programs, with sizes as a router gives them."""
    groups = 512 if volume.is_full() else 96
    sizes = np.random.default_rng(0).multinomial(groups * 3, np.full(groups, 1 / groups))
    run_rows(sizes, 16, 16, BY_COLUMNS, programs=5)


@pytest.mark.parametrize("config", [BY_ROWS, BY_COLUMNS], ids=TILES)
def test_every_last_round(config):
    """Jobs are all computed, each once, whether the last round has none, few that are shared, or many."""
    x, w, ends = inputs_of_rows((0, 129, 40, 200), 16, 330)
    for programs in range(1, 25, 1 if volume.is_full() else 11):
        out = poisoned((x.shape[0], 336), np.float16)[:, :330]
        launch = grouped_gemm_launch(x, w, ends, out, config=config, programs=programs)
        assert clean(launch.interpret(jobs=1))
        assert relative_error(out[: ends[-1]], expected_rows(x, w, ends)) < TOLERANCE["fp16"]


def test_no_rows_at_all():
    x, w, ends = inputs_of_rows((0, 0, 0), 16, 16)
    out = poisoned((9, 16), np.float16)
    assert clean(grouped_gemm_launch(x, w, ends, out).interpret(jobs=1))
    assert np.isnan(out).all()


@pytest.mark.parametrize("name", CONFIGS if volume.is_full() else ["large", "small"])
def test_configurations(name):
    run_rows((300, 40), 200, 520, CONFIGS[name], programs=2)
    if CONFIGS[name].b_parts == 1:
        run_sums((300, 40), 200, 520, CONFIGS[name], programs=2)


@pytest.mark.parametrize("group_m", [1, 2, 8] if volume.is_full() else [2])
def test_order_of_tiles(group_m):
    """Columns of tiles that are full, that lack rows, and a last one of a single row: each is some program's, once."""
    run_rows((700, 60, 384), 64, 200, dataclasses.replace(BY_ROWS, group_m=group_m))


@pytest.mark.parametrize("policy", POLICIES if volume.is_full() else ["adversarial"])
@pytest.mark.parametrize("kernel", ["rows", "columns", "sums"])
def test_text_for_stock_triton(kernel, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        options = {"stage": "ttgir", "schedule": policy, "seed": seed, "programs": 2}
        if kernel == "sums":
            run_sums((0, 150, 70), 192, 128, BY_ROWS, **options)
        else:
            run_rows((0, 150, 70), 200, 192, TILES[kernel], **options)


@pytest.mark.parametrize("config", TILES.values(), ids=TILES)
def test_nan_stays_in_its_row_and_its_group(config):
    x, w, ends = inputs_of_rows((70, 0, 60), 72, 40, spare=0)
    x[100, 7] = np.nan
    w[0, 71, 3] = np.inf
    out = poisoned((130, 40), np.float16)
    grouped_gemm_launch(x, w, ends, out, config=config).interpret(jobs=1)
    found = np.isfinite(out)
    assert not found[100].any()
    assert not found[:70, 3].any()
    assert found.sum() == out.size - 70 - 40


def test_nan_stays_in_its_sum():
    x, y, ends = inputs_of_sums((70, 0, 60), 72, 40, spare=0)
    x[5, 70] = np.nan
    y[69, 3] = np.nan
    out = poisoned((3, 72, 40), np.float16)
    grouped_gemm_launch(x, y, ends, out, config=BY_ROWS).interpret(jobs=1)
    expected = np.ones(out.shape, bool)
    expected[2, 5] = False
    expected[0, :, 3] = False
    assert np.array_equal(np.isfinite(out), expected)


def test_offsets_that_fall_or_exceed_are_cut():
    x, w, _ = inputs_of_rows((40, 30, 20), 16, 16, spare=0)
    wrong, meant = np.array([50, 30, 1000], np.int32), np.array([50, 50, 90], np.int32)
    assert np.array_equal(grouped_gemm(x, w, wrong), grouped_gemm(x, w, meant))


def test_gradients():
    """Compute the products of a layer's backward pass: nothing is copied, whatever the layout of the weights."""
    x, w, ends = inputs_of_rows((20, 30), 24, 40, spare=0)
    dy = grouped_gemm(x, w, ends)
    assert relative_error(dy, expected_rows(x, w, ends)) < TOLERANCE["fp16"]
    turned = w.swapaxes(-2, -1)
    assert relative_error(grouped_gemm(dy, turned, ends), expected_rows(dy, turned, ends)) < TOLERANCE["fp16"]
    expected = expected_sums(x.T, dy, ends)
    assert relative_error(grouped_gemm(x.T, dy, ends), expected) < TOLERANCE["fp16"]
    by_columns = poisoned((2, 40, 24), np.float16).swapaxes(-2, -1)
    assert grouped_gemm(x.T, dy, ends, out=by_columns) is by_columns
    assert relative_error(by_columns, expected) < TOLERANCE["fp16"]


def test_launches_say_whose_memory_their_arguments_are():
    """A plan moves each argument to the tensor of its name, also where the result is computed as its transpose."""
    x, w, ends = inputs_of_rows((20, 30), 24, 40, spare=0)
    out, dw = poisoned((50, 40), np.float16), poisoned((2, 24, 40), np.float16)
    cases = [
        (x, w, ends, out),
        (x.T, out, ends, dw),
        (x.T, out, ends, poisoned((2, 40, 24), np.float16).swapaxes(-2, -1)),
    ]
    for case in cases:
        launch = grouped_gemm_launch(*case)
        tensors = dict(zip(("x", "w", "offsets", "out"), case, strict=True))
        for name, value in launch.arguments.items():
            memory = getattr(value, "base", value)
            if isinstance(memory, np.ndarray):
                assert memory.ctypes.data == tensors[launch.sources[name]].ctypes.data


def test_empty_dimensions():
    ends = np.array([0, 3], np.int32)
    f16 = np.float16
    assert grouped_gemm(np.ones((0, 8), f16), np.ones((2, 8, 8), f16), ends).shape == (0, 8)
    assert np.array_equal(grouped_gemm(np.ones((3, 0), f16), np.ones((2, 0, 8), f16), ends), np.zeros((3, 8)))
    assert np.array_equal(grouped_gemm(np.ones((8, 0), f16), np.ones((0, 8), f16), ends), np.zeros((2, 8, 8)))
    none = grouped_gemm(np.ones((3, 8), f16), np.ones((0, 8, 8), f16), ends[:0], out=poisoned((3, 8), f16))
    assert np.isnan(none).all()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((8, 8192, 4096, 2048), LARGE),
        ((16, 16384, 4096, 4096), LARGE),
        ((64, 16384, 2048, 7168), LARGE),
        ((4, 32768, 4096, 7168), LARGE),
        ((8, 768, 2048, 512), MEDIUM),
        ((8, 1024, 1024, 1024), TINY),
        ((64, 1024, 4096, 4096), SMALL),
        ((4, 64, 1024, 1024), TINY),
        ((256, 3, 16, 16), TINY),
    ],
)
def test_the_configuration_follows_the_shape(shape, expected):
    assert choose_config(*shape) is expected


def test_choices_fit_the_shared_memory():
    for config in CONFIGS.values():
        assert config.shared_bytes() + 16 * config.stages <= SHARED_BYTES


F16 = np.float16
ENDS = np.array([4, 8], np.int32)


@pytest.mark.parametrize(
    ("x", "w", "offsets", "out", "error", "text"),
    [
        ([[1.0]], np.ones((2, 8, 8), F16), ENDS, None, TypeError, "argument 'x': expected a tensor, got list"),
        (np.ones((8, 8)), np.ones((2, 8, 8)), ENDS, None, TypeError, "'x': expected elements of type fp16 or bf16"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), [4, 8], None, TypeError, "'offsets': expected a tensor"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), np.array([4, 8]), None, TypeError, "type int32, got int64"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), np.array([[4, 8]], np.int32), None, ValueError, "one contig"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), np.arange(4, dtype=np.int32)[::2], None, ValueError, "one con"),
        (np.ones(8, F16), np.ones((2, 8, 8), F16), ENDS, None, ValueError, "'x': expected 2 dimensions"),
        (np.ones((8, 8), F16), np.ones(8, F16), ENDS, None, ValueError, "'w': expected 3 dimensions, or 2"),
        (np.ones((8, 8), F16), np.ones((2, 16, 8), F16), ENDS, None, ValueError, "'w': expected 8 rows, .* got 16"),
        (np.ones((8, 8), F16), np.ones((3, 8, 8), F16), ENDS, None, ValueError, "'w': expected 2 matrices, .* got 3"),
        (np.ones((8, 9), F16), np.ones((2, 9, 8), F16), ENDS, None, ValueError, "'x': expected rows or columns"),
        (np.ones((8, 8), F16), np.ones((8, 8), F16), ENDS, None, ValueError, "'x': expected the dim"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), ENDS, np.ones((8, 9), F16), ValueError, "'out': expected the"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), ENDS, np.ones((8, 8), F16).T, ValueError, "'out': expected"),
        (np.ones((8, 8), F16), np.ones((2, 8, 8), F16), ENDS, np.ones((8, 8)), TypeError, "'out': expected elements"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(x, w, offsets, out, error, text):
    with pytest.raises(error, match=text):
        grouped_gemm(x, w, offsets, out=out)


def test_the_sums_have_no_tiles_of_64_rows():
    with pytest.raises(ValueError, match="'config': expected tiles of 128 rows"):
        grouped_gemm(np.ones((8, 8), F16).T, np.ones((8, 8), F16), ENDS, config=TINY)
