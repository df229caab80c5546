"""Variables of a state space, with what they hold at first (PTX ISA, "Variables")."""

from __future__ import annotations

import struct

from .syntax import SIZES, Decimal, Number, Symbol, Variable
from .tokens import Tokens

SPACES = ("shared", "global", "const", "local", "param")
LARGEST = 1 << 24
"""Registers, and bytes of a variable, at most."""


def read_type(tokens: Tokens) -> str:
    """Take a type."""
    token = tokens.take()
    name = token.text.removeprefix(".")
    if token.kind != "word" or name not in SIZES:
        raise tokens.error(f"the type '{token.text}' is not known", token.line)
    return name


def read_variables(tokens: Tokens, space: str, line: int) -> list[Variable]:
    """Take the variables of a declaration after its state space."""
    alignment = 0
    while tokens.next.text in (".align", ".attribute"):
        if tokens.take().text == ".attribute":
            raise tokens.error("attributes of variables are not known", line)
        alignment = tokens.integer()
    lanes = {".v2": 2, ".v4": 4}.get(tokens.next.text, 1)
    if lanes > 1:
        tokens.take()
    type_ = read_type(tokens)
    found: list[Variable] = []
    while True:
        name, size = tokens.word(), SIZES[type_] * lanes
        while tokens.accept("["):
            size *= 0 if tokens.next.text == "]" else tokens.integer()
            tokens.expect("]")
        if not 0 <= size <= LARGEST:
            raise tokens.error(f"'{name}' has {size} bytes, which is too many", line)
        data, addresses = _initial(tokens, type_, size) if tokens.accept("=") else (None, ())
        found.append(Variable(name, space, size, alignment or SIZES[type_], data, addresses))
        if not tokens.accept(","):
            break
    tokens.expect(";")
    return found


def _initial(tokens: Tokens, type_: str, size: int) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
    data = bytearray()
    addresses: list[tuple[int, Symbol]] = []
    items = _initial_items(tokens)
    for item in items:
        if isinstance(item, Symbol):
            addresses.append((len(data), item))
            data += bytes(8)
        elif isinstance(item, Number):
            data += (item.value % (1 << 8 * SIZES[type_])).to_bytes(SIZES[type_], "little")
        else:
            data += struct.pack("<f" if type_ == "f32" else "<d", item.value)
    if len(data) > size:
        raise tokens.error("a variable has more data than room")
    return bytes(data) + bytes(size - len(data)), tuple(addresses)


def _initial_items(tokens: Tokens) -> list[Number | Decimal | Symbol]:
    if not tokens.accept("{"):
        return [_initial_item(tokens)]
    items: list[Number | Decimal | Symbol] = []
    while not tokens.accept("}"):
        items.extend(_initial_items(tokens) if tokens.next.text == "{" else [_initial_item(tokens)])
        if not tokens.accept(",") and tokens.next.text != "}":
            raise tokens.error(f"expected ',', found '{tokens.next.text}'")
    return items


def _initial_item(tokens: Tokens) -> Number | Decimal | Symbol:
    if tokens.next.kind == "word":
        name = tokens.word()
        if name == "generic":
            tokens.expect("(")
            name = tokens.word()
            tokens.expect(")")
        return Symbol(name)
    negative = tokens.accept("-")
    if tokens.next.kind != "number":
        raise tokens.error(f"expected a number, found '{tokens.next.text}'")
    number = tokens.number(tokens.take())
    if not negative:
        return number
    return Number(-number.value) if isinstance(number, Number) else Decimal(-number.value)
