"""Numbers, masks, pointers and descriptors as all programs of a grid have them at once.

Arrays have one axis for the programs and one for each dimension of a tensor; an axis along which nothing changes has
the length 1. A number is a *sum* of such arrays, each along axes of its own, and a mask a *conjunction* of some. So
`rows[:, None] * stride + columns[None, :]` stays one array for the rows and one for the columns, however large the
block is: what programs touch is known by its edges, element by element only where it is irregular.

Integers wrap around as the hardware's do: a sum that may leave its type is added up and wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Number:
    """Signed integers of `bits` bits: the sum of `parts`."""

    parts: tuple[Integers, ...]
    bits: int = 64

    @property
    def total(self) -> Integers:
        """The sum, along those axes along which anything changes."""
        return added(self.parts)

    def bounds(self) -> tuple[int, int]:
        """Numbers between which all elements lie."""
        return sum(int(part.min()) for part in self.parts), sum(int(part.max()) for part in self.parts)


@dataclass(frozen=True, eq=False)
class Truth:
    """Masks: true where all `factors` are; where it is not `exact`, what is true may be false."""

    factors: tuple[Booleans, ...]
    exact: bool = True

    @property
    def total(self) -> Booleans:
        """The conjunction."""
        result = self.factors[0]
        for factor in self.factors[1:]:
            result = result & factor
        return result


@dataclass(frozen=True, eq=False)
class Pointer:
    """Pointers into the memory that the argument `base` points at, `offset` bytes from there."""

    base: SSAValue
    offset: Number


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor in memory as TMA sees it: where, sizes and strides in elements, of which each is a scalar."""

    pointer: Pointer
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]


@dataclass(frozen=True)
class Unknown:
    """A value that is not followed, with the reason, which completes "the address is not known: "."""

    reason: str
    base: SSAValue | None = None
    """Of a pointer: the argument that it points into all the same, if that is known."""


Value: TypeAlias = Number | Truth | Pointer | Descriptor | Unknown


def constant(number: int, rank: int = 0, bits: int = 64) -> Number:
    """The same number in all programs and elements."""
    return Number((np.full((1,) * (rank + 1), number, np.int64),), bits)


def added(parts: Sequence[Integers]) -> Integers:
    """The sum of arrays."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def axes_of(array: NDArray[Any]) -> tuple[int, ...]:
    """The dimensions of the tensor (from 0) along which an array changes."""
    return tuple(dim for dim, size in enumerate(array.shape[1:]) if size > 1)


def fitted(parts: Sequence[Integers], bits: int) -> Number | Unknown:
    """The sum of `parts` as an integer of `bits` bits, with at most one part for each set of axes."""
    if sum(map(_size, parts)) >= 1 << 63:
        return Unknown("a number leaves 64 bits")
    gathered: dict[tuple[int, ...], Integers] = {}
    for part in parts:
        axes = axes_of(part)
        gathered[axes] = part if axes not in gathered else gathered[axes] + part
    number = Number(tuple(gathered.values()), bits)
    low, high = number.bounds()
    if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
        return number
    turns = _turns(number)
    if turns is None:
        return Number((wrapped(number.total, bits),), bits)
    # All elements of a program wrap around as often: they stay apart from the number that they are added to.
    gathered[()] = gathered[()] - (turns << bits) if () in gathered else -(turns << bits)
    return Number(tuple(gathered.values()), bits)


def _turns(number: Number) -> Integers | None:
    """Return how often each program's elements wrap around; None where those of one program differ in that."""
    low, high = _ends(number)
    half = 1 << (number.bits - 1)
    turns = (low + half) >> number.bits
    return turns if bool(np.all(turns == (high + half) >> number.bits)) else None


def _ends(number: Number) -> tuple[Integers, Integers]:
    """Numbers between which each program's elements lie; sums of parts that do not overlap reach them."""
    low, high = (
        added([end(part, axis=tuple(range(1, part.ndim)), keepdims=True) for part in number.parts])
        for end in (np.min, np.max)
    )
    return low, high


def compared(function: Callable[[Any, Any], Any], left: Number, right: Number, *, is_order: bool) -> Booleans:
    """Return whether a comparison holds; element by element only in programs in which elements differ in that.

    `is_order` says that it is one of less and more.
    """
    if not is_order:
        return function(left.total, right.total)
    (low, high), (other_low, other_high) = _ends(left), _ends(right)
    # Of an order the most different operands decide for all.
    one, other = function(high, other_low), function(low, other_high)
    mixed = np.flatnonzero(one != other)
    if not len(mixed):
        return one
    if 2 * len(mixed) > len(one):
        return function(left.total, right.total)
    rows = [added([part if len(part) == 1 else part[mixed] for part in number.parts]) for number in (left, right)]
    found = function(*rows)
    result = np.empty((len(one), *found.shape[1:]), np.bool_)
    result[:] = one
    result[mixed] = found
    return result


