"""The byte of an element of a shared-memory buffer as a formula of its index, for code that computes addresses.

The place of an element is linear over the bits of its index: each bit of the index flips some bits of the place. Bits
that move by the same distance are gathered, so that the formula is a handful of terms joined by exclusive or.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tlx_xdsl.errors import InputError

from .conversion.shared import shared_to_linear
from .conversion.tiling import OFFSET, dim_names
from .encodings import Ints, PaddedSharedLayout, SharedLayout
from .linear_layout import log2


@dataclass(frozen=True, slots=True)
class OffsetTerm:
    """`(index[dim] & mask) << shift`, or `>> -shift` where `shift` is negative."""

    dim: int
    mask: int
    shift: int

    def value(self, index: int) -> int:
        """The bits that the term contributes."""
        bits = index & self.mask
        return bits << self.shift if self.shift >= 0 else bits >> -self.shift


@lru_cache(maxsize=1024)
def offset_terms(layout: SharedLayout, shape: Ints, element_bits: int) -> tuple[OffsetTerm, ...]:
    """The terms whose exclusive or is the byte of an element of a buffer of `shape` elements.

    Raises ValueError for a layout with paddings, elements of less than a byte, or a layout that does not fit `shape`.
    """
    if isinstance(layout, PaddedSharedLayout):
        raise InputError("the place of an element in a padded layout is no linear function of its index")
    if element_bits % 8:
        raise InputError(f"an element of {element_bits} bits has no address")
    place = shared_to_linear(layout, shape).right_inverse()
    names = dim_names(len(shape))

    def byte(dim: int, bit: int) -> int:
        index = dict.fromkeys(names, 0) | {names[dim]: 1 << bit}
        return place.apply(index)[OFFSET] * element_bits // 8

    return terms_of([[byte(dim, bit) for bit in range(log2(size))] for dim, size in enumerate(shape)])


def terms_of(images: Sequence[Sequence[int]]) -> tuple[OffsetTerm, ...]:
    """The terms of a linear function: bit b of its input d flips the bits `images[d][b]` of the result."""
    masks: dict[tuple[int, int], int] = {}
    for dim, bits in enumerate(images):
        for bit, flipped in enumerate(bits):
            for target in range(flipped.bit_length()):
                if flipped >> target & 1:
                    key = (dim, target - bit)
                    masks[key] = masks.get(key, 0) | 1 << bit
    return tuple(OffsetTerm(dim, mask, shift) for (dim, shift), mask in sorted(masks.items()))


def offset_of(terms: Sequence[OffsetTerm], index: Ints) -> int:
    """The byte of element `index`."""
    result = 0
    for term in terms:
        result ^= term.value(index[term.dim])
    return result


def tile_strides(layout: SharedLayout, shape: Ints, tile: Ints, element_bits: int) -> Ints:
    """The step from tile to tile along each dimension, counted in tiles in the order in which they lie in memory.

    Each tile of `tile` elements then lies as a buffer of its own with the same layout would. A dimension that one tile
    fills has stride 0.

    Raises ValueError where tiles are interleaved, or lie otherwise than such a buffer.
    """
    whole, part = (offset_terms(layout, sizes, element_bits) for sizes in (shape, tile))
    tile_bytes = prod(tile) * element_bits // 8
    strides: list[int] = []
    for dim, (size, inner) in enumerate(zip(shape, tile, strict=True)):
        places = [offset_of(whole, _unit(len(shape), dim, 1 << bit)) for bit in range(log2(size))]
        below = [offset_of(part, _unit(len(shape), dim, 1 << bit)) for bit in range(log2(inner))]
        steps = places[len(below) :]
        if places[: len(below)] != below:
            raise InputError("a tile lies otherwise than a buffer of its shape")
        if any(step != steps[0] << number or step % tile_bytes for number, step in enumerate(steps)):
            raise InputError("the elements of a tile do not follow each other in shared memory")
        strides.append(steps[0] // tile_bytes if steps else 0)
    return tuple(strides)


def _unit(rank: int, dim: int, value: int) -> Ints:
    return tuple(value if number == dim else 0 for number in range(rank))
