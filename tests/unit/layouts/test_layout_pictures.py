"""The tables that pictures of layouts show, beside stock Triton's prints of these layouts and the PTX ISA."""

import random
import re
from collections import defaultdict

import numpy as np
import pytest
from random_layouts import FAMILIES, IN_REGISTERS, blocked_for
from stock_layouts import Aborted, ask

from tests.unit.volume import is_full
from tests.versions import RELEASE
from tlx_xdsl.layouts.address import tmem_addresses
from tlx_xdsl.layouts.conversion import to_linear_layout
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from tlx_xdsl.layouts.matrix_access import matrix_access
from tlx_xdsl.layouts.pictures import (
    bank_words,
    copies,
    flow,
    holders,
    register_tiles,
    shared_tiles,
    tensor_memory_tiles,
)
from tlx_xdsl.layouts.shared_access import shared_access

COUNT = 60 if is_full() else 12
WGMMA = NvidiaMmaLayout(3, 0, (4, 1), (), (16, 64, 16))
ROWS = BlockedLayout((1, 8), (8, 4), (4, 1), (1, 0))
COLUMNS = BlockedLayout((4, 1), (8, 4), (1, 4), (0, 1))
PLAIN = SwizzledSharedLayout(1, 1, 1, (1, 0))
ALL_WARPS = BlockedLayout((1, 2), (1, 32), (4, 1), (1, 0))
"""Each warp holds a row of 64."""
BY_ROW = BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0))
BY_COLUMN = BlockedLayout((1, 1), (32, 1), (1, 4), (0, 1))


# --- registers --------------------------------------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.skipif(RELEASE < (3, 9), reason="Triton 3.9 is the first that is asked for its views")
@pytest.mark.parametrize(("layout", "shape"), [(ROWS, (32, 64)), (COLUMNS, (32, 64)), (WGMMA, (64, 64))])
def test_holders_are_those_that_stock_prints(layout, shape):
    (view,) = ask([("view", layout, shape, False)])
    assert not isinstance(view, Aborted)
    held = holders(layout, shape)
    # Of several holders of an element, which stand between bars, the first is ours.
    numbers = [[number for _, number in table.each()] for table in (held.threads, held.registers)]
    cells = [cell.split("|")[0] for line in view.splitlines() for cell in line.strip("[] ").split(",")]
    found = [tuple(map(int, re.fullmatch(r"\s*T\s*(\d+):\s*(\d+)\s*", cell).groups())) for cell in cells]
    assert found == list(zip(*numbers, strict=True))


def test_the_accumulator_of_wgmma_is_as_in_the_ptx_isa():
    """PTX ISA, "Register fragment of wgmma D matrix": a row for each four lanes, pairs of columns, rows 8 further."""
    held = holders(WGMMA, (64, 64))
    for row, column in np.ndindex(64, 64):
        assert held.warps[row, column] == row // 16
        assert held.lanes[row, column] == row % 8 * 4 + column % 8 // 2
        assert held.registers[row, column] == column // 8 * 4 + row % 16 // 8 * 2 + column % 2


@pytest.mark.parametrize("family", IN_REGISTERS)
def test_tiles_say_what_the_layout_says(family):
    for layout, shape in [FAMILIES[family](random.Random(f"pictures {family} {seed}")) for seed in range(COUNT)]:
        tiles, linear = register_tiles(layout, shape), to_linear_layout(layout, shape)
        rows, columns = tiles.tile
        names = linear.in_sizes
        held = tiles.holders
        for (i, j), first in held.registers.each():
            for step in range(rows * columns):
                index = {"warp": held.warps, "lane": held.lanes, "block": held.ctas}
                place = {name: table[i, j] for name, table in index.items()} | {"register": first + step}
                *before, row, column = (0, *linear.apply({name: place[name] for name in names}).values())
                assert not any(before)
                down, right = (step, 0) if rows > 1 else (0, step)
                assert (row, column) == (i * rows + down, j * columns + right)
        assert copies(linear) << linear.out_bits == 1 << linear.in_bits
        whole = holders(layout, shape).warps.rows
        assert (np.kron(tiles.blocks.rows, np.ones(tiles.block, int)) == whole).all()


