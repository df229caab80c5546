"""Access widths and kinds of conversion against the instructions of stock Triton's PTX."""

import pytest

from tests.unit.layouts.stock_lowering import conversion, memory_instructions, through_buffer
from tlx_xdsl.layouts.conversion_cost import ConversionKind, conversion_cost
from tlx_xdsl.layouts.distributed import default_blocked_layout, wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, DotOperandLayout, NvmmaSharedLayout, SwizzledSharedLayout
from tlx_xdsl.layouts.global_access import global_access
from tlx_xdsl.layouts.matrix_access import best_access
from tlx_xdsl.layouts.shared import default_nvmma_layout

pytestmark = pytest.mark.backend
pytest.importorskip("triton", reason="stock Triton is not installed")

TILE = (64, 64)
ACCUMULATOR = wgmma_accumulator_layout(TILE, 16, 4)
ROWS = BlockedLayout((1, 8), (4, 8), (4, 1), (1, 0))
COLUMNS = BlockedLayout((8, 1), (8, 4), (1, 4), (0, 1))
SCATTERED = BlockedLayout((1, 1), (32, 1), (1, 4), (0, 1))
DEFAULT = default_blocked_layout(TILE, 4)

ACCESSES = [
    (layout, buffer, TILE, bits)
    for bits in (16, 32)
    for layout in (ACCUMULATOR, ROWS, COLUMNS, SCATTERED, DEFAULT)
    for buffer in (
        default_nvmma_layout(TILE, bits),
        NvmmaSharedLayout(128, True, bits),
        SwizzledSharedLayout(1, 1, 1, (1, 0)),
        SwizzledSharedLayout(4, 2, 4, (1, 0)),
    )
]

CONVERSIONS = [
    (ACCUMULATOR, DotOperandLayout(0, ACCUMULATOR, 2), TILE, 16),
    (ACCUMULATOR, DotOperandLayout(0, ACCUMULATOR, 4), TILE, 8),
    (ACCUMULATOR, ROWS, TILE, 32),
    (DEFAULT, ROWS, TILE, 16),
    (ROWS, COLUMNS, TILE, 32),
    (ROWS, ROWS, TILE, 16),
    (ROWS, BlockedLayout((1, 4), (4, 8), (4, 1), (1, 0)), TILE, 16),
    (ROWS, BlockedLayout((1, 4), (4, 8), (4, 1), (1, 0)), TILE, 32),
    (BlockedLayout((1, 1), (4, 8), (4, 1), (1, 0)), BlockedLayout((1, 1), (4, 8), (4, 1), (0, 1)), (16, 8), 32),
    (BlockedLayout((1, 2), (8, 4), (4, 1), (1, 0)), BlockedLayout((2, 1), (4, 8), (4, 1), (1, 0)), (32, 8), 32),
    (BlockedLayout((1, 2), (8, 4), (4, 1), (1, 0)), BlockedLayout((1, 1), (4, 8), (4, 1), (1, 0)), (32, 8), 32),
]


def expected(access, *, store):
    if access.instruction == "vector":
        return {f"{'st' if store else 'ld'}.shared {access.width_bits}": access.instructions}
    name, *trans = access.instruction.split(".")
    parts = [name, "sync.aligned.m8n8", f"x{access.width_bits // 32}", *trans, "shared.b16"]
    return {".".join(parts): access.instructions}


def test_the_widths_of_buffer_accesses():
    for case, found in zip(ACCESSES, memory_instructions([through_buffer(*c) for c in ACCESSES]), strict=True):
        wanted = expected(best_access(*case, store=True), store=True)
        wanted |= expected(best_access(*case, store=False), store=False)
        assert {name: count for name, count in found.items() if "shared" in name} == wanted, case


def test_the_widths_of_global_accesses():
    cases = [(layout, TILE, bits) for bits in (8, 16, 32) for layout in (ACCUMULATOR, ROWS, COLUMNS, DEFAULT)]
    # A buffer keeps the tensor as it is.
    modules = [through_buffer(layout, SwizzledSharedLayout(1, 1, 1, (1, 0)), TILE, bits) for layout, _, bits in cases]
    for (layout, shape, bits), found in zip(cases, memory_instructions(modules), strict=True):
        access = global_access(layout, shape, bits, contiguity=64, alignment=16)
        for kind in ("ld.global", "st.global"):
            counts = {name: count for name, count in found.items() if name.startswith(kind)}
            assert counts == {f"{kind} {access.width_bits}": access.instructions}, (layout, bits)


def test_the_kinds_of_conversions():
    for case, found in zip(CONVERSIONS, memory_instructions([conversion(*c) for c in CONVERSIONS]), strict=True):
        cost = conversion_cost(*case)
        assert sum(count for name, count in found.items() if name.startswith("shfl")) == cost.shuffles, case
        assert (found["scratch"] > 0) == (cost.kind is ConversionKind.IN_CTA), case
        # Matrix instructions and other vectors may need less.
        assert found["scratch"] <= cost.scratch_bytes, case
