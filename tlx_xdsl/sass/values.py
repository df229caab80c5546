"""Values of operands while code runs for one thread: integers, unknown ones, and integers that say how they came.

Registers hold unsigned integers. A value that the evaluation has no part in (what a tensor core or the floating-point
units make, a clock) is `UNKNOWN`, and so is what is computed of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

M = 0xFFFFFFFF
M64 = (1 << 64) - 1


class UnknownBranchError(Exception):
    """A branch depends on a value that is not known."""


class Unknown:
    """A value that is not known: all that is computed of it is not known either, but for what any value gives."""

    def _unknown(self, *_: object) -> Unknown:
        return self

    def _and(self, other: object) -> object:
        return 0 if other is False or other == 0 else self

    def _or(self, other: object) -> object:
        return True if other is True else self

    def __bool__(self) -> bool:
        raise UnknownBranchError

    def __repr__(self) -> str:
        return "?"

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __xor__ = __rxor__ = __floordiv__ = __mod__ = (
        _unknown
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __invert__ = __abs__ = __rfloordiv__ = __rmod__ = (
        _unknown
    )
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _unknown  # pyright: ignore[reportAssignmentType]
    __and__ = __rand__ = _and
    __or__ = __ror__ = _or
    __hash__ = object.__hash__


UNKNOWN = Unknown()


_LONGEST = 240
"""Characters of an expression that are kept: a counter's grows with each turn of its loop."""


class Traced(int):
    """An integer with the expression that it came from, for messages.

    >>> (Traced.of(6, "tid") * 4 + 1).text
    '(tid * 4) + 1'
    """

    text: str

    @staticmethod
    def of(value: int, text: str) -> Traced:
        """Give an integer its expression."""
        made = Traced(value)
        made.text = text
        return made

    __hash__ = int.__hash__


