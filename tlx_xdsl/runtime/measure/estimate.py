"""The time that a launch should take: a roofline over waves of programs, for ranking where nothing can be measured.

A multiprocessor works on as many programs at once as fit (`backend/limits.py`), each wave until its matrix products
and its reads and writes are done, whichever takes longer. That orders tiles by what they move and by how well they fill
the GPU. It knows nothing of latency, bank conflicts, or how deep a pipeline is: an estimate is no measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tlx_xdsl.addresses.work import Work
from tlx_xdsl.backend import MOST_REGISTERS
from tlx_xdsl.backend.limits import Occupancy
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.targets import Target


@dataclass(frozen=True)
class Peaks:
    """What a GPU can do at most (NVIDIA's data sheets)."""

    name: str
    tflops: float
    """Of dense fp16 matrix products."""
    terabytes: float
    """Of its memory, in a second."""


_PEAKS = {
    80: Peaks("A100 80GB SXM", 312, 2.0),
    90: Peaks("H200 SXM", 989, 4.8),
    100: Peaks("B200", 2250, 8.0),
}
_USUAL = 90
_CACHE = 2.5
"""How much faster than memory the L2 cache is taken to be: most tiles are read by several programs."""
_LAUNCH_MS = 0.003
_SPILLING = 7.0
"""How much longer it takes where the accumulators of a product are more than there are registers. Measured on an H200
(2026-11-28, 4096 x 4096 x 4096, tiles of 128 x 256 on 4 warps against 8): 6.2 to 7.5."""


@dataclass(frozen=True)
class Estimate:
    """What a model says of a launch."""

    milliseconds: float
    waves: int
    bound: str
    """What takes longest: `tensor cores` or `memory`."""


def peaks_of(target: Target) -> Peaks:
    """What the GPU of a target can do; where that is not known, what an H200 can."""
    return _PEAKS.get(target.capability, _PEAKS[_USUAL])


def estimated(work: Work, programs: int, occupancy: Occupancy | None, target: Target, num_warps: int) -> Estimate:
    """The time of a launch of so many programs, of so many warps outside of tasks.

    Where occupancy is not known, there is one program at a time on a multiprocessor.
    """
    peaks, resident = peaks_of(target), max(1, occupancy.ctas if occupancy is not None else 1)
    programs = max(1, programs)
    waves = ceil(programs / (target.multiprocessors * resident))
    share = resident * waves / programs * target.multiprocessors
    products = share * work.flops / (peaks.tflops * 1e9)
    moved = share * work.bytes / (peaks.terabytes * _CACHE * 1e9)
    bound = "tensor cores" if products >= moved else "memory"
    spills = _SPILLING if work.accumulator > MOST_REGISTERS * WARP_SIZE * num_warps else 1.0
    return Estimate(max(products, moved) * spills + _LAUNCH_MS, waves, bound)
