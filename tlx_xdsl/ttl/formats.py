"""Data formats of tiles: elements as the unpacker gives them to registers, and as the packer writes them.

Registers have floats as f32, and integers as they are. A float is rounded to nearest, ties to even, when it is packed.

Block floats (`bfp8_b`, `bfp4_b`): 16 neighbours in a row of a face share the largest of their exponents, a byte; the
exponents of all rows come first, then of each element its sign and 7 or 3 bits of the mantissa, whose first bit is not
implied: the number is mantissa * 2 ** (exponent - 127 - 6), or - 2. Of two elements in a byte the first one has the
lower bits. A mantissa is shifted to the shared exponent, rounded to nearest, ties to even, with what is left, and
limited to the largest one; so pack TT-Metalium's host functions. Subnormals are zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from xdsl.ir import Attribute

from tlx_xdsl.element_types import BY_MLIR
from tlx_xdsl.numerics.arrays import Array, Dtype, numpy_type
from tlx_xdsl.numerics.rounding import round_to

from .dialects.ttcore import SHARING, format_of
from .language.tensors import DTYPES

_BLOCK_BITS = {"bfp8_b": 8, "bfp4_b": 4}
_INTEGERS = {"ui32": np.dtype(np.uint32), "ui16": np.dtype(np.uint16)}
_BIAS, _EXPONENT, _FRACTION = 127, 0xFF, 23


@dataclass(frozen=True)
class Format:
    """A data format: `elements` are those of tiles in the order of memory."""

    name: str

    @property
    def block_bits(self) -> int:
        """Bits of an element of a block float, else 0."""
        return _BLOCK_BITS.get(self.name, 0)

    @property
    def storage(self) -> Dtype:
        """The numpy type of elements in memory; bytes for block floats."""
        if self.block_bits:
            return np.dtype(np.uint8)
        return _INTEGERS.get(self.name) or numpy_type(BY_MLIR[self.name])

    @property
    def register(self) -> Dtype:
        """The numpy type of elements in a register."""
        return self.storage if self.is_integer else np.dtype(np.float32)

    @property
    def is_integer(self) -> bool:
        """Return whether elements are integers."""
        return not self.block_bits and self.storage.kind in "iu"

    def bytes_of(self, elements: int) -> int:
        """The bytes of so many elements."""
        if self.block_bits:
            return elements // SHARING + elements * self.block_bits // 8
        return elements * self.storage.itemsize

    def pack(self, elements: Array) -> Array:
        """Elements [..., n] of registers, or of the host, as bytes [..., m]."""
        if self.block_bits:
            return _pack_blocks(elements.astype(np.float32), self.block_bits)
        with np.errstate(over="ignore", invalid="ignore"):
            stored = elements.astype(self.storage) if self.is_integer else round_to(elements, self.storage)
        return np.ascontiguousarray(stored).view(np.uint8)

    def unpack(self, data: Array) -> Array:
        """Bytes [..., m] as elements [..., n] of registers."""
        if self.block_bits:
            return _unpack_blocks(data, self.block_bits)
        return np.ascontiguousarray(data).view(self.storage).astype(self.register)

    def rounded(self, tiles: Array) -> Array:
        """Tiles [..., 32, 32] of registers as they are after a way through memory."""
        if self.register == self.storage:
            return tiles
        if self.block_bits:
            # A row of a tile is two rows of faces.
            elements = tiles.reshape(*tiles.shape[:-2], -1)
            return self.unpack(self.pack(elements)).reshape(tiles.shape)
        return round_to(tiles, self.storage).astype(np.float32)


@cache
def named(name: str) -> Format:
    """The format of a name of `DTYPES`."""
    assert name in DTYPES
    return Format(name)


def format_for(type_: Attribute) -> Format:
    """The format that has elements of a type.

    Raises VerifyException for a type that none has.
    """
    return named(format_of(type_))


def _pack_blocks(elements: Array, bits: int) -> Array:
    rows = np.ascontiguousarray(elements).reshape(*elements.shape[:-1], -1, SHARING).view(np.uint32)
    exponents = rows >> _FRACTION & _EXPONENT
    shared = exponents.max(axis=-1, keepdims=True)
    mantissas = np.where(exponents == 0, 0, rows & ((1 << _FRACTION) - 1) | 1 << _FRACTION)
    mantissas = mantissas >> np.minimum(shared - exponents, 31)
    dropped = _FRACTION + 2 - bits
    kept, rest, half = mantissas >> dropped, mantissas & ((1 << dropped) - 1), 1 << dropped - 1
    kept = np.minimum(kept + ((rest > half) | (rest == half) & (kept & 1 == 1)), (1 << bits - 1) - 1)
    codes = (kept | np.where(kept == 0, 0, rows >> 31) << bits - 1).astype(np.uint8)
    codes = codes.reshape(*elements.shape[:-1], -1)
    if bits < 8:
        codes = codes[..., 0::2] | codes[..., 1::2] << 4
    return np.concatenate([shared[..., 0].astype(np.uint8), codes], axis=-1)


def _unpack_blocks(data: Array, bits: int) -> Array:
    # A row of 16 has a byte of exponent, and two bytes for each bit of its elements.
    rows = data.shape[-1] // (1 + SHARING * bits // 8)
    shared, codes = data[..., :rows], data[..., rows:]
    if bits < 8:
        codes = np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    codes = codes.reshape(*data.shape[:-1], rows, SHARING)
    exponents = shared[..., None].astype(np.int32) - _BIAS - (bits - 2)
    with np.errstate(over="ignore"):
        numbers = np.ldexp((codes & ((1 << bits - 1) - 1)).astype(np.float32), exponents)
    return np.where(codes >> bits - 1, -numbers, numbers).astype(np.float32).reshape(*data.shape[:-1], -1)
