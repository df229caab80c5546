"""The cost of basic blocks of PTX without machine code: expansions of each instruction, scheduled as ptxas would.

A warp issues in order, so that the order decides how long it waits for results. ptxas moves instructions of a block such
that long chains begin early: list scheduling by the longest way to the end of the block (Gibbons and Muchnick,
"Efficient Instruction Scheduling for a Pipelined Architecture", 1986). Events stay in their order, but that loads go up
to the event before them that may order memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tlx_xdsl.ptx.flow import Block
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Instruction, Register

from .expansions import expansion_of
from .instructions import PIPES, QUEUED, PipeRates, Use, use_of
from .pieces import BlockCost, Builder, results_of

_LOAD_LATENCY = 30.0
"""Cycles that ptxas lets pass between a load and its use where it can."""


class Estimator:
    """Estimates the cost of the blocks of a program."""

    def __init__(self, program: Program, rates: PipeRates):
        """Take the program, and the rates of the chip."""
        self._program = program
        self._rates = rates
        instructions = program.function.instructions
        fused = {id(each.product) for each in instructions if each.product is not None}
        self._uses = [() if id(each) in fused and each.name == "mul" else self._uses_of(each) for each in instructions]
        self._loaded = {register for number in range(len(instructions)) for register in results_of(program, number)}

    def _uses_of(self, instruction: Instruction) -> tuple[tuple[Use, float], ...]:
        expansion = (("FFMA", 1.0),) if instruction.product is not None else expansion_of(instruction)
        return tuple((use_of(name, self._rates), count) for name, count in expansion)

    def costs(self, chain: Sequence[Block], events: Sequence[Sequence[int]]) -> list[BlockCost]:
        """Return the costs of blocks that run one after the other.

        `events` has the instructions of each that may bear events.
        """
        numbers = [number for block in chain for number in range(block.first, block.last)]
        marks = {number for block in events for number in block}
        reads, writes = self._registers(numbers)
        builder = Builder()
        aliases: dict[int, frozenset[int]] = {}
        for at, cycles in self._schedule(numbers, marks, reads, writes):
            number = numbers[at]
            uses = self._uses[number]
            needed = frozenset[int]().union(
                *(aliases.get(each, frozenset((each,)) if each in self._loaded else frozenset()) for each in reads[at])
            )
            if not uses and number not in marks:
                # What costs nothing does not wait: those that read its result do.
                aliases.update(dict.fromkeys(writes[at], needed))
                continue
            for each in writes[at]:
                aliases.pop(each, None)
            if needed:
                builder.need(needed)
            builder.add(uses, cycles, number)
            if number in marks:
                builder.event(number)
        return builder.costs(self._program, chain, events)

    def _registers(self, numbers: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """For each of some instructions the registers that it reads and writes."""
        reads: list[list[int]] = []
        writes: list[list[int]] = []
        for number in numbers:
            step, instruction = self._program.steps[number], self._program.function.instructions[number]
            read = [] if step is None else [each.number for each, _ in step.reads if isinstance(each, Register)]
            if instruction.guard is not None:
                read.append(instruction.guard.number)
            reads.append(read)
            writes.append([] if step is None else [each.number for each, _ in step.writes if each is not None])
        return reads, writes

    def _schedule(
        self, numbers: Sequence[int], events: set[int], reads: list[list[int]], writes: list[list[int]]
    ) -> list[tuple[int, float]]:
        """The order of some instructions, by their places, and the cycles that each takes before the next one."""
        size = len(numbers)
        uses = [self._uses[number] for number in numbers]
        slots = [sum(count for _, count in each) for each in uses]
        latency = [self._latency(number, number in events) for number in numbers]
        after: list[list[int]] = [[] for _ in range(size)]
        missing = [0] * size
        for before, later in self._edges(numbers, events, reads, writes):
            after[before].append(later)
            missing[later] += 1
        length = [0.0] * size
        for at in range(size - 1, -1, -1):
            length[at] = latency[at] + max((length[each] for each in after[at]), default=0.0)
        ready_at = [0.0] * size
        free_at = [0.0] * len(PIPES)
        waiting: list[tuple[float, int]] = []
        ready = [(-length[at], at) for at in range(size) if not missing[at]]
        heapq.heapify(ready)
        order: list[tuple[int, float]] = []
        now = 0.0
        while ready or waiting:
            began = now
            if not ready:
                now = max(now, waiting[0][0])
            while waiting and waiting[0][0] <= now:
                at = heapq.heappop(waiting)[1]
                heapq.heappush(ready, (-length[at], at))
            at = heapq.heappop(ready)[1]
            for use, count in uses[at]:
                for pipe, taken in use.pipes:
                    # The special functions have a queue of their own: a warp goes on behind it.
                    if pipe not in QUEUED:
                        now = max(now, free_at[pipe])
                        free_at[pipe] = now + taken * count
            # Loads give their result when the model of memory says so: nothing of that is counted here.
            done = now + max(slots[at], 0.0 if numbers[at] in events else latency[at])
            now += slots[at]
            order.append((at, now - began))
            for each in after[at]:
                ready_at[each] = max(ready_at[each], done)
                missing[each] -= 1
                if not missing[each]:
                    heapq.heappush(waiting, (ready_at[each], each))
        return order

    def _latency(self, number: int, is_event: bool) -> float:
        uses = self._uses[number]
        if is_event:
            return _LOAD_LATENCY if results_of(self._program, number) else 1.0
        return uses[-1][0].latency + sum(count for _, count in uses[:-1]) if uses else 0.0

    def _edges(
        self, numbers: Sequence[int], events: set[int], reads: list[list[int]], writes: list[list[int]]
    ) -> list[tuple[int, int]]:
        """Which of some instructions must come before which, by their places."""
        edges: set[tuple[int, int]] = set()
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        ordered, loads = -1, list[int]()
        for at, number in enumerate(numbers):
            for each in reads[at]:
                if each in writer:
                    edges.add((writer[each], at))
                readers.setdefault(each, []).append(at)
            for each in writes[at]:
                if each in writer:
                    edges.add((writer[each], at))
                edges.update((reader, at) for reader in readers.pop(each, ()) if reader != at)
                writer[each] = at
            if number in events:
                if ordered >= 0:
                    edges.add((ordered, at))
                if results_of(self._program, number):
                    loads.append(at)
                else:
                    edges.update((load, at) for load in loads)
                    ordered, loads = at, []
        last = len(numbers) - 1
        if self._program.steps[numbers[last]] is None:
            edges.update((at, last) for at in range(last))
        return sorted(each for each in edges if each[0] != each[1])
