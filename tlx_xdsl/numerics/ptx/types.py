"""Types of PTX as numpy has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tlx_xdsl.numerics.arrays import is_float


@dataclass(frozen=True)
class PtxType:
    """A type of PTX: numbers of `dtype`, of which a register holds `lanes`."""

    name: str
    dtype: np.dtype[Any]
    lanes: int = 1

    @property
    def bits(self) -> int:
        """Bits of a register that holds it."""
        return 8 * self.dtype.itemsize * self.lanes

    @property
    def is_float(self) -> bool:
        """Return whether its numbers are floats."""
        return is_float(self.dtype)

    @property
    def is_signed(self) -> bool:
        """Return whether it is an integer with a sign."""
        return self.dtype.kind == "i"


def _types() -> dict[str, PtxType]:
    singles: dict[str, Any] = {
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
        "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    }  # fmt: skip
    for bits in (8, 16, 32, 64):
        singles[f"b{bits}"] = singles[f"u{bits}"] = np.dtype(f"u{bits // 8}")
        singles[f"s{bits}"] = np.dtype(f"i{bits // 8}")
    types = {name: PtxType(name, np.dtype(dtype)) for name, dtype in singles.items()}
    for name in ("f16", "bf16", "f32", "e4m3", "e5m2", "u16", "s16"):
        types[f"{name}x2"] = PtxType(f"{name}x2", types[name].dtype, 2)
    for name in ("e4m3", "e5m2"):
        types[f"{name}x4"] = PtxType(f"{name}x4", types[name].dtype, 4)
    # No number: only moved, and taken apart.
    types["b128"] = PtxType("b128", np.dtype("V16"))
    types["pred"] = PtxType("pred", np.dtype(np.bool_))
    # A number of 19 bits in a register of 32.
    types["tf32"] = PtxType("tf32", np.dtype(np.float32))
    return types


TYPES = _types()
"""The types by their names."""
