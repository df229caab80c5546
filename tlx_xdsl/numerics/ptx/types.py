"""Types of PTX as numpy has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx_xdsl.element_types import PTX_TYPES

from ..arrays import is_float, numpy_type


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
    types = {name: PtxType(name, numpy_type(element), lanes) for name, (element, lanes) in PTX_TYPES.items()}
    # No number: only moved, and taken apart.
    types["b128"] = PtxType("b128", np.dtype("V16"))
    return types


TYPES = _types()
"""The types by their names."""
