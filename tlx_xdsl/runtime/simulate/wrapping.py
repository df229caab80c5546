"""Remarks on a kernel at other sizes than those of a check: offsets that wrap around, masks that are missing.

Whether a kernel is meant for such sizes is not known, so what is found are remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.addresses.model import DescriptorFacts, LaunchFacts
from tlx_xdsl.addresses.wrapping import WIDEN, wrap_at, wraps
from tlx_xdsl.errors import CompilationError, InputError, Note
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.faults import OutOfBounds
from tlx_xdsl.text.diagnostics import Diagnostic, source_location

from ..driver.host_values import is_descriptor

REACH = 1024
"""How many times as large as in the launch a number of programs, or an argument, may be expected to become."""


def facts_of(grid: tuple[int, int, int], values: Mapping[str, Any]) -> LaunchFacts:
    """The numbers of a launch, of arguments by the names that the function has for them."""
    numbers: dict[str, int | DescriptorFacts] = {}
    for name, value in values.items():
        if is_descriptor(value):
            numbers[name] = DescriptorFacts(tuple(map(int, value.shape)), tuple(map(int, value.strides)))
        elif _is_number(value):
            numbers[name] = int(value)
    return LaunchFacts(grid, numbers)


def wrap_remark(module: ModuleOp, facts: LaunchFacts) -> Diagnostic | None:
    """The offset that wraps around first in larger launches, and which arrays there are besides.

    None where only a launch wraps that is more than `REACH` times as large: nearly every kernel has a size from which
    on it wraps.
    """
    found = [each for each in wraps(module, facts) if not each.happens and each.factor <= REACH]
    if not found:
        return None
    first, *others = found
    size = first.access.element_size << 31
    limits = " or ".join(first.limits)
    message = (
        f"the offsets of '{first.access.base_name}' wrap around in 32 bits from {limits} on, with the other numbers as "
        "they are here"
    )
    notes = [
        f"as long as {first.condition} they do not: an array of 2^31 elements has {size / 1e9:.1f} GB",
        WIDEN,
    ]
    if names := dict.fromkeys(
        each.access.base_name for each in others if each.access.base_name != first.access.base_name
    ):
        notes.append(f"so do those of {' and '.join(repr(name) for name in names)}")
    return Diagnostic("remark", message, source_location(first.access.op.location), tuple(notes))


def with_wrap(fault: OutOfBounds, module: ModuleOp, facts: LaunchFacts) -> OutOfBounds:
    """The report of an access that leaves its array, with its cause if its offset has wrapped around."""
    found = None if fault.op is None else wrap_at(wraps(module, facts), fault.op)
    if found is None:
        return fault
    fault.message = f"{fault.message}; its offset wraps around in 32 bits: {found.condition} does not hold"
    fault.notes = (*fault.notes, WIDEN)
    return fault


# Sizes that no block divides -----------------------------------------------------------------------------------------


def ragged_remark(
    source: KernelSource,
    grid: tuple[int, int, int],
    arguments: Mapping[str, Any],
    run: Callable[[tuple[int, int, int], Mapping[str, Any]], Any],
) -> Diagnostic | None:
    """Return what leaves an array if each size in turn is smaller by one: a mask that is missing.

    Sizes are the integers among the arguments that are the size of an array along a dimension, and neither a stride of
    one nor a compile-time argument. `run` launches the kernel on another grid, which has a program less where it has as
    many as the size along an axis, and on other arguments.
    """
    for size in _sizes(source, arguments):
        names = [name for name, value in arguments.items() if _is_number(value) and value == size]
        try:
            x, y, z = (extent - (extent == size) for extent in grid)
            run((x, y, z), {name: _cut(value, size) for name, value in arguments.items()})
        except OutOfBounds as fault:
            which = " and ".join(names)
            message = f"with {which} = {size - 1} for {size}, and arrays of that size: {fault.message}"
            notes = (Note("a mask keeps the elements past the end of an array out", is_remedy=True), *fault.notes)
            return Diagnostic("remark", message, fault.location, notes)
        except (CompilationError, ValueError, TypeError):
            # The kernel, or what makes its grid, is not for such a size.
            continue
    return None


def _sizes(source: KernelSource, arguments: Mapping[str, Any]) -> list[int]:
    fixed = {each.name for each in source.parameters if each.is_constexpr}
    arrays = [array for value in arguments.values() if (array := _array(value)) is not None]
    constants = {value for name, value in arguments.items() if name in fixed and _is_number(value)}
    strides = {
        stride // array.itemsize
        for array in arrays
        for size, stride in zip(array.shape, array.strides, strict=True)
        if size > 1
    }
    numbers = {int(value) for name, value in arguments.items() if name not in fixed and _is_number(value)}
    dimensions = {size for array in arrays for size in array.shape}
    return sorted(size for size in (numbers & dimensions) - constants - strides if size > 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _array(value: Any) -> NDArray[Any] | None:
    array: Any = value.base if is_descriptor(value) else value
    return cast(NDArray[Any], array) if isinstance(array, np.ndarray) else None


def _cut(value: Any, size: int) -> Any:
    """A value with `size` smaller by one: a number, or the dimensions of a copy of an array.

    Raises ValueError for an array whose copy has other strides.
    """
    if _is_number(value):
        return value - 1 if value == size else value
    array = _array(value)
    if array is None:
        return value
    if not array.flags.c_contiguous:
        raise InputError("a part of a larger array has other strides when it is copied")
    kept = array.copy()[tuple(slice(each - (each == size)) for each in array.shape)]
    if not is_descriptor(value):
        return kept
    shape = [each - (each == size) for each in value.shape]
    return replace(value, base=kept, shape=shape)
