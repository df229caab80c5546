"""Registers of threads in remote stores: every element once, at its place, in the widest pieces."""

# covers: tlx-lower-remote-memory

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tlx_xdsl.layouts.address import shared_addresses
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import BLOCK, LANE, REGISTER, WARP
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    SliceLayout,
    SwizzledSharedLayout,
)
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms
from tlx_xdsl.transforms.nvidia.remote_stores import plan_stores

POWERS = [1, 2, 4, 8, 16, 32, 64]


@st.composite
def stores(draw):
    """A layout of registers, a shape, a layout of the buffer, and the bytes of an element."""
    size = draw(st.sampled_from([1, 2, 4, 8]))
    shape = (draw(st.sampled_from(POWERS)), draw(st.sampled_from(POWERS)))
    order = draw(st.permutations([0, 1]))
    small = st.sampled_from([1, 2, 4])
    if draw(st.integers(0, 3)) == 0 and shape[0] >= 16 and shape[1] >= 8:
        layout = NvidiaMmaLayout(3, 0, (4, 1), (), (16, min(shape[1], 16), 16))
    else:
        across = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
        layout = BlockedLayout(
            (min(draw(small), shape[0]), min(draw(small), shape[1])),
            (32 // across, across),
            draw(st.sampled_from([(1, 1), (4, 1), (2, 2), (1, 4)])),
            tuple(order),
        )
    if size < 8 and shape[0] >= 8 and shape[1] * size >= 128 and draw(st.booleans()):
        buffer = NvmmaSharedLayout(128, False, 8 * size)
    else:
        vec, per_phase, max_phase = (draw(small) for _ in range(3))
        buffer = SwizzledSharedLayout(vec, per_phase, max_phase, tuple(draw(st.permutations([0, 1]))))
    return layout, shape, buffer, size


def stored(layout, shape, terms, size):
    """The bytes that are stored, with the element that each store says it is."""
    plan = plan_stores(layout, shape, terms, size)
    linear = distributed_to_linear(layout, shape)
    lanes, warps = linear.in_sizes.get(LANE, 1), linear.in_sizes.get(WARP, 1)
    for thread in range(lanes * warps):
        if thread & plan.owners:
            continue
        base = offset_of(plan.thread, (thread,))
        assert base & ~plan.reach == 0
        for distance, members in plan.chunks:
            assert (base ^ distance) % (len(members) * size) == 0
            for place, register in enumerate(members):
                inputs = {REGISTER: register, LANE: thread % lanes, WARP: thread // lanes, BLOCK: 0}
                index = linear.apply({name: inputs[name] for name in linear.in_names})
                yield (base ^ distance) + place * size, tuple(index.values())


@given(stores())
def test_every_element_once_at_its_place(case):
    layout, shape, buffer, size = case
    expected = shared_addresses(buffer, shape, 8 * size)
    found = list(stored(layout, shape, offset_terms(buffer, shape, 8 * size), size))
    assert len(found) == len({byte for byte, _ in found}) == np.prod(shape)
    assert all(expected[index] == byte for byte, index in found)


@pytest.mark.parametrize(
    ("layout", "shape", "size", "width"),
    [
        (BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0)), (64, 64), 2, 8),
        (BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0)), (64, 64), 4, 4),
        (BlockedLayout((8, 1), (8, 4), (4, 1), (0, 1)), (64, 64), 4, 1),
        # Two neighbours of an accumulator of wgmma.
        (NvidiaMmaLayout(3, 0, (4, 1), (), (16, 64, 16)), (64, 64), 2, 2),
    ],
)
def test_what_lies_side_by_side_is_stored_at_once(layout, shape, size, width):
    terms = offset_terms(SwizzledSharedLayout(1, 1, 1, (1, 0)), shape, 8 * size)
    assert len(plan_stores(layout, shape, terms, size).chunks[0][1]) == width


def test_of_copies_one_thread_stores():
    layout = SliceLayout(1, BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0)))
    plan = plan_stores(layout, (4,), offset_terms(SwizzledSharedLayout(1, 1, 1, (0,)), (4,), 32), 4)
    assert plan.owners == 0b11111
