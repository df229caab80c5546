"""Aliases of attributes and types in MLIR text, which may be used before their definition."""

from __future__ import annotations

import re
from typing import Any

from xdsl.context import Context
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input

from .expansion import Expansion
from .lexer import Lexer

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
