"""Tokens of MLIR text: xDSL's lexer, faster and without its worst case."""

from __future__ import annotations

import re

from xdsl.utils.lexer import Span, Token
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
