"""Products with what ranks share, on simulated ranks: against float64, twice in a row, and edges."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix
from tlx_xdsl.kernels.comm import ProductConfig, all_gather_gemm, gemm_all_reduce, gemm_reduce_scatter
from tlx_xdsl.kernels.comm.products import ALL_GATHER_GEMM, GEMM_REDUCE_SCATTER, _pieces

BF16 = DTYPES["bf16"]
SMALL = ProductConfig(128, 32, 16, stages=2, part_n=16, buffers=2, group_m=2)
NARROW = ProductConfig(64, 32, 16, stages=2, part_n=16, buffers=2, group_m=2, pingpong=True)
"""Tiles of which few columns and steps make a whole product."""

CASES = [(2, NARROW), (3, NARROW), (4, NARROW)] + ([(2, SMALL), (3, SMALL), (5, NARROW)] if volume.is_full() else [])


def matrices(world, rows, columns, by_columns=False, seed=0):
    return [matrix(rows, columns, BF16, by_columns=by_columns, seed=seed + rank) for rank in range(world)]


def f64(values):
    return [each.astype(np.float64) for each in values]


def error(found, exact):
    return np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact)


def two_launches(planned, world, rows, columns, depth, config, by_columns=False, **constants):
    """Prepare a call, and run its one kernel twice in a row, without a barrier of the host between."""
    a, b = matrices(world, rows, depth), matrices(world, depth, columns, by_columns, seed=5)
    prepared = planned.prepare((a, b, None), (tlx_xdsl.SimulatedRanks(world), config))
    (launch,) = prepared.launches
    replace(launch, constexprs={**launch.constexprs, **constants}).interpret(launches=2)
    return f64(a), f64(b), prepared.tensors["out"]


@pytest.mark.parametrize(
    ("world", "config", "limit"), [(*each, None) for each in CASES] + [(2, NARROW, 10**9), (3, SMALL, 10**9)]
)
def test_gemm_reduce_scatter(world, config, limit):
    """Rows of an owner that no tile divides, columns and K that no block divides.

    With two ranks some programs have two tiles of their own, and load to the same buffers for both. With a limit of
    waiting the copier waits for the others.
    """
    rows, columns = config.block_m + 8, 72 if world == 2 else 24
    a, b, out = two_launches(GEMM_REDUCE_SCATTER, world, rows * world, columns, 24, config, world == 3, LIMIT=limit)
    exact = sum(left @ right for left, right in zip(a, b, strict=True))
    for rank, each in enumerate(out):
        assert error(each, exact[rank * rows : (rank + 1) * rows]) <= TOLERANCE["bf16"] / 2


@pytest.mark.parametrize("world", [2, 3, 4])
def test_all_gather_gemm(world):
    """A piece of rows is copied in more chunks than there are buffers, with two ranks."""
    rows, depth = 256 if volume.is_full() else 128, 40 if world == 2 else 32
    columns = 40 if world == 2 else 24
    a, b, out = two_launches(ALL_GATHER_GEMM, world, rows, columns, depth, SMALL, world == 3)
    for each, right in zip(out, b, strict=True):
        assert error(each, np.concatenate(a) @ right) <= TOLERANCE["bf16"] / 2


@pytest.mark.parametrize("together", [False, True])
def test_tiles_begin_with_their_first_columns(together):
    """Pieces of 16 columns: a tile waits for three of them, one after the other; bands of rows have two sizes."""
    config = replace(SMALL, chunk=16, pieces=32 if together else 16)
    rows, depth = (128, 48) if together else (384, 48)
    a, b, out = two_launches(
        ALL_GATHER_GEMM, 3 if together else 2, rows, 32, depth, config, TOGETHER=together, PIECE=128 // config.pieces
    )
    for each, right in zip(out, b, strict=True):
        assert error(each, np.concatenate(a) @ right) <= TOLERANCE["bf16"] / 2


def test_pieces():
    """Small ones where all tiles wait, few where the way takes longest; whole rows where it is short, or K is odd."""
    tile = ProductConfig()
    assert _pieces(tile, 0.3, 4096, together=True) == (3, 2, 512)
    assert _pieces(tile, 0.7, 8192, together=False) == (3, 8, 1024)
    assert _pieces(tile, 1.5, 4096, together=False) == (3, 8, 2048)
    assert _pieces(tile, 1.5, 4096 + 8, together=False) == (3, 8, 0)
    assert _pieces(tile, 0.3, 8192, together=False) == (1, 8, 0)


@pytest.mark.parametrize("function", [gemm_reduce_scatter, all_gather_gemm] if volume.is_full() else [all_gather_gemm])
def test_a_second_call_uses_the_memory_of_the_first(function):
    """The second call has other values: the first one's would be seen."""
    ranks = tlx_xdsl.SimulatedRanks(2)
    for seed in range(2):
        a, b = matrices(2, 128, 16, seed=10 * seed), matrices(2, 16, 32, seed=5 + 10 * seed)
        found = function(a, b, ranks, config=SMALL)
        if function is all_gather_gemm:
            exact = np.concatenate([np.concatenate(f64(a)) @ right for right in f64(b)])
        else:
            exact = sum(left @ right for left, right in zip(f64(a), f64(b), strict=True))
        assert error(np.concatenate(found), exact) <= TOLERANCE["bf16"] / 2


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


def test_the_example_of_a_perceptron(monkeypatch, capsys):
    """Simulated ranks run it where torchrun does not start it."""
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    example = Path(__file__).parents[4] / "examples" / "several_gpus" / "tensor_parallel_mlp.py"
    assert runpy.run_path(str(example))["main"]() == 0
    assert "largest relative error: 0.00" in capsys.readouterr().out
