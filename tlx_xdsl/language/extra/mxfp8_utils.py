"""Blocks in MXFP8: what scripts for Meta's Triton import from its module of this name.

A group of 32 elements of a row shares a scale, a power of two in E8M0: an exponent with a bias of 127 in a byte (OCP
Microscaling Formats, section 5.3). The scale is the least that makes the group's greatest magnitude representable.
There, the arithmetic is PTX for Blackwell; here it is the language's own, with the same numbers on every GPU and in the
interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..debug import static_assert
from ..dtypes import float8e4nv, float8e5, float32, uint8, uint32
from ..marks import library
from ..math import abs, minimum, where
from ..reduction import max
from ..shape import broadcast_to, expand_dims, reshape

if TYPE_CHECKING:
    from ..arguments import Value
    from ..objects import tensor

    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from ..compile_time import constexpr

__all__ = [
    "_amax_to_e8m0_and_quantize",
    "_compute_scale_and_quantize",
    "_cvt_e4m3x4_f32",
    "_cvt_e5m2x4_f32",
    "_fused_amax_to_e8m0",
    "_to_mxfp8_32x32_block",
    "_to_mxfp8_block",
    "_to_mxfp8_block_with_block_amax",
]


@library()
def _fused_amax_to_e8m0(amax: tensor, max_norm_rcp: Value) -> tuple[tensor, tensor]:
    """The E8M0 scales (uint32) for groups of magnitude `amax`, and the scales' reciprocals (fp32).

    `max_norm_rcp` is the reciprocal of the format's greatest number. The scale is rounded up to a power of two, between
    2**-127 and 2**127 (PTX ISA, "cvt.rp.satfinite.ue8m0x2.f32"); the scale of NaN is NaN.
    """
    bits = (amax * max_norm_rcp).to(uint32, bitcast=True)
    # The exponent, and 1 more where the fraction is not zero; numbers up to 2**-127 have the least.
    exponent = minimum((bits + 0x7FFFFF) >> 23, 254)
    exponent = where(bits <= 0x400000, 0, exponent)
    exponent = where(bits > 0x7F800000, 255, exponent).to(uint32)
    return exponent, ((254 - exponent) << 23).to(float32, bitcast=True)


@library()
def _cvt_e4m3x4_f32(a: tensor) -> tensor:
    """The nearest e4m3 of fp32, at most 448 in magnitude."""
    return a.to(float8e4nv)


@library()
def _cvt_e5m2x4_f32(a: tensor) -> tensor:
    """The nearest e5m2 of fp32, at most 57344 in magnitude."""
    return a.to(float8e5)


@library()
def _quantize(groups: tensor, amax: tensor, dtype: constexpr) -> tuple[tensor, tensor]:
    """Scales (uint8, one for each group) and elements in `dtype` of (rows, groups, elements) in fp32."""
    static_assert(dtype in (float8e4nv, float8e5), "an MXFP8 block has elements of float8e4nv or float8e5")
    exponent, reciprocal = _fused_amax_to_e8m0(amax, 1.0 / 448.0 if dtype == float8e4nv else 1.0 / 57344.0)
    scaled = groups * expand_dims(reciprocal, 2)
    data = reshape(scaled.to(dtype), (groups.shape[0], groups.shape[1] * groups.shape[2]))
    return exponent.to(uint8), data


@library()
def _in_groups(data: tensor, VEC_SIZE: constexpr) -> tensor:
    """A block (rows, columns) as (rows, groups, VEC_SIZE)."""
    static_assert(data.shape[1] % VEC_SIZE == 0, "the columns of an MXFP8 block are a multiple of its groups' size")
    return reshape(data, (data.shape[0], data.shape[1] // VEC_SIZE, VEC_SIZE))


@library()
def _compute_scale_and_quantize(data_block: tensor, VEC_SIZE: constexpr, dtype: constexpr) -> tuple[tensor, tensor]:
    """The scales (rows, columns / VEC_SIZE) of a block in fp32, and the block in `dtype`."""
    groups = _in_groups(data_block, VEC_SIZE)
    return _quantize(groups, max(abs(groups), axis=2), dtype)


@library()
def _to_mxfp8_block(data_input: tensor, VEC_SIZE: constexpr, dtype: constexpr) -> tuple[tensor, tensor]:
    """A block in fp32 as a block in `dtype`, and its scales (rows, columns / VEC_SIZE)."""
    static_assert(VEC_SIZE == 32, "a group of MXFP8 has 32 elements")
    scales, data = _compute_scale_and_quantize(data_input, VEC_SIZE, dtype)
    return data, scales


@library()
def _to_mxfp8_32x32_block(data_input: tensor, VEC_SIZE: constexpr, dtype: constexpr) -> tuple[tensor, tensor]:
    """Quantize like `_to_mxfp8_block`, with one scale for each 32 x 32 square, which its rows repeat."""
    static_assert(VEC_SIZE == 32, "a group of MXFP8 has 32 elements")
    static_assert(data_input.shape[0] % VEC_SIZE == 0, "the rows of such a block are a multiple of 32")
    groups = _in_groups(data_input, VEC_SIZE)
    rows: constexpr = data_input.shape[0]
    count: constexpr = data_input.shape[1] // VEC_SIZE
    squares = reshape(max(abs(groups), axis=2), (rows // VEC_SIZE, VEC_SIZE, count))
    amax = expand_dims(max(squares, axis=1), 1)
    repeated = broadcast_to(amax, (rows // VEC_SIZE, VEC_SIZE, count))
    scales, data = _quantize(groups, reshape(repeated, (rows, count)), dtype)
    return data, scales


@library()
def _amax_to_e8m0_and_quantize(
    data_input: tensor, block_amax: tensor, VEC_SIZE: constexpr, dtype: constexpr
) -> tuple[tensor, tensor]:
    """The scales of a block in fp32 whose groups have the magnitudes `block_amax`, and the block in `dtype`."""
    return _quantize(_in_groups(data_input, VEC_SIZE), block_amax, dtype)


@library()
def _to_mxfp8_block_with_block_amax(
    data_input: tensor, block_amax: tensor, VEC_SIZE: constexpr, dtype: constexpr
) -> tuple[tensor, tensor]:
    """Quantize like `_to_mxfp8_block`; the groups' magnitudes are `block_amax` (rows, columns / VEC_SIZE)."""
    static_assert(VEC_SIZE == 32, "a group of MXFP8 has 32 elements")
    scales, data = _amax_to_e8m0_and_quantize(data_input, block_amax, VEC_SIZE, dtype)
    return data, scales
