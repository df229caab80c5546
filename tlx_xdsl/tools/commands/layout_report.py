"""The report of `tlx explain` on layouts: accesses to buffers, conversions, and the reason for a value's layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.analysis.buffer_users import task_of, task_order
from tlx_xdsl.analysis.global_costs import global_accesses
from tlx_xdsl.analysis.layout_costs import Buffer, Conversion, buffers, conversions
from tlx_xdsl.analysis.layout_reasons import LayoutReasons, hints_of, layout_of_value
from tlx_xdsl.analysis.named_values import shape_and_element, value_with_layout
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.layouts.encodings import describe
from tlx_xdsl.text.diagnostics import location_of, source_location


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
                "name": each.name, "type": shape_and_element(each.value),
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
    return [f"  {len(ops)} x {text}{_places(ops)}" for text, ops in _grouped(rows).items()]


def _conversion(conversion: Conversion) -> str:
    if not conversion.loops:
        return str(conversion.cost)
    return f"in {'a loop' if conversion.loops == 1 else f'{conversion.loops} loops'}, {conversion.cost}"


def _buffer_lines(buffer: Buffer, names: dict[SourceLocation, str]) -> Iterator[str]:
    layout, place = layout_of_value(buffer.value), source_location(location_of(buffer.value))
    words = "" if layout is None else f", {describe(layout)}"
    name = buffer.name if place is None else names.get(place, buffer.name)
    yield f"  {name}: {shape_and_element(buffer.value)}{words}"
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

    `frontend` is the module before all passes, where the requirements of the program still are.
    Raises CompilationError as `value_with_layout` does.
    """
    named = value_with_layout(module, name, "--why")
    layout = layout_of_value(named.value)
    assert layout is not None
    lines = [f"{named}, {describe(layout)}"]
    for step in LayoutReasons(named.func, hints_of(frontend)).of(named.value):
        to = "" if step.value is None else f" %{named.names[step.value]}"
        lines.append(f"  <- {step.words}{to}")
    return "\n".join(lines)
