"""The cost of basic blocks of PTX, counted in the machine code that ptxas has made of them.

ptxas writes in the cubin of which line of the PTX each instruction is (`-lineinfo`, which Triton gives), so that blocks
of the machine are taken apart again:

    PTX                                       SASS                                    line
    $L__BB0_3:  fma.rn.f32 %r7, ...     12    .L_x_4:  FFMA R8, R9, R10, R8           12
                add.s32 %r5, %r5, 64    13             UIADD3 UR4, UR4, 0x40, URZ     13
                @%p2 bra $L__BB0_3      14             @P0 BRA `(.L_x_4)              14

Blocks of which each always follows the one before it are counted together, as a chain. An instruction that ptxas has
moved out of a loop, or made again in another one, counts where it now is. A loop that ptxas has unrolled has the
instructions of a chain several times: the chain costs their mean. Cycles alone are those that the instructions
themselves say (stalls), and waits for the scoreboards of what is no event.
"""

from __future__ import annotations

import bisect
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tlx_xdsl.ptx.program import Program
from tlx_xdsl.sass.accesses import PRODUCTS
from tlx_xdsl.sass.text import Code, Instruction

from .expansions import expansion_of
from .instructions import PipeRates, use_of
from .loops import OUTSIDE, Loops, find_chains, find_loops
from .pieces import BlockCost, Builder, results_of

PTX_LINES = ".nv_debug_ptx_txt"
"""The name that nvdisasm gives the PTX of a cubin."""
_ENDS = ("EXIT", "RET", "BRA", "JMP", "BRX", "BRXU", "KILL")
_TARGET = re.compile(r"`\(([^)]+)\)")
_SPILLS = ("LDL", "STL")
_STACK = re.compile(r"\[R1\+(0x[0-9a-f]+)\]")
_SPIN = frozenset(("mbarrier", "setp", "selp", "mov", "bra", "nanosleep", "and", "or", "not"))
"""What a loop that waits for a barrier has in it."""
_ENOUGH = 0.2
"""The part of the anchors of a loop that cannot be all errors of lines."""
_SHORT = 16
"""Instructions of such a loop, at most."""


@dataclass(slots=True)
class _Block:
    """A basic block of the machine."""

    first: int
    last: int
    successors: list[int] = field(default_factory=list[int])


def costs(program: Program, code: Code, events: Sequence[Sequence[int]], rates: PipeRates) -> list[BlockCost] | None:
    """Return the cost of each block of PTX; `events` has the instructions of each that may bear events.

    None for a disassembly without lines of the PTX.
    """
    numbers = _numbers(program, code)
    if not any(each is not None for each in numbers):
        return None
    blocks = _blocks(code)
    _name_events(program, code, blocks, numbers)
    return _Attribution(program, code, blocks, numbers, events, rates).costs()


def _numbers(program: Program, code: Code) -> list[int | None]:
    """The instruction of PTX that each one of the machine is of, as its line says."""
    at_line: dict[int, list[int]] = {}
    for number, instruction in enumerate(program.function.instructions):
        at_line.setdefault(instruction.line, []).append(number)
    found: list[int | None] = []
    last = 0
    for item in code.instructions:
        numbers = at_line.get(item.place[1]) if item.place is not None and item.place[0] == PTX_LINES else None
        if numbers is None:
            found.append(None)
        else:
            # A function that is called at several places has its lines there several times.
            last = numbers[0] if len(numbers) == 1 else min(numbers, key=lambda each: abs(each - last))
            found.append(last)
    return found


def _name_events(program: Program, code: Code, blocks: list[_Block], numbers: list[int | None]) -> None:
    """Correct the numbers of products, waits and arrivals that have no line of their own, but the one before them.

    ptxas keeps the order of these, so that such a one is that after the last that is known, or before the next.
    """
    of_kind: dict[str, list[int]] = {}
    for number, instruction in enumerate(program.function.instructions):
        if (kind := _kind_in_ptx(instruction.opcode)) is not None:
            of_kind.setdefault(kind, []).append(number)
    for block in blocks:
        found: dict[str, list[int]] = {}
        for at in range(block.first, block.last):
            kind = _kind_in_machine(code.instructions[at])
            if kind in of_kind and numbers[at] is not None:
                found.setdefault(kind, []).append(at)
        for kind, places in found.items():
            _name_in_order(of_kind[kind], places, numbers)


