"""The findings of `tlx addresses`: as text, as JSON, and as warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import PurePath
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.addresses import Access
from tlx_xdsl.addresses.coverage.coverage import Coverage, Leaving, Writing
from tlx_xdsl.addresses.coverage.disjointness import AXES, Proof
from tlx_xdsl.addresses.coverage.hints import Prefetch, coalescing_hint, prefetch_hint, vector_bytes
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.coverage.ordering import ordering
from tlx_xdsl.addresses.wrapping import WIDEN, Wrap
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.text.diagnostics import report_warning, source_line, source_location

from ..output import table

MOST_HOLES = 1000
"""Holes that the JSON lists of an array: every second element may be one."""


@dataclass(frozen=True)
class Findings:
    """All that the command reports of a kernel."""

    function: tt.FuncOp
    accesses: Sequence[Access]
    launch: Launch
    coverage: Coverage | None
    """None where no grid is given."""
    proofs: Sequence[Proof]
    """For all launches; they matter where there is no coverage."""
    values: Sequence[str]
    """A line for each value that depends on the program's ids, and for each access."""
    wrapping: Sequence[Wrap] = ()
    """The accesses whose offsets wrap around in the launch, where a grid is given."""

    @property
    def prefetches(self) -> list[Prefetch]:
        """Return what to prefetch."""
        return [hint for access in self.accesses if (hint := prefetch_hint(access)) is not None]


# --- text -------------------------------------------------------------------------------------------------------------


def findings_as_text(found: Findings) -> str:
    """Write for people: a table of the accesses, their offsets, hints, and what is known of each array."""
    place = source_location(found.function.location)
    where = "" if place is None or not place.line else f" ({PurePath(place.filename).name}:{place.line})"
    launch = found.launch
    grid = "" if found.coverage is None else f", {launch.programs:,} programs, grid {'x'.join(map(str, launch.grid))}"
    lines = [f"{found.function.sym_name.data}{where}{grid}"]
    if not found.accesses:
        return f"{lines[0]}\n\nno access to global memory"
    lines += ["", *found.values, "", "accesses", *table(_rows(found.accesses)), "", "offsets in bytes"]
    lines += table([(_line(each.op), each.base_name, "=", _offset(each)) for each in found.accesses])
    if notes := _notes(found):
        lines += ["", "hints", *(f"    {note}" for note in notes)]
    if arrays := _arrays(found):
        lines += ["", "arrays", *(f"    {each}" for each in arrays)]
    return "\n".join(lines)


def _rows(accesses: Sequence[Access]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("line", "access", "array", "pattern", "stride", "block", "run", "vector")]
    for each in accesses:
        strides = ", ".join(f"{AXES[axis]}: {stride} B" for axis, stride in sorted(each.pid_strides.items()))
        width = vector_bytes(each)
        rows.append(
            (
                _line(each.op),
                each.kind.value,
                each.base_name,
                each.classification.value,
                strides or "-",
                f"{'x'.join(map(str, each.shape)) or '1'} x {each.element_size} B",
                _run(each),
                "-" if width is None else f"{width} B",
            )
        )
    return rows


def _run(access: Access) -> str:
    """Return how many elements follow each other in memory, at least."""
    if not access.is_known:
        return "-"
    if access.block_size is not None:
        return f"all {access.block_size}"
    return str(max((each.contiguity for each in access.dimensions), default=1))


def _offset(access: Access) -> str:
    if access.offset is None:
        return f"not known: {access.reason}"
    within = [str(guard) for guard in access.guards]
    if access.masked and not access.guards_exact:
        within.append("a mask")
    return str(access.offset) + (f"   where {' and '.join(within)}" if within else "")


def _notes(found: Findings) -> list[str]:
    notes = [f"{_line(each.op)}: {hint}" for each in found.accesses if (hint := coalescing_hint(each)) is not None]
    for each in found.prefetches:
        notes.append(
            f"{_line(each.access.op)}: the next iteration's block of '{each.access.base_name}', to prefetch, begins "
            f"{each.stride} bytes further on"
        )
    return list(dict.fromkeys(notes))


