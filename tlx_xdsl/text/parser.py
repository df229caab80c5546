"""Reading MLIR text: xDSL's parser plus what Triton's text needs."""

from __future__ import annotations

import difflib
import re
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser as XDSLParser
from xdsl.utils.exceptions import ParseError, VerifyException

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import parse_error

_ALIAS_DEFINITION = re.compile(r"^([#!][A-Za-z_][\w$.-]*)[ \t]*=[ \t]*", re.MULTILINE)


class Parser(XDSLParser):
    """A parser that lets an alias be used before its definition.

    Triton prints most location aliases behind the module. Their definitions are found by one scan of the text and
    parsed when they are first used.
    """

    def __init__(self, ctx: Context, input: str | bytes, name: str = "<unknown>"):
        super().__init__(ctx, input, name)
        text = input.decode("utf-8") if isinstance(input, bytes) else input
        self._definitions = {match[1]: match.end() for match in _ALIAS_DEFINITION.finditer(text)}
        self._seen: set[str] = set()

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: Any) -> Any:
        self._define(("!" if is_type else "#") + attr_or_dialect_name)
        return super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)

    def _define(self, alias: str) -> None:
        """Parse the definition of `alias` unless that was done, or there is none."""
        start = self._definitions.get(alias)
        if start is None or alias in self.attribute_aliases:
            return
        resume_at = self.pos
        self._resume_from(start)
        self.attribute_aliases[alias] = self.parse_attribute()
        self._resume_from(resume_at)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """The class of the operation `name`; xDSL would report an unknown one at the token behind it."""
        op = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if op is None:
            self._raise_unknown_operation(name)
        return op

    def _raise_unknown_operation(self, name: str) -> NoReturn:
        position = self.lexer.input.content.rfind(name, 0, self.pos)
        dialect = self.ctx.get_optional_dialect(name.partition(".")[0])
        close = difflib.get_close_matches(name, [op.name for op in dialect.operations] if dialect else [], n=1)
        suggestion = f", did you mean '{close[0]}'?" if close else ""
        self.raise_error(f"unknown operation '{name}'{suggestion}", position, position + len(name))

    def _parse_alias_def(self) -> None:
        position = self.pos
        name = self._current_token.text
        if name in self._seen:
            self.raise_error(f"re-declaration of alias '{name}'", position)
        self._seen.add(name)
        # A forward use may have defined it; the definition is still read, so that its text is checked once.
        self.attribute_aliases.pop(name, None)
        super()._parse_alias_def()


def parse_module(text: str, *, filename: str = "<input>", context: Context | None = None) -> ModuleOp:
    """The module in `text`, in any Triton version's spelling.

    Raises CompilationError, located in `filename`, for text that is not in the language.
    """
    try:
        return Parser(make_context() if context is None else context, text, filename).parse_module()
    except ParseError as error:
        raise parse_error(error) from error
    except VerifyException as error:
        # Constructors of attributes and types check their parameters as they are parsed.
        raise CompilationError(str(error)) from error
