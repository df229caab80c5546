"""Costs that are deduced by algebra against counting: every lane, every address, every bank."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from random_layouts import FAMILIES

from tests.unit.layouts.definitions import shared_address
from tests.unit.volume import is_full
from tlx_xdsl.layouts.conversion import distributed_to_linear
from tlx_xdsl.layouts.conversion_cost import ConversionKind, conversion_cost, linear_offsets
from tlx_xdsl.layouts.distributed import default_blocked_layout, wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    DotOperandLayout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    SwizzledSharedLayout,
)
from tlx_xdsl.layouts.global_access import global_access
from tlx_xdsl.layouts.matrix_access import best_access, matrix_access
from tlx_xdsl.layouts.shared import default_nvmma_layout
from tlx_xdsl.layouts.shared_access import shared_access

pytestmark = pytest.mark.quick

VOLUME = 400 if is_full() else 25
WORD = 4


def elements_of(layout, shape):
    """Return the element of each warp, lane and register, in the order of registers, without copies in registers."""
    linear = distributed_to_linear(layout, shape)
    names = linear.in_sizes
    registers = [1 << bit for bit, basis in enumerate(linear.packed_bases("register")) if basis]
    picked = [0]
    for bit in registers:
        picked += [each | bit for each in picked]
    return [
        [
            [
                tuple(linear.apply({"register": register, "lane": lane, "warp": warp, "block": 0}).values())
                for register in picked
            ]
            for lane in range(32)
        ]
        for warp in range(names["warp"])
    ]


def passes(addresses, width):
    """Wavefronts of one instruction: in each group of lanes the most words that one bank must give."""
    lanes = 32 * WORD // max(width, WORD)
    total = 0
    for first in range(0, 32, lanes):
        wanted = {
            byte // WORD for address in addresses[first : first + lanes] for byte in range(address, address + width)
        }
        total += max(sum(1 for word in wanted if word % 32 == bank) for bank in range(32))
    return total


def counted(layout, buffer, shape, bits, width):
    """Wavefronts of the worst warp, if each lane moves `width` aligned bytes at once."""
    worst = 0
    for warp in elements_of(layout, shape):
        places = [[shared_address(buffer, shape, element, bits).byte for element in lane] for lane in warp]
        for lane in places:
            # Each lane's bytes are whole vectors.
            held = set(lane)
            starts = [place for place in held if place % width == 0]
            step = max(1, bits // 8)
            assert {start + byte for start in starts for byte in range(0, width, step)} == held
        firsts = [index for index, place in enumerate(places[0]) if place % width == 0]
        worst = max(worst, sum(passes([lane[index] for lane in places], width) for index in firsts))
    return worst


def buffer_of(rng, shape):
    """A layout of one CTA in shared memory for a tensor of `shape`."""
    rank = len(shape)
    order = tuple(rng.sample(range(rank), rank))
    vec, phase, phases = (1 << rng.randint(0, 3) for _ in range(3))
    return SwizzledSharedLayout(vec, phase, phases, order)


def registers_of(rng, shape):
    rank = len(shape)

    def deal(total):
        sizes = [1] * rank
        while total > 1:
            sizes[rng.randrange(rank)] *= 2
            total //= 2
        return tuple(sizes)

    return BlockedLayout(
        deal(1 << rng.randint(0, 4)), deal(32), deal(1 << rng.randint(0, 2)), tuple(rng.sample(range(rank), rank))
    )


@settings(max_examples=VOLUME, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([8, 16, 32, 64]))
def test_wavefronts_are_what_counting_gives(seed, bits):
    rng = random.Random(seed)
    shape = tuple(1 << rng.randint(0, 5) for _ in range(rng.randint(1, 3)))
    layout, buffer = registers_of(rng, shape), buffer_of(rng, shape)
    access = shared_access(layout, buffer, shape, bits)
    assert access.wavefronts == counted(layout, buffer, shape, bits, access.width_bits // 8)
    assert access.minimum <= access.wavefronts


@settings(max_examples=VOLUME, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(["padded_shared", "shared_linear"]), st.sampled_from([8, 16, 32]))
def test_wavefronts_of_buffers_that_are_spelled_out(seed, family, bits):
    rng = random.Random(seed)
    buffer, shape = FAMILIES[family](rng)
    if buffer.block:
        return
    layout = registers_of(rng, shape)
    access = shared_access(layout, buffer, shape, bits)
    assert access.wavefronts == counted(layout, buffer, shape, bits, access.width_bits // 8)


ROWS = BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0))
COLUMNS = BlockedLayout((1, 1), (32, 1), (1, 4), (0, 1))
FLAT = SwizzledSharedLayout(1, 1, 1, (1, 0))
TILE = (64, 64)


@pytest.mark.parametrize(
    ("layout", "buffer", "bits", "width", "ways"),
    [
        # A row of 64 f16 fills 32 banks: a quarter of a warp reads one, conflicts or not.
        (ROWS, FLAT, 16, 128, 1),
        (ROWS, default_nvmma_layout(TILE, 16), 16, 128, 1),
        # Lanes below each other: rows of 128 bytes are all in one bank.
        (COLUMNS, FLAT, 16, 16, 32),
        # The swizzle deals 8 rows to 8 units of 16 bytes.
        (COLUMNS, default_nvmma_layout(TILE, 16), 16, 16, 4),
        (BlockedLayout((1, 8), (32, 1), (2, 2), (1, 0)), FLAT, 16, 128, 8),
        (BlockedLayout((1, 8), (32, 1), (2, 2), (1, 0)), default_nvmma_layout(TILE, 16), 16, 128, 1),
        (BlockedLayout((1, 2), (1, 32), (4, 1), (1, 0)), FLAT, 16, 32, 1),
        # Two lanes share a word.
        (BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0)), FLAT, 16, 16, 1),
        (BlockedLayout((1, 2), (1, 32), (4, 1), (1, 0)), FLAT, 32, 64, 1),
    ],
)
def test_known_conflicts(layout, buffer, bits, width, ways):
    access = shared_access(layout, buffer, TILE, bits)
    assert (access.width_bits, access.ways) == (width, ways)


def test_the_description_names_the_numbers():
    assert str(shared_access(COLUMNS, FLAT, TILE, 16)) == (
        "16 bits per lane, 32-way bank conflicts (1024 instead of 32 wavefronts per warp)"
    )
    assert str(shared_access(ROWS, FLAT, TILE, 16)) == "128 bits per lane, no bank conflicts (16 wavefronts per warp)"


def test_a_part_of_an_allocation_has_its_offsets():
    """Columns 32 to 63 of rows of 128 f16: rows are 256 bytes apart, though the part's own rows would be 64."""
    part = shared_access(COLUMNS, FLAT, (64, 32), 16, (64, 128))
    assert (part.width_bits, part.ways) == (16, 32)
    assert shared_access(COLUMNS, FLAT, (64, 32), 16).ways == 16