def _arrays(found: Findings) -> list[str]:
    if found.coverage is None:
        return [_proof(each) for each in found.proofs]
    coverage = found.coverage
    lines: list[str] = []
    for each in coverage.writings():
        lines.append(f"{each.array}: {_verdict(each, found)}")
        holes = coverage.holes(each.array)
        if holes:
            element = coverage.of(each.array, "store", "atomic")[0].element
            count, first = sum(hole.end - hole.start for hole in holes) // element, holes[0].start // element
            shape = found.launch.shapes[each.array]
            missed = f"{_elements(count)} of {prod(shape):,} {'is' if count == 1 else 'are'} written by no program"
            lines.append(f"{each.array}: {missed}, {place_in(first, shape)} first")
    for each in coverage.leaving():
        lines.append(f"{each.array}: {_leaving(each, found.launch)}")
    for each in coverage.unseen:
        lines.append(
            f"{each.array or 'any array'}: the {each.kind} at line {_line(each.op)} is not followed: {each.reason}"
        )
    return lines


def _verdict(writing: Writing, found: Findings) -> str:
    wrap = next((each for each in found.wrapping if each.access.base_name == writing.array), None)
    match writing.verdict:
        case "disjoint":
            return "no two programs write the same bytes" if wrap is None else _wrapping(wrap)
        case "shared by atomics":
            return "programs write the same bytes, by atomic operations alone"
        case "collides":
            return _collision(writing, found.launch)
        case _:
            return f"whether programs write the same bytes is not known: {writing.reason}"


def _wrapping(wrap: Wrap) -> str:
    line = _line(wrap.access.op)
    return f"the offsets in line {line} wrap around in 32 bits: {wrap.condition} does not hold"


def _collision(writing: Writing, launch: Launch) -> str:
    assert writing.meeting is not None
    one, other = (launch.place(number) for number in (writing.meeting.program, writing.meeting.other))
    message = f"programs {one} and {other} write the same bytes"
    if writing.ops is None or (found := ordering(*writing.ops)) is None:
        return message
    lines = " and ".join(dict.fromkeys(f"line {_line(op)}" for op in found))
    return f"{message}; what may order them is at {lines}, which tlx check looks at"


def _leaving(leaving: Leaving, launch: Launch) -> str:
    verb = "leaves" if leaving.certain else "may leave"
    where = "before its start" if leaving.index < 0 else f"element {leaving.index:,} of {leaving.elements:,}"
    others = "" if leaving.programs == 1 else f", as do {leaving.programs - 1:,} more"
    return f"program {launch.place(leaving.program)} {verb} the array in line {_line(leaving.op)}: {where}{others}"


def _proof(proof: Proof) -> str:
    provided = f", as long as {' and '.join(proof.conditions)}" if proof.conditions else ""
    match proof.verdict:
        case "disjoint":
            return f"{proof.array}: no two programs write the same bytes{provided}"
        case "collides":
            return f"{proof.array}: all programs write the same bytes{provided}"
        case _:
            return f"{proof.array}: whether programs write the same bytes is not known: {proof.reason}"


def place_in(index: int, shape: Sequence[int]) -> str:
    """An element of a flat array as an index into its shape."""
    places: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.insert(0, place)
    return f"[{', '.join(map(str, places))}]"


def _elements(count: int) -> str:
    return f"{count:,} element{'' if count == 1 else 's'}"


def _place(op: Operation) -> SourceLocation | None:
    return source_location(op.location)


def _line(op: Operation) -> str:
    place = _place(op)
    return "?" if place is None else str(place.line)


# --- warnings ---------------------------------------------------------------------------------------------------------


def warn(found: Findings) -> None:
    """Warn of programs that write the same bytes, and of accesses that leave their array."""
    warn_of_collisions(found)
    warn_of_wrapping(found)
    warn_of_leaving(found)


def warn_of_wrapping(found: Findings) -> None:
    """Warn of offsets that wrap around in the launch."""
    for each in found.wrapping:
        report_warning(each.access.op, f"'{each.access.base_name}': {_wrapping(each)}", [WIDEN])


def warn_of_collisions(found: Findings) -> None:
    """Warn of programs that write the same bytes, where a grid is given."""
    for each in () if found.coverage is None else found.coverage.writings():
        if each.ops is not None:
            first, second = each.ops
            if ordering(first, second) is not None:
                continue
            message = f"{_collision(each, found.launch)} of '{each.array}'"
            notes = [_also(second)] if second is not first else []
            report_warning(first, message, [*notes, "either may come last: no atomic operation orders them"])


