"""The tokens of PTX (PTX ISA, "Source Format", "Identifiers", "Constants")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .faults import PtxError, error_on_line
from .syntax import Decimal, Module, Number

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)
      | (?P<line>\n)
      | (?P<comment>//[^\n]*|/\*(?s:.*?)\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
          |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
      | (?P<word>[%$_a-zA-Z.][\w$]*(?:(?:\.|::)[\w$]+)*)
      | (?P<mark>[@!{}()\[\]<>;:,=+\-|])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, string or mark; `asm` where a comment bounds inline assembly."""

    kind: str
    text: str
    line: int


def tokens_of(text: str, module: Module) -> list[Token]:
    """The tokens up to the debug sections; the comments around inline assembly are tokens, too."""
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise error_on_line(module, line, f"PTX has no character '{text[at]}' here")
        kind, at = match.lastgroup, match.end()
        assert kind is not None
        if kind == "line":
            line += 1
        elif kind == "comment":
            if "inline asm" in (said := match[0]):
                found.append(Token("asm", "begin" if "begin" in said else "end", line))
            line += match[0].count("\n")
        elif kind != "space":
            found.append(Token(kind, match[0], line))
    return found


class Tokens:
    """The tokens that are left to read."""

    def __init__(self, module: Module, tokens: list[Token]):
        self.module = module
        self._tokens = tokens
        self._at = 0
        self._end = Token("end", "the end of the file", tokens[-1].line if tokens else 1)

    @property
    def next(self) -> Token:
        """The next token, which stays."""
        return self._tokens[self._at] if self._at < len(self._tokens) else self._end

    def take(self) -> Token:
        """Take the next token."""
        token = self.next
        self._at += 1
        return token

    def error(self, message: str, line: int | None = None) -> PtxError:
        """The error `message` at a line, else at the next token's."""
        return error_on_line(self.module, self.next.line if line is None else line, message)

    def accept(self, text: str) -> bool:
        """Take the next token if it is that one, and say so."""
        if self.next.text == text and self.next.kind != "end":
            self._at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Take the next token, which must be that one."""
        if self.next.text != text or self.next.kind == "end":
            raise self.error(f"expected '{text}', found '{self.next.text}'")
        return self.take()

    def word(self) -> str:
        """Take a name, a directive or an operation code."""
        if self.next.kind != "word":
            raise self.error(f"expected a name, found '{self.next.text}'")
        return self.take().text

    def integer(self) -> int:
        """Take an integer with its sign."""
        sign = -1 if self.accept("-") else 1
        if self.next.kind != "number":
            raise self.error(f"expected a number, found '{self.next.text}'")
        number = self.number(self.take())
        if not isinstance(number, Number) or number.float_bits:
            raise self.error("expected an integer, found a floating-point number")
        return sign * number.value

    def number(self, token: Token) -> Number | Decimal:
        """The number that a token stands for."""
        text = token.text
        head = text[:2].lower()
        if head == "0f":
            return Number(int(text[2:], 16), 32)
        if head == "0d":
            return Number(int(text[2:], 16), 64)
        if "." in text or ("e" in text.lower() and head != "0x"):
            return Decimal(float(text))
        digits = text.rstrip("U")
        if len(digits) > 40:
            raise self.error("this integer has more than 64 bits", token.line)
        try:
            if head in ("0x", "0b"):
                return Number(int(digits, 0))
            return Number(int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10))
        except ValueError:
            raise self.error(f"'{text}' is no number", token.line) from None
