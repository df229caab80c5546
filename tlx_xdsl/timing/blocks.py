"""The static cost of basic blocks of PTX: what a warp takes of its sub-partition between two uses of other units."""

from __future__ import annotations

from collections import Counter

from tlx_xdsl.ptx.program import Program
from tlx_xdsl.sass.text import parse

from . import machine_code
from .estimate import Estimator
from .expansions import is_known
from .instructions import PipeRates, unknown_in
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


def unknown(program: Program, disassembly: str | None = None, rates: PipeRates | None = None) -> Counter[str]:
    """Return the instructions that `costs` takes for plain arithmetic, as it does not know them, and how many of each.

    They are those of the machine where there is a disassembly, and else those of the PTX.
    """
    code = None if disassembly is None else parse(disassembly).get(program.function.name)
    if code is not None:
        return unknown_in([each.opcode for each in code.instructions], rates or PipeRates())
    return Counter(each.name for each in program.function.instructions if not is_known(each))
