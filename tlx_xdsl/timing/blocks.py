"""The static cost of basic blocks of PTX: what a warp takes of its sub-partition between two uses of other units."""

from __future__ import annotations

from tlx_xdsl.ptx.program import Program
from tlx_xdsl.sass.text import parse

from . import machine_code
from .estimate import Estimator
from .instructions import PipeRates
from .loops import find_chains
from .pieces import BlockCost, bears_events


def costs(program: Program, disassembly: str | None = None, rates: PipeRates | None = None) -> list[BlockCost]:
    """Return the cost of each basic block, by its number.

    `disassembly` is what `sass.text.disassembly` gives with the lines of the PTX. Without it, or where the cubin has no
    such lines, the machine's instructions are estimated from the PTX.
    """
    rates = rates or PipeRates()
    events = [
        [number for number in range(block.first, block.last) if bears_events(program, number)]
        for block in program.blocks
    ]
    if disassembly is not None:
        code = parse(disassembly).get(program.function.name)
        counted = None if code is None else machine_code.costs(program, code, events, rates)
        if counted is not None:
            return counted
    estimator = Estimator(program, rates)
    made: dict[int, BlockCost] = {}
    for chain in find_chains([block.successors for block in program.blocks]):
        found = estimator.costs([program.blocks[each] for each in chain], [events[each] for each in chain])
        made.update(zip(chain, found, strict=True))
    return [made[number] for number in range(len(made))]
