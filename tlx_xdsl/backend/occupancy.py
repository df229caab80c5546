"""How many CTAs of a kernel a multiprocessor holds at once, and what keeps it from holding more."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.targets import Target

from .limits import REGISTERS
from .result import KernelMetadata, KernelResources

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
_CTAS = {86: 16, 87: 16, 89: 24, 120: 24, 121: 24}
"""CTAs that a multiprocessor holds, by compute capability; 32 on the others."""
_WARP = 32
_SYSTEM_BYTES = 1024
"""Shared memory that the system takes of each CTA, from sm_80 on (the guide's "Shared Memory" of each capability)."""
_WARP_UNIT = 256
"""Registers that a warp gets at a time (CUDA's occupancy calculator, "register allocation unit size")."""


@dataclass(frozen=True)
class Occupancy:
    """CTAs that are resident on one multiprocessor."""

    ctas: int
    limit: str
    """What there is too little of for one more: `threads`, `registers`, `shared memory`, or `CTAs`."""
    warps: int
    most_warps: int

    @property
    def share(self) -> float:
        """Resident warps as a share of the most that there can be."""
        return self.warps / self.most_warps

    def __str__(self) -> str:
        """Return the figures in words."""
        ctas = f"{self.ctas} CTA{'s' * (self.ctas != 1)}"
        return f"{ctas} with {self.warps} of {self.most_warps} warps ({self.share:.0%}), limited by {self.limit}"


def occupancy_of(metadata: KernelMetadata, resources: KernelResources, target: Target) -> Occupancy:
    """The occupancy of a binary on a target; registers are those at the launch, before tasks trade theirs."""
    warps = max(1, metadata.num_warps)
    registers = warps * -(-resources.registers * _WARP // _WARP_UNIT) * _WARP_UNIT
    shared = metadata.shared + resources.static_shared_bytes + _SYSTEM_BYTES
    most_warps = target.resident_threads // _WARP
    limits = {
        "CTAs": _CTAS.get(target.capability, 32),
        "threads": most_warps // warps,
        "registers": REGISTERS // registers if registers else most_warps,
        # A multiprocessor has what one CTA may have, and the system's part.
        "shared memory": (target.shared_bytes + _SYSTEM_BYTES) // shared,
    }
    limit = min(limits, key=lambda each: limits[each])
    return Occupancy(limits[limit], limit, limits[limit] * warps, most_warps)