# --- shared memory ----------------------------------------------------------------------------------------------------


def test_the_swizzle_of_128_bytes_is_as_in_the_ptx_isa():
    """PTX ISA, "Swizzling modes": of a row of 128 bytes the eight chunks of 16 bytes are XORed with the row mod 8."""
    tiles = shared_tiles(NvmmaSharedLayout(128, False, 16), (1, 64, 64), 16)
    assert (tiles.across, tiles.elements) == (1, 8)
    for (row, chunk), byte in tiles.bytes.each():
        assert byte == row * 128 + (chunk ^ row % 8) * 16
        assert tiles.banks[row, chunk] == byte % 128 // 4


@pytest.mark.backend
@pytest.mark.skipif(RELEASE < (3, 9), reason="Triton 3.9 is the first that is asked for its views")
@pytest.mark.parametrize(
    ("layout", "bits"),
    [
        (NvmmaSharedLayout(128, False, 16), 16),
        (NvmmaSharedLayout(64, False, 8), 8),
        (NvmmaSharedLayout(128, True, 16), 16),
        (SwizzledSharedLayout(4, 2, 8, (1, 0)), 32),
        (SwizzledSharedLayout(1, 1, 16, (0, 1)), 16),
    ],
)
def test_bytes_are_those_that_stock_prints(layout, bits):
    (view,) = ask([("view", layout, (64, 64), True)])
    assert not isinstance(view, Aborted)
    offsets = {
        (int(row), int(column)): int(offset)
        for offset, row, column in re.findall(r"Offset: (\d+) -> \(\s*(\d+),\s*(\d+)\)", view)
    }
    tiles = shared_tiles(layout, (64, 64), bits)
    assert len(offsets) == 64 * 64
    for (i, j), byte in tiles.bytes.each():
        for step in range(tiles.elements):
            place = (i, j * tiles.elements + step)
            assert offsets[place if tiles.across else place[::-1]] * bits // 8 == byte + step * bits // 8


def test_a_conflict_is_where_the_words_are():
    """Rows of 32 words: a row lies in all banks, a column in one; swizzled, both lie in all."""
    shape, swizzled = (32, 32), SwizzledSharedLayout(1, 1, 32, (1, 0))
    assert bank_words(BY_ROW, PLAIN, shape, 32) == [1] * 32
    assert bank_words(BY_COLUMN, PLAIN, shape, 32) == [32, *[0] * 31]
    assert bank_words(BY_ROW, swizzled, shape, 32) == bank_words(BY_COLUMN, swizzled, shape, 32) == [1] * 32


def test_the_busiest_bank_is_the_cost_of_the_access():
    compared = defaultdict(int)
    rng = random.Random("bank words")
    for number in range(20 * COUNT):
        buffer, shape = FAMILIES[("swizzled_shared", "nvmma_shared", "shared_linear")[number % 3]](rng)
        if len(shape) != 2 or buffer.block if hasattr(buffer, "block") else len(shape) != 2 or buffer.cga_layout:
            continue
        layout = blocked_for(rng, shape, ())
        for bits in (8, 16, 32):
            assert not isinstance(buffer, PaddedSharedLayout)
            words = bank_words(layout, buffer, shape, bits)
            assert max(words) == shared_access(layout, buffer, shape, bits).ways
            compared["vector"] += 1
            matrix = matrix_access(layout, buffer, shape, bits, store=False)
            if matrix is not None:
                assert max(bank_words(layout, buffer, shape, bits, matrices=True)) == matrix.ways
                compared["matrix"] += 1
    assert compared["vector"] > COUNT


def test_the_words_of_a_matrix_are_eight_rows():
    shape = (64, 64)
    for buffer, ways in ((NvmmaSharedLayout(128, False, 16), 1), (SwizzledSharedLayout(1, 1, 1, (1, 0)), 8)):
        words = bank_words(WGMMA, buffer, shape, 16, matrices=True)
        assert sum(words) == 8 * 16 // 4
        assert max(words) == ways == matrix_access(WGMMA, buffer, shape, 16, store=True).ways
    # Transposed, a lane has two elements of a column: as vectors they would be half as many words.
    turned = NvmmaSharedLayout(128, True, 16)
    assert sum(bank_words(WGMMA, turned, shape, 16, matrices=True)) == 8 * 16 // 4
    assert sum(bank_words(WGMMA, turned, shape, 16)) == 32 * 2 // 4


