"""The value of a module that a user names: as it is printed, or by the Python variable that it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.layouts.encodings import describe
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location
from tlx_xdsl.text.printer import Printer

from .layout_reasons import layout_of_value

_SUFFIX = re.compile(r"_\d+$")
"""The suffix that the printer puts after the name of a Python variable that several values have."""

_MOST_CANDIDATES = 8
"""The number of candidates that an error names before it counts the rest."""


@dataclass(frozen=True)
class NamedValue:
    """A value with a layout, the function that it is in, and the names of all values as they are printed."""

    value: SSAValue
    func: FuncOp
    names: Mapping[SSAValue, str]

    def __str__(self) -> str:
        """Name, line and type: `%acc, line 12: 64x64xf32`."""
        return f"%{self.names[self.value]}{_line_of(self.value)}: {shape_and_element(self.value)}"


def value_with_layout(module: ModuleOp, name: str, option: str) -> NamedValue:
    """The value `name` of `module`: `%acc_1` as printed, or a Python variable.

    Of a variable that stands for several values any one speaks for all if they have one layout.
    Raises CompilationError, which begins with `option` and has candidates, for another name, for values of several
    layouts, and for a value that has none.
    """
    funcs = [op for op in module.walk() if isinstance(op, FuncOp)]
    names = printed_names(module)
    wanted = name.removeprefix("%")
    if name.startswith("%"):
        found = [value for value, printed in names.items() if printed == wanted]
    else:
        found = [value for value, printed in names.items() if wanted in (printed, _SUFFIX.sub("", printed))]
        found = [value for value in found if layout_of_value(value) is not None] or found
    if not found:
        known = sorted({_SUFFIX.sub("", printed) for value, printed in names.items() if _is_named(value, printed)})
        raise error_at(funcs[0], f"{option}: no value is called '{name}'; those with layouts are {_listed(known)}")
    value = found[0]
    if layout_of_value(value) is None:
        raise error_at(value, f"{option}: '{name}' has no layout, it is of type {value.type}")
    if len({_layout_key(each) for each in found}) > 1:
        shown = _listed([f"%{names[each]} ({_summary(each)}{_line_of(each)})" for each in _one_of_each(found)])
        raise error_at(funcs[0], f"{option}: '{name}' stands for values of several layouts; name one of {shown}")
    return NamedValue(value, next(func for func in funcs if _holds(func, value)), names)


def printed_names(module: ModuleOp) -> dict[SSAValue, str]:
    """The name of every value as the module is printed, in the order of the text."""
    printer = _NamingPrinter(StringIO(), locations=False)
    printer.print_op(module)
    return printer.names


class _NamingPrinter(Printer):
    """Remembers the names that it prints; those of one function are forgotten by the printer after it."""

    def __init__(self, stream: StringIO, *, locations: bool):
        super().__init__(stream, locations=locations)
        self.names: dict[SSAValue, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        name = super().print_ssa_value(value)
        self.names.setdefault(value, name)
        return name


def _is_named(value: SSAValue, printed: str) -> bool:
    return not printed.isdigit() and layout_of_value(value) is not None


def _holds(func: FuncOp, value: SSAValue) -> bool:
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    while op is not None and op is not func:
        op = op.parent_op()
    return op is func


def _layout_key(value: SSAValue) -> object:
    """Return what values of one layout have in common: tensors and views of buffers are kept apart."""
    type_ = value.type
    return (isinstance(type_, MemDescType), layout_of_value(value))


def _one_of_each(values: list[SSAValue]) -> list[SSAValue]:
    return list({_layout_key(value): value for value in reversed(values)}.values())[::-1]


def _summary(value: SSAValue) -> str:
    layout = layout_of_value(value)
    return str(value.type) if layout is None else describe(layout)


def shape_and_element(value: SSAValue) -> str:
    """The shape and the element type of a tensor or buffer: `64x64xf32`."""
    type_ = value.type
    if isinstance(type_, MemDescType):
        return "x".join(map(str, (*type_.shape, type_.element_type)))
    assert isinstance(type_, TensorType)
    return "x".join(map(str, (*type_.get_shape(), type_.element_type)))  # pyright: ignore


def _line_of(value: SSAValue) -> str:
    place = source_location(location_of(value))
    return "" if place is None else f", line {place.line}"


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    rest = f", and {len(names) - _MOST_CANDIDATES} more" if len(names) > _MOST_CANDIDATES else ""
    return ", ".join(names[:_MOST_CANDIDATES]) + rest
