"""Element to address, and what a buffer takes."""

import random
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_layouts import FAMILIES, IN_SHARED_MEMORY

from tests.unit.layouts.definitions import SharedAddress, TmemAddress, shared_address, tmem_address
from tlx_xdsl.layouts.address import shared_addresses, shared_blocks, shared_bytes, tmem_columns
from tlx_xdsl.layouts.encodings import (
    Ints,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    TmemLayout,
)
from tlx_xdsl.layouts.shared import required_alignment

pytestmark = pytest.mark.quick

ROW_MAJOR = SwizzledSharedLayout(1, 1, 1, (1, 0))


def memory(layout: SharedLayout, shape: Ints) -> list[int | None]:
    """Lay out the buffer of bytes 0, 1, 2, ...; None is padding."""
    cells: list[int | None] = [None] * shared_bytes(layout, shape, 8)
    for value, place in enumerate(shared_addresses(layout, shape, 8).flat):
        cells[place] = value
    return cells


class TestPadding:
    """The examples of Triton's documentation of padded_shared."""

    def test_one_interval(self):
        layout = PaddedSharedLayout((2,), (2,), ((1,), (2,)), ())
        assert memory(layout, (4,)) == [0, 1, None, None, 2, 3]

    def test_two_intervals(self):
        layout = PaddedSharedLayout((2, 4), (1, 2), ((1,), (2,), (4,)), ())
        assert memory(layout, (8,)) == [0, 1, None, 2, 3, None, None, None, 4, 5, None, 6, 7]

    def test_permuted_elements(self):
        layout = PaddedSharedLayout((2,), (2,), ((2,), (1,)), ())
        assert memory(layout, (4,)) == [0, 2, None, None, 1, 3]

    def test_permuted_rows(self):
        layout = PaddedSharedLayout((16,), (1,), ((0, 1), (0, 2), (2, 0), (4, 0), (1, 0)), ())
        cells = memory(layout, (8, 4))
        rows = [cells[start : start + 4] for start in (0, 4, 8, 12, 17, 21, 25, 29)]
        assert [row[0] for row in rows] == [0, 8, 16, 24, 4, 12, 20, 28]
        assert cells[16] is None