# --- matrix instructions ---------------------------------------------------------------------------------------------


def test_matrix_instructions_fit_accumulators_and_operands():
    accumulator = wgmma_accumulator_layout((64, 64), 16, 4)
    swizzled = default_nvmma_layout(TILE, 16)
    access = matrix_access(accumulator, swizzled, TILE, 16, store=True)
    assert (access.instruction, access.width_bits, access.wavefronts, access.minimum) == ("stmatrix", 128, 16, 16)
    assert matrix_access(accumulator, FLAT, TILE, 16, store=True).ways == 8
    column_major = NvmmaSharedLayout(128, True, 16)
    transposed = matrix_access(accumulator, column_major, TILE, 16, store=True)
    assert (transposed.instruction, transposed.ways) == ("stmatrix.trans", 1)
    operand = DotOperandLayout(0, NvidiaMmaLayout(2, 0, (4, 1), (), (16, 8)), 2)
    assert matrix_access(operand, swizzled, TILE, 16, store=False).instruction == "ldmatrix"
    assert matrix_access(ROWS, swizzled, TILE, 16, store=False) is None
    # f32 elements are not pairs; transposed there is no such instruction.
    assert matrix_access(accumulator, NvmmaSharedLayout(128, True, 32), TILE, 32, store=True) is None


def test_the_best_access_has_the_fewest_wavefronts():
    accumulator = wgmma_accumulator_layout((64, 64), 16, 4)
    swizzled = default_nvmma_layout(TILE, 16)
    assert best_access(accumulator, swizzled, TILE, 16, store=True).instruction == "stmatrix"
    assert best_access(ROWS, swizzled, TILE, 16, store=True).instruction == "vector"


