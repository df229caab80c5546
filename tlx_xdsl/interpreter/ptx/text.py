"""The text of inline assembly, taken apart into statements (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
from dataclasses import dataclass


class UnknownInstruction(ValueError):
    """PTX that the interpreter cannot run; the message names it."""


@dataclass(frozen=True)
class Statement:
    """An instruction with its operands."""

    text: str
    name: str
    """The first part of the operation code, such as `add`."""
    modifiers: tuple[str, ...]
    """Its other parts, such as `rn` and `f32`."""
    operands: tuple[str | tuple[str, ...], ...]
    """Registers, numbers and special registers; a vector in braces is a tuple of them."""
    guard: str | None = None
    """The predicate without which it does nothing."""
    negated: bool = False
    """True if it runs where the guard does not hold."""


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(
    r"(?:@(?P<negated>!?)\s*(?P<guard>[\w$%]+)\s+)?(?P<code>[a-z][\w.:]*)\s*(?P<operands>.*)", re.DOTALL
)
_DECLARATION = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+(?P<names>.+)", re.DOTALL)
_RANGE = re.compile(r"(?P<stem>[\w$%]+)<(?P<count>\d+)>")


def parse(code: str) -> tuple[list[Statement], dict[str, str]]:
    """The statements of `code`, and the registers that it declares, each with its type.

    Raises UnknownInstruction for what is no statement of a straight line, such as a label.
    """
    statements: list[Statement] = []
    registers: dict[str, str] = {}
    # In LLVM's assembly strings, `$$` stands for a dollar.
    for part in _split(_COMMENT.sub(" ", code)):
        if (declared := _DECLARATION.fullmatch(part)) is not None:
            for name in declared["names"].split(","):
                registers.update(dict.fromkeys(_names(name.strip()), declared["type"]))
            continue
        found = _STATEMENT.fullmatch(part)
        if found is None or ":" in found["code"].split(".")[0]:
            raise UnknownInstruction(f"the interpreter can't read the PTX '{part}'")
        name, *modifiers = found["code"].split(".")
        statements.append(
            Statement(
                " ".join(part.split()), name, tuple(modifiers), tuple(_operands(found["operands"])), found["guard"],
                bool(found["negated"]),
            )
        )  # fmt: skip
    return statements, registers


def _split(code: str) -> list[str]:
    """Statements without their semicolons; a brace before one only bounds the names after it."""
    return [text for part in code.split(";") if (text := part.lstrip("{} \t\r\n").rstrip())]


def _names(name: str) -> list[str]:
    if (found := _RANGE.fullmatch(name)) is not None:
        return [f"{found['stem']}{number}" for number in range(int(found["count"]))]
    return [name]


def _operands(text: str) -> list[str | tuple[str, ...]]:
    found: list[str | tuple[str, ...]] = []
    for vector, single in re.findall(r"\{([^}]*)\}|([^,{}]+)", text):
        if vector:
            found.append(tuple(part.strip() for part in vector.split(",")))
        elif single.strip():
            found.append(single.strip())
    return found