def warn_of_leaving(found: Findings) -> None:
    """Warn of accesses that certainly leave their array, where a grid is given."""
    for each in () if found.coverage is None else found.coverage.leaving():
        if each.certain:
            report_warning(each.op, f"'{each.array}': {_leaving(each, found.launch)}")


def _also(op: Operation) -> str:
    place = _place(op)
    text = source_line(place)
    return f"the other one writes at {place}" + ("" if text is None else f": {text.strip()}")


# --- JSON -------------------------------------------------------------------------------------------------------------


def findings_as_json(found: Findings) -> dict[str, Any]:
    """Write for programs; docs/program-coverage.md explains the keys."""
    place = source_location(found.function.location)
    result: dict[str, Any] = {
        "kernel": found.function.sym_name.data,
        "place": None if place is None else f"{place.filename}:{place.line}",
        "values": list(found.values),
        "accesses": [_access_json(each) for each in found.accesses],
        "prefetches": [
            {"place": _where(each.access.op), "array": each.access.base_name, "stride": _number(each.stride)}
            for each in found.prefetches
        ],
    }
    if found.coverage is None:
        result["arrays"] = [
            {
                "name": each.array,
                "writes": each.verdict,
                "conditions": list(each.conditions),
                "reason": each.reason or None,
            }
            for each in found.proofs
        ]
        return result
    coverage, launch = found.coverage, found.launch
    result["grid"] = list(launch.grid)
    result["arrays"] = [_writing_json(each, coverage) for each in coverage.writings()]
    result["leaving"] = [
        {
            "place": _where(each.op),
            "array": each.array,
            "programs": each.programs,
            "program": list(launch.place(each.program)),
            "index": each.index,
            "elements": each.elements,
            "certain": each.certain,
        }
        for each in coverage.leaving()
    ]
    result["wrapping"] = [
        {"place": _where(each.access.op), "array": each.access.base_name, "condition": str(each.condition)}
        for each in found.wrapping
    ]
    result["not_followed"] = [
        {"place": _where(each.op), "array": each.array, "kind": each.kind, "reason": each.reason}
        for each in coverage.unseen
    ]
    return result


def _access_json(access: Access) -> dict[str, Any]:
    return {
        "place": _where(access.op),
        "kind": access.kind.value,
        "array": access.base_name,
        "pattern": access.classification.value,
        "offset": None if access.offset is None else str(access.offset),
        "pid_strides": {AXES[axis]: _number(stride) for axis, stride in sorted(access.pid_strides.items())},
        "shape": list(access.shape),
        "element_size": access.element_size,
        "contiguity": [each.contiguity for each in access.dimensions],
        "divisibility": [each.divisibility for each in access.dimensions],
        "constancy": [each.constancy for each in access.dimensions],
        "block_size": access.block_size,
        "coalesced": access.is_coalesced,
        "vector_bytes": vector_bytes(access),
        "masked": access.masked,
        "guards": [str(guard) for guard in access.guards],
        "conditions": [str(condition) for condition in access.conditions],
        "reason": access.reason,
        "hint": coalescing_hint(access),
    }


def _writing_json(writing: Writing, coverage: Coverage) -> dict[str, Any]:
    holes = coverage.holes(writing.array)
    result: dict[str, Any] = {"name": writing.array, "writes": writing.verdict, "reason": writing.reason or None}
    if writing.meeting is not None and writing.ops is not None:
        numbers = (writing.meeting.program, writing.meeting.other)
        result["collision"] = {
            "programs": [list(coverage.launch.place(number)) for number in numbers],
            "byte": writing.meeting.byte,
            "places": [_where(op) for op in writing.ops],
        }
    result["holes"] = None if holes is None else [[hole.start, hole.end] for hole in holes[:MOST_HOLES]]
    result["hole_bytes"] = None if holes is None else sum(hole.end - hole.start for hole in holes)
    return result


def _number(form: Any) -> int | str:
    return form.number if form.number is not None else str(form)


def _where(op: Operation) -> str | None:
    place = _place(op)
    return None if place is None else f"{place.filename}:{place.line}"
