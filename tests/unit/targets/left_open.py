"""Small kernels about what Triton leaves open, with inputs and what numpy says: `docs/left-open.md`.

Each runs in the interpreter before and after the passes, as PTX, and natively on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


Arrays = dict[str, Any]

NAN, INF = np.nan, np.inf
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16

MACHINES = ("frontend", "ttgir", "linalg", "ptx", "cpu")
"""Stages of the interpreter, the PTX machine, and native code."""


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments."""

    kernel: Any
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    """What the arrays that the kernel writes hold in the end."""
    ulps: float = 0
    """How far floats may be from them, in units in the last place; NaN is always equal to NaN."""
    grid: int = 1

    def run(self, machine: str) -> Arrays:
        """The arrays after a run; what nothing writes has every bit set."""
        given = {
            name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in self.inputs.items()
        }
        found = {name: np.zeros_like(value) for name, value in self.outputs.items() if name not in given}
        for array in found.values():
            array.view(np.uint8)[...] = 0xFF
        if machine == "cpu":
            self.kernel[(self.grid,)](**given, **found)
        else:
            self.kernel.interpret((self.grid,), **given, **found, stage=machine, jobs=1)
        arrays = given | found
        return {name: arrays[name] for name in self.outputs}

    def differences(self, machine: str) -> list[str]:
        """What a machine gives otherwise than numpy."""
        said: list[str] = []
        for name, found in self.run(machine).items():
            expected = self.outputs[name]
            wrong = ~same(found, expected, self.ulps)
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                count = f"{int(wrong.sum())} of {wrong.size}"
                said.append(f"{name}[{at}] is {found.ravel()[at]!r}, expected {expected.ravel()[at]!r}, {count}")
        return said


def same(found: Any, expected: Any, ulps: float) -> Any:
    """Which elements are equal: in every bit, or as NaN, or within a distance."""
    bits = np.dtype(f"u{found.itemsize}")
    equal = found.view(bits) == expected.view(bits)
    if found.dtype.kind in "iub":
        return equal
    a, b = found.astype(np.float64), expected.astype(np.float64)
    equal |= np.isnan(a) & np.isnan(b)
    if ulps:
        unit = np.spacing(np.maximum(np.abs(expected), np.finfo(found.dtype).tiny).astype(found.dtype))
        equal |= np.abs(a - b) <= ulps * unit.astype(np.float64)
    return equal
