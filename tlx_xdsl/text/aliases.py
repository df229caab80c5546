"""Tokens of MLIR text, and aliases of attributes and types in it, which may be used before their definition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

_BLANK = re.compile(r"(?:[ \t\n\r\f\v]+|//[^\n]*+)*+")
_SINGLE = {
    text: MLIRTokenKind.get_punctuation_kind_from_name(text)
    for text in (":", ",", "(", ")", "}", "[", "]", "<", ">", "=", "+", "/", "*", "?", "|")
}
"""The punctuation that begins no longer token."""


class Lexer(MLIRLexer):
    """xDSL's lexer, faster where most tokens are, and with a pattern of strings that does not backtrack.

    The original takes a time that doubles with each character of a string that is not closed.
    """

    def lex(self) -> Token[MLIRTokenKind, str]:
        """The next token: identifiers and punctuation at once, which are nine of ten, others by xDSL."""
        content = self.input.content
        blank = _BLANK.match(content, self.pos)
        assert blank is not None
        start = self.pos = blank.end()
        character = content[start : start + 1]
        if (kind := _SINGLE.get(character)) is not None:
            self.pos = start + 1
        elif character == "%" and (found := self._suffix_id.match(content, start + 1)) is not None:
            kind, self.pos = MLIRTokenKind.PERCENT_IDENT, found.end()
        elif (found := self.bare_identifier_regex.match(content, start)) is not None:
            kind, self.pos = MLIRTokenKind.BARE_IDENT, found.end()
        else:
            return super().lex()
        return Token(kind, Span(start, self.pos, self.input))

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


_ALLOWANCE = 1_000_000
_PER_CHARACTER = 50
"""Attributes for each character of the text: a location of a deep chain of calls is some hundred, and is used by a
dozen characters."""


class Expansion:
    """Counts the attributes that the uses of aliases stand for.

    An alias of two aliases of two aliases is short, and what it stands for doubles at each step: to hash, compare or
    print that takes as long as if it had been written out.
    """

    def __init__(self, characters: int):
        self.limit = _ALLOWANCE + _PER_CHARACTER * characters
        self._total = 0
        self._sizes: dict[int, tuple[int, Attribute]] = {}
        """Of each attribute that was met, by its identity, which holding it keeps its own."""

    def add(self, attribute: Attribute) -> bool:
        """Count one use; whether all uses are still within the limit."""
        self._total += self._size(attribute)
        return self._total <= self.limit

    def _size(self, attribute: Attribute) -> int:
        known = self._sizes.get(id(attribute))
        if known is None:
            size = 1 + sum(map(self._size, _parts(attribute)))
            known = self._sizes[id(attribute)] = (size, attribute)
        return known[0]


def _parts(attribute: Attribute) -> Iterable[Attribute]:
    match attribute:
        case ArrayAttr():
            return attribute.data  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case DictionaryAttr():
            return attribute.data.values()
        case ParametrizedAttribute():
            return attribute.parameters
        case _:
            return ()


_ALIAS_DEFINITION = re.compile(r"^([#!][A-Za-z_][\w$.-]*)[ \t]*=[ \t]*", re.MULTILINE)
_WHOLE_TYPE = re.compile(r'(?:tensor|![\w$.-]+)<(?:[^<>"\n]|<(?:[^<>"\n]|<[^<>"\n]*+>)*+>)*+>')
"""The text of a type with its parameters."""


class AliasParser(Parser):
    """A parser that lets an alias be used before its definition, and parses the text of a type once.

    Triton prints most location aliases after the module. Their definitions are found by one scan of the text and
    parsed when they are first used.
    """

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>"):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(Lexer(Input(input, name)))
        self._definitions = {match[1]: match.end() for match in _ALIAS_DEFINITION.finditer(input)}
        self._seen: set[str] = set()
        self._open: list[str] = []
        """The aliases whose definitions are being read, outermost first."""
        self._expansion = Expansion(len(input))
        self._types: dict[str, TypeAttribute] = {}
        """The types that were read, by their text."""

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type, if there is one: the same few stand in every line, so the text of each is parsed once."""
        content = self.lexer.input.content
        whole = _WHOLE_TYPE.match(content, self.pos)
        if whole is None:
            return super().parse_optional_type()
        known = self._types.get(whole[0])
        if known is not None:
            self._resume_from(whole.end())
            self._count(known)
            return known
        known = super().parse_optional_type()
        if known is not None and self.pos >= whole.end() and not content[whole.end() : self.pos].strip():
            self._types[whole[0]] = known
        return known

    def _count(self, attribute: Attribute) -> None:
        """Count what the use of an alias, or of a type with some, stands for; refuse what grows beyond all bounds."""
        if not self._expansion.add(attribute):
            self.raise_error(f"the aliases of this text stand for more than {self._expansion.limit:,} attributes")

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: Any) -> Any:
        alias = ("!" if is_type else "#") + attr_or_dialect_name
        self._define(alias)
        position = self.pos
        try:
            attribute = super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        except VerifyException as error:
            # Constructors of attributes and types check their parameters as they are parsed.
            self.raise_error(str(error), position, position)
        if alias in self._definitions:
            self._count(attribute)
        return attribute

    def _define(self, alias: str) -> None:
        """Parse the definition of `alias` unless that was done, or there is none."""
        if alias in self._open:
            self.raise_error(f"the alias '{alias}' is part of its own definition")
        start = self._definitions.get(alias)
        if start is None or alias in self.attribute_aliases:
            return
        resume_at = self.pos
        self._resume_from(start)
        self._open.append(alias)
        self.attribute_aliases[alias] = self.parse_attribute()
        self._open.pop()
        self._resume_from(resume_at)

    def _parse_alias_def(self) -> None:
        position = self.pos
        name = self._current_token.text
        if name in self._seen:
            self.raise_error(f"re-declaration of alias '{name}'", position)
        self._seen.add(name)
        # A forward use may have defined it; the definition is still read, so that its text is checked once.
        self.attribute_aliases.pop(name, None)
        self._open.append(name)
        super()._parse_alias_def()
        self._open.pop()