def _name_in_order(events: list[int], places: list[int], numbers: list[int | None]) -> None:
    """Name the events of one kind at some places in the machine's code; `events` are those of the PTX."""
    ranks = {number: rank for rank, number in enumerate(events)}
    known = [ranks.get(numbers[at] or 0) for at in places]
    first = next((at for at, rank in enumerate(known) if rank is not None), None)
    rank = (bisect.bisect_left(events, numbers[places[0]] or 0) if first is None else (known[first] or 0) - first) - 1
    for at, given in zip(places, known, strict=True):
        rank = rank + 1 if given is None else given
        numbers[at] = events[min(max(rank, 0), len(events) - 1)]


def _kind_in_ptx(opcode: str) -> str | None:
    if opcode.startswith("wgmma.mma_async"):
        return "product"
    if opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
        return "wait"
    return "arrival" if opcode.startswith("mbarrier.arrive") else None


def _kind_in_machine(item: Instruction) -> str | None:
    if item.name in PRODUCTS:
        return "product"
    if item.name != "SYNCS":
        return None
    return "wait" if "PHASECHK" in item.modifiers else "arrival" if "ARRIVE" in item.modifiers else None


def _blocks(code: Code) -> list[_Block]:
    """The blocks of the machine in the order of its code."""
    items = code.instructions
    place = {item.address: number for number, item in enumerate(items)}
    leaders = {0, *(place[each] for each in code.labels.values() if each in place)}
    leaders.update(number + 1 for number, item in enumerate(items) if item.name in _ENDS)
    starts = sorted(each for each in leaders if each < len(items))
    blocks = [_Block(first, last) for first, last in zip(starts, [*starts[1:], len(items)], strict=True)]
    block_at = {block.first: number for number, block in enumerate(blocks)}
    for number, block in enumerate(blocks):
        last = items[block.last - 1]
        if last.name in ("BRA", "JMP"):
            labels = (code.labels.get(name) for text in last.operands for name in _TARGET.findall(text))
            block.successors.extend(block_at[place[each]] for each in labels if each is not None and each in place)
        if not _ends_always(last) and number + 1 < len(blocks):
            block.successors.append(number + 1)
    return blocks


def _ends_always(item: Instruction) -> bool:
    """Say whether the next instruction in the code never follows."""
    return item.name in _ENDS and item.guard is None and not (item.name == "BRA" and len(item.operands) > 1)


