"""One line for each value that depends on the program's ids, and for each access.

Integers count in elements, pointers and accesses in bytes; `block_size` counts elements.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.polynomials import Pid, Polynomial

from .bounds import Bounds
from .classify import classify, first_unknown
from .intervals import Interval
from .model import Access, Classification, LaunchFacts, ProgramAddresses
from .regularity import is_of_lanes
from .values import Integer, Pointer, State

AFFINE = (Classification.PID_AFFINE, Classification.PID_MULTI_AXIS)
NAMES = 12
"""Columns of the names before the lines."""


def value_text(result: ProgramAddresses, value: SSAValue, names: Mapping[SSAValue, str]) -> str | None:
    """Known facts about an integer or a pointer; None for one that does not depend on the program's ids.

    `names` are those of the kernels' arguments.
    """
    state: State | None = result.states.get(value)
    match state:
        case Integer(form):
            return f"PID_INFO({text})" if (text := _dependence(result, form)) is not None else None
        case Pointer(base, offset) if base is not None and base in names:
            text = _dependence(result, offset, unit=True)
            return None if text is None else f"ADDR_INFO(base=%{names[base]}, {text}{_coalesced(result, value)})"
        case _:
            return None


def _coalesced(result: ProgramAddresses, value: SSAValue) -> str:
    """True if an access through a pointer is coalesced, if there is one."""
    found = [access for use in value.uses for access in result.of(use.operation)]
    return f", coalesced={_word(found[0].is_coalesced)}" if found else ""


def _dependence(result: ProgramAddresses, form: Polynomial, *, unit: bool = False) -> str | None:
    if not any(isinstance(symbol, Pid) for symbol in form.all_symbols):
        return None
    if first_unknown(form) is not None:
        return "UNKNOWN"
    kind, strides = classify(form)
    if kind not in AFFINE:
        return f"{kind.value}, value={form}"
    rest = form
    for axis, stride in strides.items():
        rest = rest - stride * Polynomial.of(Pid(axis))
    return f"{_strides(strides)}, offset={_offset(result, rest, is_range_marked=not unit)}"


def _strides(strides: Mapping[int, Polynomial]) -> str:
    axes = f"axis={next(iter(strides))}" if len(strides) == 1 else f"axes=[{', '.join(map(str, strides))}]"
    return f"{axes}, {_steps(strides)}"


def _steps(strides: Mapping[int, Polynomial]) -> str:
    text = ", ".join(map(str, strides.values()))
    return f"stride={text}" if len(strides) == 1 else f"strides=[{text}]"


def _offset(result: ProgramAddresses, rest: Polynomial, *, is_range_marked: bool) -> str:
    """The part that is the same for all programs: a number, or symbols and the range of the positions."""
    if (number := rest.number) is not None:
        return str(number)
    bounds = Bounds(LaunchFacts())
    bounds.known.update(result.ranges)
    fixed = rest.part(lambda symbol: not is_of_lanes(symbol))
    span = bounds.of_form(rest - fixed)
    if not fixed.terms:
        return f"{_range(span)}, elem_range" if is_range_marked else _range(span)
    return str(fixed) if span == Interval(0, 0) else f"{fixed} + {_range(span)}"


def _range(interval: Interval) -> str:
    return f"[{interval.low},{interval.high}]" if interval.number is None else str(interval.low)


def _word(holds: bool) -> str:
    return "true" if holds else "false"


def access_text(access: Access) -> str:
    """The class of an access, with its block and its strides in bytes."""
    kind = access.classification
    if kind is Classification.UNKNOWN:
        return f"PATTERN(UNKNOWN, {access.reason})"
    parts = [kind.value]
    if access.block_size is not None:
        parts.append(f"block_size={access.block_size}")
    else:
        parts.append(f"block={'x'.join(map(str, access.shape))}")
    if kind in AFFINE:
        parts.append(_steps(access.pid_strides))
    elif kind is not Classification.PID_INDEPENDENT:
        parts.append(f"offset={access.offset}")
    parts.append(f"coalesced={_word(access.is_coalesced)}")
    return f"PATTERN({', '.join(parts)})"


def report_lines(result: ProgramAddresses) -> list[str]:
    """The values that depend on the program's ids and the accesses, in program order, with their names."""
    from .analysis import argument_names

    lines: list[str] = []
    kernels = list(dict.fromkeys(access.function for access in result.accesses))
    for function in kernels:
        arguments = argument_names(function.body.blocks[0].args)
        names: dict[SSAValue, str] = dict(arguments)
        shown = {
            id(access.op): access for access in result.accesses if access.function is function and not access.calls
        }
        for op in function.body.walk():
            for value in op.results:
                names[value] = value.name_hint or str(len(names))
            if (access := shown.get(id(op))) is not None:
                lines.append(_line(f"%{_name(access, names)} ({access.kind.value})", access_text(access)))
                continue
            for value in op.results:
                if (text := value_text(result, value, arguments)) is not None:
                    lines.append(_line(f"%{names[value]}", text))
    return lines


def _name(access: Access, names: Mapping[SSAValue, str]) -> str:
    """The descriptor's array, or what the operation gives or takes first."""
    if access.tensor is not None:
        return access.base_name
    return next((names[value] for value in (*access.op.results, *access.op.operands) if value in names), "?")


def _line(name: str, text: str) -> str:
    return f"{name + ': ':<{NAMES}}{text}"


def conditions_text(access: Access) -> tuple[str, ...]:
    """Write the conditions on a launch under which the fact holds, one each."""
    return tuple(map(str, access.conditions))
