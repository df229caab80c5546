"""Layouts of what operations make of a tensor without moving an element: halves, beside the pairs they came from."""

import pytest

from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import BLOCK, LANE, REGISTER, WARP
from tlx_xdsl.layouts.distributed import joined_layout, reshaped_layout, split_layout, transposed_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, NvidiaMmaLayout

LAYOUTS = {
    "mma": (NvidiaMmaLayout(3, 0, (4, 1), (), (16, 32, 16)), (64, 32)),
    "rows": (BlockedLayout((1, 4), (4, 8), (4, 1), (1, 0)), (64, 32)),
    "copies": (BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0)), (8, 4)),
}


def places(layout, shape):
    """The element of each register of each thread."""
    linear = distributed_to_linear(layout, shape)
    sizes = [linear.in_sizes.get(name, 1) for name in (REGISTER, LANE, WARP)]
    return {
        (register, lane, warp): tuple(
            linear.apply({REGISTER: register, LANE: lane, WARP: warp, BLOCK: 0})[name] for name in linear.out_names
        )
        for register in range(sizes[0])
        for lane in range(sizes[1])
        for warp in range(sizes[2])
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_halves_of_pairs_are_where_the_parts_were(name):
    layout, shape = LAYOUTS[name]
    half = split_layout(joined_layout(layout, shape), (*shape, 2))
    assert places(half, shape) == places(layout, shape)


def test_halves_of_columns_keep_their_threads():
    """Columns 0 to 15 of an accumulator, and each in the thread that had it."""
    layout, _ = LAYOUTS["mma"]
    parts = reshaped_layout(layout, (64, 32), (64, 2, 16))
    half = split_layout(transposed_layout(parts, (64, 2, 16), (0, 2, 1)), (64, 16, 2))
    whole = {(lane, warp, place) for (_, lane, warp), place in places(layout, (64, 32)).items() if place[1] < 16}
    assert {(lane, warp, place) for (_, lane, warp), place in places(half, (64, 16)).items()} == whole


def test_pairs_of_two_threads_have_no_halves():
    assert split_layout(BlockedLayout((1, 1), (16, 2), (4, 1), (1, 0)), (64, 2)) is None
