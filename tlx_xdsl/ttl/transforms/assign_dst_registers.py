"""`ttl-assign-dst-registers`: choose a destination register (DST) for each tile of the bodies of `ttl.compute`.

Before:
```mlir
^bb0(%x: !tile, %y: !tile, %z: !tile):
  %0 = ttl.tile_add %x, %y : !tile
  %1 = ttl.tile_exp %0 : !tile
  ttl.yield %1 : !tile
```
After:
```mlir
^bb0(%x: !tile, %y: !tile, %z: !tile):
  %0 = ttl.tile_copy %x {dst_idx = 0 : i32} : !tile
  %1 = ttl.tile_copy %y {dst_idx = 1 : i32} : !tile
  %2 = ttl.tile_add %0, %1 {dst_idx = 0 : i32} : !tile
  %3 = ttl.tile_exp %2 {dst_idx = 0 : i32} : !tile
  ttl.yield %3 : !tile
```
A copy of an argument loads the tile from its circular buffer. The `ttl.compute` says how many registers a tile of the
result takes (`dst_per_tile`), how many tiles are computed at once (`unroll`), and how many registers there are
(`capacity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32

from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..analysis.dst_capacity import dst_capacity
from ..analysis.dst_liveness import Overflow
from ..dialects import ttl
from .compute.parts import split_outputs
from .compute.registers import FPUChoice, apply_plan, best_plan, overflow_error
from .compute.tiling import loops_of, parallel


@dataclass(frozen=True)
class AssignDSTRegistersPass(Pass):
    """Allocate registers by linear scan."""

    name = "ttl-assign-dst-registers"

    capacity: int = 0
    """Registers; 0: as many as the kernel and the types of its tiles leave."""
    fpu: FPUChoice = "auto"
    """Where the matrix unit adds, subtracts and multiplies: for tiles of 16 bits (auto), always or never."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place, but for what has registers already.

        Raises CompilationError where they don't suffice.
        """
        for compute in ops_of(op, ttl.ComputeOp):
            if compute.dst_per_tile is not None:
                continue
            capacity = self.capacity or dst_capacity(compute)
            for part in self._fitting(compute, capacity):
                _assign(part, capacity, self.fpu)

    def _fitting(self, compute: ttl.ComputeOp, capacity: int) -> list[ttl.ComputeOp]:
        """The compute itself, or one for each output where not all fit at once."""
        if len(compute.outputs) > 1 and isinstance(best_plan(compute, capacity, self.fpu), Overflow):
            return split_outputs(compute)
        return [compute]


def _assign(compute: ttl.ComputeOp, capacity: int, fpu: FPUChoice) -> None:
    found = best_plan(compute, capacity, fpu)
    if isinstance(found, Overflow):
        raise overflow_error(compute, capacity, found)
    apply_plan(compute, found, fpu)
    sizes = loops_of(compute)
    tiles = prod(sizes[loop] for loop in parallel(compute))
    compute.capacity = IntegerAttr(capacity, i32)
    compute.dst_per_tile = IntegerAttr(found.plan.registers, i32)
    compute.unroll = IntegerAttr(min(capacity // found.plan.registers, tiles), i32)
