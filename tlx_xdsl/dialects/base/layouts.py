"""The base of the layout attributes and their generic textual form `<{key = value, ...}>`.

A layout attribute wraps the frozen dataclass of the same layout in `tlx_xdsl.layouts.encodings`: `attr.data` is the
layout itself, and the fields of the dataclass are the keys of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, get_args, get_origin, get_type_hints

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.layouts.encodings import Layout, key_of
from tlx_xdsl.layouts.validity import fault_of

FieldValue: TypeAlias = int | bool | str | tuple[Any, ...] | Layout
"""The value of a layout parameter: an integer, a bool, a keyword, a (nested) list of integers, or another layout."""


class LayoutAttr(Data[Layout]):
    """Base of the layout attributes; `attr.data` is the layout itself."""

    layout_class: ClassVar[type[Any]]
    OF_LAYOUT: ClassVar[dict[type[Any], type[LayoutAttr]]] = {}
    """The attribute that carries each layout; a class is registered when it is defined."""
    braces: ClassVar[bool] = True
    """True if the parameters stand in braces inside of the angle brackets."""
    PARSED_DEFAULTS: ClassVar[dict[str, int | bool]] = {}
    """The values of parameters that may be left out and are always printed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "layout_class"):
            cls.OF_LAYOUT[cls.layout_class] = cls

    def verify(self) -> None:
        """The layout is one that stock Triton takes."""
        if (fault := fault_of(self.data)) is not None:
            raise VerifyException(f"'{self.name}': {fault}")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<{key = value, ...}>`."""
        types = parameter_types(cls.layout_class)
        if not cls.braces:
            return cls.make(parser, parse_entries(parser, cls.name, types, parser.Delimiter.ANGLE))
        with parser.in_angle_brackets():
            return cls.make(parser, parse_entries(parser, cls.name, types))

    @classmethod
    def make(cls, parser: AttrParser, found: dict[str, FieldValue]) -> Layout:
        """The layout with the parameters `found`, by their keys in the text."""
        found = {**cls.PARSED_DEFAULTS, **found}
        for field in fields(cls.layout_class):
            if _required(field) and key_of(field.name) not in found:
                parser.raise_error(f"'{cls.name}' lacks the parameter '{key_of(field.name)}'")
        names = {key_of(field.name): field.name for field in fields(cls.layout_class)}
        return cls.layout_class(**{names[key]: value for key, value in found.items()})

    def print_parameter(self, printer: Printer) -> None:
        """Print `<{key = value, ...}>`, leaving out what equals its default."""
        with printer.in_angle_brackets(), printer.in_braces() if self.braces else nullcontext():
            print_entries(printer, shown_entries(self.data))


class LayoutWrapper(ParametrizedAttribute):
    """Base of the attributes that say something about one layout and hold it: `#tlx.name<#layout>`.

    Each defines the parameter itself: xDSL compares attributes by the parameters of their own class.
    """

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<layout>`."""
        with parser.in_angle_brackets():
            return [parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.wrapped)

    @property
    def wrapped(self) -> Attribute:
        """The layout that it holds."""
        return self.parameters[0]


@cache
def layout_attr(layout: Layout) -> LayoutAttr:
    """The attribute that carries `layout`; equal layouts share one attribute object."""
    return LayoutAttr.OF_LAYOUT[type(layout)](layout)


def bare(encoding: Attribute) -> Attribute:
    """`encoding` without what is wrapped around the layout."""
    while isinstance(encoding, LayoutWrapper):
        encoding = encoding.wrapped
    return encoding


def chosen_layout(encoding: Attribute | None) -> Layout | None:
    """The layout that an encoding is; None for a placeholder, a wrapper, or an absent encoding."""
    return encoding.data if isinstance(encoding, LayoutAttr) else None


def layout_of(encoding: Attribute) -> Layout | None:
    """The layout that a tensor or buffer encoding carries, also in wrappers; None for an absent encoding.

    Raises TypeError for an encoding that is no layout of ours.
    """
    encoding = bare(encoding)
    if isinstance(encoding, LayoutAttr):
        return encoding.data
    if isinstance(encoding, NoneAttr):
        return None
    raise InputTypeError(f"not a layout attribute: {encoding}")


