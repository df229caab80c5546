"""Accesses of a warp to shared memory: the width of an access, its wavefronts and its bank conflicts.

Shared memory has 32 banks of 4 bytes; successive words lie in successive banks. One wavefront serves any number of
lanes as long as no bank has to give two different words; lanes that want one word share it (CUDA C++ Programming
Guide, "Shared Memory", of compute capability 5.x and later). An access of 8 bytes per lane is served half a warp after
the other, one of 16 bytes a quarter of a warp after the other, so they take at least 2 and 4 wavefronts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .address import padded_place
from .conversion.distributed import distributed_to_linear
from .conversion.shared import buffer_rank, shared_to_linear
from .conversion.tiling import LANE, OFFSET, REGISTER, WARP, dim_names
from .encodings import DistributedLayout, Ints, PaddedSharedLayout, SharedLayout
from .f2 import Elimination, image
from .linear_layout import log2

BANKS = 32
WORD_BYTES = 4
"""Bytes of a bank's word."""

MAX_ACCESS_BITS = 128
"""Widest access of one lane (PTX ISA, "ld": vectors of 128 bits)."""

WARP_BITS = 5
"""Bits of a lane's number."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """The cost for one warp to move its part of a tensor between registers and shared memory."""

    instruction: str
    """`vector` for ld.shared and st.shared, or the matrix instruction: `ldmatrix`, `stmatrix.trans`, ..."""
    width_bits: int
    """Bits that a lane moves with one instruction."""
    instructions: int
    """Instructions that a warp issues."""
    wavefronts: int
    """Passes through the banks that these take."""
    minimum: int
    """Passes that instructions of this width take without conflicts."""

    @property
    def ways(self) -> float:
        """Wavefronts divided by their minimum: 1 is free of conflicts."""
        return self.wavefronts / self.minimum

    @property
    def conflicts(self) -> str:
        """The bank conflicts in words."""
        if self.wavefronts == self.minimum:
            return "no bank conflicts"
        return f"{self.ways:g}-way bank conflicts"

    def __str__(self) -> str:
        """One line in words and numbers."""
        kind = "" if self.instruction == "vector" else f"{self.instruction}, "
        waves = str(self.minimum) if self.wavefronts == self.minimum else f"{self.wavefronts} instead of {self.minimum}"
        return f"{kind}{self.width_bits} bits per lane, {self.conflicts} ({waves} wavefronts per warp)"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of the elements of a warp, in elements from the start of a buffer: one offset per bit of the index.

    Registers that hold copies do not occur.
    """

    registers: Ints
    lanes: Ints
    warps: Ints

    @property
    def others(self) -> Ints:
        """The offsets of lanes and warps."""
        return (*self.lanes, *self.warps)


