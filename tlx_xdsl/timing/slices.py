"""Slices of a kernel: only what decides which addresses, branches and barriers its warps come to.

The clock asks where data go, not what they are. Sums and products of a GEMM, or the exponentials of a softmax, decide
neither an address nor a branch, so a run for the clock leaves them out (Weiser, "Program Slicing", ICSE 1981; here by
registers, whatever the flow between them). Accesses to memory stay, with zeros in the place of data that nothing needs;
a run that needs them after all names the instructions that must be exact, and begins again.

    mma_async {%f0..%f127}, ...   left out; the record gets its event
    fma.rn.f32 %f128, %f0, ...    left out
    st.shared [%r7], {%f128,...}  kept, writes zeros
    add.s32 %r9, %r9, 1           kept: an address is made of it
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

import numpy as np

from tlx_xdsl.ptx.codegen import Generator
from tlx_xdsl.ptx.flow import blocks_of
from tlx_xdsl.ptx.global_order import WEAK, sync_of
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Instruction, Negated, Number, Register
from tlx_xdsl.ptx.steps import Context, Read, Step

PURE = frozenset(("shfl", "vote", "redux", "match", "elect", "activemask", "createpolicy", "mapa", "mma", "movmatrix"))
"""Instructions of warps that do nothing but give a result."""
_DATA_FROM = {"st": 1, "stmatrix": 1, "red": 1, "atom": 1}
"""The first operand that is data, of what writes memory."""
_TENSOR = ("mma", "ld", "st", "cp", "shift")


class Slice:
    """A program that runs what decides addresses and branches, and a set of instructions exactly."""

    def __init__(self, program: Program, exact: Set[int] = frozenset()):
        self._program = program
        self._instructions = program.function.instructions
        self._exact = exact
        self.needed: set[int] = set()
        """Registers whose values decide something."""
        self._find()
        self.hollow: set[int] = set()
        """Instructions that write zeros to memory, in the place of data."""
        self.checked: set[int] = set()
        """Instructions whose result decides something, and that read memory."""
        self._tensors_count = any(
            each.opcode.startswith("tcgen05.ld") and self._is_needed(step)
            for each, step in zip(self._instructions, program.steps, strict=True)
        )
        steps = [self._step(number, step) for number, step in enumerate(program.steps)]
        module, function, symbols = program.module, program.function, program.symbols
        blocks = blocks_of(module, function, steps)
        assert [block.first for block in blocks] == [block.first for block in program.blocks]
        self.program = replace(
            program, steps=steps, blocks=blocks, generator=Generator(module, function, symbols, steps),
            code=[None] * len(blocks), misuses={},
        )  # fmt: skip

    # What is needed --------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        writers: dict[int, list[int]] = {}
        work: list[int] = []

        def need(operand: Any) -> None:
            if isinstance(operand, Register) and operand.number not in self.needed:
                self.needed.add(operand.number)
                work.append(operand.number)

        for number, (instruction, step) in enumerate(zip(self._instructions, self._program.steps, strict=True)):
            for register, _ in () if step is None else step.writes:
                if register is not None:
                    writers.setdefault(register.number, []).append(number)
            if step is None:
                # A branch: its guard, and the index of a table.
                for operand in (instruction.guard, *(instruction.operands[:1] if instruction.name == "brx" else ())):
                    need(operand)
            elif step.effect is not None and instruction.name not in PURE:
                need(instruction.guard)
                for operand in _registers(step.reads[: self._first_of_data(number, instruction, step)]):
                    need(operand)
        while work:
            for number in writers.get(work.pop(), ()):
                step = self._program.steps[number]
                assert step is not None
                need(self._instructions[number].guard)
                for operand in _registers(step.reads):
                    need(operand)

    def _first_of_data(self, number: int, instruction: Instruction, step: Step) -> int:
        """The first operand that is data: all from there on decide nothing, unless others that are needed do."""
        every = len(step.reads)
        if number in self._exact:
            return every
        if instruction.opcode.startswith("wgmma.mma_async"):
            return 0
        if instruction.name == "tcgen05" and instruction.modifiers[0] in _TENSOR:
            # The fourth operand of a product has its shape; addresses of tensor memory decide nothing.
            return every if instruction.modifiers[0] == "mma" else 0
        first = _DATA_FROM.get(instruction.name)
        if first is None or "local" in instruction.modifiers or instruction.modifiers[:1] == ("async",):
            return every
        is_atomic = instruction.name in ("red", "atom")
        is_signal = sync_of(instruction.modifiers, is_atomic=is_atomic).scope != WEAK
        return every if is_signal and not _is_float(instruction) else first

    def _is_needed(self, step: Step | None) -> bool:
        return step is not None and any(each is not None and each.number in self.needed for each, _ in step.writes)

    # Steps -----------------------------------------------------------------------------------------------------------

    def _step(self, number: int, step: Step | None) -> Step | None:
        if step is None:
            return None
        instruction = self._instructions[number]
        is_needed = self._is_needed(step)
        if step.effect is None or instruction.name in PURE:
            return step if is_needed else None
        if instruction.opcode.startswith("wgmma.mma_async") and not is_needed:
            return Step(effect=_product)
        if instruction.name == "tcgen05" and not self._tensors_count:
            if (made := self._tensor_step(instruction)) is not None:
                return made
        if is_needed and instruction.name in ("ld", "ldu", "ldmatrix", "atom"):
            self.checked.add(number)
        reads = tuple(
            (Number(0), kind)
            if isinstance(operand, Register) and operand.number not in self.needed
            else (operand, kind)
            for operand, kind in step.reads
        )
        if reads != step.reads:
            self.hollow.add(number)
        kept = tuple(
            (register if register is not None and register.number in self.needed else None, kind)
            for register, kind in step.writes
        )
        return replace(step, reads=reads, writes=kept)

    def _tensor_step(self, instruction: Instruction) -> Step | None:
        """An operation of the tensor core, or an access to tensor memory, of which the record gets the event alone."""
        name = instruction.modifiers[0]
        if name == "mma":
            context = Context(self._program.module, self._program.function, self._program.symbols, instruction)
            return Step((context.read(3, "u4"),), effect=_fifth_product)
        if name in ("ld", "st"):
            return Step(effect=_tensor_access)
        return Step(effect=_tensor_copy) if name in ("cp", "shift") else None


def _registers(reads: tuple[Read, ...]) -> list[Register]:
    plain = (operand.register if isinstance(operand, Negated) else operand for operand, _ in reads)
    return [operand for operand in plain if isinstance(operand, Register)]


def _is_float(instruction: Instruction) -> bool:
    return any(
        part[:1] in ("f", "e") and part[1:2].isdigit() or part.startswith("bf16") for part in instruction.modifiers
    )


# What takes the place of products and of accesses to tensor memory ---------------------------------------------------


def _product(cohort: Any, mask: Any) -> None:
    cohort.wave.order.issue_groups(cohort, "wgmma")


def _fifth_product(cohort: Any, mask: Any, forms: Any) -> None:
    for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
        form = int(forms[thread])
        cohort.wave.order.tensor_product(cohort, thread, (form >> 24 & 31) * 16, (form >> 17 & 63) * 8)


def _tensor_access(cohort: Any, mask: Any) -> None:
    cohort.wave.order.tensor_moved(cohort, mask)


def _tensor_copy(cohort: Any, mask: Any) -> None:
    for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
        cohort.wave.order.tensor_issue(cohort, thread, None)
