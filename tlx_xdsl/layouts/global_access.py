"""Accesses of a warp to global memory: the width of its accesses, and how many sectors they touch.

Global memory moves in sectors of 32 bytes, four to a line of 128 bytes (CUDA C++ Programming Guide, "Device Memory
Accesses"). What a request touches of a sector costs the whole sector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .conversion.distributed import distributed_to_linear
from .conversion.tiling import LANE, REGISTER, WARP
from .encodings import DistributedLayout, Ints
from .f2 import Elimination
from .linear_layout import log2
from .shared_access import MAX_ACCESS_BITS

SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """The cost for a warp to move its part of a tensor between registers and global memory."""

    width_bits: int
    """Bits that a lane moves with one instruction."""
    instructions: int
    """Instructions, each a request, that a warp issues."""
    sectors: int
    """Sectors that one request touches at least; a run of elements that starts inside a sector touches one more."""
    useful_bytes: int
    """Different bytes that one request asks for."""

    @property
    def efficiency(self) -> float:
        """Useful bytes divided by the bytes of the sectors."""
        return self.useful_bytes / (self.sectors * SECTOR_BYTES)

    def __str__(self) -> str:
        """One line in words and numbers."""
        return (
            f"{self.width_bits} bits per lane, {self.sectors} sectors per request, "
            f"{self.efficiency:.0%} of their bytes used"
        )


@lru_cache(maxsize=4096)
def global_access(
    layout: DistributedLayout,
    shape: Ints,
    element_bits: int,
    *,
    contiguity: int,
    alignment: int,
    mask_constancy: int | None = None,
    dim: int = -1,
) -> GlobalAccess:
    """The cost of a load or store of a tensor of `shape` with `layout` at pointers, one per element.

    Along dimension `dim` each `contiguity` (a power of two) elements, from a multiple of it on, are neighbours in
    memory, and their first byte lies at a multiple of `alignment` bytes (a power of two); nothing is known about
    different such runs, so that they are taken to touch different sectors. `mask_constancy` is the number of elements
    in such a row that one value of the mask covers.
    Raises ValueError if the layout does not fit the shape.
    """
    linear = distributed_to_linear(layout, shape)
    dim %= len(shape)
    unit = max(8, element_bits) // 8
    limit = min(MAX_ACCESS_BITS // (8 * unit), contiguity, max(1, alignment // unit), mask_constancy or contiguity)
    registers = [basis for basis in linear.bases_of(REGISTER) if any(basis)]
    others = [*linear.bases_of(LANE), *linear.bases_of(WARP)]
    vector = _vector_elements(registers, others, dim, max(1, limit))
    lanes = [*registers[: log2(vector)], *linear.bases_of(LANE)]
    run = contiguity * unit
    touched = [_element(basis, dim, shape, contiguity) * unit for basis in lanes]
    # A run that is shorter than a sector has one for itself.
    sectors = [(each // run * max(run, SECTOR_BYTES) + each % run) // SECTOR_BYTES for each in touched]
    return GlobalAccess(
        8 * unit * vector,
        1 << (len(registers) - log2(vector)),
        1 << Elimination.of(sectors).rank,
        unit << Elimination.of(touched).rank,
    )


def _element(basis: Ints, dim: int, shape: Ints, contiguity: int) -> int:
    """The number of an element if runs followed each other: the place in its run in the lowest bits."""
    runs = basis[dim] // contiguity
    size = max(1, shape[dim] // contiguity)
    for other, coordinate in enumerate(basis):
        if other != dim:
            runs += coordinate * size
            size *= shape[other]
    return runs * contiguity + basis[dim] % contiguity


def _vector_elements(registers: list[Ints], others: list[Ints], dim: int, limit: int) -> int:
    """The most elements, at most `limit`, along `dim` that stand in the first registers, in order.

    Stock Triton keeps the order of registers here, unlike for shared memory.
    """
    for bits in range(log2(limit), 0, -1):
        held = [tuple(1 << bit if d == dim else 0 for d in range(len(basis))) for bit, basis in enumerate(registers)]
        aligned = not any(basis[dim] & ((1 << bits) - 1) for basis in (*registers[bits:], *others))
        if len(registers) >= bits and registers[:bits] == held[:bits] and aligned:
            return 1 << bits
    return 1
