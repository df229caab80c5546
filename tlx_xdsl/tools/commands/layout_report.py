"""The report of `tlx explain` on layouts: accesses to buffers, conversions, and the reason for a value's layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.buffer_users import task_of, task_order
from tlx_xdsl.analysis.global_costs import global_accesses
from tlx_xdsl.analysis.layout_costs import Buffer, Conversion, buffers, conversions
from tlx_xdsl.analysis.layout_reasons import LayoutReasons, hints_of, layout_of_value
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.layouts.encodings import describe
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location
from tlx_xdsl.text.printer import Printer

_SUFFIX = re.compile(r"_\d+$")
"""The suffix that the printer puts after the name of a Python variable that several values have."""

_MOST_CANDIDATES = 8
"""The number of candidates that an error names before it counts the rest."""


def layout_section(module: ModuleOp, named: ModuleOp | None = None) -> str:
    """Return what layouts cost in `module`: accesses to global memory and to buffers, and layout conversions.

    Stock Triton forgets the names of buffers; `named` is the same program with names.
    """
    names = _names_of_places(module if named is None else named)
    loads = _rows((str(access), access.op) for access in global_accesses(module))
    found = [line for buffer in buffers(module) for line in _buffer_lines(buffer, names)]
    converted = _rows((_conversion(each), each.op) for each in conversions(module))
    lines: list[str] = []
    for title, rows in (("global memory", loads), ("buffers", found), ("layout conversions", converted)):
        lines += [f"{title}: none"] if not rows else [title, *rows]
    return "\n".join(lines)


def layout_costs(module: ModuleOp) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "global_memory": _counts((str(access), access.op) for access in global_accesses(module)),
        "buffers": [
            {
                "name": each.name, "type": _type(each.value),
                "layout": None if (layout := layout_of_value(each.value)) is None else describe(layout),
                "accesses": _counts((str(access), access.op) for access in each.accesses),
            }
            for each in buffers(module)
        ],
        "conversions": _counts((_conversion(each), each.op) for each in conversions(module)),
    }  # fmt: skip


def _counts(rows: Iterable[tuple[str, Operation]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for text, ops in _grouped(rows).items():
        tasks, lines = _tasks_and_lines(ops)
        found.append({"count": len(ops), "text": text, "tasks": tasks, "lines": lines})
    return found


def _names_of_places(module: ModuleOp) -> dict[SourceLocation, str]:
    """The names of buffers by the place where they are allocated; several of one place have none."""
    found: dict[SourceLocation, set[str]] = {}
    for buffer in buffers(module):
        place = source_location(location_of(buffer.value))
        if place is not None:
            found.setdefault(place, set()).add(buffer.name)
    return {place: names.pop() for place, names in found.items() if len(names) == 1}


def _grouped(rows: Iterable[tuple[str, Operation]]) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for text, op in rows:
        groups.setdefault(text, []).append(op)
    return groups


def _rows(rows: Iterable[tuple[str, Operation]]) -> list[str]:
    """A line per text: how often it stands, and where."""
    groups = _grouped(rows)
    return [f"  {len(ops)} x {text}{_places(ops)}" for text, ops in groups.items()]


def _conversion(conversion: Conversion) -> str:
    if not conversion.loops:
        return str(conversion.cost)
    return f"in {'a loop' if conversion.loops == 1 else f'{conversion.loops} loops'}, {conversion.cost}"


def _buffer_lines(buffer: Buffer, names: dict[SourceLocation, str]) -> Iterator[str]:
    layout, place = layout_of_value(buffer.value), source_location(location_of(buffer.value))
    words = "" if layout is None else f", {describe(layout)}"
    name = buffer.name if place is None else names.get(place, buffer.name)
    yield f"  {name}: {_type(buffer.value)}{words}"
    yield from (f"  {row}" for row in _rows((str(access), access.op) for access in buffer.accesses))


def _places(ops: Sequence[Operation]) -> str:
    """Return where operations stand: ` (partition0, partition1: lines 110, 124)`."""
    tasks, lines = _tasks_and_lines(ops)
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else "no line"
    return f" ({', '.join(tasks)}: {where})"


def _tasks_and_lines(ops: Sequence[Operation]) -> tuple[list[str], list[int]]:
    tasks = {task_of(op): None for op in ops}
    lines = {place.line for op in ops if (place := source_location(op.location)) is not None}
    return sorted(tasks, key=task_order), sorted(lines)


# --- --why ------------------------------------------------------------------------------------------------------------


def why(module: ModuleOp, name: str, frontend: ModuleOp) -> str:
    """The chain of reasons for the layout of the value `name` of `module`: `%acc_1` as printed, or a Python variable.

    `frontend` is the module before all passes, where the requirements of the program still are. Of a variable that
    stands for several values any one speaks for all if they have one layout.
    Raises CompilationError, with candidates, for another name, for values of several layouts, and for a value that
    has none.
    """
    func = next(op for op in module.walk() if isinstance(op, FuncOp))
    names = _printed_names(module)
    wanted = name.removeprefix("%")
    if name.startswith("%"):
        found = [value for value, printed in names.items() if printed == wanted]
    else:
        found = [value for value, printed in names.items() if wanted in (printed, _SUFFIX.sub("", printed))]
        found = [value for value in found if layout_of_value(value) is not None] or found
    if not found:
        known = sorted({_SUFFIX.sub("", printed) for value, printed in names.items() if _is_named(value, printed)})
        raise error_at(func, f"--why: no value is called '{name}'; those with layouts are {_listed(known)}")
    value = found[0]
    layout = layout_of_value(value)
    if layout is None:
        raise error_at(value, f"--why: '{name}' has no layout, it is of type {value.type}")
    if len({_layout_key(each) for each in found}) > 1:
        shown = _listed([f"%{names[each]} ({_summary(each)}{_line_of(each)})" for each in _one_of_each(found)])
        raise error_at(func, f"--why: '{name}' stands for values of several layouts; name one of {shown}")
    place = next(op for op in module.walk() if isinstance(op, FuncOp) and _holds(op, value))
    lines = [f"%{names[value]}{_line_of(value)}: {_type(value)}, {describe(layout)}"]
    for step in LayoutReasons(place, hints_of(frontend)).of(value):
        to = "" if step.value is None else f" %{names[step.value]}"
        lines.append(f"  <- {step.words}{to}")
    return "\n".join(lines)


def _printed_names(module: ModuleOp) -> dict[SSAValue, str]:
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


def _type(value: SSAValue) -> str:
    """Shape and element type."""
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
