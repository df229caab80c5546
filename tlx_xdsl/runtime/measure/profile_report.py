"""Report of what `kernel.profile` finds of a launch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import Literal, TypeAlias

from tlx_xdsl.addresses.work import Work
from tlx_xdsl.backend import MOST_REGISTERS, KernelMetadata, KernelResources
from tlx_xdsl.backend.limits import Occupancy
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.targets import Target
from tlx_xdsl.timing.timeline import Timeline

Source: TypeAlias = Literal["measured", "estimated"]


@dataclass(frozen=True)
class Profile:
    """A launch of a kernel in figures; `str(profile)` is the report."""

    kernel: str
    device: str
    """The GPU by its name, or the target."""
    source: Source
    """Whether times were measured, or are those of a model."""
    milliseconds: tuple[float, ...]
    """Of each launch, or the one that is estimated."""
    programs: int
    flops: float
    """Operations of a launch: those that the caller gives, else those of its matrix products."""
    bytes: float | None
    """Bytes that a launch must move to or from memory, as the caller gives them."""
    work: Work
    """What programs do: their accesses to global memory count each time."""
    metadata: KernelMetadata
    resources: KernelResources | None
    """None where stock Triton is not installed: nothing was compiled to a binary."""
    occupancy: Occupancy | None
    estimate: Estimate
    target: Target
    timeline: Timeline | None = None
    """What warps of a few CTAs have done, where it was asked for."""

    @property
    def median(self) -> float:
        """The median of the times, in milliseconds."""
        return statistics.median(self.milliseconds)

    @property
    def spread(self) -> float:
        """Return how far 80 % and 20 % of the times lie apart, as a share of the median."""
        if len(self.milliseconds) < 2:
            return 0.0
        cuts = statistics.quantiles(self.milliseconds, n=5, method="inclusive")
        return (cuts[-1] - cuts[0]) / self.median

    @property
    def tflops(self) -> float:
        """10^12 operations in a second."""
        return self.flops / self.median * 1e-9

    @property
    def gigabytes(self) -> float | None:
        """10^9 bytes in a second, of `bytes`."""
        return None if self.bytes is None else self.bytes / self.median * 1e-6

    def rows(self) -> dict[str, str]:
        """The report, line by line."""
        rows = {"kernel": f"{self.kernel}, {self.programs:,} program{'s' * (self.programs != 1)}", "GPU": self.device}
        if self.source == "measured":
            count = len(self.milliseconds)
            rows["time"] = f"{self.median:.4g} ms, median of {count} launches; 20 to 80 % lie {self.spread:.1%} apart"
        else:
            rows["time"] = f"{self.median:.4g} ms, estimated for {peaks_of(self.target).name}, not measured"
        waves = f"{self.estimate.waves} wave{'s' * (self.estimate.waves != 1)}"
        rows["roofline"] = f"{self.estimate.milliseconds:.4g} ms in {waves}, bound by {self.estimate.bound}"
        if self.flops:
            rows["products"] = f"{self.flops:.4g} operations, {self.tflops:,.1f} TFLOP/s"
        if self.bytes is not None:
            rows["memory"] = f"{self.bytes:.4g} bytes, {self.gigabytes:,.1f} GB/s"
        read, written = self.work.read_bytes, self.work.written_bytes
        rows["accesses"] = f"{read:.4g} bytes read and {written:.4g} written by programs, caches included"
        if self.work.unknown_loops:
            rows["accesses"] += f"; {len(self.work.unknown_loops)} loops of unknown length count once"
        if self.resources is not None:
            shared = self.metadata.shared + self.resources.static_shared_bytes
            spilled = max(self.resources.spill_store_bytes, self.resources.spill_load_bytes)
            rows["binary"] = (
                f"{self.resources.registers} registers, {spilled} B spilled, {shared:,} B of shared memory, "
                f"{self.metadata.num_warps} warps"
            )
        else:
            rows["binary"] = "none: stock Triton is not installed"
        if self.occupancy is not None:
            rows["occupancy"] = str(self.occupancy)
        if self.timeline is not None:
            rows["timeline"] = f"{len(self.timeline.tracks)} warps; {self.timeline.notes[0]}"
        return rows

    def __str__(self) -> str:
        """Return the report."""
        rows = self.rows()
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())

    def _repr_html_(self) -> str:
        rows = (f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in self.rows().items())
        return f"<table>{''.join(rows)}</table>"


# --- estimates --------------------------------------------------------------------------------------------------------
#
# The time that a launch should take: a roofline over waves of programs, for ranking where nothing can be measured.
#
# A multiprocessor works on as many programs at once as fit (`backend/occupancy.py`), each wave until its matrix
# products and its reads and writes are done, whichever takes longer. That orders tiles by what they move and by how
# well they fill the GPU. It knows nothing of latency, bank conflicts, or how deep a pipeline is: an estimate is no
# measurement.


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a GPU (NVIDIA's data sheets)."""

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
    """Estimate of a launch by a model."""

    milliseconds: float
    waves: int
    bound: str
    """What takes longest: `tensor cores` or `memory`."""


def peaks_of(target: Target) -> Peaks:
    """Return what the GPU of a target can do; where that is not known, what an H200 can."""
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
