"""Recording of a kernel's writes, store by store."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan

Grid = tuple[int, int, int]


class RecordingMemory(GlobalMemory):
    """Global memory that keeps what `tt.store` writes: addresses and values, store by store."""

    def __init__(self) -> None:
        super().__init__()
        self.stores: list[tuple[np.ndarray, np.ndarray]] = []

    def store(self, op: Operation, addresses: Any, values: Any, dtype: np.dtype, mask: Any) -> None:
        """Write, and keep it."""
        super().store(op, addresses, values, dtype, mask)
        if not isinstance(op, tt.StoreOp):
            return
        chosen = np.broadcast_to(True if mask is None else mask, np.shape(addresses))
        kept = np.broadcast_to(values, np.shape(addresses))[chosen]
        self.stores.append((np.asarray(addresses)[chosen].ravel(), np.array(kept).ravel()))


def stores_of(
    module: ModuleOp, *arguments: Any, program: Grid = (3, 5, 0), grid: Grid = (7, 8, 1)
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Run one program of a kernel; arrays are written in place.

    The result is where (the number of the argument times 2**40, plus the byte in it) and what was stored, in order.
    """
    plan, memory = make_plan(module), RecordingMemory()
    copies = [np.array(given) if isinstance(given, np.ndarray) else given for given in arguments]
    bound = bind(plan.function, copies, [f"argument {number}" for number in range(len(arguments))], memory)
    list(run_clusters(Launch(plan, memory, grid, (1, 1, 1), bound), [program], Settings()))
    for given, copy in zip(arguments, copies, strict=True):
        if isinstance(given, np.ndarray):
            given[...] = copy
    starts = {int(value): number for number, (value, given) in enumerate(zip(bound, arguments, strict=True))
              if isinstance(given, np.ndarray)}  # fmt: skip
    firsts = np.array(sorted(starts))
    numbers = np.array([starts[first] for first in firsts])

    def place(addresses: np.ndarray) -> np.ndarray:
        at = np.searchsorted(firsts, addresses, "right") - 1
        return numbers[at] * 2**40 + addresses - firsts[at]

    return [(place(addresses), values) for addresses, values in memory.stores]
