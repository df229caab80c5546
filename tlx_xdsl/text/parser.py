"""Reading MLIR text: xDSL's parser plus what Triton's text needs."""

from __future__ import annotations

import difflib
import re
import traceback
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import xdsl
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import AttrParser, Position
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError, internal_error, let_through

from .aliases import AliasParser
from .diagnostics import LOCATIONS, FileLineColRange, error_at, parse_error
from .profiles import NEWER_NAMES

if TYPE_CHECKING:
    from .meta import Reading

_T = TypeVar("_T")

_ARROW = re.compile(r"->\s*$")
_SPACE = 200
"""Characters before a token that are searched for an arrow."""

_WORD = re.compile(r",?\s*(\w+)")
"""The word at an error, or the one after the comma there."""

_NUMBERS = re.compile(r"(_\d+)+$")

_EXPLICITLY_UNKNOWN = UnknownLoc()
"""The value of `loc(unknown)`: an operation with it keeps it."""

_MOST_ELEMENTS = 1 << 24
"""Elements of a dense literal; Triton's tensors have at most 1 << 20."""

_MOST_BITS = (1 << 24) - 1
"""Bits of an integer type (MLIR's `IntegerType::kMaxWidth`)."""

_NO_OPERATION = "Could not parse entire input!"
"""The messages of xDSL for a token that begins no operation, or for none."""