class _Attribution:
    """Deals the instructions of the machine out to the blocks of PTX."""

    def __init__(
        self,
        program: Program,
        code: Code,
        blocks: list[_Block],
        numbers: list[int | None],
        events: Sequence[Sequence[int]],
        rates: PipeRates,
    ):
        self._program = program
        self._chains = find_chains([block.successors for block in program.blocks])
        self._items = code.instructions
        self._numbers = numbers
        self._events = events
        self._is_event = {each for block in events for each in block}
        self._loaded = {register for each in self._is_event for register in results_of(program, each)}
        if _stack_bytes(code) > rates.most_local_bytes:
            rates = replace(rates, local=rates.far_local)
        self._uses = [use_of(item.opcode, rates) for item in self._items]
        self._chain_of = [0] * len(program.function.instructions)
        for place, chain in enumerate(self._chains):
            for block in (program.blocks[each] for each in chain):
                self._chain_of[block.first : block.last] = [place] * (block.last - block.first)
        self._blocks = blocks
        self._loops = find_loops([block.successors for block in self._blocks])
        self._ptx_loops = self._loops_in_ptx()
        self._owner = self._owners()

    def _loops_in_ptx(self) -> Loops:
        """The loops of PTX, without those that wait for a barrier."""
        program = self._program
        loops = find_loops([block.successors for block in program.blocks])
        for place, loop in enumerate(loops.loops):
            spans = [range(program.blocks[each].first, program.blocks[each].last) for each in loop.blocks]
            names = [program.function.instructions[each].name for span in spans for each in span]
            if len(names) <= _SHORT and "mbarrier" in names and _SPIN.issuperset(names):
                for block in loop.blocks:
                    if loops.innermost[block] == place:
                        loops.innermost[block] = loop.parent
        return loops

    # Which chain of PTX an instruction belongs to --------------------------------------------------------------------

    def _anchors(self, block: _Block) -> list[int]:
        """The instructions of a block of the machine that ptxas does not move far: events and branches."""
        return [
            each
            for each in range(block.first, block.last)
            if self._numbers[each] is not None and (self._items[each].name == "BRA" or self._is_anchor(each))
        ]

    def _is_anchor(self, at: int) -> bool:
        return self._uses[at].is_event and self._numbers[at] in self._is_event

    def _loop_in_ptx(self, loops: Loops, ptx_loop: Sequence[int]) -> list[int]:
        """The loop of PTX that each loop of the machine is of; `ptx_loop` is the innermost one of each chain.

        Where ptxas has unrolled a loop to its end, or the first turns of it, these turns stand in the loop around it:
        so that it is the outermost loop that counts, of those with enough anchors for none to be an error.
        """
        found: list[set[int]] = [set() for _ in loops.loops]
        for number, block in enumerate(self._blocks):
            if (loop := loops.innermost[number]) != OUTSIDE:
                found[loop].update(self._numbers[at] or 0 for at in self._anchors(block))
        votes = [Counter(ptx_loop[self._chain_of[each]] for each in numbers) for numbers in found]
        return [self._outermost(vote) if vote else OUTSIDE for vote in votes]

    def _outermost(self, votes: Counter[int]) -> int:
        (best, count), *rest = votes.most_common()
        least = max(2, _ENOUGH * votes.total())
        candidates = [best, *(loop for loop, each in rest if each >= min(least, count))]
        return min(candidates, key=self._depth)

    def _depth(self, loop: int) -> int:
        depth = 0
        while loop != OUTSIDE:
            depth, loop = depth + 1, self._ptx_loops.loops[loop].parent
        return depth

    def _join_loops(self, in_ptx: Sequence[int]) -> None:
        """Leave out loops in what a single instruction of PTX has become, as waits and uniform registers need them."""
        loops = self._loops
        joined = [OUTSIDE] * len(in_ptx)
        for place in range(len(in_ptx) - 1, -1, -1):
            parent = loops.loops[place].parent
            around = OUTSIDE if parent == OUTSIDE else joined[parent]
            is_own = in_ptx[place] != (OUTSIDE if around == OUTSIDE else in_ptx[around])
            joined[place] = place if is_own else around
        loops.innermost = [each if each == OUTSIDE else joined[each] for each in loops.innermost]

    def _owners(self) -> list[int]:
        """Return the chain of PTX that each instruction of the machine counts for."""
        innermost = [self._ptx_loops.innermost[chain[0]] for chain in self._chains]
        in_ptx = self._loop_in_ptx(self._loops, innermost)
        # Loops that ptxas has unrolled to their ends are none.
        for place, loop in enumerate(innermost):
            while loop != OUTSIDE and loop not in in_ptx:
                loop = self._ptx_loops.loops[loop].parent
            innermost[place] = loop
        self._join_loops(in_ptx)
        owner: list[int] = []
        last = 0
        for number, block in enumerate(self._blocks):
            loop = self._loops.innermost[number]
            wanted = OUTSIDE if loop == OUTSIDE else in_ptx[loop]
            own: list[int | None] = []
            for at in range(block.first, block.last):
                of = self._numbers[at]
                candidate = None if of is None else self._chain_of[of]
                own.append(candidate if candidate is not None and innermost[candidate] == wanted else None)
            last = next((each for each in own if each is not None), last)
            for each in own:
                last = last if each is None else each
                owner.append(last)
        return owner

    # Costs -----------------------------------------------------------------------------------------------------------

    def _copies(self) -> list[tuple[int, float]]:
        """Return the loop of the machine with most copies of each chain of PTX, and how many those are."""
        counts: list[dict[int, Counter[tuple[int, str]]]] = [{} for _ in self._chains]
        for number, block in enumerate(self._blocks):
            loop = self._loops.innermost[number]
            for at in range(block.first, block.last):
                of, owner = self._numbers[at], self._owner[at]
                if of is not None and self._chain_of[of] == owner:
                    kind = self._items[at].name if self._uses[at].is_event else ""
                    counts[owner].setdefault(loop, Counter())[of, kind] += 1
        found: list[tuple[int, float]] = []
        for by_loop in counts:
            sizes = {loop: self._typical(counter) for loop, counter in by_loop.items()}
            # Of two the inner one: loops have numbers from the innermost on, OUTSIDE is none.
            best = max(sizes, key=lambda each: (sizes[each], each != OUTSIDE, -each), default=OUTSIDE)
            found.append((best, sizes.get(best, 1.0)))
        return found

    def _typical(self, counter: Counter[tuple[int, str]]) -> float:
        """Return how often the instructions of a chain are there: by its events, else by what becomes a single one."""
        events: dict[int, int] = {}
        singles: list[int] = []
        others: list[float] = []
        for (number, kind), count in counter.items():
            expected = sum(each for _, each in expansion_of(self._program.function.instructions[number]))
            if kind and number in self._is_event:
                events[number] = min(events.get(number, count), count)
            elif expected == 1:
                singles.append(count)
            else:
                others.append(max(1.0, count / max(1.0, expected)))
        return float(statistics.median_low([*events.values()] or singles or others))

    def costs(self) -> list[BlockCost]:
        """The cost of each block of PTX."""
        copies = self._copies()
        builders = [Builder() for _ in self._chains]
        boards = self._boards()
        for number, block in enumerate(self._blocks):
            loop = self._loops.innermost[number]
            self._walk(block, [loop == each for each, _ in copies], builders, boards[number])
        found: dict[int, BlockCost] = {}
        for chain, builder, (_, count) in zip(self._chains, builders, copies, strict=True):
            blocks = [self._program.blocks[each] for each in chain]
            made = builder.costs(self._program, blocks, [self._events[each] for each in chain], count)
            found.update(zip(chain, made, strict=True))
        return [found[number] for number in range(len(found))]

    def _boards(self) -> list[list[frozenset[int]]]:
        """Return the events that each scoreboard may stand for where each block of the machine begins."""
        nothing: frozenset[int] = frozenset()
        begins = [[nothing] * 6 for _ in self._blocks]
        waiting = list(range(len(self._blocks) - 1, -1, -1))
        while waiting:
            number = waiting.pop()
            block = self._blocks[number]
            state = list(begins[number])
            for at in range(block.first, block.last):
                self._track(at, state)
            for following in block.successors:
                before = begins[following]
                after = [one | two for one, two in zip(before, state, strict=True)]
                if after != before:
                    begins[following] = after
                    waiting.append(following)
        return begins

    def _track(self, at: int, state: list[frozenset[int]]) -> frozenset[int]:
        """Follow the scoreboards over an instruction; return the events that it waits for."""
        item = self._items[at]
        awaited: frozenset[int] = frozenset()
        if mask := item.waits:
            for board in range(6):
                if mask >> board & 1 and state[board]:
                    awaited |= state[board]
                    state[board] = frozenset()
        board = item.releases[0]
        if board is not None and board < 6 and self._is_anchor(at):
            state[board] |= {self._numbers[at] or 0}
        return awaited

    def _walk(self, block: _Block, counts: list[bool], builders: list[Builder], state: list[frozenset[int]]) -> None:
        """Run through a block of the machine, and add its instructions to those of PTX that count here."""
        now = 0.0
        ready = [0.0] * 6
        state = list(state)
        under_way: Counter[int] = Counter()
        for at in range(block.first, block.last):
            item, use, owner, of = self._items[at], self._uses[at], self._owner[at], self._numbers[at]
            awaited = self._track(at, state)
            if self._is_anchor(at) and results_of(self._program, of or 0):
                under_way[of or 0] += 1
            begins = now
            if mask := item.waits:
                begins = max([now, *(ready[board] for board in range(6) if mask >> board & 1)])
            ends = begins + _stall(item)
            for board in item.releases:
                if board is not None and board < 6 and not use.is_event:
                    ready[board] = max(ready[board], begins + use.latency)
            if counts[owner]:
                builder = builders[owner]
                if awaited:
                    builder.lag = max(builder.lag, *(under_way[each] - 1 for each in awaited))
                    builder.need(register for each in awaited for register in results_of(self._program, each))
                if item.name == "MEMBAR":
                    # Fences of TMA and products have it, too: all that the warp loads is there before it ends.
                    builder.need(self._loaded)
                builder.add(((use, 1.0),), ends - now, of if of is not None and self._chain_of[of] == owner else None)
                if of is not None and self._chain_of[of] == owner and self._is_anchor(at):
                    builder.event(of)
            under_way.subtract(each for each in awaited if under_way[each])
            now = ends


def _stack_bytes(code: Code) -> int:
    """Return how many bytes of a thread spilled registers take."""
    places = (text for item in code.instructions if item.name in _SPILLS for text in item.operands)
    return max((int(match[1], 16) + 4 for text in places if (match := _STACK.match(text)) is not None), default=0)


def _stall(item: Instruction) -> float:
    """Cycles until the warp may issue its next instruction."""
    return 1.0 if item.control is None else float(max(1, item.control & 15))
