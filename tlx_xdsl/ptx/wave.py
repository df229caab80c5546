"""CTAs that run side by side: their cohorts, their shared memory, and the order in which they get turns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.numerics.arrays import Array

from .codegen import BlockFunction
from .cohort import LANES, Cohort, Meeting, Wait, joined
from .flow import EXIT
from .memory.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from .memory.surroundings import Launch, Trap
from .read.faults import PtxBudget, PtxDeadlock, PtxFault, PtxRace, describe, fault
from .read.symbols import RANK_SHIFT
from .shared_memory import SharedMemory

QUANTUM = 512
"""Blocks that a cohort runs before others get a turn."""


@dataclass(slots=True)
class Budget:
    """Limits of a run: basic blocks, and seconds of processor time."""

    blocks: int
    seconds: float
    end: float = 0.0

    def __post_init__(self) -> None:
        self.end = time.process_time() + self.seconds


class Wave:
    """Some whole clusters of a launch, all of whose threads run side by side."""

    def __init__(self, machine: Launch, first_cluster: int, clusters: int):
        self.machine = machine
        self.program = machine.program
        threads = machine.threads
        self.padded_threads = -(-threads // LANES) * LANES
        """Threads of a CTA, in whole warps."""
        self.cluster_size = machine.cluster_size
        self.ctas = clusters * self.cluster_size
        self.first_cta = machine.first_cta + first_cluster * self.cluster_size
        self.coordinates = machine.coordinates(first_cluster, clusters)
        """The place of each CTA in the grid, an array of [CTAs, 3]."""
        self.shared = SharedMemory(self, machine.shared_bytes)
        self.order = machine.make_order(self)
        self.named: dict[tuple[int, int], NamedBarrier] = {}
        """The named barriers by CTA and number."""
        self.mbarriers: dict[int, Mbarrier] = {}
        """The live mbarriers by their places in the shared memory of the wave."""
        self.cluster_barriers: dict[int, ClusterBarrier] = {}
        self.state: dict[Any, Any] = {}
        """What kinds of instructions keep of their own."""
        everyone = np.arange(self.ctas * self.padded_threads, dtype=np.int64)
        running = everyone[everyone % self.padded_threads < threads]
        registers: list[Any] = [None] * len(self.program.function.registers)
        first = Cohort(self, running, registers, 0)
        for number in self.program.live_in(0):
            registers[number] = undefined(self.program.homes[number].dtype, first.n)
        self.cohorts: list[Cohort] = [first]
        self._running = first
        """The cohort that has the turn."""
        self.alive = np.zeros(self.ctas, np.int64)
        """Threads of each CTA that have not ended."""
        self.alive += threads

    # Registers of the hardware ---------------------------------------------------------------------------------------

    def special(self, cohort: Cohort, name: str) -> Array:
        """A special register of the threads of a cohort."""
        return self.machine.special(cohort, name)

    def shared_address(self, cohort: Cohort, offset: int) -> NDArray[np.uint32]:
        """The shared address of a byte of each thread's own CTA."""
        if self.cluster_size == 1:
            return np.full(cohort.n, offset, np.uint32)
        ranks = (cohort.ctas % self.cluster_size).astype(np.uint32)
        return ranks << np.uint32(RANK_SHIFT) | np.uint32(offset)

    def rows(self, cohort: Cohort) -> NDArray[np.int64]:
        """The place in the grid of each thread's CTA."""
        return self.coordinates[cohort.ctas]

    def everyone(self) -> list[Cohort]:
        """The cohorts of all threads that have not ended."""
        meetings = {id(meeting): meeting for cohort in self.cohorts for meeting in cohort.meetings}
        found = list(self.cohorts)
        for meeting in meetings.values():
            found.extend(meeting.parked)
        return found

    # Turns -----------------------------------------------------------------------------------------------------------

    def run(self, budget: Budget) -> Iterator[bool]:
        """Run all threads to their end; gives way to other waves now and then, with True where all of its own wait.

        Raises PtxFault for what they do wrong, PtxDeadlock when none can go on, PtxBudget when they take too long.
        """
        turns = 0
        with np.errstate(all="ignore"):
            while self.cohorts:
                cohort = self._choose()
                if cohort is None:
                    if not self._separate():
                        if self.machine.others_run:
                            yield True
                            continue
                        raise self._deadlock()
                    continue
                self._turn(cohort, budget)
                turns += 1
                if turns % self.machine.slice_turns == 0:
                    yield False

    def _choose(self) -> Cohort | None:
        """The cohort that has not run for longest, joined with others at the same place; None if all wait."""
        ready = [each for each in self.cohorts if each.waiting is None or each.waiting.blocked() is None]
        if not ready:
            return None
        chosen = min(ready, key=lambda each: each.turn)
        same = [
            each for each in ready
            if each.pc == chosen.pc and each.meetings == chosen.meetings
            and (each.ticket is None) == (chosen.ticket is None)
        ]  # fmt: skip
        if len(same) > 1:
            for each in same:
                for item in () if each.ticket is None else each.ticket.items:
                    self.order.acquire(each, item.mask, item.barrier)
            made = joined(same)
            # All of them have passed what they had arrived at.
            made.ticket = None if chosen.ticket is None else Wait(())
            self.cohorts = [each for each in self.cohorts if each not in same]
            self.cohorts.append(made)
            chosen = made
        self.machine.clock += 1
        chosen.turn = self.machine.clock
        return chosen

    def _separate(self) -> bool:
        """Let some threads of a cohort go on whose others still have to wait; say whether there are any."""
        for cohort in self.cohorts:
            assert cohort.waiting is not None
            blocked = cohort.waiting.blocked()
            if blocked is not None and not blocked.all():
                waiting = cohort.waiting
                other = cohort.divide(~blocked)
                cohort.waiting = waiting.of(blocked)
                other.waiting = None
                return True
        return False

    def _turn(self, cohort: Cohort, budget: Budget) -> None:
        program = self.program
        cohort.waiting = None
        self._running = cohort
        code, counts = program.code, self.machine.counts
        if time.process_time() > budget.end:
            raise self._over(cohort, f"no end after {budget.seconds:g} s")
        try:
            for _ in range(QUANTUM):
                number = cohort.pc
                if number == EXIT:
                    self._end(cohort)
                    return
                if cohort.meetings and cohort.meetings[-1].block == number:
                    self._park(cohort)
                    return
                function = code[number] or self._first(cohort, number)
                counts[number] += len(cohort.warps)
                cohort.pc = function(cohort, cohort.R)
                if cohort.waiting is not None:
                    budget.blocks -= 1
                    if (blocked := cohort.waiting.blocked()) is not None:
                        # The instruction runs again, and counts once.
                        counts[number] -= len(cohort.warps)
                        self.machine.traffic.wait(cohort, blocked)
                        break
                    cohort.waiting = None
            budget.blocks -= QUANTUM
            if budget.blocks < 0:
                raise self._over(cohort, "no end after the steps that a run may take")
        except Trap as trap:
            raise self.fault(cohort, trap.message, trap.notes, trap.kind or PtxFault) from None
        except CompilationError:
            raise
        except MemoryError:
            raise self.fault(cohort, "out of memory") from None
        except Exception as error:
            wrong = internal_error(error)
            raise self.fault(cohort, wrong.message, wrong.notes) from error

    def _first(self, cohort: Cohort, number: int) -> BlockFunction:
        """The code of a block that is run for the first time.

        Raises Trap where it uses a register too early, if accesses are compared and the launch does not go on.
        """
        misuse = self.program.misuses.get(number)
        if misuse is not None and self.machine.compares:
            cohort.at = misuse.at
            other = self.program.function.instructions[misuse.other]
            where = describe(self.program.module, other)
            trap = Trap(misuse.message, (f"the other is '{other.opcode}' at {where}",), PtxRace)
            if not self.passes_over(trap):
                raise trap
        return self.program.function_of(number)

    def _end(self, cohort: Cohort) -> None:
        self.cohorts.remove(cohort)
        for meeting in cohort.meetings:
            meeting.expected -= cohort.n
        for cta, threads in cohort.cta_groups:
            self.alive[cta] -= threads.stop - threads.start
            if self.alive[cta] == 0:
                self.machine.ended(self, cta, cohort)
            if (barrier := self.cluster_barriers.get(cta // self.cluster_size)) is not None:
                barrier.leave(cohort.threads[threads].tolist())
        for meeting in reversed(cohort.meetings):
            self._meet(meeting)

    def _park(self, cohort: Cohort) -> None:
        self.cohorts.remove(cohort)
        meeting = cohort.meetings[-1]
        cohort.meetings = cohort.meetings[:-1]
        meeting.parked.append(cohort)
        self._meet(meeting)

    def _meet(self, meeting: Meeting) -> None:
        """Let threads go on together when all have come that have not ended."""
        if meeting.parked and sum(each.n for each in meeting.parked) == meeting.expected:
            parked, meeting.parked = meeting.parked, []
            self.cohorts.append(joined(parked) if len(parked) > 1 else parked[0])

    # Reports ---------------------------------------------------------------------------------------------------------

    def passes_over(self, trap: Trap) -> bool:
        """Return whether the launch goes on past accesses that nothing orders."""
        on_fault = self.machine.on_fault
        return on_fault is not None and on_fault(
            self.fault(self._running, trap.message, trap.notes, trap.kind or PtxFault)
        )

    def fault(
        self, cohort: Cohort, message: str, notes: tuple[str, ...] = (), kind: type[PtxFault] = PtxFault
    ) -> PtxFault:
        """A fault of the instruction that a cohort is at."""
        instruction = self.program.function.instructions[cohort.at]
        return fault(self.program.module, instruction, message, (*notes, self.who(cohort)), kind)

    def who(self, cohort: Cohort) -> str:
        """Say which threads a cohort has."""
        ctas = sorted({tuple(map(int, self.coordinates[cta])) for cta, _ in cohort.cta_groups})
        warps = sorted({int(warp) % (self.padded_threads // LANES) for warp in cohort.warps})
        shown = ", ".join(map(str, ctas[:3])) + (f" and {len(ctas) - 3} more" if len(ctas) > 3 else "")
        of = "" if self.machine.rank is None else f" of rank {self.machine.rank}"
        return f"in warp{'s' * (len(warps) > 1)} {_ranges(warps)} of CTA{'s' * (len(ctas) > 1)} {shown}{of}"

    def _over(self, cohort: Cohort, message: str) -> PtxFault:
        block = self.program.blocks[cohort.pc] if cohort.pc != EXIT else None
        if block is not None:
            cohort.at = block.first
        return self.fault(cohort, message, (), PtxBudget)

    def _deadlock(self) -> PtxFault:
        notes: list[str] = []
        instructions = self.program.function.instructions
        for cohort in self.cohorts:
            assert cohort.waiting is not None
            said = next(
                (
                    item.barrier.describe(item.phase)
                    for item in cohort.waiting.items
                    if not item.barrier.passed(item.phase)
                ),
                "",
            )
            where = describe(self.program.module, instructions[cohort.at])
            notes.append(f"{self.who(cohort)}: wait for {said} at {where}")
        first = self.cohorts[0]
        return fault(self.program.module, instructions[first.at], "deadlock: all threads wait", notes, PtxDeadlock)


def undefined(dtype: np.dtype[Any], count: int) -> Array:
    """A register that nothing has written: all bits are set."""
    if dtype.kind == "b":
        return np.zeros(count, np.bool_)
    return np.full(count * dtype.itemsize, 0xFF, np.uint8).view(dtype)


def _ranges(numbers: list[int]) -> str:
    """`0-3, 7` of rising numbers."""
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        parts.append(str(numbers[at]) if at == end else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return ", ".join(parts)
