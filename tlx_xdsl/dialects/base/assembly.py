"""Pieces of assembly formats that MLIR has and xDSL lacks, for declarative formats and hand-written syntax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, LocationAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer


def print_stripped(printer: Printer, type_: ParametrizedAttribute) -> None:
    """Print a dialect type without its name: `<f32>` for `!tt.ptr<f32>`."""
    # The printer may spell a type in a Triton version's own way, so its text is cut, not made here.
    stream, printer.stream = printer.stream, StringIO()
    printer.print_attribute(type_)
    text = printer.stream.getvalue()
    printer.stream = stream
    printer.print_string(text.removeprefix(f"!{type_.name}"))


def parse_stripped(parser: Parser, type_class: type[ParametrizedAttribute]) -> Attribute:
    """Read a type of `type_class`, with or without its name."""
    type_ = parser.parse_optional_type()
    return type_class.new(type_class.parse_parameters(parser)) if type_ is None else type_


class _StrippedDirective(CustomDirective):
    type_class: type[Any]
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type."""
        self.types.set(state, (parse_stripped(parser, self.type_class),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type without its name."""
        state.print_whitespace(printer)
        (type_,) = self.types.get(op)
        assert isinstance(type_, ParametrizedAttribute)
        print_stripped(printer, type_)


def stripped_directive(name: str, type_class: type[ParametrizedAttribute]) -> type[CustomDirective]:
    """The directive `custom<name>(type($value))`: MLIR leaves out the name of a type that can be of one class only."""

    class Directive(_StrippedDirective):
        types: TypeDirective

    Directive.__name__ = name
    Directive.type_class = type_class
    return irdl_custom_directive(Directive)


@irdl_custom_directive
class SourceType(CustomDirective):
    """`type($src)`; Triton before 3.0 put the types of all operands in parentheses: `(f32) -> tensor<4xf32>`."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type, or as many of them as there are operands, which must be one."""
        position = parser.pos
        listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        types: list[Attribute] = [parser.parse_type()] if listed is None else list(listed)
        operands = sum(len(each or ()) for each in state.operands)
        if listed is not None and (len(types) != operands or len(set(types)) != 1):
            shown = ", ".join(map(str, types))
            parser.raise_error(f"expected one type for {operands} operand(s), found {shown or 'none'}", position)
        self.types.set(state, types[:1])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        self.types.print(printer, state, op)


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Read `%a, %b, ...`, which may be empty."""
    found = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    return [] if found is None else list(found)


def parse_types(parser: Parser) -> list[Attribute]:
    """Read `type, type, ...`, at least one."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print `type, type, ...`."""
    printer.print_list(types, printer.print_attribute)


def location_here(parser: Parser) -> LocationAttr | None:
    """The place of the token that is about to be read, where the parser keeps places."""
    here: Callable[[], LocationAttr] | None = getattr(parser, "location_here", None)
    return None if here is None else here()


def split_properties(
    op: type[IRDLOperation], attributes: dict[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Sort what stood in an attribute dictionary into the properties of `op` and its other attributes."""
    known = op.get_irdl_definition().properties
    properties = {name: value for name, value in attributes.items() if name in known}
    return properties, {name: value for name, value in attributes.items() if name not in known}


def print_attr_dict(printer: Printer, op: IRDLOperation, *, hidden: Sequence[str] = (), keyword: bool = False) -> None:
    """Print ` {...}` with the properties that differ from their defaults and the other attributes of `op`.

    With `keyword` it is ` attributes {...}`.
    """
    definitions = op.get_irdl_definition().properties
    shown = {
        name: value
        for name, value in op.properties.items()
        if name not in hidden and value != definitions[name].default_value
    }
    printer.print_op_attributes(dict(sorted((shown | op.attributes).items())), print_keyword=keyword)


Groups: TypeAlias = Sequence[Sequence[int]]
"""For each dimension of the smaller rank, those of the larger one that make it up."""
GroupsAttr: TypeAlias = ArrayAttr[ArrayAttr[IntegerAttr]]


def groups_attr(groups: Groups) -> GroupsAttr:
    """The groups as an attribute."""
    return _attr(*map(tuple, groups))


@lru_cache(maxsize=1024)
def _attr(*groups: tuple[int, ...]) -> GroupsAttr:
    return ArrayAttr(ArrayAttr(IntegerAttr(dim, i64) for dim in group) for group in groups)


def groups_of(attr: GroupsAttr) -> list[list[int]]:
    """The groups that an attribute states."""
    return [[dim.value.data for dim in group] for group in attr]


def print_groups(printer: Printer, groups: GroupsAttr) -> None:
    """Print ` [[0, 1], [2]]`."""
    printer.print_string(" ")
    with printer.in_square_brackets():
        printer.print_list(groups_of(groups), lambda group: _print_group(printer, group))


def _print_group(printer: Printer, group: Sequence[int]) -> None:
    with printer.in_square_brackets():
        printer.print_list(group, printer.print_int)
