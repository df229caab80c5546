"""Linear layouts of encodings, beside the formulas of the PTX ISA and the examples of Triton's documentation."""

from itertools import product
from typing import cast

import pytest

from tests.unit.layouts.definitions import identity_order, identity_padded_layout, invert
from tlx_xdsl.layouts.conversion import to_linear_layout
from tlx_xdsl.layouts.conversion.distributed import rank_of
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    GenericLinearLayout,
    Ints,
    Layout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from tlx_xdsl.layouts.linear_layout import LinearLayout

pytestmark = pytest.mark.quick

MMA_SYNC = NvidiaMmaLayout(2, 0, (1, 1), (), (16, 8))
WGMMA = NvidiaMmaLayout(3, 0, (4, 1), (), (16, 64, 16))


def element(layout: LinearLayout, **indices: int) -> Ints:
    """The element at these indices; those not named are zero."""
    return tuple(layout.apply({name: indices.get(name, 0) for name in layout.in_names}).values())


class TestFragments:
    """The tables "Matrix fragments for mma.m16n8k16" and "wgmma: register fragments" of the PTX ISA."""

    def test_mma_accumulator(self):
        layout = to_linear_layout(MMA_SYNC, (16, 8))
        for lane, i in product(range(32), range(4)):
            group, thread = lane // 4, lane % 4
            row = group if i < 2 else group + 8
            assert element(layout, lane=lane, register=i) == (row, thread * 2 + i % 2)

    def test_mma_operand_a(self):
        layout = to_linear_layout(DotOperandLayout(0, MMA_SYNC, 2), (16, 16))
        for lane, i in product(range(32), range(8)):
            group, thread = lane // 4, lane % 4
            row = group if i in (0, 1, 4, 5) else group + 8
            column = thread * 2 + i % 2 + (0 if i < 4 else 8)
            assert element(layout, lane=lane, register=i) == (row, column)

    def test_mma_operand_b(self):
        layout = to_linear_layout(DotOperandLayout(1, MMA_SYNC, 2), (16, 8))
        for lane, i in product(range(32), range(4)):
            group, thread = lane // 4, lane % 4
            assert element(layout, lane=lane, register=i) == (thread * 2 + i % 2 + (0 if i < 2 else 8), group)

    def test_mma_f64_accumulator_and_operand_a(self):
        """mma.m8n8k4: C is at (group, 2 * thread + i), A at (group, thread)."""
        parent = NvidiaMmaLayout(2, 0, (1, 1), (), (8, 8))
        accumulator = to_linear_layout(parent, (8, 8))
        operand = to_linear_layout(DotOperandLayout(0, parent, 1), (8, 4))
        for lane in range(32):
            assert element(operand, lane=lane) == (lane // 4, lane % 4)
            for i in range(2):
                assert element(accumulator, lane=lane, register=i) == (lane // 4, lane % 4 * 2 + i)

    def test_wgmma_accumulator(self):
        layout = to_linear_layout(WGMMA, (64, 64))
        for warp, lane, i in product(range(4), range(32), range(32)):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            column = 8 * (i // 4) + lane % 4 * 2 + i % 2
            assert element(layout, warp=warp, lane=lane, register=i) == (row, column)

    def test_wgmma_operand_a(self):
        layout = to_linear_layout(DotOperandLayout(0, WGMMA, 2), (64, 16))
        for warp, lane, i in product(range(4), range(32), range(8)):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            column = lane % 4 * 2 + i % 2 + 8 * (i // 4)
            assert element(layout, warp=warp, lane=lane, register=i) == (row, column)


class TestRegisters:
    def test_blocked_example_of_the_documentation(self):
        """Row 0 of a 16x16 tensor: 0 0 1 1 2 2 3 3 of warp 0, then the same of warp 1."""
        layout = invert(to_linear_layout(BlockedLayout((2, 2), (8, 4), (1, 2), (1, 0)), (16, 16)))
        for row, column in product(range(16), range(16)):
            place = layout.apply({"dim0": row, "dim1": column})
            assert (place["warp"], place["lane"]) == (column // 8, row // 2 * 4 + column % 8 // 2)

    def test_a_larger_tensor_repeats_registers(self):
        layout = to_linear_layout(BlockedLayout((1, 2), (8, 4), (1, 1), (1, 0)), (16, 32))
        assert layout.bases_of("register") == ((0, 1), (0, 8), (0, 16), (8, 0))

    def test_a_smaller_tensor_is_copied(self):
        layout = to_linear_layout(BlockedLayout((1, 2), (8, 4), (2, 1), (1, 0)), (4, 8))
        assert layout.bases_of("lane") == ((0, 2), (0, 4), (1, 0), (2, 0), (0, 0))
        assert layout.bases_of("warp") == ((0, 0),)

    def test_registers_without_an_element_of_their_own(self):
        layout = BlockedLayout((8,), (32,), (4,), (0,))
        assert to_linear_layout(layout, (4,)).in_sizes["register"] == 4
        assert to_linear_layout(layout, (4,), (3, 8)).in_sizes["register"] == 8

    def test_ctas_share_a_tensor(self):
        layout = to_linear_layout(BlockedLayout((1,), (32,), (4,), (0,), ((1,), (0,))), (512,))
        assert layout.bases_of("block") == ((256,), (0,))
        assert layout.bases_of("register") == ((128,),)

    def test_a_slice_holds_every_element_once_per_thread(self):
        parent = BlockedLayout((2, 4), (4, 8), (2, 2), (1, 0))
        layout = to_linear_layout(SliceLayout(0, parent), (64,))
        assert layout.bases == {
            "register": ((1,), (2,)),
            "lane": ((4,), (8,), (16,), (0,), (0,)),
            "warp": ((32,), (0,)),
            "block": (),
        }

    def test_linear_repeats_along_the_dimension_that_registers_move_first(self):
        bases = DistributedLinearLayout(
            ((1, 0), (0, 8)), ((0, 1), (0, 2), (0, 4), (2, 0), (4, 0)), ((8, 0), (0, 0)), ()
        )
        layout = to_linear_layout(bases, (32, 32))
        assert layout.bases_of("register") == ((1, 0), (0, 8), (16, 0), (0, 16))
        assert to_linear_layout(bases, (16, 8)).bases_of("register") == ((1, 0),)

    def test_f64_operand_before_triton_3_8(self):
        operand = DotOperandLayout(0, NvidiaMmaLayout(2, 0, (1, 1), (), (8, 8)), 1)
        assert to_linear_layout(operand, (16, 4)).bases_of("register") == ((8, 0),)
        assert to_linear_layout(operand, (16, 4), (3, 7)).bases_of("register") == ((8, 0), (0, 0))

    def test_the_rank_of_a_layout_is_that_of_its_innermost_parent(self):
        blocked = BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0))
        assert rank_of(SliceLayout(0, DotOperandLayout(0, blocked))) == 1
        assert rank_of(DistributedLinearLayout((), (), (), ())) is None
        assert rank_of(SliceLayout(0, DistributedLinearLayout((), (), (), ()))) is None
        assert rank_of(GenericLinearLayout(((1, 0, 0),), (), (), ())) == 3


class TestSharedMemory:
    @pytest.mark.parametrize(
        ("vec", "per_phase", "max_phase", "rows"),
        [
            (1, 1, 4, [[0, 1, 2, 3], [5, 4, 7, 6], [10, 11, 8, 9], [15, 14, 13, 12]]),
            (1, 2, 4, [[0, 1, 2, 3], [4, 5, 6, 7], [9, 8, 11, 10], [13, 12, 15, 14]]),
            (1, 1, 2, [[0, 1, 2, 3], [5, 4, 7, 6], [8, 9, 10, 11], [13, 12, 15, 14]]),
            (1, 2, 2, [[0, 1, 2, 3], [4, 5, 6, 7], [9, 8, 11, 10], [13, 12, 15, 14]]),
            (2, 1, 4, [[0, 1, 2, 3, 4, 5, 6, 7], [10, 11, 8, 9, 14, 15, 12, 13]]),
        ],
    )
    def test_swizzled_examples_of_the_documentation(
        self, vec: int, per_phase: int, max_phase: int, rows: list[list[int]]
    ):
        """A tensor of 0, 1, 2, ... as it lies in memory."""
        shape = (len(rows), len(rows[0]))
        layout = to_linear_layout(SwizzledSharedLayout(vec, per_phase, max_phase, (1, 0)), shape)
        places = [element(layout, offset=offset) for offset in range(shape[0] * shape[1])]
        assert [row * shape[1] + column for row, column in places] == [value for row in rows for value in row]

    @pytest.mark.parametrize("width", [32, 64, 128])
    @pytest.mark.parametrize("element_bits", [8, 16, 32])
    def test_nvmma_swizzle(self, width: int, element_bits: int):
        """Bits 4 to 6 of the byte address are XORed with bits 7 to 9, as many as the width has 16-byte units."""
        size = element_bits // 8
        shape = (16, 2 * width // size)
        layout = invert(to_linear_layout(NvmmaSharedLayout(width, False, element_bits), shape))
        for row, column in product(range(shape[0]), range(shape[1])):
            box, byte = divmod(column * size, width)
            linear = box * 16 * width + row * width + byte
            swizzled = linear ^ (linear >> 7 & (width // 16 - 1)) << 4
            assert layout.apply({"dim0": row, "dim1": column})["offset"] * size == swizzled

    def test_nvmma_transposed_is_the_transposition(self):
        plain = to_linear_layout(NvmmaSharedLayout(64, False, 16), (32, 64))
        turned = to_linear_layout(NvmmaSharedLayout(64, True, 16), (64, 32))
        assert turned.bases_of("offset") == tuple((b, a) for a, b in plain.bases_of("offset"))

    def test_nvmma_fp4_leaves_half_of_every_unit_empty(self):
        layout = to_linear_layout(NvmmaSharedLayout(128, False, 8, True), (8, 64))
        assert [element(layout, offset=offset)[1] for offset in (0, 7, 16)] == [0, 7, 8]
        assert layout.free_variables()["offset"] == 8

    def test_nvmma_unswizzled_and_transposed(self):
        layout = NvmmaSharedLayout(0, True, 16)
        assert to_linear_layout(layout, (2, 4)).bases_of("offset") == ((1, 0), (0, 1), (0, 2))
        assert to_linear_layout(layout, (2, 4), (3, 7)).bases_of("offset") == ((0, 1), (0, 2), (1, 0))

    def test_nvmma_of_several_dimensions_counts_outer_ones_as_rows(self):
        layout = to_linear_layout(NvmmaSharedLayout(128, False, 16, rank=3), (2, 4, 64))
        assert layout.bases_of("offset")[6:] == ((0, 1, 8), (0, 2, 16), (1, 0, 32))

    def test_nvmma_larger_than_a_tma_copy_is_cut_into_boxes(self):
        layout = to_linear_layout(NvmmaSharedLayout(0, False, 8), (512, 512))
        assert layout.bases_of("offset")[-2:] == ((0, 256), (256, 0))

    def test_padded_layouts_of_consecutive_elements(self):
        layout = identity_padded_layout((4,), (2,), (1, 0), (2, 4))
        assert layout.offset == ((0, 1), (0, 2), (1, 0))
        assert identity_order(layout, 2) == (1, 0)
        assert identity_order(PaddedSharedLayout((4,), (2,), ((0, 2), (0, 1)), ()), 2) is None
        assert identity_order(PaddedSharedLayout((4,), (2,), ((0, 1),), ((1, 0),)), 2) is None


class TestTensorMemory:
    def test_example_of_the_documentation(self):
        """A 128x128 matrix in blocks of 64x32."""
        layout = to_linear_layout(TensorMemoryLayout(64, 32, 1), (128, 128))
        for row, at_left in {0: 0, 15: 15, 16: 64, 31: 79, 32: 16, 127: 127}.items():
            for column in (0, 1, 31, 32, 64, 127):
                assert element(layout, row=row, col=column) == (at_left, column)

    def test_a_single_block_of_64_rows_leaves_half_of_the_lanes(self):
        """Warp w's first 16 lanes hold rows 16w to 16w + 15 (PTX ISA, tcgen05 with M = 64)."""
        layout = to_linear_layout(TensorMemoryLayout(64, 32, 1), (64, 32))
        for row in range(64):
            assert element(layout, row=row // 16 * 32 + row % 16) == (row, 0)
        assert layout.free_variables() == {"row": 16, "col": 0, "block": 0}

    def test_blocks_advance_along_m_first(self):
        layout = to_linear_layout(TensorMemoryLayout(128, 32, 1), (256, 64))
        assert element(layout, col=32) == (128, 0)
        assert element(layout, col=64) == (0, 32)

    def test_a_pair_of_ctas_with_64_rows_each(self):
        """Lanes 64 to 127 hold the right half of the columns (PTX ISA, tcgen05 with M = 128 and .cta_group::2)."""
        layout = to_linear_layout(TensorMemoryLayout(64, 32, 1, ((1, 0),), True), (128, 32))
        assert element(layout, row=63, col=15) == (63, 15)
        assert element(layout, row=64, col=0) == (0, 16)
        assert element(layout, block=1) == (64, 0)

    def test_a_pair_of_ctas_before_triton_3_8_halves_all_columns(self):
        layout = TensorMemoryLayout(64, 32, 1, ((1, 0),), True)
        assert element(to_linear_layout(layout, (128, 128)), row=64) == (0, 16)
        assert element(to_linear_layout(layout, (128, 128), (3, 7)), row=64) == (0, 64)
        assert to_linear_layout(layout, (128, 32), (3, 7)) == to_linear_layout(layout, (128, 32))

    def test_unpacked_elements(self):
        assert element(to_linear_layout(TensorMemoryLayout(128, 32, 2), (128, 32)), col=2) == (0, 1)
        assert element(to_linear_layout(TensorMemoryLayout(128, 32, 1, fp4_padded=True), (128, 32)), col=2) == (0, 1)

    def test_scales(self):
        """A 32-bit column holds four scales along K; columns advance 32 rows; four warps hold copies."""
        layout = to_linear_layout(TensorMemoryScalesLayout(), (128, 8))
        assert element(layout, row=31, col=3) == (31, 3)
        assert element(layout, row=32 + 5) == (5, 0)
        assert element(layout, col=4) == (32, 0)
        assert element(layout, col=16) == (0, 4)

    def test_order_of_blocks_of_scales(self):
        assert element(to_linear_layout(TensorMemoryScalesLayout(), (256, 8)), col=16) == (128, 0)
        assert element(to_linear_layout(TensorMemoryScalesLayout((), "kThenMn"), (256, 8)), col=16) == (0, 4)


BLOCKED = BlockedLayout((1, 1), (1, 32), (4, 1), (1, 0))


@pytest.mark.parametrize(
    ("layout", "shape", "message"),
    [
        (BLOCKED, (4, 24), "expected a power of two, got 24"),
        (BLOCKED, (4,), r"a 'blocked' layout of rank 2, used for shape \(4,\)"),
        (SliceLayout(0, BLOCKED), (4, 4), "a 'slice' layout of rank 1"),
        (DotOperandLayout(1, WGMMA, 2), (64, 64), "wgmma reads its operand B from shared memory only"),
        (DotOperandLayout(0, SliceLayout(0, BLOCKED), 2), (64,), "cannot have the parent layout 'slice'"),
        (GenericLinearLayout(((1, 0),), ((0, 1),), ((6, 0), (4, 0)), ()), (4, 2), "without a holder"),
        (SharedLinearLayout(((0, 1), (1, 0)), alignment=16), (2, 4), r"of shape \(2, 2\), used for shape \(2, 4\)"),
        (PaddedSharedLayout((4,), (2,), ((1,),), ()), (4,), "'padded_shared' spells out"),
        (PaddedSharedLayout((4,), (2,), (), ()), (1,), "without bases does not determine its rank"),
        (SwizzledSharedLayout(1, 1, 1, (1, 0)), (4,), r"a 'swizzled_shared' layout of rank 2, used for shape \(4,\)"),
        (NvmmaSharedLayout(128, False, 16, rank=1), (64,), "needs two dimensions"),
        (NvmmaSharedLayout(128, False, 16), (4, 64), "needs 8 rows of 64 elements, found 4 of 64"),
        (NvmmaSharedLayout(128, False, 16), (8, 32), "needs 8 rows of 64 elements, found 8 of 32"),
        (NvmmaSharedLayout(0, True, 16, rank=3), (8, 8, 8), "cannot be transposed without a swizzle"),
        (TensorMemoryLayout(128, 64, 1), (64, 64), "blocks of 128 rows do not fit the 64 rows"),
        (TensorMemoryLayout(64, 1, 1, ((1, 0),), True), (128, 1), "blocks of at least two columns"),
        (TensorMemoryLayout(128, 64, 1), (2, 128, 64), "tensor memory holds matrices"),
    ],
)
def test_layouts_that_do_not_fit(layout: Layout, shape: Ints, message: str):
    with pytest.raises(ValueError, match=message):
        to_linear_layout(layout, cast(Ints, shape))