@lru_cache(maxsize=4096)
def shared_access(
    layout: DistributedLayout, buffer: SharedLayout, shape: Ints, element_bits: int, alloc_shape: Ints | None = None
) -> SharedAccess:
    """The cost of a load or store of a tensor of `shape` with `layout`, from or to a buffer with the layout `buffer`.

    `alloc_shape` is the shape of the allocation that the buffer is a part of, if it is a part. The buffer is taken to
    start at an address that the access is aligned at. A store moves what a load does: of lanes and warps that hold
    copies one stores.
    Raises ValueError if a layout does not fit the shape.
    """
    offsets = element_offsets(layout, buffer, shape, alloc_shape)
    limit = max(1, MAX_ACCESS_BITS // _stored_bits(element_bits))
    if isinstance(buffer, PaddedSharedLayout):
        # A vector lies between two paddings, and is aligned only if these keep the alignment.
        vector = vector_elements(offsets, min(limit, *buffer.intervals, *buffer.paddings))
        return _padded_access(offsets, buffer, vector, element_bits)
    return linear_access(offsets, vector_elements(offsets, limit), element_bits)


def element_offsets(
    layout: DistributedLayout, buffer: SharedLayout, shape: Ints, alloc_shape: Ints | None = None
) -> Offsets:
    """The offsets in a buffer for registers, lanes and warps of a tensor of `shape`, paddings not counted.

    A buffer may have one dimension more than its layout describes, in front. A part of an allocation begins at a
    multiple of its own size, so that its offsets are those of the allocation's first part, changed by one XOR.
    Raises ValueError if a layout does not fit the shape.
    """
    rank = buffer_rank(buffer)
    whole = shape if alloc_shape is None else alloc_shape
    memory = shared_to_linear(buffer, whole[len(whole) - rank :])
    inverse = memory.right_inverse()
    names = dim_names(rank)

    def offset(coordinates: Ints) -> int:
        tiles = coordinates[: len(coordinates) - rank]
        place = inverse.apply(dict(zip(names, coordinates[len(tiles) :], strict=True)))
        return (tiles[0] if tiles else 0) * memory.in_sizes[OFFSET] + place[OFFSET]

    bases = distributed_to_linear(layout, shape).bases
    found = {name: tuple(offset(basis) for basis in bases[name]) for name in (REGISTER, LANE, WARP)}
    return Offsets(tuple(each for each in found[REGISTER] if each), found[LANE], found[WARP])


def vector_elements(offsets: Offsets, limit: int) -> int:
    """The most elements, at most `limit`, that one instruction moves: they lie in successive registers and places.

    Registers may be taken in any order; no other index may lead into the middle of a vector.
    """
    size = limit
    while size > 1:
        units = {1 << bit for bit in range(log2(size))}
        rest = [each for each in offsets.registers if each not in units]
        if units <= set(offsets.registers) and not any(each & (size - 1) for each in (*rest, *offsets.others)):
            return size
        size //= 2
    return 1


def linear_access(offsets: Offsets, vector: int, element_bits: int) -> SharedAccess:
    """The cost of an access in vectors of `vector` elements to a buffer without padding.

    The words that the lanes of one pass want are a vector space, and so are their banks: each of its banks gives
    2**(difference of the two dimensions) words. Another register or warp changes all addresses by one XOR, which
    permutes the banks.
    """
    unit = _stored_bits(element_bits) // 8
    width = vector * unit
    per_pass = lanes_per_pass(width)
    inside = [1 << bit for bit in range(log2(WORD_BYTES), log2(max(width, WORD_BYTES)))]
    ways = conflict_ways([*(each * unit for each in offsets.lanes[: log2(per_pass)]), *inside])
    instructions = 1 << (len(offsets.registers) - log2(vector))
    minimum = instructions * (1 << WARP_BITS) // per_pass
    return SharedAccess("vector", 8 * width, instructions, minimum * ways, minimum)


def conflict_ways(byte_offsets: Iterable[int]) -> int:
    """Return how many words the busiest bank gives to an access to all sums (XOR) of these byte offsets."""
    words = [each // WORD_BYTES for each in byte_offsets]
    banks = [word % BANKS for word in words]
    return 1 << (Elimination.of(words).rank - Elimination.of(banks).rank)


def lanes_per_pass(width: int) -> int:
    """Lanes of a warp whose accesses of `width` bytes are served together: all, half or a quarter of them."""
    return (1 << WARP_BITS) * WORD_BYTES // max(width, WORD_BYTES)


def wavefronts_of(addresses: Sequence[int], width: int) -> int:
    """Wavefronts of one instruction whose lanes access `width` bytes at these byte addresses."""
    per_pass = lanes_per_pass(width)
    total = 0
    for first in range(0, len(addresses), per_pass):
        words: dict[int, set[int]] = {}
        for address in addresses[first : first + per_pass]:
            for word in range(address // WORD_BYTES, (address + width - 1) // WORD_BYTES + 1):
                words.setdefault(word % BANKS, set()).add(word)
        total += max(map(len, words.values()))
    return total


def _padded_access(offsets: Offsets, buffer: PaddedSharedLayout, vector: int, element_bits: int) -> SharedAccess:
    """The cost for the worst warp: paddings are added, not XORed, so that every instruction is looked at."""
    unit = _stored_bits(element_bits) // 8
    width = vector * unit
    starts = [each for each in offsets.registers if each >= vector or each & (each - 1)]
    worst = 0
    for warp in _sums(offsets.warps):
        total = 0
        for register in _sums(starts):
            places = (padded_place(buffer, warp ^ register ^ lane) for lane in _sums(offsets.lanes))
            total += wavefronts_of([place * unit for place in places], width)
        worst = max(worst, total)
    instructions = 1 << len(starts)
    return SharedAccess(
        "vector", 8 * width, instructions, worst, instructions * (1 << WARP_BITS) // lanes_per_pass(width)
    )


def _sums(bases: Sequence[int]) -> list[int]:
    """The image of every index, in order."""
    return [image(bases, index) for index in range(1 << len(bases))]


def _stored_bits(element_bits: int) -> int:
    """Bits that an element takes in memory: a byte at least."""
    return max(8, element_bits)
