"""The kernels of `gemm` in the interpreter: all tiles, layouts and types, ragged sizes, pieces along K, clusters."""

import dataclasses
import itertools

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.gemm.config import CONFIGS, Choice, GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.gemm.division import clusters_on, divisions

pytestmark = pytest.mark.quick

TILES = {
    "cooperative": GemmConfig("cooperative", 128, 64, 64, stages=2, subtiles=2, buffers=2),
    "strips": GemmConfig("cooperative", 64, 32, 64, stages=2, subtiles=2, buffers=2, tail_n=16, consumers=1),
    "cluster": GemmConfig("cooperative", 64, 32, 64, stages=2, subtiles=1, consumers=1, cluster=2),
    "pingpong": GemmConfig("pingpong", 64, 64, 64, stages=3, subtiles=1),
}
"""Small tiles, so that programs have several and rings turn."""

LAYOUTS = list(itertools.product(("cooperative", "pingpong"), DTYPES, (False, True), (False, True)))
SOME_LAYOUTS = [("pingpong", "bf16", False, True), *[each for each in LAYOUTS if each[:2] == ("cooperative", "fp16")]]


def operands(m, n, k, dtype="fp16", a_columns=False, b_columns=False, out_dtype=None):
    """A, B, and a C that is NaN, as is what lies between rows."""
    a = matrix(m, k, DTYPES[dtype], by_columns=a_columns, seed=1)
    b = matrix(k, n, DTYPES[dtype], by_columns=b_columns, seed=2)
    c = matrix(m, n, out_dtype or DTYPES[dtype])
    c[...] = np.nan
    return a, b, c


def check(a, b, c, config, *, programs=3, **options):
    """Multiply: C is right, what lies around it is not written, and the interpreter has nothing to say."""
    around = None if c.base is None else np.isnan(c.base).sum()
    result = gemm_launch(a, b, c, config=config, programs=programs).interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert relative_error(c, expected) < (1e-6 if c.dtype == np.float32 else TOLERANCE[DTYPE_NAMES[c.dtype]])
    assert around is None or around - np.isnan(c.base).sum() == c.size


DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@pytest.mark.parametrize(("tiles", "dtype", "a_columns", "b_columns"), LAYOUTS if volume.is_full() else SOME_LAYOUTS)
def test_layouts_and_types(tiles, dtype, a_columns, b_columns):
    check(*operands(200, 203, 150, dtype, a_columns, b_columns), TILES[tiles])


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 130, 65), (321, 65, 128)])
@pytest.mark.parametrize("tiles", TILES if volume.is_full() else ["strips", "pingpong"])
def test_sizes_that_are_no_multiples_of_the_tiles(tiles, shape):
    check(*operands(*shape), TILES[tiles], programs=2)


SOME_CONFIGS = ("320", "16", "192x96", "64x160", "medium", "192x192 by 2")


@pytest.mark.parametrize("name", CONFIGS if volume.is_full() else SOME_CONFIGS)
def test_configurations(name):
    """Four tiles, three of them ragged, and rings that turn."""
    config = CONFIGS[name]
    shape = config.shared_m + 7, config.tile_n + 9, config.block_k * (config.stages + 1) + 3
    check(*operands(*shape), config, programs=2)


@pytest.mark.parametrize("group_m", [1, 2, 8])
@pytest.mark.parametrize("shape", [(384, 200, 64), (700, 65, 64), (60, 300, 64)])
def test_order_of_tiles(shape, group_m):
    """Groups that are full, that lack rows, and a last one of a single row: each tile is some program's, once."""
    check(*operands(*shape), dataclasses.replace(TILES["cooperative"], group_m=group_m))


ORDERS = list(itertools.product(TILES, POLICIES))
SOME_ORDERS = [each for each in ORDERS if each[0] == "cluster" or each[1] == "adversarial"]


