"""`ttl-spill-dst-registers`: a `ttl.compute` with too many values for the DST registers becomes several.

Before, with two registers:
```mlir
ttl.compute ins(%a, %b, %c, %d : ...) outs(%o : ...) {...} {
^bb0(%x: !tile, %y: !tile, %z: !tile, %w: !tile, %p: !tile):
  %s = ttl.tile_add %x, %y : !tile
  %t = ttl.tile_add %z, %w : !tile
  %m = ttl.tile_mul %s, %t : !tile
  ttl.yield %m : !tile
}
```
After:
```mlir
%kept = ttl.cb_reserve %cb : !ttl.cb<...> -> memref<1x1x!tile>
ttl.compute ins(%a, %b : ...) outs(%kept : ...) {...} {
^bb0(%x: !tile, %y: !tile, %p: !tile):
  %s = ttl.tile_add %x, %y : !tile
  ttl.yield %s : !tile
}
ttl.cb_push %cb : !ttl.cb<...>
%read = ttl.cb_wait %cb : !ttl.cb<...> -> memref<1x1x!tile>
ttl.compute ins(%c, %d, %read : ...) outs(%o : ...) {...} {
^bb0(%z: !tile, %w: !tile, %r: !tile, %p: !tile):
  %t = ttl.tile_add %z, %w : !tile
  %m = ttl.tile_mul %r, %t : !tile
  ttl.yield %m : !tile
}
ttl.cb_pop %cb : !ttl.cb<...>
```
`%cb` is a circular buffer of the compiler's own. Its tiles have the type that registers have: floats are f32 where
these are of 32 bits, so that nothing is lost. Registers of 16 bits round on a card what the machines keep in more; what
is spilled from them is rounded here, too. `analysis/dst_spilling.py` chooses where to cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.text.diagnostics import report_warning
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

from ..analysis.dst_capacity import dst_capacity, is_wide
from ..dialects import ttl
from ..dialects.ttcore import TileType, is_float
from .compute.compiler_buffers import CompilerBuffers
from .compute.parts import part_of, tile_ops, yielded
from .compute.registers import FPUChoice, named, parts_that_fit, suggestion
from .compute.tiling import in_pieces, loops_of

TILES = 8
"""Tiles of a spilled value that are kept at a time: so many that the units are prepared rarely for each."""


@dataclass(frozen=True)
class SpillDSTRegistersPass(Pass):
    """Let values that registers have no place for go through circular buffers; warn about each computation."""

    name = "ttl-spill-dst-registers"

    capacity: int = 0
    """Registers; 0: as many as the kernel and the types of its tiles leave."""
    fpu: FPUChoice = "auto"
    """Where the matrix unit adds, subtracts and multiplies: for tiles of 16 bits (auto), always or never."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place; what a single operation has too few registers for stays as it is."""
        for kernel in ops_of(op, ttl.KernelOp):
            for thread in ops_of(kernel, ttl.ComputeThreadOp):
                spills = _Spills(kernel, thread)
                for compute in ops_of(thread, ttl.ComputeOp):
                    capacity = self.capacity or dst_capacity(compute)
                    parts = None if compute.dst_per_tile else parts_that_fit(compute, capacity, self.fpu)
                    if parts is not None:
                        _warn(compute, capacity, parts)
                        for piece in in_pieces(compute, TILES, equal=True):
                            spills.spill(piece, parts)


class _Spills:
    """The circular buffers of a thread for values that registers have no place for."""

    def __init__(self, kernel: ttl.KernelOp, thread: ttl.ComputeThreadOp) -> None:
        self._is_wide = is_wide(kernel)
        self._compiler = CompilerBuffers(kernel, thread)
        self._free: dict[Attribute, list[SSAValue]] = defaultdict(list)

    def spill(self, compute: ttl.ComputeOp, numbers: Sequence[Sequence[int]]) -> None:
        """Replace a compute by its parts, of which the numbers of the operations are known."""
        ops = tile_ops(compute)
        parts = [[ops[number] for number in part] for part in numbers]
        values = yielded(compute)
        home: dict[SSAValue, int] = {op.result: number for number, part in enumerate(parts) for op in part}
        last = _last_readers(parts)
        kept: dict[SSAValue, SSAValue] = {}
        held: dict[SSAValue, SSAValue] = {}
        for number, part in enumerate(parts):
            outputs = [
                (value, view)
                for value, view in zip(values, compute.outputs, strict=True)
                if home.get(value, len(parts) - 1) == number
            ]
            new = {op.result: self._reserve(compute, op) for op in part if last.get(op.result, 0) > number}
            outputs += [(value, reserve.view) for value, reserve in new.items()]
            insert_before(compute, part_of(compute, part, outputs, kept))
            for value, reserve in new.items():
                held[value] = reserve.cb
                kept[value] = self._compiler.read(reserve, compute).view
            for value in [value for value in held if last[value] == number]:
                cb = held.pop(value)
                insert_before(compute, ttl.CBPopOp(cb))
                self._free[cb.type].append(cb)
        Rewriter.erase_op(compute)

    def _reserve(self, compute: ttl.ComputeOp, op: ttl.TileOp) -> ttl.CBReserveOp:
        """The place of what `op` makes, in a buffer that is free."""
        tile = ttl.tile_of(op.result.type)
        if self._is_wide and is_float(tile.data_type):
            tile = TileType.get(f32)
        shape = loops_of(compute)
        free = self._free[ttl.CBType.get(shape, tile, 1)]
        cb = free.pop() if free else self._compiler.create(op, tile, shape)
        return self._compiler.reserve(op, cb, compute)


def _last_readers(parts: Sequence[Sequence[ttl.TileOp]]) -> dict[SSAValue, int]:
    """The last part that reads each of the values that another one makes."""
    found: dict[SSAValue, int] = {}
    for number, part in enumerate(parts):
        read = {operand for op in part for operand in op.operands if isinstance(operand.owner, ttl.TileOp)}
        found |= dict.fromkeys(read - {op.result for op in part}, number)
    return found


def _warn(compute: ttl.ComputeOp, capacity: int, numbers: Sequence[Sequence[int]]) -> None:
    ops = tile_ops(compute)
    last = _last_readers([[ops[number] for number in part] for part in numbers])
    spilled = [op.result for op in ops if op.result in last]
    count = "a value goes" if len(spilled) == 1 else f"{len(spilled)} values go"
    report_warning(
        compute,
        f"{capacity} DST registers are too few for this computation: {count} through a circular buffer",
        [*(f"spilled: {named(compute, value)}" for value in spilled), suggestion(compute)],
    )
