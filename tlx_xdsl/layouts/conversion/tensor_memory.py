"""Tensor-memory layouts: which element is in which row and column of Blackwell's tensor memory.

Inputs are `row` (one of 128 lanes), `col` (counted in elements, not in 32-bit columns) and `block`; outputs `dim0` and
`dim1` of the whole tensor. Sources: PTX ISA, "tcgen05 data path layout organization" and "Scale factor layouts".
"""

from __future__ import annotations

from functools import lru_cache

from tlx_xdsl.errors import InputError

from ..encodings import Ints, TensorMemoryLayout, TensorMemoryScalesLayout, TmemLayout
from ..linear_layout import LinearLayout, log2
from .tiling import (
    COL,
    NEWEST,
    PAIR_HALVES_ALL_COLUMNS_UNTIL,
    ROW,
    Version,
    check_powers_of_two,
    clip,
    cluster,
    repeat,
    shape_per_cta,
)


@lru_cache(maxsize=4096)
def tensor_memory_to_linear(layout: TmemLayout, shape: Ints, version: Version = NEWEST) -> LinearLayout:
    """The linear layout of a tensor-memory buffer that holds a matrix of `shape` as `layout` says to that Triton
    version.

    Raises ValueError if the layout does not fit `shape`, or a size is no power of two.
    """
    check_powers_of_two(shape)
    if len(shape) != 2:
        raise InputError(f"tensor memory holds matrices, found shape {shape}")
    match layout:
        case TensorMemoryLayout():
            return _accumulator(layout, shape, version)
        case TensorMemoryScalesLayout():
            return _scales(layout, shape)


def _accumulator(layout: TensorMemoryLayout, shape: Ints, version: Version) -> LinearLayout:
    """Blocks one after the other in the columns, advancing along M and then along N.

    With 128 rows, lane and row agree. Blocks of 64 rows come in two kinds: those of a pair of CTAs (together M = 128)
    have the right half of their columns in lanes 64 to 127 (PTX: layout B). The others have 16 rows in the lower lanes
    of each of four warps (PTX: layout F); the upper lanes hold the next block, or copies if there is none.
    """
    m, n = shape_per_cta(layout.cga_layout, shape)
    if m < layout.block_m:
        raise InputError(f"blocks of {layout.block_m} rows do not fit the {m} rows of a CTA")
    width = min(layout.block_n, n)
    lanes = [(1 << bit, 0) for bit in range(log2(layout.block_m))]
    columns = [(0, 1 << bit) for bit in range(log2(width))]
    blocks = [(layout.block_m << bit, 0) for bit in range(log2(m // layout.block_m))]
    blocks += [(0, width << bit) for bit in range(log2(n // width))]
    if layout.halves_columns:
        halved = columns if version >= PAIR_HALVES_ALL_COLUMNS_UNTIL or width == n else blocks
        if not halved:
            raise InputError("a pair of CTAs with blocks of 64 rows needs blocks of at least two columns")
        lanes.append(halved.pop())
    elif layout.block_m == 64:
        lanes.insert(log2(16), blocks.pop(0) if blocks else (0, 0))
    # Elements that are not packed are `col_stride` apart; fp4 is padded to twice its size.
    gap = [(0, 0)] * log2(2 if layout.fp4_padded else layout.col_stride)
    part = LinearLayout.from_bases({ROW: lanes, COL: [*gap, *columns, *blocks]}, {"dim0": m, "dim1": n})
    return part * cluster(layout.cga_layout, shape)


def _scales(layout: TensorMemoryScalesLayout, shape: Ints) -> LinearLayout:
    """Blocks of 128 x 4 one-byte scales (64 x 4 of a smaller tensor): 32 lanes hold 32 rows, the other three quarters
    of the lanes hold copies; a 32-bit column has four scales along K, the next one those of the next 32 rows.
    """
    part = shape_per_cta(layout.cga_layout, shape)
    block_rows = min(max(part[0], 64), 128)
    block = (
        LinearLayout.identity_1d(32, ROW, "dim0")
        * LinearLayout.zeros_1d(4, ROW, "dim0")
        * LinearLayout.identity_1d(4, COL, "dim1")
        * LinearLayout.identity_1d(block_rows // 32, COL, "dim0")
    )
    order = (0, 1) if layout.block_rep_order == "mnThenK" else (1, 0)
    return clip(repeat(block, part, COL, order), part) * cluster(layout.cga_layout, shape)
