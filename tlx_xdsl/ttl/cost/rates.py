"""Cycles of engines and networks as the vendor has published them; what it has not has none here.

No number is ours, and no estimate that is made of them was compared with a card.
"""

from __future__ import annotations

from dataclasses import dataclass

MATRIX_ENGINE = "tt-metal, tech_reports/matrix_engine/matrix_engine.md"
MOVEMENT = "tt-metal, tests/tt_metal/tt_metal/data_movement/documentation/ideal_performance.md"
BANKS = "tt-metal, tech_reports/Blackhole/BlackholeBringUpProgrammingGuide.md"
SOURCES = (MATRIX_ENGINE, MOVEMENT, BANKS)

FIDELITIES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
"""How often the matrix engine runs an operation (`MATRIX_ENGINE`)."""


@dataclass(frozen=True)
class TileRate:
    """Cycles of the matrix engine for a tile of 32x32."""

    cycles: int
    by_fidelity: bool
    """Whether they are for LoFi, and as many times that for others."""


# 8x16 by 16x16 in a cycle: 32 * 32 * 32 / (8 * 16 * 16).
_PRODUCT = TileRate(16, True)
# 8x16 elements in a cycle.
_SUM, _ELEMENTS = TileRate(8, False), TileRate(8, True)
# 16x16 in a cycle.
_REDUCTION, _MAXIMUM = TileRate(4, True), TileRate(4, False)

MATRIX: dict[str, TileRate | None] = {
    "matmul_tiles": _PRODUCT,
    "add_tiles": _SUM,
    "sub_tiles": _SUM,
    "mul_tiles": _ELEMENTS,
    "reduce_tile": _REDUCTION,
    "unary_bcast": None,
    "transpose_wh_tile": None,
}
"""Functions of the matrix engine; None where there is no number."""
OPERANDS = {"matmul_tiles": 2, "add_tiles": 2, "sub_tiles": 2, "mul_tiles": 2, "reduce_tile": 2}
"""Tiles that a function takes from circular buffers, so that they are unpacked; others take one."""


def matrix_cycles(name: str, fidelity: str, *, is_max: bool = False) -> int | None:
    """The cycles of a function of the matrix engine for one tile; None where there is no number."""
    rate = _MAXIMUM if is_max else MATRIX[name]
    return None if rate is None else rate.cycles * (FIDELITIES[fidelity] if rate.by_fidelity else 1)


@dataclass(frozen=True)
class ChipRates:
    """Bytes in a cycle of one core's transfers, alone and of the best size (`MOVEMENT`), and banks (`BANKS`)."""

    dram_read: int
    dram_write: int
    one_to_one: int
    multicast: int
    banks: int


CHIPS = {
    "wormhole": ChipRates(22, 21, 29, 15, 12),
    "blackhole": ChipRates(33, 34, 60, 24, 8),
}