@settings(max_examples=VOLUME, deadline=None)
@given(st.integers(0, 1 << 30))
def test_matrix_rows_are_where_the_instruction_reads_them(seed):
    """Each lane's word is at its place in a row of 16 bytes, and rows conflict as counting says."""
    rng = random.Random(seed)
    layout, shape = FAMILIES[rng.choice(["mma v2", "mma v3", "dot_op of mma v2"])](rng)
    if len(shape) != 2 or getattr(layout, "parent", layout).cga_layout:
        return
    buffer = SwizzledSharedLayout(8, 1, rng.choice([1, 2, 4, 8]), rng.choice([(0, 1), (1, 0)]))
    access = matrix_access(layout, buffer, shape, 16, store=False)
    if access is None:
        return
    total = 0
    for lanes in elements_of(layout, shape)[:1]:
        places = [[shared_address(buffer, shape, element, 16).byte for element in lane] for lane in lanes]
        if access.instruction == "ldmatrix":
            for index, place in enumerate(places[0]):
                if place % 16:
                    continue
                rows = [places[4 * row][index] for row in range(8)]
                for lane, held in enumerate(places):
                    assert {held[index], held[index] + 2} <= set(held)
                    assert held[index] == rows[lane // 4] + 4 * (lane % 4)
                total += most_in_a_bank(rows)
        else:
            for index in range(0, len(places[0]), 2):
                rows = [places[lane][index + pair] for lane in range(4) for pair in range(2)]
                for lane, held in enumerate(places):
                    for pair in range(2):
                        assert held[index + pair] == rows[2 * (lane % 4) + pair] + 2 * (lane // 4)
                total += most_in_a_bank(rows)
    assert access.wavefronts == total


def most_in_a_bank(rows):
    words = {byte // WORD for row in rows for byte in range(row, row + 16)}
    return max(sum(1 for word in words if word % 32 == bank) for bank in range(32))


# --- global memory ---------------------------------------------------------------------------------------------------


@settings(max_examples=VOLUME, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([8, 16, 32, 64]))
def test_sectors_are_what_counting_gives(seed, bits):
    rng = random.Random(seed)
    rank = rng.randint(1, 2)
    shape = tuple(1 << rng.randint(0, 6) for _ in range(rank))
    layout, unit = registers_of(rng, shape), bits // 8
    contiguity = 1 << rng.randint(0, shape[-1].bit_length() - 1)
    access = global_access(layout, shape, bits, contiguity=contiguity, alignment=128)
    vector = access.width_bits // bits
    # Runs lie far from each other.
    lanes = elements_of(layout, shape)[0]

    def address(element):
        run = (*element[:-1], element[-1] // contiguity)
        number = 0
        for coordinate in run:
            number = number * 64 + coordinate
        return number * 65536 + element[-1] % contiguity * unit

    for lane in lanes:
        starts = [address(element) for element in lane[:vector]]
        assert starts[0] % (vector * unit) == 0
        assert all(b - a == unit for a, b in pairwise(starts))
    touched = {address(element) + byte for lane in lanes for element in lane[:vector] for byte in range(unit)}
    assert access.useful_bytes == len(touched)
    assert access.sectors == len({byte // 32 for byte in touched})
    assert access.instructions * vector == len(lanes[0])


def test_what_limits_a_vector():
    rows = BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0))

    def width(**kwargs):
        return global_access(rows, TILE, 16, **{"contiguity": 64, "alignment": 16, **kwargs}).width_bits

    assert width() == 128
    assert width(alignment=8) == 64
    assert width(contiguity=2) == 32
    assert width(mask_constancy=4) == 64
    assert width(dim=0) == 16
    strided = global_access(COLUMNS, TILE, 16, contiguity=64, alignment=16)
    assert (strided.sectors, strided.efficiency) == (32, 2 / 32)
    assert str(strided) == "16 bits per lane, 32 sectors per request, 6% of their bytes used"


# --- conversions -----------------------------------------------------------------------------------------------------


def holders(layout, shape):
    return {
        (warp, lane): set(held)
        for warp, lanes in enumerate(elements_of(layout, shape))
        for lane, held in enumerate(lanes)
    }


def counted_kind(source, target, shape):
    """Return the kind of conversion by who must be asked for what a thread needs."""
    have, need = holders(source, shape), holders(target, shape)
    warps = range(max(warp for warp, _ in need) + 1)
    # More warps on one side hold copies.
    sources = max(warp for warp, _ in have) + 1
    if all(need[warp, lane] <= have[warp % sources, lane] for warp in warps for lane in range(32)):
        return ConversionKind.IN_THREAD
    in_warp = {warp: set().union(*(have[warp, lane] for lane in range(32))) for warp in range(sources)}
    if all(need[warp, lane] <= in_warp[warp % sources] for warp in warps for lane in range(32)):
        return ConversionKind.IN_WARP
    return ConversionKind.IN_CTA


@st.composite
def pairs(draw):
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    shape = tuple(1 << rng.randint(0, 5) for _ in range(rng.randint(1, 2)))
    warps = 1 << rng.randint(0, 2)

    def blocked():
        while True:
            layout = registers_of(rng, shape)
            count = 1
            for size in layout.warps_per_cta:
                count *= size
            if count == warps:
                return layout

    first = blocked()
    if rng.random() < 0.5:
        # Much alike: the same lanes, other registers or another order.
        second = BlockedLayout(blocked().size_per_thread, first.threads_per_warp, first.warps_per_cta, first.order)
    else:
        second = blocked()
    return first, second, shape


@settings(max_examples=2 * VOLUME, deadline=None)
@given(pairs())
def test_the_kind_is_who_must_be_asked(case):
    source, target, shape = case
    assert conversion_cost(source, target, shape, 16).kind is counted_kind(source, target, shape)


@settings(max_examples=2 * VOLUME, deadline=None)
@given(pairs())
def test_shuffles_bring_what_is_missing(case):
    """No lane misses more than is brought, and some warp has a lane that misses as much."""
    source, target, shape = case
    cost = conversion_cost(source, target, shape, 32)
    if cost.kind is not ConversionKind.IN_WARP:
        return
    have, need = holders(source, shape), holders(target, shape)
    missing = max(len(need[thread] - have[thread]) for thread in need)
    assert cost.shuffles == missing
    assert conversion_cost(source, target, shape, 64).shuffles == 2 * missing
    assert missing >= conversion_cost(source, target, shape, 16).shuffles >= missing / 2


@settings(max_examples=2 * VOLUME, deadline=None)
@given(pairs(), st.sampled_from([8, 16, 32, 64]))
def test_scratch_memory_has_no_conflicts(case, bits):
    source, target, shape = case
    cost = conversion_cost(source, target, shape, bits)
    if cost.kind is not ConversionKind.IN_CTA:
        return
    assert cost.store.ways == cost.load.ways == 1
    scratch = cost.scratch
    assert scratch.in_bits == scratch.out_bits == scratch.rank
    assert cost.scratch_bytes <= (1 << scratch.in_bits) * bits // 8
    for layout, access in ((source, cost.store), (target, cost.load)):
        offsets = linear_offsets(distributed_to_linear(layout, shape), scratch.packed_bases("offset"))
        width = access.width_bits // 8
        lanes = [0]
        for basis in offsets.lanes:
            lanes += [each ^ basis for each in lanes]
        assert passes([each * bits // 8 for each in lanes], width) * access.instructions == access.wavefronts


def test_costs_in_words():
    one, two = default_blocked_layout(TILE, 4), BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0))
    mma = wgmma_accumulator_layout(TILE, 16, 4)
    operand = DotOperandLayout(0, mma, 2)
    assert str(conversion_cost(mma, operand, TILE, 16)) == "in the thread: registers change names, nothing moves"
    assert str(conversion_cost(one, one, TILE, 16)).startswith("in the thread")
    through = conversion_cost(one, two, TILE, 16)
    assert str(through) == "through shared memory: at most 8192 bytes and 128 wavefronts, and a barrier"
    exchange = conversion_cost(mma, DotOperandLayout(0, mma, 4), TILE, 8)
    assert exchange.kind is ConversionKind.IN_WARP
    assert str(exchange) == f"within a warp: {exchange.shuffles} shuffles per warp"
