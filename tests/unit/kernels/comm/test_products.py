"""Products with what ranks share, on simulated ranks: against float64, twice in a row, and edges."""

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix
from tlx_xdsl.kernels.comm import ProductConfig, all_gather_gemm, gemm_all_reduce, gemm_reduce_scatter

BF16 = DTYPES["bf16"]
SMALL = ProductConfig(128, 32, 16, stages=2, part_n=16, buffers=2, group_m=2)
"""A tile of which few columns and steps make a whole product."""


def matrices(world, rows, columns, by_columns=False, seed=0):
    return [matrix(rows, columns, BF16, by_columns=by_columns, seed=seed + rank) for rank in range(world)]


def f64(values):
    return [each.astype(np.float64) for each in values]


def error(found, exact):
    return np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("world", (2, 3, 4))
def test_gemm_reduce_scatter(world):
    """Rows of an owner that no tile divides, columns and K that no block divides; a second call on the same memory."""
    ranks = tlx_xdsl.SimulatedRanks(world)
    for seed in range(2 if world == 2 or volume.is_full() else 1):
        a = matrices(world, 136 * world, 40, seed=10 * seed)
        b = matrices(world, 40, 72, by_columns=world == 3, seed=5 + 10 * seed)
        found = gemm_reduce_scatter(a, b, ranks, config=SMALL)
        exact = sum(left @ right for left, right in zip(f64(a), f64(b), strict=True))
        for rank, each in enumerate(found):
            assert error(each, exact[rank * 136 : (rank + 1) * 136]) <= TOLERANCE["bf16"] / 2


@pytest.mark.parametrize("world", (2, 3, 4))
def test_all_gather_gemm(world):
    ranks = tlx_xdsl.SimulatedRanks(world)
    for seed in range(2 if world == 2 or volume.is_full() else 1):
        a = matrices(world, 256 if world == 2 else 128, 40, seed=10 * seed)
        b = matrices(world, 40, 72, by_columns=world == 3, seed=5 + 10 * seed)
        gathered = np.concatenate(f64(a))
        for each, right in zip(all_gather_gemm(a, b, ranks, config=SMALL), f64(b), strict=True):
            assert error(each, gathered @ right) <= TOLERANCE["bf16"] / 2


def two_launches(function, world, **sizes):
    """Prepare a call, and run its one kernel twice in a row, without a barrier of the host between."""
    from tlx_xdsl.kernels.comm import products

    planned = {gemm_reduce_scatter: products.GEMM_REDUCE_SCATTER, all_gather_gemm: products.ALL_GATHER_GEMM}[function]
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    a, b = matrices(world, rows, depth), matrices(world, depth, columns, seed=5)
    ranks = tlx_xdsl.SimulatedRanks(world)
    prepared = planned.prepare((a, b, None), (ranks, SMALL))
    (launch,) = prepared.launches
    launch.interpret(launches=2)
    return a, b, prepared.tensors["out"]


@pytest.mark.parametrize("world", (2, 3, 4) if volume.is_full() else (2,))
def test_two_launches_in_a_row(world):
    a, b, out = two_launches(gemm_reduce_scatter, world, rows=128 * world, columns=64, depth=32)
    exact = sum(left @ right for left, right in zip(f64(a), f64(b), strict=True))
    assert error(np.concatenate(out), exact) <= TOLERANCE["bf16"] / 2
    a, b, out = two_launches(all_gather_gemm, world, rows=128, columns=64, depth=32)
    for each, right in zip(out, f64(b), strict=True):
        assert error(each, np.concatenate(f64(a)) @ right) <= TOLERANCE["bf16"] / 2


def test_rows_that_no_tile_divides_are_gathered_first():
    a, b = matrices(2, 8, 24), matrices(2, 24, 16, seed=5)
    for each, right in zip(all_gather_gemm(a, b, tlx_xdsl.SimulatedRanks(2)), f64(b), strict=True):
        assert error(each, np.concatenate(f64(a)) @ right) <= TOLERANCE["bf16"] / 2


@pytest.mark.parametrize("rows", [6, 256] if volume.is_full() else [6])
def test_gemm_all_reduce(rows):
    """Few rows, of which each rank multiplies all; and many, of which each sums a part."""
    a, b = matrices(2, rows, 16), matrices(2, 16, 128, seed=5)
    found = gemm_all_reduce(a, b, tlx_xdsl.SimulatedRanks(2))
    exact = sum(left @ right for left, right in zip(f64(a), f64(b), strict=True))
    assert (found[0] == found[1]).all()
    assert error(found[0], exact) <= TOLERANCE["bf16"]


@pytest.mark.parametrize(
    ("function", "a", "b", "said"),
    [
        (gemm_reduce_scatter, (5, 8), (8, 8), "a multiple of 2 rows"),
        (gemm_reduce_scatter, (4, 8), (16, 8), "expected 8 rows"),
        (gemm_reduce_scatter, (4, 8), (8, 0), "matrices with elements"),
    ],
)
def test_what_is_refused(function, a, b, said):
    with pytest.raises(ValueError, match=said):
        function([np.zeros(a, BF16)] * 2, [np.zeros(b, BF16)] * 2, tlx_xdsl.SimulatedRanks(2))
