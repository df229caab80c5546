"""Instructions on bits of integers (PTX ISA, "Integer Arithmetic", "Logic and Shift", "prmt")."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Dtype
from ..elementwise import multiply_high


def high_half(a: Array, b: Array, dtype: Dtype) -> Array:
    """The high half of a product."""
    signed = np.dtype(f"i{dtype.itemsize}")
    return multiply_high(a.view(signed), b.view(signed), signed, is_signed=dtype.kind == "i").view(dtype)


def divide(a: Array, b: Array) -> Array:
    """The quotient, rounded towards zero; by zero, all bits are set."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, ~np.zeros_like(a), quotient)


def remainder(a: Array, b: Array) -> Array:
    """The remainder with the sign of the dividend; by zero, the dividend."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def shift_left(a: Array, by: Array, dtype: Dtype) -> Array:
    """Shift left; nothing is left by the width or more."""
    width = 8 * dtype.itemsize
    return np.where(by >= width, dtype.type(0), a << np.minimum(by, width - 1).astype(dtype))


def shift_right(a: Array, by: Array, dtype: Dtype) -> Array:
    """Shift right; the sign is left by the width or more, or nothing."""
    width = 8 * dtype.itemsize
    shifted = a >> np.minimum(by, width - 1).astype(dtype)
    return shifted if dtype.kind == "i" else np.where(by >= width, dtype.type(0), shifted)


def funnel(a: Array, b: Array, by: Array, *, is_left: bool, wraps: bool) -> Array:
    """32 bits of the 64 of `b` and `a`, shifted: the high ones to the left, the low ones to the right."""
    count = (by & np.uint32(31) if wraps else np.minimum(by, np.uint32(32))).astype(np.uint64)
    whole = b.astype(np.uint64) << np.uint64(32) | a
    return (whole << count >> np.uint64(32) if is_left else whole >> count).astype(np.uint32)


def lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Any function of three bits: bit 4a + 2b + c of the table."""
    chosen = int(table[0])
    result = np.zeros_like(a)
    for row in range(8):
        if chosen >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def permute(a: Array, b: Array, selector: Array) -> Array:
    """Four of the eight bytes of `b` and `a`, or the sign of one in all its bits."""
    source = np.concatenate((bytes_of(a), bytes_of(b)), -1)
    choice = selector[:, None] >> np.array([0, 4, 8, 12], np.uint32) & np.uint32(15)
    picked = np.take_along_axis(source, (choice & np.uint32(7)).astype(np.int64), -1)
    signs = np.where(picked & np.uint8(0x80), np.uint8(0xFF), np.uint8(0))
    return np.ascontiguousarray(np.where(choice & np.uint32(8), signs, picked)).view(np.uint32).reshape(-1)


def bytes_of(values: Array) -> Array:
    """The bytes of each number, the lowest one first."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.dtype.itemsize)


def _field(position: Array, length: Array, dtype: Dtype) -> tuple[Array, Array]:
    """The first bit of a field and a mask of its length."""
    width = 8 * dtype.itemsize
    held = np.dtype(f"u{dtype.itemsize}")
    size = length & np.uint32(255)
    ones: Array = (held.type(1) << np.minimum(size, width - 1).astype(held)) - held.type(1)
    return position & np.uint32(255), np.where(size >= width, ~held.type(0), ones)


def extract(a: Array, position: Array, length: Array, dtype: Dtype) -> Array:
    """The bits of a field; of a signed type, with its highest bit (at most that of the number) in front."""
    width, held = 8 * dtype.itemsize, np.dtype(f"u{dtype.itemsize}")
    first, mask = _field(position, length, dtype)
    found = shift_right(a, first, dtype).view(held) & mask
    if dtype.kind == "u":
        return found
    size = np.minimum(length & np.uint32(255), width)
    last = np.minimum(np.maximum(first.astype(np.int64) + size - 1, 0), width - 1)
    negative = (a.view(held) >> last.astype(held) & held.type(1) != 0) & (size > 0)
    return np.where(negative, found | ~mask, found).view(dtype)


def insert(a: Array, b: Array, position: Array, length: Array, dtype: Dtype) -> Array:
    """`b` with the low bits of `a` in a field."""
    first, mask = _field(position, length, dtype)
    place = shift_left(mask, first, dtype)
    return b & ~place | shift_left(a, first, dtype) & place


def reverse(a: Array, dtype: Dtype) -> Array:
    """The bits in the opposite order."""
    turned = np.packbits(np.unpackbits(bytes_of(a), axis=-1), axis=-1, bitorder="little")
    return np.ascontiguousarray(turned[:, ::-1]).view(dtype).reshape(-1)
