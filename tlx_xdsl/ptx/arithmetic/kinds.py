"""Views of the bits of registers: arrays of numpy types, one element for each thread.

A register of 32 bits is an array of u4, i4 or f4 with an element for each thread. Packed types, such as f16x2, are
seen as arrays with a row for each thread (`f2x2`), or where an instruction works on each element alone, as all of them
one after the other (`f2~2`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlx_xdsl.element_types import PTX_TYPES, ElementType
from tlx_xdsl.numerics.arrays import Dtype, numpy_type

from ..read.syntax import SIZES


@dataclass(frozen=True)
class Kind:
    """A view of a register."""

    name: str
    dtype: Dtype
    lanes: int = 1
    flat: bool = False

    @property
    def size(self) -> int:
        """Bytes that a thread has of it; 0 for a predicate."""
        return 0 if self.dtype.kind == "b" else self.dtype.itemsize * self.lanes


def _view(element: ElementType) -> str:
    """The name of the view of an element: its kind and its bytes, or the start of PTX's name where numpy has none."""
    assert element.ptx is not None, "PTX has the type"
    if element.bits == 1:
        return "b"
    is_native = element.kind != "f" or element.ptx.startswith("f")
    return f"{element.kind}{element.bytes}" if is_native else element.ptx[:2]


def _kinds() -> dict[str, Kind]:
    kinds = {"q": Kind("q", np.dtype(np.uint64), 2)}
    for element, count in PTX_TYPES.values():
        name, dtype = _view(element), numpy_type(element)
        kinds[name] = Kind(name, dtype)
        if count > 1:
            kinds[f"{name}x{count}"] = Kind(f"{name}x{count}", dtype, count)
            kinds[f"{name}~{count}"] = Kind(f"{name}~{count}", dtype, count, flat=True)
    return kinds


KINDS = _kinds()
"""The views by name; `q` is a register of 128 bits as two words."""

TYPES = {
    name: f"{_view(element)}x{count}" if count > 1 else _view(element) for name, (element, count) in PTX_TYPES.items()
} | {"b128": "q"}
"""The view of each type of PTX."""

PLAIN = {0: "b", 1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "q"}
"""The view of each width in bytes that is no number."""

REGISTER_BYTES = {name: 0 if name == "pred" else max(2, size) for name, size in SIZES.items()}
"""Bytes of a register of each type; those of 8 bits are kept in 16."""
