"""Layout and memory-space attributes of `ttg`.

Each layout attribute wraps the frozen dataclass of the same layout in `tlx_xdsl.layouts.encodings`; one generic
parser and printer serves them all: `#ttg.blocked<{sizePerThread = [1, 4], ...}>`.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tlx_xdsl.layouts import encodings
from tlx_xdsl.layouts.encodings import Layout

FieldValue: TypeAlias = int | bool | tuple[Any, ...] | Layout
"""What a layout parameter can be: an integer, a bool, a (nested) list of integers, or another layout."""


class LayoutAttr(Data[Layout]):
    """Base of the layout attributes; `attr.data` is the layout itself."""

    layout_class: ClassVar[type[Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<{key = value, ...}>`."""
        keys = _field_by_key(cls.layout_class)
        found: dict[str, FieldValue] = {}

        def parse_entry() -> None:
            position = parser.pos
            key = parser.parse_identifier("layout parameter")
            if key not in keys:
                parser.raise_error(
                    f"'{cls.name}' has no parameter '{key}', expected one of {', '.join(keys)}", position
                )
            parser.parse_punctuation("=")
            found[keys[key]] = _parse_value(parser)

        with parser.in_angle_brackets():
            parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_entry)
        missing = [f.metadata["key"] for f in fields(cls.layout_class) if _required(f) and f.name not in found]
        if missing:
            parser.raise_error(f"'{cls.name}' lacks the parameter '{missing[0]}'")
        return cls.layout_class(**found)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<{key = value, ...}>`, leaving out what equals its default."""
        data = self.data
        shown = [
            (f.metadata["key"], getattr(data, f.name))
            for f in fields(data)
            if _required(f) or getattr(data, f.name) != f.default
        ]

        def print_entry(entry: tuple[str, FieldValue]) -> None:
            printer.print_string(f"{entry[0]} = ")
            _print_value(printer, entry[1])

        with printer.in_angle_brackets(), printer.in_braces():
            printer.print_list(shown, print_entry)


def _required(field: Any) -> bool:
    return field.default is MISSING


@cache
def _field_by_key(layout_class: type[Any]) -> dict[str, str]:
    return {f.metadata["key"]: f.name for f in fields(layout_class)}


def _parse_value(parser: AttrParser) -> FieldValue:
    if (boolean := parser.parse_optional_boolean()) is not None:
        return boolean
    if (integer := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return integer
    items = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_value(parser))
    if items is not None:
        return tuple(items)
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, LayoutAttr):
        parser.raise_error(f"expected an integer, a bool, a list or a layout, found {attribute}", position)
    return attribute.data


def _print_value(printer: Printer, value: FieldValue) -> None:
    if isinstance(value, bool):
        printer.print_string("true" if value else "false")
    elif isinstance(value, int):
        printer.print_string(str(value))
    elif isinstance(value, tuple):
        with printer.in_square_brackets():
            printer.print_list(value, lambda item: _print_value(printer, item))
    else:
        printer.print_attribute(layout_attr(value))


@irdl_attr_definition
class BlockedEncodingAttr(LayoutAttr):
    """`#ttg.blocked`: see `BlockedLayout`."""

    name = "ttg.blocked"
    layout_class = encodings.BlockedLayout


@irdl_attr_definition
class SliceEncodingAttr(LayoutAttr):
    """`#ttg.slice`: see `SliceLayout`."""

    name = "ttg.slice"
    layout_class = encodings.SliceLayout


@irdl_attr_definition
class NvidiaMmaEncodingAttr(LayoutAttr):
    """`#ttg.nvidia_mma`: see `NvidiaMmaLayout`."""

    name = "ttg.nvidia_mma"
    layout_class = encodings.NvidiaMmaLayout


@irdl_attr_definition
class DotOperandEncodingAttr(LayoutAttr):
    """`#ttg.dot_op`: see `DotOperandLayout`."""

    name = "ttg.dot_op"
    layout_class = encodings.DotOperandLayout


@irdl_attr_definition
class SwizzledSharedEncodingAttr(LayoutAttr):
    """`#ttg.swizzled_shared`: see `SwizzledSharedLayout`."""

    name = "ttg.swizzled_shared"
    layout_class = encodings.SwizzledSharedLayout


@irdl_attr_definition
class NvmmaSharedEncodingAttr(LayoutAttr):
    """`#ttg.nvmma_shared`: see `NvmmaSharedLayout`."""

    name = "ttg.nvmma_shared"
    layout_class = encodings.NvmmaSharedLayout


@irdl_attr_definition
class SharedMemorySpaceAttr(ParametrizedAttribute):
    """`#ttg.shared_memory`: the memory space of buffers in the shared memory of the thread block."""

    name = "ttg.shared_memory"


LAYOUT_ATTRS: tuple[type[LayoutAttr], ...] = (
    BlockedEncodingAttr,
    SliceEncodingAttr,
    NvidiaMmaEncodingAttr,
    DotOperandEncodingAttr,
    SwizzledSharedEncodingAttr,
    NvmmaSharedEncodingAttr,
)

_ATTR_OF_LAYOUT: dict[type[Any], type[LayoutAttr]] = {attr.layout_class: attr for attr in LAYOUT_ATTRS}


@cache
def layout_attr(layout: Layout) -> LayoutAttr:
    """The attribute that carries `layout`; equal layouts share one attribute object."""
    return _ATTR_OF_LAYOUT[type(layout)](layout)


def layout_of(encoding: Attribute) -> Layout | None:
    """The layout that a tensor or buffer encoding carries; None for an absent encoding.

    Raises TypeError for an encoding that is no layout of ours.
    """
    if isinstance(encoding, LayoutAttr):
        return encoding.data
    if isinstance(encoding, NoneAttr):
        return None
    raise TypeError(f"not a layout attribute: {encoding}")
