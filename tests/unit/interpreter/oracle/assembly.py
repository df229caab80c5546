"""Inline assembly, and what the machine says of itself."""

from __future__ import annotations

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, empty, floats, reference


@reference("cuda_functions", x=floats("f4", 32), out=empty("i8", 3))
def cuda_functions(m: Model, x, out) -> None:
    # A timer counts turns, of which no other task has one here.
    m.store("out", 0, 0)
    m.store("out", 1, 0)
    m.store("out", 2, 4 * 1000 + 128)
    m.store("x", np.arange(32), x)
