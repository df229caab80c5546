"""Clusters for long normalised rows, and the launches of their kernels, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..calls.launching import Launch, multiprocessors
from ..calls.operands import Operand, Rows
from .norm_cluster_backward import norm_backward_cluster_rows
from .norm_cluster_rows import norm_cluster_rows

CLUSTERS = {2: 66, 4: 30, 8: 15, 16: 7}
"""Clusters of so many CTAs that 132 multiprocessors run at once (`gemm/division` says where from)."""

PIECE_BYTES = {False: (1 << 15,), True: (1 << 14, 1 << 15)}
"""What a CTA has of a row, forward and backward: the first of which 16 hold it."""

MAX_BLOCK = {False: 1 << 14, True: 1 << 13}
"""Elements of a piece at most: backward registers hold two sums for each."""

MAX_STAGES = {False: 4, True: 6}
"""Rows that a CTA has under way at most, forward and backward: with more, forward was up to 3 % slower (H200)."""

SHARED_BYTES = 227 * 1024
"""Shared memory of a CTA."""

OTHER_BYTES = {False: 2048, True: 18 * 1024}
"""What of it barriers, sums and numbers take, forward and backward; there the sums of dw and db change their layout."""

SUM_WARPS, SUM_REGISTERS = {False: 8, True: 4}, {False: 72, True: 128}
"""Warps of the task that makes sums, and registers of a thread of it, forward and backward."""

WARPS = 8
"""Warps of the task that writes."""


@dataclass(frozen=True)
class Division:
    """A row for a cluster of `ranks` CTAs, `block` elements for each; `stages` rows are under way."""

    ranks: int
    block: int
    stages: int

    def clusters(self, given: Operand, rows: Rows) -> int:
        """Clusters of a launch."""
        return max(1, min(rows.count, multiprocessors(given) * CLUSTERS[self.ranks] // 132))


@dataclass(frozen=True)
class ClusterForm:
    """Constants of a kernel of clusters: the division of a row, and what is computed.

    `even` says that pieces of all CTAs are a row; `unit` and `centred` are those of `norm_rows`.
    """

    block: int
    ranks: int
    stages: int
    unit: int
    even: bool
    centred: bool
    backward: bool
    with_bias: bool

    @property
    def sums(self) -> int:
        """Sums of a piece."""
        return (1 + self.centred) * (1 + self.backward)

    @property
    def numbers(self) -> int:
        """Numbers of a row."""
        return 4 if self.backward else 2

    @property
    def warps(self) -> int:
        """Warps of the task that writes."""
        return WARPS

    @property
    def sum_warps(self) -> int:
        """Warps of the task that makes sums."""
        return SUM_WARPS[self.backward]

    @property
    def sum_registers(self) -> int:
        """Registers of a thread of it."""
        return SUM_REGISTERS[self.backward]


def division(given: Operand, rows: Rows, unit: int, pieces: tuple[int, int], *, backward: bool) -> Division | None:
    """Return how clusters divide rows; of `pieces` a CTA loads the first for each row, and holds the second for all.

    None for rows that no cluster has, or that do not begin where bulk copies can.
    """
    loaded, held = pieces
    if unit == 1:
        return None
    for size in PIECE_BYTES[backward]:
        block = size // given.element_bytes
        left = SHARED_BYTES - OTHER_BYTES[backward] - held * size
        stages = min(left // (loaded * size), MAX_STAGES[backward])
        ranks = next((ranks for ranks in CLUSTERS if ranks * block >= rows.columns), None)
        if ranks is not None and block <= min(rows.columns, MAX_BLOCK[backward]) and stages > 1:
            return Division(ranks, block, stages)
    return None


def launch(
    given: Operand, rows: Rows, divided: Division, values: Mapping[str, Any], constants: Mapping[str, Any],
    aligned: tuple[str, ...], *, backward: bool,
) -> Launch:  # fmt: skip
    """The launch of a kernel of clusters."""
    even, with_bias = divided.ranks * divided.block == rows.columns, constants.get("WITH_BIAS", False)
    form = ClusterForm(
        divided.block, divided.ranks, divided.stages, constants["UNIT"], even, constants["CENTRED"], backward, with_bias
    )
    return Launch.of(
        norm_backward_cluster_rows if backward else norm_cluster_rows,
        (divided.clusters(given, rows) * divided.ranks,),
        {**values, "ROW_COUNT": rows.count},
        {"FORM": form},
        given.device,
        aligned=aligned,
        num_warps=WARPS,
        cluster=(divided.ranks, 1, 1),
    )
