"""C = A @ (B * scale_b) with A in bf16 or fp16 and B in 8-bit floats: the half of `scaled_gemm` for weights alone.

The weights are converted to the type of A where they are multiplied (`mixed_device`), which is exact; sums
are in f32. A lies by rows, B by columns. The scale of B, in any order of memory, is

- one element,
- (1, N): a number for each column,
- (K / 128, N) or (K / 128, N / 128): a number for each 128 rows of each column, or of each 128 columns,

with numbers of blocks rounded up.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tlx_xdsl.kernels.calls.launching import Launch, check_hopper, multiprocessors
from tlx_xdsl.kernels.calls.operands import Operand, check_places

from ..device import sizes_of
from ..tiles import SHARED_BYTES
from .config import OTHER_BYTES, STEP, ScaledConfig
from .mixed_device import scaled_mixed
from .operands import NAME, SOURCES, descriptor, scales

BLOCK_N = 128
"""Columns of a tile of C: 64 for each consumer, the rows of one wgmma."""

_WEIGHT_BYTES = BLOCK_N * STEP * 2
"""Shared memory through which converted weights get to the threads that multiply them."""

_ROWS = (16, 32, 64, 128)
"""Rows of tiles of C."""


def mixed_config(m: int, out_bytes: int) -> ScaledConfig:
    """The tile for C with so many rows and bytes of an element: the fewest rows that hold all, with 2 to 8 stages."""
    block_m = next((rows for rows in _ROWS if rows >= m), _ROWS[-1])
    room = SHARED_BYTES - OTHER_BYTES - _WEIGHT_BYTES - block_m * BLOCK_N * out_bytes
    stages = min(8, room // ((2 * block_m + BLOCK_N) * STEP))
    return ScaledConfig("cooperative", block_m, BLOCK_N, stages, split_columns=True)


def mixed_launch(
    left: Operand,
    right: Operand,
    scale_a: Any,
    scale_b: Any,
    target: Operand,
    config: ScaledConfig | None,
    programs: int | None,
) -> Launch:
    """The launch of a product of 16-bit and 8-bit elements. Raises as `scaled_gemm` does."""
    if scale_a is not None:
        raise ValueError(f"{NAME}: argument 'scale_a': expected None where 'a' has 16 bits, got a scale")
    by_columns = scales("scale_b", scale_b)
    check_places((left, right, by_columns, target))
    (m, k), n = left.shape, right.shape[1]
    columns_per_scale = _columns_per_scale(by_columns, n, k)
    check_hopper(NAME, left)
    processors = multiprocessors(left)
    chosen = config or mixed_config(m, target.element_bytes)
    if (chosen.schedule, chosen.block_n, chosen.split_columns) != ("cooperative", BLOCK_N, True):
        raise ValueError(f"{NAME}: argument 'config': expected split columns and {BLOCK_N} of them, got {chosen}")
    one_scale = prod(by_columns.shape) == 1
    tiles = chosen.tiles(m, n)
    arguments = {
        "a_desc": descriptor(left, (chosen.block_m, STEP)),
        "b_desc": descriptor(right, (chosen.columns, STEP), "columns"),
        "c_desc": descriptor(target, (chosen.block_m, chosen.columns)),
        "scale_b": scale_b,
        "sizes": sizes_of((m, n, k), tiles, chosen.group_m),
        "strides": (0, 0) if one_scale else by_columns.strides,
    }
    constexprs = {
        "BLOCK_M": chosen.block_m,
        "NUM_STAGES": chosen.stages,
        "GROUP_M": chosen.group_m,
        "COLUMNS_PER_SCALE": columns_per_scale,
        "PER_BLOCK": not one_scale and by_columns.shape[0] > 1,
    }
    grid = (min(prod(tiles), programs or processors),)
    return Launch(scaled_mixed, grid, arguments, constexprs, left.device, sources=SOURCES)


def _columns_per_scale(scale_b: Operand, n: int, k: int) -> int:
    """Return how many columns of B share a scale. Raises ValueError for another shape than those of this module."""
    if prod(scale_b.shape) == 1:
        return 1
    steps, blocks = -(-k // STEP), -(-n // STEP)
    if scale_b.shape in ((1, n), (steps, n)):
        return 1
    if scale_b.shape == (steps, blocks):
        return STEP
    raise ValueError(
        f"{scale_b.what}: expected one element or the shape (1, {n}), ({steps}, {n}) or ({steps}, {blocks}), "
        f"got {scale_b.shape}"
    )
