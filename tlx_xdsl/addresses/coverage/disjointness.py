"""Proofs from the strides that programs write no bytes in common, for launches that are not known.

What a store moves by from program to program must be no less than all that one program writes. With several axes of the
grid the strides must relate to each other like digits: that bounds how many programs the lower axes may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.integers.polynomials import Argument, Call, Counter, Extent, Lane, NumPrograms, Pid, Polynomial

from .. import Access, Classification
from .touches import written_by_ptx

AXES = "xyz"


@dataclass(frozen=True)
class Proof:
    """A verdict on the stores to one array, which holds in every launch that meets `conditions`."""

    array: str
    verdict: Literal["disjoint", "collides", "not known"]
    conditions: tuple[str, ...] = ()
    reason: str = ""


def proofs(module: ModuleOp, accesses: Iterable[Access]) -> list[Proof]:
    """The proofs for each array that a kernel of `module` stores to, other than atomically.

    `accesses` are all of the kernel's.
    """
    stores: dict[str, list[Access]] = {}
    hidden = any(written_by_ptx(op) is not None for op in module.walk())
    for access in accesses:
        if access.kind.writes:
            stores.setdefault(access.base_name, []).append(access)
            hidden = hidden or access.base is None
    if hidden:
        return [Proof(array, "not known", reason="a store, or PTX, may write to any array") for array in stores]
    return [proof(array, found) for array, found in stores.items() if not all(each.kind.is_atomic for each in found)]


def proof(array: str, stores: Sequence[Access]) -> Proof:
    """The proof for an array, of which `stores` are all stores."""
    affine = (Classification.PID_AFFINE, Classification.PID_MULTI_AXIS)
    if all(each.classification is Classification.PID_INDEPENDENT for each in stores):
        return _independent(array, stores)
    if any(each.classification not in affine for each in stores):
        return Proof(array, "not known", reason="its address is not affine in the program's ids: give --grid")
    strides = dict(stores[0].pid_strides)
    if any(dict(each.pid_strides) != strides for each in stores):
        return Proof(array, "not known", reason="its stores move by different strides: give --grid")
    if not all(map(is_of_the_launch, strides.values())):
        return Proof(array, "not known", reason="its strides may differ from program to program")
    extent = _extent(stores)
    if extent is None:
        return Proof(array, "not known", reason="how much one program writes is not known: give --grid and --arg")
    return _digits(array, strides, extent, stores)


def _independent(array: str, stores: Sequence[Access]) -> Proof:
    """The proof if no address depends on the program: all programs write the same bytes, if they write."""
    for each in stores:
        if not each.masked and not each.conditional and not each.kind.is_atomic:
            return Proof(array, "collides", ("there is more than one program", *map(str, each.conditions)))
    return Proof(array, "not known", reason="all programs may write the same bytes: it depends on a condition")


def _extent(stores: Sequence[Access]) -> int | None:
    """Bytes from the first to after the last one that one program may write; None where that is not a number."""
    ends: list[tuple[int, int]] = []
    rest: Polynomial | None = None
    for each in stores:
        found = _own(each)
        if found is None or (rest is not None and found[0] != rest):
            return None
        rest = found[0]
        ends.append(found[1:])
    return max(high for _, high in ends) - min(low for low, _ in ends)


def _own(access: Access) -> tuple[Polynomial, int, int] | None:
    """The offset that all programs and elements of an access share, and the start and end of bytes added to it."""
    if access.offset is None or access.lane_range is None:
        return None
    low = access.constant_offset + access.lane_range.low
    high = access.constant_offset + access.lane_range.high + access.element_size
    for loop in access.loops:
        step = None if loop.stride is None else loop.stride.number
        if step is None:
            return None
        ends = (step * loop.range.low, step * loop.range.high)
        low, high = low + min(ends), high + max(ends)
    moving = access.offset.part(lambda symbol: isinstance(symbol, Pid | Lane | Counter))
    rest = access.offset - moving - access.constant_offset
    return (rest, low, high) if is_of_the_launch(rest) else None


def is_of_the_launch(form: Polynomial) -> bool:
    """True if a polynomial has one value in a launch: what is loaded, say, may differ from program to program."""
    return all(isinstance(symbol, Argument | Extent | NumPrograms | Call) for symbol in form.all_symbols)


def _digits(array: str, strides: dict[int, Polynomial], extent: int, stores: Sequence[Access]) -> Proof:
    conditions = [str(condition) for each in stores for condition in each.conditions]
    numbers = {axis: stride.number for axis, stride in strides.items()}
    known = sorted((abs(number), axis) for axis, number in numbers.items() if number is not None)
    if len(known) < len(numbers) and len(numbers) > 1:
        return Proof(array, "not known", reason="it moves by strides that depend on arguments: give --grid and --arg")
    if len(numbers) == 1:
        (axis, stride), *_ = strides.items()
        if stride.number is None:
            conditions.insert(0, f"{stride} >= {extent}")
        elif abs(stride.number) < extent:
            return Proof(
                array, "not known", reason=f"a program writes {extent} bytes, the next one {stride} further on"
            )
    else:
        for (size, axis), above in zip(known, [*known[1:], None], strict=True):
            if size < extent:
                reason = f"programs along {AXES[axis]} write {size} bytes apart, within {extent} bytes: give --grid"
                return Proof(array, "not known", reason=reason)
            if above is not None:
                most = max((above[0] - extent) // size + 1, 1)
                conditions.insert(0, f"num_programs_{AXES[axis]} <= {most}")
                extent += (most - 1) * size
    # Programs that differ along another axis alone write the same.
    others = [f"num_programs_{name} == 1" for axis, name in enumerate(AXES) if axis not in strides]
    return Proof(array, "disjoint", tuple(dict.fromkeys([*conditions, *others])))
