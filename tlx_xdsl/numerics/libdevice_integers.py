"""The functions of libdevice on integers and on bits, by their symbols without `__nv_`.

Each is given the numpy type of its result and gives the function. Unsigned integers are held as signed ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .arrays import Array, Binary, Dtype, Unary, unsigned
from .directed_rounding import leading_zeros
from .elementwise import multiply_high
from .ptx.bits import permute

Builder: TypeAlias = Callable[[Dtype], Callable[..., Any]]


def _bits(value: Array) -> Array:
    """The bits of integers, from the highest to the lowest, along a new last dimension."""
    big = np.asarray(value).astype(value.dtype.newbyteorder(">"))
    return np.unpackbits(big[..., None].view(np.uint8), axis=-1)


def _count(target: Dtype) -> Callable[[Array], Array]:
    return lambda x: _bits(x).sum(-1).astype(target)


def _leading_zeros(target: Dtype) -> Callable[[Array], Array]:
    return lambda x: leading_zeros(x.view(unsigned(x.dtype))).astype(target)


def _first_set(target: Dtype) -> Callable[[Array], Array]:
    return lambda x: np.where(x == 0, 0, _bits(x)[..., ::-1].argmax(-1) + 1).astype(target)


def _reverse(target: Dtype) -> Callable[[Array], Array]:
    big = target.newbyteorder(">")
    return lambda x: np.packbits(_bits(x)[..., ::-1], axis=-1).view(big)[..., 0].astype(target)


def _wide(function: Callable[..., Any], *, is_signed: bool) -> Builder:
    """A function of 32-bit integers that is computed in 64 bits."""

    def build(target: Dtype) -> Callable[..., Any]:
        def widen(x: Array) -> Array:
            return (x if is_signed else x.view(unsigned(x.dtype))).astype(np.int64)

        def run(*values: Array) -> Array:
            return (function(*map(widen, values)) & 0xFFFFFFFF).astype(np.uint32).view(target)

        return run

    return build


def _mean(x: Array, y: Array) -> Array:
    return (x + y) >> 1


def _mean_up(x: Array, y: Array) -> Array:
    return (x + y + 1) >> 1


def _product_24(x: Array, y: Array) -> Array:
    return _signed_24(x) * _signed_24(y)


def _signed_24(x: Array) -> Array:
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


def _unsigned_product_24(x: Array, y: Array) -> Array:
    return (x & 0xFFFFFF) * (y & 0xFFFFFF)


def _distance(x: Array, y: Array, z: Array) -> Array:
    return np.abs(x - y) + z


def _high(*, is_signed: bool) -> Builder:
    def build(target: Dtype) -> Binary:
        return lambda a, b: multiply_high(a, b, target, is_signed=is_signed)

    return build


def _byte_perm(target: Dtype) -> Callable[..., Array]:
    """Byte i of the result is the byte that bits 4i to 4i+2 of the selector number, `x` holding bytes 0 to 3."""

    def run(x: Array, y: Array, selector: Array) -> Array:
        low, high, picks = (value.view(np.uint32).ravel() for value in (x, y, selector))
        # The fourth bit of a number would spread a sign.
        return permute(low, high, picks & np.uint32(0x7777)).view(target).reshape(np.shape(x))

    return run


def _same_bits(target: Dtype) -> Callable[[Array], Array]:
    return lambda x: x.view(target)


def _half_of_double(shift: int) -> Builder:
    def build(target: Dtype) -> Unary:
        return lambda x: (x.view(np.uint64) >> np.uint64(shift)).astype(np.uint32).view(target)

    return build


def _from_halves(target: Dtype) -> Callable[..., Array]:
    def run(high: Array, low: Array) -> Array:
        upper, lower = (half.view(np.uint32).astype(np.uint64) for half in (high, low))
        return ((upper << np.uint64(32)) | lower).view(target)

    return run


def _absolute(target: Dtype) -> Callable[[Array], Array]:
    return lambda x: np.abs(x).astype(target)


BITS: dict[str, Builder] = {
    "brev": _reverse, "brevll": _reverse, "byte_perm": _byte_perm, "clz": _leading_zeros, "clzll": _leading_zeros,
    "double2hiint": _half_of_double(32), "double2loint": _half_of_double(0), "double_as_longlong": _same_bits,
    "ffs": _first_set, "ffsll": _first_set, "float_as_int": _same_bits, "float_as_uint": _same_bits,
    "hiloint2double": _from_halves, "int_as_float": _same_bits, "longlong_as_double": _same_bits, "popc": _count,
    "popcll": _count, "uint_as_float": _same_bits,
}  # fmt: skip
"""Functions of bits."""

INTEGERS: dict[str, Builder] = {
    "abs": _absolute,
    "llabs": _absolute,
    "hadd": _wide(_mean, is_signed=True),
    "uhadd": _wide(_mean, is_signed=False),
    "rhadd": _wide(_mean_up, is_signed=True),
    "urhadd": _wide(_mean_up, is_signed=False),
    "mul24": _wide(_product_24, is_signed=True),
    "umul24": _wide(_unsigned_product_24, is_signed=False),
    "sad": _wide(_distance, is_signed=True),
    "usad": _wide(_distance, is_signed=False),
    "mulhi": _high(is_signed=True),
    "mul64hi": _high(is_signed=True),
    "umulhi": _high(is_signed=False),
    "umul64hi": _high(is_signed=False),
}
"""Functions of integers."""
