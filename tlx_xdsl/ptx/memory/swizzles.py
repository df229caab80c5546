"""Swizzles of shared memory: units of 16 bytes are permuted by higher bits of their address.

PTX ISA, "Tensor swizzling modes": with a width of 32, 64 or 128 bytes, the lowest 1, 2 or 3 bits of the number of the
unit are flipped by the bits from 7 on.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

WIDTHS = (16, 32, 64, 128)
"""Bytes of a row that is permuted, by the mode: none, 32, 64 and 128 bytes."""


def swizzled(addresses: NDArray[Any], mode: int) -> NDArray[Any]:
    """The address in shared memory of each byte or unit that a tile has at `addresses`."""
    if mode == 0:
        return addresses
    return addresses ^ (addresses >> 7 & ((1 << mode) - 1)) << 4
