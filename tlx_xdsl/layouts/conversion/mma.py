"""Register layouts of tensor-core instructions: accumulators of mma.sync and wgmma, and their operands.

All of them are built of one core matrix of 8 rows: four neighbouring lanes share a row, eight such quads the rows
(PTX ISA, "Matrix fragments for mma.m16n8k16" and "Register fragments and shared memory matrix layouts" of wgmma).
"""

from __future__ import annotations

from tlx_xdsl.errors import InputError

from ..encodings import Bases, DotOperandLayout, Ints, NvidiaMmaLayout
from ..linear_layout import LinearLayout
from .tiling import (
    F64_OPERANDS_SINCE,
    LANE,
    REGISTER,
    WARP,
    Version,
    cover,
    dim_names,
    identity_nd,
)

LANES_PER_ROW = 4
"""Lanes that share a row of a core matrix."""

CORE_ROWS = 8
"""Rows of a core matrix."""


def mma_to_linear(layout: NvidiaMmaLayout, shape: Ints) -> LinearLayout:
    """The layout of an accumulator of `shape`, its last two dimensions being M and N.

    An instruction covers `instr_shape` rows and columns per warp; mma.sync has 16x8 (8x8 for f64), of wgmma's 64 rows
    each of the four warps has 16.
    """
    rank = len(shape)
    m_name, n_name = dim_names(rank)[-2:]
    # For wgmma the shape is (M, N, K), for mma.sync it is ([batch,] M, N).
    rows, columns = layout.instr_shape[:2] if layout.version_major == 3 else layout.instr_shape[-2:]
    tile = (
        LinearLayout.identity_1d(2, REGISTER, n_name)
        * LinearLayout.identity_1d(LANES_PER_ROW, LANE, n_name)
        * LinearLayout.identity_1d(CORE_ROWS, LANE, m_name)
        * LinearLayout.identity_1d(rows // CORE_ROWS, REGISTER, m_name)
        * LinearLayout.identity_1d(columns // (2 * LANES_PER_ROW), REGISTER, n_name)
    )
    warps = identity_nd(WARP, layout.warps_per_cta, _warp_order(layout, rank))
    tile = (tile * warps).transpose_outs(dim_names(rank))
    return cover(tile, layout.cga_layout, shape, REGISTER, reversed(range(rank)))


def mma_operand_to_linear(
    layout: DotOperandLayout, parent: NvidiaMmaLayout, shape: Ints, version: Version
) -> LinearLayout:
    """The layout of operand A (M x K) or B (K x N) of an instruction that accumulates in `parent`.

    A lane holds `k_width` neighbouring elements of its row, and as many one core matrix further along K (but for the
    instruction of 8 rows, mma.m8n8k4 of f64). Warps that differ only along the accumulator's other dimension hold the
    same elements.
    """
    if parent.version_major == 3 and layout.op_idx == 1:
        raise InputError("wgmma reads its operand B from shared memory only, there is no dot_op layout for it")
    rank = len(shape)
    k_dim = rank - 1 if layout.op_idx == 0 else rank - 2
    outer_dim = 2 * rank - 3 - k_dim
    names = dim_names(rank)
    k_name, outer_name = names[k_dim], names[outer_dim]
    is_f64 = parent.version_major == 2 and parent.instr_shape[-2] == CORE_ROWS and version >= F64_OPERANDS_SINCE
    along_k = 1 if is_f64 else 2
    # A has the rows of the accumulator, B its 8 columns.
    along_outer = 2 if layout.op_idx == 0 and not is_f64 else 1
    tile = (
        LinearLayout.identity_1d(layout.k_width, REGISTER, k_name)
        * LinearLayout.identity_1d(LANES_PER_ROW, LANE, k_name)
        * LinearLayout.identity_1d(CORE_ROWS, LANE, outer_name)
        * LinearLayout.identity_1d(along_outer, REGISTER, outer_name)
        * LinearLayout.identity_1d(along_k, REGISTER, k_name)
    )
    warps = identity_nd(WARP, parent.warps_per_cta, _warp_order(parent, rank), broadcast=(k_dim,))
    tile = (tile * warps).transpose_outs(dim_names(rank))
    order = (k_dim, outer_dim, *reversed(range(rank - 2)))
    return cover(tile, without_k(parent.cga_layout, k_dim), shape, REGISTER, order)


def without_k(cga_layout: Bases, k_dim: int) -> Bases:
    """The accumulator's CTA bases for an operand: CTAs that differ only along `k_dim` hold the same elements."""
    return tuple(tuple(0 if dim == k_dim else value for dim, value in enumerate(basis)) for basis in cga_layout)


def _warp_order(layout: NvidiaMmaLayout, rank: int) -> Ints:
    """Dimensions along which warps advance, fastest first: a wgmma warp group of four warps is stacked along M."""
    return tuple(range(rank)) if layout.version_major == 3 else tuple(reversed(range(rank)))
