"""Grids that are accepted, and the one message about anything else."""

import numpy as np
import pytest

from tlx_xdsl.errors import InputError
from tlx_xdsl.grid import MOST_ALONG_Y_AND_Z, grid_of, sizes_of


@pytest.mark.parametrize(
    ("grid", "sizes"),
    [
        (4, (4, 1, 1)),
        ((4,), (4, 1, 1)),
        ([4, 2], (4, 2, 1)),
        ((4, 2, 3), (4, 2, 3)),
        (0, (0, 1, 1)),
        ((np.int64(4), 0), (4, 0, 1)),
        ((2**31 - 1,) * 3, (2**31 - 1,) * 3),
    ],
)
def test_sizes_that_are_not_given_are_1(grid, sizes):
    found = sizes_of(grid)
    assert found == sizes
    assert {*map(type, found)} == {int}


@pytest.mark.parametrize(
    "grid", [(), (1, 1, 1, 1), (-1,), -1, (1, 2**31), (1.0,), 2.5, (True,), False, "4", ("4",), None, np.ones(2, int)]
)
def test_anything_else_is_refused_with_what_was_expected_and_found(grid):
    with pytest.raises(InputError) as caught:
        sizes_of(grid)
    expected = "expected a grid of one to three numbers of programs, each from 0 to 2,147,483,647, found "
    assert str(caught.value) == expected + repr(grid)


def test_limits_are_those_of_who_asks():
    assert sizes_of((1, MOST_ALONG_Y_AND_Z), along_y_and_z=MOST_ALONG_Y_AND_Z) == (1, 65535, 1)
    with pytest.raises(InputError, match=r"2,147,483,647 \(along y and z to 65,535\), found \(1, 1, 65536\)"):
        sizes_of((1, 1, 65536), along_y_and_z=MOST_ALONG_Y_AND_Z)
    with pytest.raises(InputError, match=r"^--grid: expected .*each from 1 to 2,147,483,647, found \(1, 0\)"):
        sizes_of((1, 0), least=1, of="--grid: ")


def test_a_function_computes_the_grid_from_the_arguments():
    assert grid_of(lambda named: (named["n"] // 2, 3), {"n": 8}) == (4, 3, 1)
    with pytest.raises(InputError, match=r"found \(-4,\)"):
        grid_of(lambda named: (-named["n"],), {"n": 4})
