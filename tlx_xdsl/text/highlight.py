"""Syntax of MLIR and of Python, for colours in pages and at a terminal. Needs pygments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from pygments.lexer import RegexLexer, bygroups  # pyright: ignore[reportUnknownVariableType]
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

Language: TypeAlias = Literal["mlir", "python"]

Piece: TypeAlias = tuple[str, str]
"""A kind of word, of `KINDS`, or none; and the text."""


class MlirLexer(RegexLexer):
    """A lexer of MLIR for pygments, which documentation sites find by the name `mlir`."""

    name = "MLIR"
    aliases: ClassVar[Any] = ["mlir"]
    filenames: ClassVar[Any] = ["*.mlir", "*.ttir", "*.ttgir"]
    tokens: ClassVar[Any] = {  # pyright: ignore[reportUnknownVariableType]
        "root": [
            (r"\s+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (r"\^[\w$.-]+", Name.Label),
            (r"@[\w$.-]+", Name.Function),
            (r"![\w$.-]+", Keyword.Type),
            (r"#[\w$.-]+", Name.Decorator),
            (r"((?:(?:\d+|\?)x)+)([a-z]\w*)?", bygroups(Number, Keyword.Type)),
            (r"(?:bf16|tf32|f\d+\w*|[su]?i\d+|index|tensor|vector|memref|none)\b", Keyword.Type),
            (r"[a-z_]\w*(?:\.[\w$]+)+", Keyword),
            (r"0x[0-9a-fA-F]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", Number),
            (r"(?:module|true|false|dense|loc|to|step|iter_args|attributes|public|private)\b", Keyword.Constant),
            (r"[A-Za-z_]\w*", Name),
            (r"->|.", Punctuation),
        ]
    }


KINDS = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword.Type, "type"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Builtin, "type"),
    (Name.Decorator, "attribute"),
    (Name.Function, "function"),
    (Name.Label, "attribute"),
    (Name.Variable, "value"),
)
"""The kinds of words that have a colour, the narrower token of pygments first."""


def pieces_of(lines: Sequence[str], language: Language) -> list[list[Piece]]:
    """Each line in pieces, which together are the line: `[("value", "%a"), ("", " = "), ("keyword", "tt.load")]`.

    What goes over several lines, such as a string of Python, has its kind in each of them.
    """
    lexer: Any = MlirLexer(stripnl=False) if language == "mlir" else PythonLexer(stripnl=False)
    found: list[list[Piece]] = [[]]
    token: Any
    for token, text in lexer.get_tokens("\n".join(lines)):
        kind = next((kind for group, kind in KINDS if token in group), "") if token not in Text else ""
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append([])
            if part:
                found[-1].append((kind, part))
    return found[: len(lines)]