class TestSharedMemory:
    def test_bytes_of_an_element(self):
        assert shared_address(ROW_MAJOR, (8, 16), (2, 3), 16) == SharedAddress(0, 70)
        assert shared_address(ROW_MAJOR, (8, 16), (2, 4), 4) == SharedAddress(0, 18)

    def test_a_leading_dimension_counts_tiles(self):
        assert shared_address(ROW_MAJOR, (3, 8, 16), (2, 0, 1), 16).byte == 2 * 256 + 2
        assert shared_bytes(ROW_MAJOR, (3, 8, 16), 16) == 3 * 256
        assert shared_addresses(ROW_MAJOR, (3, 8, 16), 16)[2, 0, 1] == 514

    def test_another_cta(self):
        layout = SwizzledSharedLayout(1, 1, 1, (1, 0), ((1, 0),))
        assert shared_address(layout, (8, 16), (5, 0), 16) == SharedAddress(1, 32)
        assert shared_bytes(layout, (8, 16), 16) == 128

    def test_fp4_takes_twice_its_size(self):
        layout = NvmmaSharedLayout(128, False, 8, True)
        assert shared_bytes(layout, (8, 64), 8) == 1024
        assert shared_address(layout, (8, 64), (0, 8), 8).byte == 16

    def test_alignment(self):
        assert required_alignment(SharedLinearLayout(((1,),), alignment=64), 16) == 64
        assert required_alignment(PaddedSharedLayout((4,), (2,), ((1,),), ()), 16) == 16
        assert required_alignment(NvmmaSharedLayout(128, False, 16), 16) == 1024

    @pytest.mark.parametrize("index", [(8, 0), (0, -1), (0,)])
    def test_elements_outside(self, index: Ints):
        with pytest.raises(ValueError, match="is outside shape"):
            shared_address(ROW_MAJOR, (8, 16), index, 16)

    def test_a_shape_of_more_dimensions_than_the_layout_is_refused(self):
        with pytest.raises(ValueError, match=r"a layout of 2 dimensions, used for a buffer of shape \(2, 2, 8, 16\)"):
            shared_bytes(ROW_MAJOR, (2, 2, 8, 16), 16)

    @pytest.mark.parametrize("family", IN_SHARED_MEMORY)
    @given(rng=st.randoms(use_true_random=False), copies=st.integers(0, 3))
    def test_no_two_elements_share_a_place(self, family: str, rng: random.Random, copies: int):
        layout, shape = FAMILIES[family](rng)
        full = (copies, *shape) if copies else shape
        places = shared_addresses(layout, full, 8)
        assert places.shape == full
        assert places.min() >= 0
        assert places.max() < shared_bytes(layout, full, 8)
        # A CTA holds each of its elements once, and every CTA's part looks the same.
        ctas = 1 << sum(any(basis) for basis in getattr(layout, "cga_layout", getattr(layout, "block", ())))
        assert set(np.unique(places, return_counts=True)[1]) <= {ctas}

    @given(rng=st.randoms(use_true_random=False), family=st.sampled_from(IN_SHARED_MEMORY))
    def test_one_by_one(self, family: str, rng: random.Random):
        layout, shape = FAMILIES[family](rng)
        places, (blocks, ctas) = shared_addresses(layout, shape, 16), shared_blocks(layout, shape)
        assert blocks.max() < ctas
        for index in list(product(*map(range, shape)))[:: max(1, prod(shape) // 10)]:
            assert shared_address(layout, shape, index, 16) == SharedAddress(blocks[index], places[index])


class TestTensorMemory:
    def test_columns_are_32_bits_wide(self):
        layout = TensorMemoryLayout(128, 64, 1)
        assert tmem_address(layout, (128, 128), (5, 70), 32) == TmemAddress(0, 5, 70, 0)
        assert tmem_address(layout, (128, 128), (5, 71), 16) == TmemAddress(0, 5, 35, 16)
        assert tmem_columns(layout, (128, 128), 16) == 64

    def test_unpacked_elements(self):
        layout = TensorMemoryLayout(128, 64, 2)
        assert tmem_address(layout, (128, 64), (5, 7), 16) == TmemAddress(0, 5, 7, 0)
        assert tmem_columns(layout, (128, 64), 16) == 64

    def test_a_leading_dimension_counts_tiles(self):
        layout = TensorMemoryLayout(64, 64, 1)
        assert tmem_address(layout, (2, 128, 64), (1, 64, 3), 32) == TmemAddress(0, 16, 67, 0)
        assert tmem_columns(layout, (2, 128, 64), 32) == 128

    def test_another_cta(self):
        layout = TensorMemoryLayout(128, 64, 1, ((1, 0),), True)
        assert tmem_address(layout, (256, 64), (130, 3), 32) == TmemAddress(1, 2, 3, 0)

    def test_scales(self):
        layout = TensorMemoryScalesLayout()
        assert tmem_address(layout, (128, 8), (40, 5), 8) == TmemAddress(0, 8, 5, 8)
        assert tmem_columns(layout, (128, 8), 8) == 8

    def test_elements_outside(self):
        with pytest.raises(ValueError, match=r"element \(128, 0\) is outside shape"):
            tmem_address(TensorMemoryLayout(128, 64, 1), (128, 64), (128, 0), 32)

    @given(rng=st.randoms(use_true_random=False), family=st.sampled_from(["tensor_memory", "tensor_memory_scales"]))
    def test_no_two_elements_share_a_place(self, family: str, rng: random.Random):
        layout, shape = FAMILIES[family](rng)
        assert isinstance(layout, TmemLayout)
        # A part of the rows and columns, with the first and the last.
        rows, columns = (sorted({*range(0, size, max(1, size // 8)), size - 1}) for size in shape)
        places = [tmem_address(layout, shape, index, 8) for index in product(rows, columns)]
        assert len(set(places)) == len(places)
        assert all(place.row < 128 and place.column < tmem_columns(layout, shape, 8) for place in places)