def _traced(symbol: str, operation: Callable[[int, int], int], *, turned: bool) -> Callable[[Any, Any], Any]:
    def apply(this: Traced, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        left, right = (other, this) if turned else (this, other)
        value = operation(int(left), int(right))
        if value == int(this) and not isinstance(other, Traced):
            return this  # x + 0, and a mask that takes nothing away
        if not value and symbol in ("&", "*", ">>"):
            return 0
        text = f"{_inside(left)} {symbol} {_inside(right)}"
        return Traced.of(value, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")

    return apply


def _inside(value: int) -> str:
    if not isinstance(value, Traced):
        return str(value) if -16 < value < 16 else hex(value)
    return f"({value.text})" if " " in value.text else value.text


for _name, _symbol, _operation in (
    ("add", "+", int.__add__), ("sub", "-", int.__sub__), ("mul", "*", int.__mul__), ("and", "&", int.__and__),
    ("or", "|", int.__or__), ("xor", "^", int.__xor__), ("lshift", "<<", int.__lshift__),
    ("rshift", ">>", int.__rshift__), ("floordiv", "/", int.__floordiv__), ("mod", "%", int.__mod__),
):  # fmt: skip
    setattr(Traced, f"__{_name}__", _traced(_symbol, _operation, turned=False))
    setattr(Traced, f"__r{_name}__", _traced(_symbol, _operation, turned=True))


def shown(value: Any) -> str:
    """The expression of a value, with the value itself: `(shared + 0x2000) >> 4 = 0x240`."""
    if not isinstance(value, int):
        return "a value that is not known"
    number = hex(value)
    if not isinstance(value, Traced):
        return number
    return f"{value.text} = {number}"


# What single instructions compute -----------------------------------------------------------------------------------


def signed(value: Any, bits: int = 32) -> Any:
    """An unsigned integer read as a signed one."""
    half = 1 << (bits - 1)
    return ((value & (2 * half - 1)) ^ half) - half


def select(condition: Any, chosen: Any, other: Any) -> Any:
    """Choose a value; the condition may be unknown."""
    if condition is UNKNOWN:
        return chosen if chosen is other else UNKNOWN
    return chosen if condition else other


def least(one: Any, other: Any) -> Any:
    """The smaller of two values."""
    return UNKNOWN if one is UNKNOWN or other is UNKNOWN else min(one, other)


def most(one: Any, other: Any) -> Any:
    """The larger of two values."""
    return UNKNOWN if one is UNKNOWN or other is UNKNOWN else max(one, other)


def left(value: Any, amount: Any, bits: int = 32) -> Any:
    """Shift to the left; all bits are gone from `bits` on (PTX ISA, "shl")."""
    if amount is UNKNOWN or value is UNKNOWN:
        return UNKNOWN
    return value << amount & ((1 << bits) - 1) if amount < bits else 0


def right(value: Any, amount: Any, bits: int = 32) -> Any:
    """Shift a signed or an unsigned value to the right (PTX ISA, "shr")."""
    return UNKNOWN if amount is UNKNOWN or value is UNKNOWN else value >> least(amount, bits)


def funnel(
    low: Any, high: Any, amount: Any, *, to_left: bool, wraps: bool, takes_high: bool, is_signed: bool, most: int = 32
) -> Any:
    """Shift two words as one by `most` bits at most, and take one of them (PTX ISA, "shf")."""
    if amount is UNKNOWN:
        return UNKNOWN
    amount = amount & 31 if wraps else least(amount, most)
    whole = signed(low | high << 32, 64) if is_signed else low | high << 32
    moved = whole << amount if to_left else whole >> amount
    return (moved >> 32 if takes_high else moved) & M


def permute(one: Any, other: Any, selector: Any) -> Any:
    """Take four bytes out of eight (PTX ISA, "prmt"; the default mode)."""
    if selector is UNKNOWN or one is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    whole, result = one | other << 32, 0
    for place in range(4):
        chosen = selector >> 4 * place & 15
        byte = whole >> 8 * (chosen & 7) & 0xFF
        if chosen & 8:
            byte = (byte >> 7) * 0xFF
        result = result | byte << 8 * place
    return result


def field(value: Any, at: Any, length: Any, bits: int, *, is_signed: bool) -> Any:
    """The bits of a field (PTX ISA, "bfe")."""
    if value is UNKNOWN or at is UNKNOWN or length is UNKNOWN:
        return UNKNOWN
    at, length = at & 255, length & 255
    if not length:
        return 0
    if not is_signed:
        return value >> least(at, bits) & ((1 << length) - 1)
    moved = signed(value, bits) >> least(at, bits)
    return (signed(moved, length) if at + length < bits else moved) & ((1 << bits) - 1)


def inserted(value: Any, into: Any, at: Any, length: Any, bits: int) -> Any:
    """A field replaced (PTX ISA, "bfi")."""
    if at is UNKNOWN or length is UNKNOWN:
        return UNKNOWN
    at, length = at & 255, length & 255
    mask = (1 << least(at + length, bits)) - 1 & ~((1 << least(at, bits)) - 1)
    return into & ~mask | value << at & mask


def extended(value: Any, length: Any, *, is_signed: bool) -> Any:
    """The low bits of a word, with their sign or with zeros before them."""
    if length is UNKNOWN or value is UNKNOWN:
        return UNKNOWN
    if length >= 32:
        return value
    if not length:
        return 0
    return (signed(value, length) if is_signed else value & ((1 << length) - 1)) & M


def leading(value: Any, bits: int = 32, *, is_signed: bool = False, shift: bool = False) -> Any:
    """The number of the highest bit that differs from the sign (PTX ISA, "bfind"); all bits set where none does."""
    if value is UNKNOWN:
        return UNKNOWN
    if is_signed and value >> (bits - 1):
        value = ~value & ((1 << bits) - 1)
    if not value:
        return M
    found = int(value).bit_length() - 1
    return bits - 1 - found if shift else found


def ones(value: Any) -> Any:
    """The number of bits that are set."""
    return UNKNOWN if value is UNKNOWN else int(value).bit_count()


def reversed_bits(value: Any, bits: int = 32) -> Any:
    """The bits in the other order."""
    return UNKNOWN if value is UNKNOWN else int(f"{int(value):0{bits}b}"[::-1], 2)


def quotient(one: Any, other: Any) -> Any:
    """Divide, rounded towards zero; what PTX leaves open is not known."""
    if one is UNKNOWN or other is UNKNOWN or not other:
        return UNKNOWN
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def remainder(one: Any, other: Any) -> Any:
    """Return what a division leaves, with the sign of the dividend."""
    found = quotient(one, other)
    return UNKNOWN if found is UNKNOWN else one - found * other


# The floating-point steps of integer division -----------------------------------------------------------------------


def _single(value: float, *, up: bool = False) -> int:
    """The bits of a float of 32 bits, rounded to the nearest or upwards."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    (back,) = struct.unpack("<f", struct.pack("<I", bits))
    return bits + 1 if up and back < value else bits


def to_single(value: Any, *, up: bool) -> Any:
    """An integer as a float of 32 bits, in bits."""
    return UNKNOWN if value is UNKNOWN else _single(float(int(value)), up=up)


def reciprocal(bits: Any) -> Any:
    """1 / x of floats of 32 bits, in bits; not known for what division of integers never asks."""
    if bits is UNKNOWN:
        return UNKNOWN
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return _single(1.0 / value) if 1e-30 < value < 1e30 else UNKNOWN


def from_single(bits: Any, most_bits: int) -> Any:
    """A float of 32 bits as an unsigned integer, rounded towards zero and saturated."""
    if bits is UNKNOWN:
        return UNKNOWN
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    if value != value:
        return UNKNOWN
    return int(min(max(value, 0.0), float((1 << most_bits) - 1))) & ((1 << most_bits) - 1)