def wrapped(array: Integers, bits: int) -> Integers:
    """Wrap each number to a signed integer of `bits` bits."""
    if bits >= 64:
        return array
    half = 1 << (bits - 1)
    return ((array + half) & ((1 << bits) - 1)) - half


def unsigned(number: Number) -> Integers | None:
    """The bits of a number read without a sign; None for one that int64 does not hold then."""
    total = number.total
    if number.bits < 64:
        return total & ((1 << number.bits) - 1)
    return total if int(total.min()) >= 0 else None


def plus(left: Number, right: Number, sign: int = 1) -> Number | Unknown:
    """`left + sign * right`."""
    return fitted((*left.parts, *(sign * part for part in right.parts)), left.bits)


def times(left: Number, right: Number) -> Number | Unknown:
    """The product; the parts stay apart where one factor is the same for all elements."""
    ends = [a * b for a in left.bounds() for b in right.bounds()]
    if max(map(abs, (*ends, *map(_size, left.parts), *map(_size, right.parts)))) >= 1 << 62:
        return Unknown("a product leaves 64 bits")
    for one, other in ((left, right), (right, left)):
        if all(not axes_of(part) for part in one.parts):
            factor = one.total
            if max(_size(part) * _size(factor) for part in other.parts) < 1 << 62:
                return fitted([part * factor for part in other.parts], left.bits)
    return fitted((left.total * right.total,), left.bits)


def _size(array: Integers) -> int:
    return max(abs(int(array.min())), abs(int(array.max())))


def mapped(value: Value, function: Callable[[Any], Any]) -> Value:
    """`value` with `function` applied to each of its arrays."""
    match value:
        case Number():
            return Number(tuple(map(function, value.parts)), value.bits)
        case Truth():
            return Truth(tuple(map(function, value.factors)), value.exact)
        case Pointer():
            return Pointer(value.base, Number(tuple(map(function, value.offset.parts))))
        case _:
            return value


def merged(mask: Booleans, new: Value, old: Value) -> Value:
    """`new` where `mask` of programs, or of their elements, holds; else `old`."""
    if new is old:
        return new
    if all(size == 1 for size in mask.shape[1:]):
        mask = mask.reshape(-1)
    match new, old:
        case Number(), Number() if new.bits == old.bits:
            return _merged_numbers(mask, new, old)
        case Truth(), Truth():
            both = np.where(_along(mask, new.total), new.total, old.total)
            return Truth((both,), new.exact and old.exact)
        case Pointer(), Pointer() if new.base is old.base:
            offset = _merged_numbers(mask, new.offset, old.offset)
            return offset if isinstance(offset, Unknown) else Pointer(new.base, offset)
        case Pointer(), Pointer():
            return Unknown("it points into one array or another")
        case Unknown(), _:
            return Unknown(new.reason, new.base if new.base is base_of(old) else None)
        case _, Unknown():
            return Unknown(old.reason, old.base if old.base is base_of(new) else None)
        case _:
            return Unknown("it depends on the way that a program takes")


def base_of(value: Value) -> SSAValue | None:
    """The argument that a pointer points into, where that is known."""
    match value:
        case Pointer() | Unknown():
            return value.base
        case Descriptor():
            return value.pointer.base
        case _:
            return None


def _merged_numbers(mask: Booleans, new: Number, old: Number) -> Number | Unknown:
    """A choice between sums is the sum of choices, so that parts stay apart."""
    parts = {axes_of(part): part for part in old.parts}
    ours = {axes_of(part): part for part in new.parts}
    zero = np.zeros((1,) * new.parts[0].ndim, np.int64)
    if mask.ndim > 1:
        return fitted((np.where(mask, new.total, old.total),), new.bits)
    chosen = [
        np.where(_along(mask, zero), ours.get(axes, zero), parts.get(axes, zero))
        for axes in dict.fromkeys((*ours, *parts))
    ]
    return fitted(chosen, new.bits)


def _along(mask: Booleans, like: NDArray[Any]) -> Booleans:
    """A mask of programs, to be used with arrays of the rank of `like`; one of elements as it is."""
    return mask.reshape((-1,) + (1,) * (like.ndim - 1)) if mask.ndim == 1 else mask
