"""Slices of a kernel: only what decides which addresses, branches and barriers its warps come to.

The clock asks where data go, not what they are. Sums and products of a GEMM, or the exponentials of a softmax, decide
neither an address nor a branch, so a run for the clock leaves them out (Weiser, "Program Slicing", ICSE 1981; here by
registers, whatever the flow between them). Accesses to memory stay, with zeros in the place of data that nothing needs;
a run that needs them after all names the instructions that must write them, and begins again.

    mma_async {%f0..%f127}, ...   left out; the record gets its event
    fma.rn.f32 %f128, %f0, ...    left out
    st.shared [%r7], {%f128,...}  kept, writes zeros
    add.s32 %r9, %r9, 1           kept: an address is made of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tlx_xdsl.ptx.arithmetic.kinds import KINDS
from tlx_xdsl.ptx.codegen import Generator, constant
from tlx_xdsl.ptx.flow import blocks_of
from tlx_xdsl.ptx.global_order import WEAK, sync_of
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Decimal, Instruction, Negated, Number, Register
from tlx_xdsl.ptx.steps import Context, Read, Step

PURE = frozenset(("shfl", "vote", "redux", "match", "elect", "activemask", "createpolicy", "mapa", "mma", "movmatrix"))
"""Instructions of warps that do nothing but give a result."""
_DATA_FROM = {"st": 1, "stmatrix": 1, "red": 1, "atom": 1}
"""The first operand that is data, of what writes memory."""
_TENSOR = ("mma", "ld", "st", "cp", "shift")


NONE, GUESSED, TRUE = range(3)
"""How much of a value is needed: nothing; for branches, a guess; the value itself."""


class Slice:
    """A program that runs what decides addresses and branches.

    Branches on numbers that data were computed to, such as those around the rare cases of a logarithm, are decided as
    if the numbers were 1. `wanted` has the instructions that must write memory, with `GUESSED` or `TRUE` data.
    """

    def __init__(self, program: Program, wanted: Mapping[int, int]):
        self._program = program
        self._instructions = program.function.instructions
        self._wanted = wanted
        self._level: dict[int, int] = {}
        """How much of a register is needed."""
        self._assumed: set[int] = set()
        """Instructions whose results are taken to be 1."""
        self._from_data = self._data()
        self._find()
        self.hollow: dict[int, int] = {}
        """Instructions that write zeros or guesses to memory, in the place of data, and which of the two."""
        self.checked: dict[int, int] = {}
        """Instructions that read memory, and whose result is needed."""
        self._tensors_count = any(
            each.opcode.startswith("tcgen05.ld") and self._needs(step) == TRUE
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

    def _data(self) -> set[int]:
        """Registers that hold what was loaded, or computed from that."""
        found: set[int] = set()
        readers: dict[int, list[Step]] = {}
        work: list[int] = []

        def add(step: Step) -> None:
            for register, _ in step.writes:
                if register is not None and register.number not in found:
                    found.add(register.number)
                    work.append(register.number)

        for instruction, step in zip(self._instructions, self._program.steps, strict=True):
            if step is None:
                continue
            if _gives_data(instruction):
                add(step)
            elif step.effect is None or instruction.name in PURE:
                for register in _registers(step.reads):
                    readers.setdefault(register.number, []).append(step)
        while work:
            for step in readers.get(work.pop(), ()):
                add(step)
        return found

    def _find(self) -> None:
        writers: dict[int, list[int]] = {}
        work: list[int] = []

        def need(registers: Iterable[Register], level: int) -> None:
            for register in registers:
                if self._level.get(register.number, NONE) < level:
                    self._level[register.number] = level
                    work.append(register.number)

        for number, (instruction, step) in enumerate(zip(self._instructions, self._program.steps, strict=True)):
            guard = () if instruction.guard is None else (instruction.guard,)
            for register, _ in () if step is None else step.writes:
                if register is not None:
                    writers.setdefault(register.number, []).append(number)
            if step is None:
                index = instruction.operands[:1] if instruction.name == "brx" else ()
                need((*guard, *(each for each in index if isinstance(each, Register))), GUESSED)
            elif step.effect is not None and instruction.name not in PURE:
                need(guard, GUESSED)
                first = self._first_of_data(instruction, step)
                need(_registers(step.reads[:first]), TRUE)
                need(_registers(step.reads[first:]), self._wanted.get(number, NONE))
        while work:
            register = work.pop()
            level = self._level[register]
            for number in writers.get(register, ()):
                instruction, step = self._instructions[number], self._program.steps[number]
                assert step is not None
                if level == GUESSED and self._is_assumed(instruction, step):
                    self._assumed.add(number)
                    continue
                need(() if instruction.guard is None else (instruction.guard,), level)
                need(_registers(step.reads), level)

    def _first_of_data(self, instruction: Instruction, step: Step) -> int:
        """The first operand that is data: all from there on decide nothing, unless others that are needed do."""
        every = len(step.reads)
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

    def _is_assumed(self, instruction: Instruction, step: Step) -> bool:
        """Return whether a result that a branch depends on is taken to be 1: floats that come of data."""
        if instruction.name in ("mma", "wgmma") or instruction.opcode.startswith("tcgen05.ld"):
            return True
        results = [(register.number, KINDS[kind]) for register, kind in step.writes if register is not None]
        is_plain = step.effect is None and all(kind.size and kind.lanes == 1 for _, kind in results)
        return is_plain and _is_float(instruction) and any(number in self._from_data for number, _ in results)

    def _needs(self, step: Step | None) -> int:
        """Return how much of an instruction's results is needed."""
        written = () if step is None else step.writes
        return max((self._level.get(each.number, NONE) for each, _ in written if each is not None), default=NONE)

    # Steps -----------------------------------------------------------------------------------------------------------

    def _step(self, number: int, step: Step | None) -> Step | None:
        if step is None:
            return None
        instruction = self._instructions[number]
        level = self._needs(step)
        is_assumed = level == GUESSED and number in self._assumed
        if step.effect is None or instruction.name in PURE:
            return _ones(self._kept(step)) if is_assumed else step if level else None
        if instruction.opcode.startswith("wgmma.mma_async") and level != TRUE:
            return Step(effect=_product) if level == NONE else _ones(self._kept(step), _product)
        made = None if self._tensors_count else self._tensor_step(instruction)
        if made is not None:
            return made if level == NONE else _ones(self._kept(step), made.effect)
        if level and (_gives_data(instruction) or instruction.name == "atom"):
            self.checked[number] = level
        data = [self._level.get(each.number, NONE) for each in _registers(step.reads)]
        if (least := min(data, default=TRUE)) < TRUE:
            self.hollow[number] = least
        reads = tuple(
            (Number(0), kind) if isinstance(each, Register) and not self._level.get(each.number) else (each, kind)
            for each, kind in step.reads
        )
        return replace(self._kept(step), reads=reads)

    def _kept(self, step: Step) -> Step:
        """The step without results that nothing needs."""
        writes = tuple(
            (each if each is not None and self._level.get(each.number) else None, kind) for each, kind in step.writes
        )
        return replace(step, writes=writes)

    def _tensor_step(self, instruction: Instruction) -> Step | None:
        """An operation of the tensor core, or an access to tensor memory, of which the record gets the event alone."""
        name = instruction.modifiers[0] if instruction.name == "tcgen05" else ""
        if name == "mma":
            context = Context(self._program.module, self._program.function, self._program.symbols, instruction)
            return Step((context.read(3, "u4"),), effect=_fifth_product)
        if name in ("ld", "st"):
            return Step(effect=_tensor_access)
        return Step(effect=_tensor_copy) if name in ("cp", "shift") else None