def like(model: Attribute, encoding: Attribute) -> Attribute:
    """`encoding` in the wrappers that `model` has."""
    return type(model).new([like(model.wrapped, encoding)]) if isinstance(model, LayoutWrapper) else encoding


def is_layout_or_placeholder(encoding: Attribute) -> bool:
    """True if `encoding` is a layout, or stands for one that a pass will choose (`#tlx.dummy_tmem_layout`, ...)."""
    return isinstance(encoding, LayoutAttr) or encoding.name.split(".")[0] in ("gluon", "tlx", "ttg")


def _required(field: Any) -> bool:
    return field.default is MISSING


@cache
def parameter_types(layout_class: type[Any]) -> Mapping[str, Any]:
    """The types of the parameters of a layout, by their keys in the text."""
    hints = get_type_hints(layout_class)
    return {key_of(field.name): hints[field.name] for field in fields(layout_class)}


def _fits(value: FieldValue, type_: Any) -> bool:
    """Return whether a parameter that was read has the type of its field."""
    origin = get_origin(type_)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(type_)[0]) for item in value)
    if origin is Literal:
        return value in get_args(type_)
    # A bool is an int to Python, and a union is of layouts.
    return isinstance(value, type_) and isinstance(value, bool) == (type_ is bool)


def _described(type_: Any) -> str:
    """The type of a parameter in words."""
    origin = get_origin(type_)
    if origin is tuple:
        return "a list of lists of integers" if get_origin(get_args(type_)[0]) is tuple else "a list of integers"
    if origin is Literal:
        return " or ".join(get_args(type_))
    return {int: "an integer", bool: "true or false"}.get(type_, "a layout of a tensor in registers")


def shown_entries(layout: Layout) -> dict[str, FieldValue]:
    """The parameters of `layout` that differ from their defaults, by their keys in the text."""
    return {
        key_of(field.name): getattr(layout, field.name)
        for field in fields(layout)
        if _required(field) or getattr(layout, field.name) != field.default
    }


def parse_entries(
    parser: AttrParser,
    name: str,
    types: Mapping[str, Any],
    delimiter: AttrParser.Delimiter = AttrParser.Delimiter.BRACES,
) -> dict[str, FieldValue]:
    """Parse `{key = value, ...}` with keys that have the given types, for the layout `name`."""
    found: dict[str, FieldValue] = {}

    def parse_entry() -> None:
        position = parser.pos
        key = parser.parse_identifier(context_msg=" (layout parameter)")
        if key not in types:
            parser.raise_error(f"'{name}' has no parameter '{key}', expected one of {', '.join(types)}", position)
        if key in found:
            parser.raise_error(f"the parameter '{key}' is given twice", position)
        parser.parse_punctuation("=")
        position = parser.pos
        found[key] = _parse_value(parser)
        if not _fits(found[key], types[key]):
            parser.raise_error(f"the parameter '{key}' of '{name}' must be {_described(types[key])}", position)

    parser.parse_comma_separated_list(delimiter, parse_entry)
    return found


def print_entries(printer: Printer, entries: dict[str, FieldValue]) -> None:
    """Print `key = value, ...`."""

    def print_entry(entry: tuple[str, FieldValue]) -> None:
        printer.print_string(f"{entry[0]} = ")
        _print_value(printer, entry[1])

    printer.print_list(entries.items(), print_entry)


def _parse_value(parser: AttrParser) -> FieldValue:
    if (boolean := parser.parse_optional_boolean()) is not None:
        return boolean
    if (integer := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return integer
    items = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_value(parser))
    if items is not None:
        return tuple(items)
    if (word := parser.parse_optional_identifier()) is not None:
        return word
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, LayoutAttr):
        parser.raise_error(f"expected an integer, a bool, a list or a layout, found {attribute}", position)
    return attribute.data


def _print_value(printer: Printer, value: FieldValue) -> None:
    if isinstance(value, bool):
        printer.print_string("true" if value else "false")
    elif isinstance(value, int | str):
        printer.print_string(str(value))
    elif isinstance(value, tuple):
        with printer.in_square_brackets():
            printer.print_list(value, lambda item: _print_value(printer, item))
    else:
        printer.print_attribute(layout_attr(value))
