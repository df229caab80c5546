"""Constants of the clock, one table a chip.

Cycles are those of a multiprocessor. Each constant says where it comes from: `measured` by the microbenchmarks under
`benchmarks/clock/` (card and date in the committed record there), a paper, or NVIDIA's data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """A GPU as the clock knows it."""

    name: str
    multiprocessors: int
    hertz: float
    """The clock that a launch is taken to run at where none was measured."""
    validated: bool
    """False for what no run of ours was compared with."""