# --- tensor memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "shape", "bits"),
    [
        (TensorMemoryLayout(128, 64, 1), (256, 128), 32),
        (TensorMemoryLayout(64, 64, 1), (64, 128), 32),
        (TensorMemoryLayout(64, 32, 1), (128, 32), 16),
        (TensorMemoryLayout(128, 64, 2), (128, 64), 16),
        (TensorMemoryScalesLayout(), (128, 8), 8),
        (TensorMemoryScalesLayout(), (64, 16), 8),
    ],
)
def test_tiles_of_tensor_memory_are_where_the_addresses_are(layout, shape, bits):
    tiles = tensor_memory_tiles(layout, shape, bits)
    rows, places = tmem_addresses(layout, shape, bits)
    seen = set()
    for (i, j), first in tiles.rows.each():
        if tiles.copy[i, j]:
            continue
        start = tiles.starts[i, j]
        for row in (0, tiles.lanes - 1):
            for column in (0, tiles.width - 1):
                element = first + row, start + column
                assert rows[element] == i * tiles.lanes + row
                step = tiles.columns * 32 / tiles.width
                assert places[element] == j * tiles.columns * 32 + column * step
                seen.add(element)
        assert (first, start) in seen
    held = tiles.lanes * tiles.width * sum(not copy for _, copy in tiles.copy.each())
    assert held == shape[0] * shape[1]


# --- conversions ------------------------------------------------------------------------------------------------------


def held_by(layout, shape, name):
    """The elements of each holder, counted index by index."""
    linear = to_linear_layout(layout, shape)
    found = defaultdict(list)
    sizes = {**linear.in_sizes, "block": 1}
    for warp in range(sizes["warp"]):
        for lane in range(32):
            for register in range(sizes["register"]):
                index = {"warp": warp, "lane": lane, "register": register, "block": 0}
                if name == "warp" or not warp:
                    element = tuple(linear.apply({each: index[each] for each in linear.in_names}).values())
                    found[index[name]].append(element)
    return found


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        (WGMMA, ROWS, ConversionKind.IN_CTA),
        (ROWS, COLUMNS, ConversionKind.IN_CTA),
        (BlockedLayout((1, 2), (8, 4), (4, 1), (1, 0)), ROWS, ConversionKind.IN_WARP),
        (ROWS, ROWS, ConversionKind.IN_THREAD),
        # Two warps hold each element, and keep it.
        (BlockedLayout((1, 1), (1, 32), (2, 2), (1, 0)), ALL_WARPS, ConversionKind.IN_CTA),
    ],
)
def test_a_flow_brings_everyone_what_it_wants(source, target, kind):
    shape = (64, 32) if source is WGMMA else (1, 64) if target is ALL_WARPS else (32, 32)
    moved = flow(source, target, shape)
    assert moved.kind is kind
    if moved.holders == "register":
        assert (np.array(moved.elements.rows) == np.eye(moved.elements.shape[0], dtype=int)).all()
        return
    have, want = held_by(source, shape, moved.holders), held_by(target, shape, moved.holders)
    expected = np.zeros(moved.elements.shape, int)
    for taker, elements in want.items():
        for element in elements:
            givers = [giver for giver in sorted(have) if element in have[giver]]
            expected[taker if taker in givers else givers[0], taker] += 1
    assert (np.array(moved.elements.rows) == expected).all()


def test_a_holder_keeps_what_it_has():
    """All warps hold all of a tensor of 32 elements: none gets anything from another one."""
    wide = BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0))
    moved = flow(wide, BlockedLayout((1, 1), (1, 32), (1, 4), (1, 0)), (1, 32))
    assert all(i == j or not count for (i, j), count in moved.elements.each())