class Parser(AliasParser):
    """A parser of a text whose lines count from `first_line` in locations and errors."""

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>", *, first_line: int = 1):
        super().__init__(ctx, input, name)
        self._filename = StringAttr(name)
        self._first_line = first_line
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", input))]
        self._operations: list[Position] = []
        """The position of the name of each operation that is being read, outermost first."""
        self._readings: dict[Operation, Reading] = {}
        """What stands for operations of Meta's Triton, which is put in place at the end."""
        self._hex_elements: list[int | None] = []
        """For each element of the dense literal that is being read, its value when it is hexadecimal."""

    def is_at_end(self) -> bool:
        """Return whether nothing is left but comments and spaces."""
        return self._current_token.kind == MLIRTokenKind.EOF

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module; text of aliases alone is an empty one, as in MLIR."""
        while self._current_token.kind in (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT):
            self._parse_alias_def()
        if self.is_at_end():
            return ModuleOp([])
        module = super().parse_module(allow_implicit_module)
        if self._readings:
            from .meta import settle

            settle(self._readings)
        return module

    def parse_comma_separated_list(
        self, delimiter: AttrParser.Delimiter, parse: Callable[[], _T], context_msg: str = ""
    ) -> list[_T]:
        """A list; as in MLIR a single type after an arrow needs no parentheses: `scf.if %c -> i32 {`."""
        if (
            delimiter is self.Delimiter.PAREN
            and self._current_token.kind != MLIRTokenKind.L_PAREN
            and _ARROW.search(self.lexer.input.content, max(0, self.pos - _SPACE), self.pos)
        ):
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _parse_external_resources(self) -> None:
        """Skip what a tool has written for itself, such as the pipeline of a reproducer."""
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_resource)

    def _parse_external_resource(self) -> None:
        self.parse_identifier_or_str_literal()
        self.parse_punctuation(":")
        if self._current_token.kind == MLIRTokenKind.L_BRACE:
            self._parse_external_resources()
        elif self.parse_optional_boolean() is None:
            self.parse_str_literal()

    def _parse_dialect_type_or_attribute_body(self, attr_name: str, *args: Any, **kwargs: Any) -> Any:
        """An attribute of a dialect, by its name here."""
        name = NEWER_NAMES.get(attr_name, attr_name)
        return cast(Any, super())._parse_dialect_type_or_attribute_body(name, *args, **kwargs)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """The class of the operation `name`; xDSL would report an unknown one at the token after it."""
        position = self._position_of(name)
        if name.startswith(("ttg.", "ttng.")) and self.lexer.input.at(position - 1) != '"':
            # Its import brings in dialects that other text does not need.
            from .meta import READERS, Stand

            if (reader := READERS.get(name)) is not None:
                self._operations.append(position)
                return cast("type[Operation]", Stand(name, reader, self._readings))
        op = self.ctx.get_optional_op(NEWER_NAMES.get(name, name), dialect_stack=self._parser_state.dialect_stack)
        if op is None:
            self._raise_unknown_operation(name)
        self._operations.append(position)
        return op

    def _position_of(self, name: str) -> Position:
        """Return where the operation name that was just read begins."""
        return self.lexer.input.content.rfind(name, 0, self.pos)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        """Note what `name` stands for, and that the values came with it.

        A hint loses all numeric endings, which the printer adds again as it needs them; xDSL takes one off, and so
        what it prints of `%a_1_2` comes back with another name.
        """
        super()._register_ssa_definition(name, values, span)
        for value in values:
            if value.name_hint is not None:
                value.name_hint = _NUMBERS.sub("", value.name_hint) or None

    def parse_operation(self) -> Operation:
        """An operation; one without a location gets its place in the text, as in MLIR."""
        op = super().parse_operation()
        position = self._operations.pop()
        if op.attributes and isinstance(op, IRDLOperation):
            _take_properties(op)
        if op.name == "ttg.warp_specialize" and op.operands:
            _move_captures_inside(op)
        if op.location is not _EXPLICITLY_UNKNOWN and isinstance(op.location, UnknownLoc):
            op.location = self._location_at(position)
        return op

    def placed(self, module: ModuleOp) -> ModuleOp:
        """`module`, at the beginning of the text where the text has none and xDSL has put one around it."""
        if isinstance(module.location, UnknownLoc) and module.location is not _EXPLICITLY_UNKNOWN:
            module.location = self._location_at(0)
        return module

    def error_here(self, message: str, notes: Sequence[str] = ()) -> CompilationError:
        """The error `message` at the token that is about to be read."""
        return error_at(self._location_at(self.pos), message, notes)

    def error_in_operation(self, message: str) -> CompilationError:
        """The error `message` at the operation that is being read."""
        return (
            error_at(self._location_at(self._operations[-1]), message) if self._operations else self.error_here(message)
        )

    def location_here(self) -> FileLineColLoc:
        """The place of the token that is about to be read."""
        return self._location_at(self.pos)

    def _location_at(self, position: Position) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._filename, IntAttr(line + self._first_line - 1), IntAttr(column))

    def _raise_unknown_operation(self, name: str) -> NoReturn:
        from .meta import ITS_OWN

        position = self._position_of(name)
        if name in ITS_OWN:
            self.raise_error(f"'{name}' is Meta's Triton's own, it has no counterpart", position, position + len(name))
        dialect = self.ctx.get_optional_dialect(name.partition(".")[0])
        close = difflib.get_close_matches(name, [op.name for op in dialect.operations] if dialect else [], n=1)
        suggestion = f", did you mean '{close[0]}'?" if close else ""
        self.raise_error(f"unknown operation '{name}'{suggestion}", position, position + len(name))

    def _parse_location(self) -> Any:
        """A location, with the two forms that xDSL lacks: fused with metadata, and a range of text."""
        if self.parse_optional_keyword("fused") is not None:
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<") is not None:
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(tuple(parts), metadata)
        if self._current_token.kind == MLIRTokenKind.HASH_IDENT:
            position = self.pos
            alias = self.parse_attribute()
            if not isinstance(alias, LOCATIONS):
                self.raise_error(f"expected a location, found {alias}", position)
            return alias
        location = super()._parse_location()
        if isinstance(location, UnknownLoc):
            return _EXPLICITLY_UNKNOWN
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            end_line = self.parse_optional_integer(allow_boolean=False, allow_negative=False)
            self.parse_punctuation(":")
            end_column = self.parse_integer(allow_boolean=False, allow_negative=False)
            end = location.line if end_line is None else IntAttr(end_line)
            return FileLineColRange(location.filename, location.line, location.column, end, IntAttr(end_column))
        return location

    def _parse_optional_builtin_attr(self) -> Attribute | None:
        """A builtin attribute; text with escaped bytes, as non-ASCII characters are, is a string like any other."""
        attribute = super()._parse_optional_builtin_attr()
        return StringAttr(attribute.data.decode()) if isinstance(attribute, BytesAttr) else attribute

    def parse_optional_str_literal(self) -> str | None:
        """A string literal, with or without escaped bytes."""
        if (text := super().parse_optional_str_literal()) is not None:
            return text
        data = self.parse_optional_bytes_literal()
        return None if data is None else data.decode()

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> Any:
        """A dense attribute whose float elements may be hexadecimal bit patterns, as infinities and NaNs are printed.

        xDSL would read such an element as the number that its digits spell.
        """
        outer, self._hex_elements = self._hex_elements, []
        try:
            attribute = super().parse_dense_int_or_fp_elements_attr(type)
            return with_bit_patterns(attribute, self._hex_elements)
        finally:
            self._hex_elements = outer

    def _parse_optional_integer_or_float_type(self) -> Any:
        """A number type; an integer has at most as many bits as in MLIR."""
        position = self.pos
        type_: Any = super()._parse_optional_integer_or_float_type()
        if isinstance(type_, IntegerType) and cast(Any, type_).width.data > _MOST_BITS:
            self.raise_error(f"an integer has at most {_MOST_BITS:,} bits", position)
        return cast(Any, type_)

    def _parse_dense_literal_type(self) -> Any:
        """The type of a dense literal, of no more elements than memory can hold: xDSL repeats the one of a splat."""
        position = self.pos
        type_ = super()._parse_dense_literal_type()
        if (count := prod(type_.get_shape())) > _MOST_ELEMENTS:
            self.raise_error(f"a dense literal has at most {_MOST_ELEMENTS:,} elements, found {count:,}", position)
        return type_

    def _parse_tensor_literal_element(self) -> Any:
        element = super()._parse_tensor_literal_element()
        text = element.span.text
        self._hex_elements.append(int(text, 16) if text.startswith("0x") else None)
        return element


def _take_properties(op: IRDLOperation) -> None:
    """Move what a dictionary of attributes says of properties to them, as MLIR does: `{rounding = 1 : i32}`."""
    for name in op.attributes.keys() & op.get_irdl_definition().properties.keys() - op.properties.keys():
        op.properties[name] = op.attributes.pop(name)


def _move_captures_inside(op: Operation) -> None:
    """Bring a `ttg.warp_specialize` in the generic form of Triton 3.6 to that of later versions.

    There the captures are operands of the operation itself, later of the `ttg.warp_specialize.partitions` inside.
    """
    partitions = op.regions[1].blocks[0].first_op if len(op.regions) == 2 and op.regions[1].blocks else None
    if partitions is not None and partitions.name == "ttg.warp_specialize.partitions":
        partitions.operands = [*op.operands]
        op.operands = []


def parse_module(
    text: str, *, filename: str = "<input>", context: Context | None = None, first_line: int = 1
) -> ModuleOp:
    """The module in `text`, in any Triton version's spelling; its first line is line `first_line` of `filename`.

    Raises CompilationError, located in `filename`, for text that is not in the language.
    """
    try:
        # A parser reads its first token when it is made.
        parser = Parser(make_context() if context is None else context, text, filename, first_line=first_line)
        return _module_of(parser)
    except ParseError as error:
        if error.msg == _NO_OPERATION:
            error.msg = f"expected an operation, found {repr(error.span.text) if error.span.text else 'the end'}"
        from .meta import ITS_WORDS

        word = _WORD.match(text, error.span.start)
        if word is not None and (what := ITS_WORDS.get(word[1])) is not None:
            error.msg = f"'{word[1]}' is Meta's Triton's own: {what}"
        error.span = replace(error.span, line_offset=first_line - 1)
        raise parse_error(error) from error


def _module_of(parser: Parser) -> ModuleOp:
    try:
        return parser.placed(parser.parse_module())
    except (CompilationError, ParseError):
        raise
    except (VerifyException, InputError, InputTypeError) as error:
        raise parser.error_in_operation(str(error)) from error
    except Exception as error:
        raise parser.error_here(*_what_failed(error)) from error


def _what_failed(error: Exception) -> tuple[str, tuple[str, ...]]:
    """The message and notes for an exception of Python while text was read.

    xDSL's parser lets some of them pass for text that it does not expect, such as an array of an odd element type.
    """
    let_through(error)
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, RecursionError | MemoryError) or not frames or _XDSL not in frames[-1].filename:
        internal = internal_error(error)
        return internal.message, internal.notes
    return f"xDSL can't read this: {type(error).__name__}: {' '.join(str(error).split())}", ()


_XDSL = str(Path(xdsl.__file__).parent)


def with_bit_patterns(attribute: DenseIntOrFPElementsAttr, elements: list[int | None]) -> DenseIntOrFPElementsAttr:
    """`attribute` with the bytes of its hexadecimal float elements replaced by their bit patterns."""
    element_type = attribute.get_element_type()
    if not isinstance(element_type, AnyFloat) or all(bits is None for bits in elements):
        return attribute
    size = element_type.compile_time_size
    data = bytearray(attribute.data.data)
    for index, bits in enumerate(elements):
        if bits is not None:
            data[index * size : (index + 1) * size] = bits.to_bytes(size, "little")
    if len(elements) == 1:
        # A splat stands for all elements.
        data = data[:size] * (len(data) // size)
    return DenseIntOrFPElementsAttr(attribute.type, BytesAttr(bytes(data)))
