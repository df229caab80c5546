"""Registers of PTX, which hold the bits of many threads."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.ptx.instructions import PtxType

from .text import UnknownInstruction


class Registers:
    """The registers of `count` threads: unsigned integers of the width of the register, or truth values."""

    def __init__(self, count: int, special: Callable[[str], int | None]):
        self.count = count
        self._special = special
        self._bits: dict[str, Array] = {}

    def declare(self, name: str, bits: int) -> None:
        """Make a register, which holds zeros; of one bit, it is a predicate."""
        self._bits[name] = np.zeros(self.count, np.bool_ if bits == 1 else "V16" if bits == 128 else f"u{bits // 8}")

    def set(self, name: str, values: Array) -> None:
        """Put unsigned integers into a register as they are."""
        self._bits[name] = values

    def get(self, name: str) -> Array:
        """The bits of a register."""
        if name not in self._bits:
            raise UnknownInstruction(f"the PTX has no register '{name}'")
        return self._bits[name]

    def read(self, operand: str, type_: PtxType) -> Array:
        """An operand as numbers of a type; where a register holds several, they are a last dimension."""
        if operand in self._bits:
            held = self._bits[operand]
            if type_.dtype.kind in "bV" or held.dtype.kind in "bV":
                return held
            bits = np.ascontiguousarray(held.astype(f"u{type_.bits // 8}"))
            return bits.view(type_.dtype) if type_.lanes == 1 else bits.reshape(-1, 1).view(type_.dtype)
        if operand.startswith("%"):
            value = self._special(operand.lstrip("%"))
            if value is None:
                raise UnknownInstruction(
                    f"the interpreter runs the threads of a task as one: they differ in '{operand}'"
                )
            bits = np.array(value % (1 << type_.bits), f"u{type_.bits // 8}")
        else:
            bits = _immediate(operand, type_)
        spread = np.full(self.count, bits)
        return spread.view(type_.dtype) if type_.lanes == 1 else spread.reshape(-1, 1).view(type_.dtype)

    def write(self, name: str, values: Array, type_: PtxType, where: Array | None) -> None:
        """Set a register for the threads of `where`; a wider one is filled with the sign, or with zeros."""
        held = self.get(name)
        if held.dtype.kind == "b":
            new = values.astype(np.bool_)
        elif held.dtype.kind == "V":
            new = values
        else:
            bits = np.ascontiguousarray(values).view(f"u{type_.bits // 8}").reshape(-1)
            if type_.is_signed and held.dtype.itemsize > bits.dtype.itemsize:
                bits = bits.view(f"i{bits.dtype.itemsize}")
            new = bits.astype(held.dtype)
        self._bits[name] = new if where is None else np.where(where, new, held)


_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?")


def _immediate(text: str, type_: PtxType) -> Array:
    """The bits of a number (PTX ISA, "Constants")."""
    unsigned = f"u{type_.bits // 8}"
    if text[:2] in ("0f", "0F") and len(text) == 10:
        number = struct.unpack(">f", bytes.fromhex(text[2:]))[0]
        return np.array(number, type_.dtype if type_.is_float else np.float32).view(unsigned)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        number = struct.unpack(">d", bytes.fromhex(text[2:]))[0]
        return np.array(number, type_.dtype if type_.is_float else np.float64).view(unsigned)
    if (found := _INTEGER.fullmatch(text)) is not None:
        digits = found[2]
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        number = int(digits, 8 if octal else 0) * (-1 if found[1] else 1)
        if type_.is_float and type_.lanes == 1:
            return np.array(number, type_.dtype).view(unsigned)
        return np.array(number % (1 << type_.bits), unsigned)
    try:
        return np.array(float(text), type_.dtype).view(unsigned)
    except ValueError:
        raise UnknownInstruction(f"the PTX has no register or number '{text}'") from None
