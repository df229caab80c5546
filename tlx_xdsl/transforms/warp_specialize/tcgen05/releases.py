"""Arrivals that give slots of rings back, which the tensor cores make when they have read a slot.

After the producer's part a consumer loads a slot to registers and arrives at once. Where products read the slot in
place instead, the last one of them completes the barrier in the place of that arrival: it tracks all products before.
A block that threads need as well was read before, where they store to memory what the last product reads: all of them
meet between that store and the product.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region

from tlx_xdsl.dialects import tt, ttg, ttng

from ..products.products_in_flight import in_block
from .accumulators import Accumulators, lies_in
from .operands import Operands


class Releases:
    """The arrivals of a task that the tensor cores make."""

    def __init__(self, region: Region):
        self.loads: dict[ttng.ArriveBarrierOp, list[ttg.LocalLoadOp]] = {}
        """The loads of the slot that an arrival gives back."""
        self.moved: set[ttng.ArriveBarrierOp] = set()
        self._after: dict[Operation, list[ttng.ArriveBarrierOp]] = {}
        self._by: dict[tt.DotOp, list[ttng.ArriveBarrierOp]] = {}
        for block in [inner for outer in region.blocks for inner in outer.walk_blocks()]:
            self._match(block)

    def _match(self, block: Block) -> None:
        """Give each arrival the loads before it, up to the arrival before."""
        since: list[ttg.LocalLoadOp] = []
        for op in block.ops:
            match op:
                case ttg.LocalLoadOp():
                    since.append(op)
                case ttng.ArriveBarrierOp():
                    self.loads[op], since = since, []
                case _:
                    pass

    def settle(self, operands: dict[tt.DotOp, Operands], accumulators: Accumulators) -> set[ttg.LocalLoadOp]:
        """Choose the places of the arrivals; return the loads that must be done, for an arrival relies on them."""
        readers: dict[ttg.LocalLoadOp, list[tt.DotOp]] = {}
        for dot, found in operands.items():
            for place in (found.a, found.b):
                if place is not None:
                    readers.setdefault(place.load, []).append(dot)
        needed: set[ttg.LocalLoadOp] = set()
        for arrival, loads in self.loads.items():
            reading = [dot for load in loads for dot in readers.get(load, ())]
            if not reading:
                continue
            last = max(reading, key=accumulators.position)
            if any(_is_read_by_threads(load, operands) for load in loads) and not (
                operands[last].are_stored or accumulators.is_replaced(last)
            ):
                needed |= {load for load in loads if load in readers}
                continue
            self._place(arrival, last, accumulators)
        return needed

    def _place(self, arrival: ttng.ArriveBarrierOp, last: tt.DotOp, accumulators: Accumulators) -> None:
        block = arrival.parent
        assert block is not None
        self.moved.add(arrival)
        holder = in_block(last, block) if lies_in(last, block) else None
        if holder is None or accumulators.is_before(holder, arrival):
            self._after.setdefault(arrival, []).append(arrival)
        elif holder is last:
            self._by.setdefault(last, []).append(arrival)
        else:
            self._after.setdefault(holder, []).append(arrival)

    def after(self, op: Operation) -> Sequence[ttng.ArriveBarrierOp]:
        """Return the arrivals in whose place a commit stands after an operation."""
        return self._after.get(op, ())

    def by(self, dot: tt.DotOp) -> Sequence[ttng.ArriveBarrierOp]:
        """Return the arrivals that a product makes."""
        return self._by.get(dot, ())


def _is_read_by_threads(load: ttg.LocalLoadOp, operands: dict[tt.DotOp, Operands]) -> bool:
    """True if anything but products in place needs a loaded block."""
    pending = [load.result]
    for value in pending:
        for use in value.uses:
            op = use.operation
            if isinstance(op, tt.DotOp):
                found = operands.get(op)
                place = None if found is None else (found.a if use.index == 0 else found.b)
                if use.index > 1 or place is None or place.load is not load:
                    return True
            elif isinstance(op, tt.TransOp | tt.ReshapeOp):
                pending.append(op.results[0])  # pyright: ignore[reportArgumentType]
            else:
                return True
    return False
