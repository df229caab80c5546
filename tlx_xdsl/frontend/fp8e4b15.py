"""fp8e4b15, the 8-bit float that the compiler and no GPU knows: its conversions, as arithmetic on its bits.

It has a sign, 4 bits of exponent with the bias 15, and 3 bits of mantissa; neither infinities nor NaN. The bias is that
of float16, so a float16 with the same number has the same bits but for the 7 bits of mantissa that are missing here:

    e4b15    s eeee mmm
    float16  s 0eeee mmm0000000
"""

from __future__ import annotations

import struct

from xdsl.dialects import arith as xarith
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.language.core import dtype, float8e4b15, float16, uint8, uint16

from .builder import Builder
from .types import ir_type
from .values import Tensor

_LARGEST = 0x3F00
"""The bits, as a float16, of what anything larger, infinities and NaN become: 1.75, as in Triton's own conversion."""

_MISSING_BITS = 7
"""Bits of a float16's mantissa that this type lacks."""


def to_float16(builder: Builder, value: Tensor) -> Tensor:
    """The float16 with the numbers of `value`: all of them exist there."""
    wide = builder.value(arith.ExtUIOp(value.ssa, ir_type(uint16)), uint16, value.shape)
    sign = _with(builder, xarith.ShLIOp, _with(builder, xarith.AndIOp, wide, 0x80), 8)
    rest = _with(builder, xarith.ShLIOp, _with(builder, xarith.AndIOp, wide, 0x7F), _MISSING_BITS)
    bits = builder.tensor(xarith.OrIOp, uint16, value.shape, sign, rest)
    return builder.tensor(tt.BitcastOp, float16, value.shape, bits)


def from_float16(builder: Builder, value: Tensor) -> Tensor:
    """The nearest number of each float16, the larger one of two; at most 1.75 in size, which NaN becomes, too."""
    bits = builder.tensor(tt.BitcastOp, uint16, value.shape, value)
    sign = _with(builder, xarith.AndIOp, bits, 0x8000)
    # The bits of numbers without a sign are in their order.
    size = _with(builder, xarith.MinUIOp, _with(builder, xarith.AndIOp, bits, 0x7FFF), _LARGEST)
    rounded = _with(builder, xarith.AddiOp, size, 1 << (_MISSING_BITS - 1))
    shifted = _with(builder, xarith.ShLIOp, rounded, 1)
    whole = builder.tensor(xarith.OrIOp, uint16, value.shape, sign, shifted)
    upper = _with(builder, xarith.ShRUIOp, whole, 8)
    narrow = builder.value(arith.TruncIOp(upper.ssa, ir_type(uint8)), uint8, value.shape)
    return Tensor(narrow.ssa, float8e4b15, value.shape)


def absolute(builder: Builder, value: Tensor) -> Tensor:
    """The numbers without their sign."""
    return _with(builder, xarith.AndIOp, value, 0x7F)


def bits_of(number: float) -> int:
    """The bits of the number of this type that `from_float16` gives for the float16 nearest to `number`."""
    # As in Triton, numbers are rounded towards zero on their way to float16: only what is halfway can differ.
    size = min(_float16_bits(abs(number)), _LARGEST)
    sign = 0x80 if struct.pack(">d", number)[0] & 0x80 else 0
    return sign | (size + (1 << (_MISSING_BITS - 1))) >> _MISSING_BITS


def _float16_bits(size: float) -> int:
    """The bits of a float16, rounded towards zero; anything beyond the largest one is an infinity."""
    if size != size or size > 65504.0:
        return 0x7C00
    bits = int.from_bytes(struct.pack("<e", size), "little")
    return bits - 1 if struct.unpack("<e", struct.pack("<e", size))[0] > size else bits


def _with(builder: Builder, op: type[IRDLOperation], value: Tensor, number: int) -> Tensor:
    """`value op number`, on integers."""
    assert isinstance(value.dtype, dtype)
    constant = builder.constant(number, ir_type(value.dtype, value.shape))
    return builder.tensor(op, value.dtype, value.shape, value, constant)
