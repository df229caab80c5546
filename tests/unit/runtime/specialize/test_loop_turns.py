"""Conditions that loops turn: what is read from written sources, and which launches they hold for."""

from __future__ import annotations

import pytest

from tlx_xdsl.runtime.specialize.turns import turns_of

pytestmark = pytest.mark.quick

SOURCE = """
import tlx_xdsl


@tlx_xdsl.jit
def kernel(x_desc, M, K, grid_0):
    pid = tl.program_id(0)
    tiles = tl.cdiv(M, 128) * grid_0
    most = tl.minimum(tiles, 64)

    with tlx.async_tasks():
        with tlx.async_task("default"):
            filled = 0
            tiles = 7
            for a in range(0, K, 64):
                filled += 1
            for b in range(filled):
                pass
        with tlx.async_task(num_warps=4):
            for c in range(pid, most, 132):
                first = c * 128
                for d in range(first, M):
                    pass
                for e in range(tl.cdiv(K, 64)):
                    pass
            if K > 3:
                for f in range(tl.load(x_desc), K):
                    pass
"""


def line(name):
    return next(at for at, text in enumerate(SOURCE.splitlines(), 1) if f"for {name} in" in text)


def holds(name, grid=(4, 1, 1), **values):
    (found,) = turns_of(SOURCE, [line(name)])
    return found.holds(grid, {"M": 512, "K": 128, "grid_0": 1, **values})


def test_a_bound_that_is_a_parameter():
    assert holds("a")
    assert not holds("a", K=0)


def test_a_loop_over_tiles_turns_in_each_program():
    # Names of another task are no matter.
    assert holds("c", M=512)
    assert not holds("c", grid=(5, 1, 1), M=512)
    assert holds("c", grid=(5, 1, 1), M=512, grid_0=2)
    assert not holds("c", grid=(1 << 21, 1, 1), M=1 << 30)


def test_a_loop_in_a_loop_whose_bounds_stay():
    assert holds("e")
    assert not holds("e", K=0)


@pytest.mark.parametrize("name", ["b", "d", "f"])
def test_what_a_launch_says_nothing_of(name):
    assert turns_of(SOURCE, [line("a"), line(name)]) == line(name)


def test_a_line_without_a_loop():
    assert turns_of(SOURCE, [0]) == 0
    assert turns_of(SOURCE, [7]) == 7
