"""Conversions of numbers out of an integer's range, or of NaN: LLVM promises no result of them, and no bits of one.

The interpreter has one answer (`numerics.rounding`). What other answers change is right in any code.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.text.diagnostics import source_location

_OTHER: ContextVar[tuple[bool, list[SourceLocation]] | None] = ContextVar("other answers", default=None)


@contextmanager
def other_answers(*, largest: bool) -> Generator[list[SourceLocation]]:
    """Have these conversions give the largest integer there is, or the smallest; yields where there are any.

    Places are those that this process converts at.
    """
    places: list[SourceLocation] = []
    token = _OTHER.set((largest, places))
    try:
        yield places
    finally:
        _OTHER.reset(token)


def answered(op: Operation, value: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """Return the results of a conversion, or other ones where other answers are wanted."""
    if (other := _OTHER.get()) is None:
        return found
    largest, places = other
    limits, whole = np.iinfo(found.dtype), np.trunc(value.astype(np.float64))
    # The limit itself may be no float, and the float next to it out of range.
    is_inside = (whole >= float(limits.min)) & (whole < float(limits.max) + 1)
    if np.all(is_inside):
        return found
    place = source_location(op.location)
    if place is not None and place not in places:
        places.append(place)
    return np.where(is_inside, found, found.dtype.type(limits.max if largest else limits.min))[()]
