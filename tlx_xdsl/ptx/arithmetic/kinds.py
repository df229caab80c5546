"""How the bits of registers are seen: as arrays of numpy types, one element for each thread.

A register of 32 bits is an array of u4, i4 or f4 with an element for each thread. Packed types, such as f16x2, are
seen as arrays with a row for each thread (`f2x2`), or where an instruction works on each element alone, as all of them
one after the other (`f2~2`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Kind:
    """A view of a register."""

    name: str
    dtype: np.dtype[Any]
    lanes: int = 1
    flat: bool = False

    @property
    def size(self) -> int:
        """Bytes that a thread has of it; 0 for a predicate."""
        return 0 if self.dtype.kind == "b" else self.dtype.itemsize * self.lanes


_SINGLES: dict[str, Any] = {
    "b": np.bool_, "u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "u8": np.uint64, "i1": np.int8, "i2": np.int16,
    "i4": np.int32, "i8": np.int64, "f2": np.float16, "f4": np.float32, "f8": np.float64, "bf": ml_dtypes.bfloat16,
    "e4": ml_dtypes.float8_e4m3fn, "e5": ml_dtypes.float8_e5m2,
}  # fmt: skip


def _kinds() -> dict[str, Kind]:
    kinds = {name: Kind(name, np.dtype(dtype)) for name, dtype in _SINGLES.items()}
    for name, counts in {
        "f2": (2,),
        "bf": (2,),
        "u2": (2,),
        "i2": (2,),
        "f4": (2,),
        "e4": (2, 4),
        "e5": (2, 4),
    }.items():
        for count in counts:
            kinds[f"{name}x{count}"] = Kind(f"{name}x{count}", kinds[name].dtype, count)
            kinds[f"{name}~{count}"] = Kind(f"{name}~{count}", kinds[name].dtype, count, flat=True)
    kinds["q"] = Kind("q", np.dtype(np.uint64), 2)
    return kinds


KINDS = _kinds()
"""The views by name; `q` is a register of 128 bits as two words."""

TYPES = {
    "pred": "b", "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "b32": "u4", "u32": "u4",
    "s32": "i4", "b64": "u8", "u64": "u8", "s64": "i8", "f16": "f2", "bf16": "bf", "f32": "f4", "f64": "f8",
    "tf32": "f4", "f16x2": "f2x2", "bf16x2": "bfx2", "u16x2": "u2x2", "s16x2": "i2x2", "f32x2": "f4x2",
    "e4m3": "e4", "e5m2": "e5", "e4m3x2": "e4x2", "e5m2x2": "e5x2", "e4m3x4": "e4x4", "e5m2x4": "e5x4", "b128": "q",
}  # fmt: skip
"""The view of each type of PTX."""

PLAIN = {0: "b", 1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "q"}
"""The view of each width in bytes that is no number."""

REGISTER_BYTES = {
    "pred": 0, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4,
    "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "b8": 2, "u8": 2, "s8": 2,
}  # fmt: skip
"""Bytes of a register of each type; those of 8 bits are kept in 16."""
