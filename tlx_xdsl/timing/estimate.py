"""The cost of basic blocks of PTX without machine code: expansions of each instruction, scheduled as ptxas would.

A warp issues in order, so that the order decides how long it waits for results. ptxas moves instructions such that long
chains begin early: list scheduling by the longest way to the end (Gibbons and Muchnick, "Efficient Instruction
Scheduling for a Pipelined Architecture", 1986), here of blocks that run one after the other. Events stay in their
order, but that loads go up to the event before them that may order memory.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from tlx_xdsl.ptx.flow import Block
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Instruction, Number, Register

from .expansions import OF_CONSTANT, expansion_of
from .instructions import PIPES, PipeRates, Use, use_of
from .pieces import BlockCost, Builder, results_of

_FREE = len(PIPES)
"""In the place of a pipe, none."""
_CHAIN = 2
"""Kinds of instructions from which on those of an expansion follow from each other."""
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
        self._constants = _constants(program)
        divisors: set[object] = set()
        self._uses = [
            () if id(each) in fused and each.name == "mul" else self._uses_of(each, divisors) for each in instructions
        ]
        self._loaded = {register for number in range(len(instructions)) for register in results_of(program, number)}

    def _uses_of(self, instruction: Instruction, divisors: set[object]) -> tuple[tuple[Use, float], ...]:
        expansion = (("FFMA", 1.0),) if instruction.product is not None else expansion_of(instruction)
        if instruction.name == "mov" and instruction.operands[1] in self._constants:
            expansion = OF_CONSTANT
        if instruction.opcode.startswith(("div.full.f32", "div.approx")):
            # ptxas makes a reciprocal once for all that is divided by the same.
            if instruction.operands[2] in divisors:
                expansion = [(name, count) for name, count in expansion if name != "MUFU"]
            divisors.add(instruction.operands[2])
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
        """Return the registers that each of some instructions reads, and those that it writes."""
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
        pipes = [max(((taken * count, pipe) for use, count in each for pipe, taken in use.pipes), default=(0.0, _FREE))
                 for each in uses]  # fmt: skip
        is_guarded = [self._is_guarded(number) for number in numbers]
        pauses = [self._pauses(number, number in events) for number in numbers]
        leads = [self._lead(number, number in events) for number in numbers]
        ready_at = [0.0] * size
        free_at = [0.0] * (len(PIPES) + 1)
        waiting: list[tuple[float, int]] = []
        ready: list[list[tuple[float, int]]] = [[] for _ in free_at]
        for at in range(size):
            if not missing[at]:
                heapq.heappush(ready[pipes[at][1]], (-length[at], at))
        order: list[tuple[int, float]] = []
        now = 0.0
        while len(order) < size:
            began = now
            while not (found := [each[0] for pipe, each in enumerate(ready) if each and free_at[pipe] <= now]):
                times = [free_at[pipe] for pipe, each in enumerate(ready) if each]
                now = max(now, min([*times, *(begins for begins, _ in waiting[:1])]))
                _wake(waiting, now, ready, length, pipes)
            at = min(found)[1]
            taken, pipe = pipes[at]
            heapq.heappop(ready[pipe])
            if pipe != _FREE:
                free_at[pipe] = now + taken
            now += leads[at]
            for each in after[at]:
                ready_at[each] = max(ready_at[each], now + pauses[at][is_guarded[each]])
                missing[each] -= 1
                if not missing[each]:
                    heapq.heappush(waiting, (ready_at[each], each))
            now += slots[at]
            order.append((at, now - began))
            _wake(waiting, now, ready, length, pipes)
        return order

    def _is_guarded(self, number: int) -> bool:
        """Say whether an instruction waits longer for a predicate: one with a guard, or a branch."""
        return self._program.function.instructions[number].guard is not None or self._program.steps[number] is None

    def _latency(self, number: int, is_event: bool) -> float:
        """The cycles that the schedule keeps between an instruction and the use of its result, where it can."""
        uses = self._uses[number]
        if is_event:
            return _LOAD_LATENCY if results_of(self._program, number) else 1.0
        if len(uses) > _CHAIN:
            return sum(max(use.plain_latency, count) for use, count in uses)
        return uses[-1][0].latency + sum(count for _, count in uses[:-1]) if uses else 0.0

    def _lead(self, number: int, is_event: bool) -> float:
        """The cycles for which nothing else is issued while the parts of an expansion follow from each other."""
        uses, rates = self._uses[number], self._rates
        if is_event:
            return rates.to_uniform_latency if len(uses) > _CHAIN else 0.0
        # ptxas scales what is not normal under a predicate, and keeps one predicate for all of a row of exponentials.
        opcode = self._program.function.instructions[number].opcode
        return rates.predicate_latency + rates.special_latency / 2 if opcode == "ex2.approx.f32" else 0.0

    def _pauses(self, number: int, is_event: bool) -> tuple[float, float]:
        """The cycles between the begin of an instruction, and that of one with its result as an operand, or a guard."""
        uses = self._uses[number]
        slots = sum(count for _, count in uses)
        if is_event or not uses:
            # Loads give their result when the model of memory says so: nothing of that is counted here.
            return slots, slots
        latency = self._latency(number, is_event)
        last = uses[-1][0]
        return max(slots, latency - last.latency + last.plain_latency), max(slots, latency)

    def _edges(
        self, numbers: Sequence[int], events: set[int], reads: list[list[int]], writes: list[list[int]]
    ) -> list[tuple[int, int]]:
        """Return which of some instructions must come before which, by their places."""
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


def _constants(program: Program) -> set[object]:
    """The registers that hold one number for all of the kernel."""
    writes = Counter(each for step in program.steps if step is not None for each, _ in step.writes)
    return {
        instruction.operands[0]
        for instruction in program.function.instructions
        if instruction.name == "mov"
        and isinstance(instruction.operands[1], Number)
        and isinstance(target := instruction.operands[0], Register)
        and writes[target] == 1
    }


def _wake(
    waiting: list[tuple[float, int]],
    now: float,
    ready: list[list[tuple[float, int]]],
    length: Sequence[float],
    pipes: Sequence[tuple[float, int]],
) -> None:
    """Move the instructions that may begin by now to those that are ready, by pipe."""
    while waiting and waiting[0][0] <= now:
        at = heapq.heappop(waiting)[1]
        heapq.heappush(ready[pipes[at][1]], (-length[at], at))
