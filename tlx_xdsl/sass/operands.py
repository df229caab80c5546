"""The text of operands as expressions: `-R4.64` is `(-(R4 | R5 << 32) & M64)`, and `[R2+0x40]` an address."""

from __future__ import annotations

import re

from .values import M

_REGISTER = re.compile(r"(?P<sign>[-~!]?)(?P<bars>\|?)(?P<name>U?[RP](?:\d+|Z|T))(?P<wide>\.64)?\|?$")
NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
CONSTANT = re.compile(r"(?P<sign>[-~]?)\|?c\[0x(?P<bank>[0-9a-f]+)\]\[(?P<at>[^\]]+)\]\|?$")
_TERM = re.compile(r"(?P<sign>[-+]?)(?P<what>[^-+]+)")
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
ZEROS = ("RZ", "URZ", "SRZ")
TRUE = ("PT", "UPT")


class NotKnownError(Exception):
    """An operand or a form that the evaluation does not know: the results of the instruction are unknown."""


def next_register(name: str, count: int = 1) -> str:
    """The register after another: `R5` after `R4`."""
    if name in ZEROS:
        return name
    kind, number = re.match(r"(U?[RP])(\d+)", name).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return f"{kind}{int(number) + count}"


def plain(text: str) -> str:
    """The name of a register without what is done to it: `R4` for `-R4.64`; empty for another operand."""
    match = _REGISTER.match(text)
    return match["name"] if match is not None else ""


def is_predicate(text: str) -> bool:
    """Say whether an operand is a predicate: `!UP0`."""
    return bool(re.match(r"!?U?P(\d+|T)$", text))


def registers_in(text: str, count: int = 1) -> list[str]:
    """The registers that an operand reads, of which each is the first of `count`, or of 2 with `.64`."""
    found: list[str] = []
    for name, wide in re.findall(r"\b(U?[RP]\d+)(\.64)?", text):
        found.extend(next_register(name, each) for each in range(max(count, 2 if wide else 1)))
    return found


def condition(text: str) -> str:
    """A predicate as an expression."""
    name = text.removeprefix("!")
    if name in TRUE:
        return "False" if text.startswith("!") else "True"
    return f"({name} ^ True)" if text.startswith("!") else name


def word(text: str, *, carries: bool = False) -> str:
    """An operand of 32 bits as an expression; with `carries` what is subtracted is not cut off at 32 bits."""
    if NUMBER.match(text):
        return str(int(text, 0) & M)
    if (match := _REGISTER.match(text)) is not None and "P" not in match["name"]:
        value = "0" if match["name"] in ZEROS else match["name"]
    elif (match := CONSTANT.match(text)) is not None:
        value = constant(match["bank"], match["at"])
    else:
        raise NotKnownError(text)
    if match["sign"] == "-":
        return f"(({value} ^ M) + 1)" if carries else ("0" if value == "0" else f"(-{value} & M)")
    if match["sign"] == "~":
        return f"({value} ^ M)"
    return value


def constant(bank: str, at: str, offset: int = 0) -> str:
    if NUMBER.match(at):
        if bank == "0":
            return f"C[{int(at, 0) + offset >> 2}]"
        return f"table({int(at, 0) + offset})"
    where = address(f"[{at}]", 32)
    return f"{'constant' if bank == '0' else 'table'}({where} + {offset})"


def double(text: str, *, carries: bool = False) -> str:
    """An operand of 64 bits as an expression: a pair of registers."""
    if NUMBER.match(text):
        return str(int(text, 0) & ((1 << 64) - 1))
    if (match := _REGISTER.match(text)) is not None and "P" not in match["name"]:
        name = match["name"]
        value = "0" if name in ZEROS else f"({name} | {next_register(name)} << 32)"
    elif (match := CONSTANT.match(text)) is not None:
        value = f"({constant(match['bank'], match['at'])} | {constant(match['bank'], match['at'], 4)} << 32)"
    else:
        raise NotKnownError(text)
    if match["sign"] == "-":
        return f"(({value} ^ M64) + 1)" if carries else f"(-{value} & M64)"
    return f"({value} ^ M64)" if match["sign"] == "~" else value


def address(text: str, bits: int) -> str:
    """The address in brackets as an expression: `[R2.64+UR4+0x40]`, and with a descriptor before it."""
    inside = re.search(r"\[([^\[\]]*)\]$", text)
    if inside is None:
        raise NotKnownError(text)
    terms: list[str] = []
    for match in _TERM.finditer(inside[1]):
        what, minus = match["what"].strip(), match["sign"] == "-"
        name, _, form = what.partition(".")
        if NUMBER.match(what):
            value = str(int(what, 0))
        elif form == "64":
            value = double(name)
        elif form in ("", "U32") or re.match(r"X\d+$", form):
            value = word(name) if not form.startswith("X") else f"{word(name)} * {form[1:]}"
        else:
            raise NotKnownError(text)
        if value != "0":
            terms.append(f"-{value}" if minus else value)
    whole = " + ".join(terms) or "0"
    return f"(({whole}) & {'M' if bits == 32 else 'M64'})"


def as_signed(value: str, bits: int = 32) -> str:
    """The expression of an unsigned value read as a signed one."""
    if value.isdigit():
        return str(int(value) - (int(value) >> (bits - 1) << bits))
    return f"(({value} ^ {1 << (bits - 1)}) - {1 << (bits - 1)})"


def assign(name: str, value: str) -> list[str]:
    """Return the statement that writes a register, if it is one that can be written."""
    return [] if name in (*ZEROS, *TRUE) else [f"{name} = {value}"]