def _registers(reads: Iterable[Read]) -> list[Register]:
    plain = (operand.register if isinstance(operand, Negated) else operand for operand, _ in reads)
    return [operand for operand in plain if isinstance(operand, Register)]


def _is_float(instruction: Instruction) -> bool:
    return any(
        (part[:1] in ("f", "e") and part[1:2].isdigit()) or part.startswith("bf16") for part in instruction.modifiers
    )


def _gives_data(instruction: Instruction) -> bool:
    if instruction.name in ("mma", "wgmma", "ldmatrix"):
        return True
    is_load = instruction.name in ("ld", "ldu") and "param" not in instruction.modifiers
    return is_load or instruction.opcode.startswith("tcgen05.ld")


def _ones(step: Step, effect: Callable[..., None] | None = None) -> Step:
    """The step that writes 1 to all results of another, and has an effect that takes no operands."""
    ones = [_one(kind) for _, kind in step.writes]

    def run(cohort: Any, mask: Any) -> Any:
        if effect is not None:
            effect(cohort, mask)
        found = tuple(cohort.spread(each) for each in ones)
        return found[0] if len(found) == 1 else found

    return Step((), step.writes, effect=run)


def _one(kind: str) -> Any:
    """The number 1 in a view; in one of words, which may hold a float, that of f32."""
    if kind in ("u4", "i4"):
        return np.float32(1).view(KINDS[kind].dtype)
    return constant(Decimal(1.0), KINDS[kind])


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