@pytest.mark.parametrize(("tiles", "policy"), ORDERS if volume.is_full() else SOME_ORDERS)
def test_text_for_stock_triton(tiles, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        check(*operands(192, 192, 256), TILES[tiles], programs=2, stage="ttgir", schedule=policy, seed=seed)


@pytest.mark.parametrize("tiles", ["strips", "pingpong"])
def test_results_of_f32(tiles):
    """The parts of the epilogue have half as many columns."""
    check(*operands(130, 70, 150, out_dtype=np.float32), TILES[tiles])


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("tiles", ["strips", "pingpong"])
def test_results_where_tma_can_not_write(tiles, by_columns):
    """71 elements of 2 bytes in a row: threads store them."""
    a, b, _ = operands(70, 71, 150)
    c = np.full((70, 71), np.nan, np.float16)
    check(a, b, np.full((71, 70), np.nan, np.float16).T if by_columns else c, TILES[tiles])


@pytest.mark.parametrize("c_columns", [False, True])
def test_the_transposed_product(c_columns):
    """C^T = B^T A^T, as for few rows, of C by rows and by columns."""
    a, b, c = operands(20, 200, 150)
    c = np.full((200, 24), np.nan, np.float16)[:, :20].T if c_columns else c
    for config in (TILES["cooperative"], TILES["strips"]):
        c[...] = np.nan
        check(a, b, c, Choice(config, 2, swapped=True))


# --- stream-K -----------------------------------------------------------------------------------------------------


STREAMS = {
    "split": ((1, 1, 5), 4),
    "pieces of two tiles": ((3, 1, 5), 4),
    "after a round": ((5, 1, 3), 3),
    "more pieces than are added at once": ((1, 1, 40), 20),
}
"""Tiles along M and N, steps along K, and programs."""


def streams(config, problem, multiprocessors):
    """A problem of so many tiles and steps, all ragged, and the ways to divide it in which a second kernel adds."""
    tiles_m, tiles_n, steps = problem
    m, n, k = config.shared_m * tiles_m - 5, config.tile_n * tiles_n - 7, config.block_k * steps - 3
    enough = next(count for count in range(100) if clusters_on(count, config.cluster) == multiprocessors)
    found = [each for each in divisions(config, m, n, k, enough) if each.streamed]
    assert found
    return (m, n, k), found


DIVIDED = list(itertools.product(("cooperative", "strips", "cluster"), STREAMS))
SOME_DIVIDED = [each for each in DIVIDED if each[0] == "strips" or each == ("cluster", "pieces of two tiles")]


@pytest.mark.parametrize(("tiles", "problem"), DIVIDED if volume.is_full() else SOME_DIVIDED)
def test_pieces_along_k(tiles, problem):
    shape, choices = streams(TILES[tiles], *STREAMS[problem])
    for choice in choices:
        check(*operands(*shape), choice)


def test_a_tile_that_one_program_has_whole():
    """The first kernel stores the tile, and the second one leaves it alone."""
    config = TILES["strips"]
    m, n, k = config.block_m * 3, config.tile_n, config.block_k * 4
    for share in (4, 5, 6):
        check(*operands(m, n, k), Choice(config, programs=-(-12 // share), share=share))


@pytest.mark.parametrize("policy", POLICIES if volume.is_full() else ["adversarial"])
@pytest.mark.parametrize("tiles", ["strips", "cluster"])
def test_text_of_pieces_for_stock_triton(tiles, policy):
    shape, choices = streams(TILES[tiles], *STREAMS["after a round"])
    check(*operands(*shape), choices[0], stage="ttgir", schedule=policy)


@pytest.mark.parametrize(
    ("dtype", "columns", "by_columns", "swapped"),
    [(np.float16, 72, True, True), (np.float32, 72, False, True), (np.float16, 71, False, False)],
)
def test_pieces_of_every_result(dtype, columns, by_columns, swapped):
    """Results are by columns, of f32, and where TMA can't write; some programs are left without a piece."""
    a, b, _ = operands(60, columns, 300)
    c = np.full((columns, 60) if by_columns else (60, columns), np.nan, dtype)
    check(a, b, c.T if by_columns else c, Choice(TILES["strips"], 8, swapped, share=3))


# --- clusters that share K ----------------------------------------------------------------------------------------


def shared(config, m, n, k, split, swapped=False):
    """A choice of so many CTAs for each tile."""
    tiles, steps = config.tiles(n, m) if swapped else config.tiles(m, n), -(-k // config.block_k)
    return Choice(config, tiles, swapped, share=-(-steps // split), split=split)


SPLIT_TILES = {
    "two consumers": GemmConfig("cooperative", 128, 64, 64, stages=3, subtiles=1),
    "strips": GemmConfig("cooperative", 64, 32, 64, stages=4, subtiles=1, tail_n=16, consumers=1),
}


@pytest.mark.parametrize("split", range(2, 9) if volume.is_full() else [2, 5, 8])
@pytest.mark.parametrize("tiles", SPLIT_TILES)
def test_clusters_that_share_k(tiles, split):
    """Ragged tiles, a last part that is shorter, and more CTAs than there are parts of columns."""
    config = SPLIT_TILES[tiles]
    m, n, k = config.block_m + 5, config.tile_n + 3, 64 * (5 * split - 1) - 9
    check(*operands(m, n, k), shared(config, m, n, k, split))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("tiles", SPLIT_TILES)
def test_text_of_clusters_that_share_k(tiles, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    shape = 128, 48, 64 * 11
    for seed in range(5 if volume.is_full() else 1):
        check(
            *operands(*shape), shared(SPLIT_TILES[tiles], *shape, 3), stage="ttgir", schedule=policy, seed=seed
        )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "columns", "by_columns", "swapped"),
    [(np.float16, 72, True, True), (np.float32, 72, False, True), (np.float16, 71, False, False)],
)
def test_every_result_of_clusters_that_share_k(dtype, columns, by_columns, swapped):
    """Results are by columns, of f32, and where TMA can't write."""
    a, b, _ = operands(60, columns, 700)
    c = np.full((columns, 60) if by_columns else (60, columns), np.nan, dtype)
    # Of a result by columns the transposed one is divided.
    sizes = (columns, 60) if by_columns else (60, columns)
    choice = shared(SPLIT_TILES["strips"], *sizes, 700, 3, swapped)
    check(a, b, c.T if by_columns else c, choice)


def test_a_split_that_leaves_a_cta_nothing_is_refused():
    config = SPLIT_TILES["strips"]
    with pytest.raises(ValueError, match="expected a choice that covers"):
        check(*operands(64, 48, 64 * 6), Choice(config, 1, share=2, split=4))
    with pytest.raises(ValueError, match="expected a choice that covers"):
        check(*operands(64, 48, 64 * 6), Choice(CONFIGS["large"], 1, share=2, split=3))
    for name in ("tiny", "64x128 by 2"):
        with pytest.raises(ValueError, match="expected a choice that covers"):
            check(*operands(64, 48, 128 * 6), Choice(CONFIGS[name], 1, share=2, split=3))


def test_clusters_that_no_gpu_runs_are_refused():
    config = dataclasses.replace(TILES["cluster"], cluster=9)
    with pytest.raises(ValueError, match="expected clusters of 1 to 8 CTAs, got 9"):
        check(*operands(64, 48, 64), config)
    with pytest.raises(ValueError, match="expected a choice that covers"):
        check(*operands(64, 48, 64), Choice(config, 1))


@pytest.mark.parametrize("name", CONFIGS if volume.is_full() else ["192x192", "64x32"])
def test_pieces_of_configurations(name):
    config = CONFIGS[name]
    if config.schedule == "cooperative":
        shape, choices = streams(config, (2, 1, 3), 3)
        check(*operands(*shape), choices[0])
