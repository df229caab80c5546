"""Registers that an asynchronous instruction still reads or writes, found in the blocks of a kernel.

A forward dataflow analysis over the blocks, which takes the worst way into each:

- What `wgmma.mma_async` accumulates into belongs to it until a `wgmma.wait_group` that covers its group; only another
  product may accumulate into the same registers. Its A in registers may not be written until then.
  Where threads use it before its group is committed, no wait could cover it yet, and ptxas puts one there (its C7517):
  stock Triton makes such sums of fp8 products with `max_num_imprecise_acc`.
- A product may not take registers that threads have written after the last `wgmma.fence`. A copy is as old as what it
  copies: LLVM puts copies between the fence and a product that keeps its old accumulator or begins with zero.

(PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "wgmma.fence".) A finding is reported when the block runs,
not for code that does not. What `tcgen05.ld` loads is not looked at: LLVM moves uses of it before `tcgen05.wait::ld` in
what stock Triton makes of attention (3.9), and the hardware's scoreboard covers that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .flow import EXIT, Block
from .read.syntax import Function, Instruction, Number, Register, Vector
from .steps import Step

_OPEN = -1
"""The age of an operation whose group is not committed."""


@dataclass(slots=True)
class _State:
    results: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])
    """By register that a product accumulates into: how many groups were committed since, and its instruction."""
    operands: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])
    """The same by register that is an A."""
    written: dict[int, int] = field(default_factory=dict[int, int])
    """By register that a thread has written since the last fence: the instruction."""
    fenced: bool = False
    """Whether there was a fence, whichever way was taken."""

    def copy(self) -> _State:
        return _State(self.results.copy(), self.operands.copy(), self.written.copy(), self.fenced)

    def join(self, other: _State) -> bool:
        """Take over what may be in flight on another way; say whether that is more."""
        changed = self.fenced and not other.fenced
        self.fenced = self.fenced and other.fenced
        for mine, theirs in ((self.results, other.results), (self.operands, other.operands)):
            for register, (age, at) in theirs.items():
                if register not in mine or mine[register][0] > age:
                    mine[register] = (age, at)
                    changed = True
        for register, at in other.written.items():
            if register not in self.written:
                self.written[register] = at
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class Misuse:
    """A register that is used too early: where, why, and what it waits for."""

    at: int
    message: str
    other: int
    """The asynchronous instruction, or the write without a fence."""


def misuses(function: Function, steps: list[Step | None], blocks: list[Block]) -> dict[int, Misuse]:
    """The first misuse in each block that has one, by the number of the block."""
    if not any(each.name == "wgmma" for each in function.instructions):
        return {}
    found: dict[int, Misuse] = {}
    into = [_State(fenced=block.number > 0) for block in blocks]
    pending = [0] if blocks else []
    reached = {0}
    while pending:
        number = pending.pop()
        state = into[number].copy()
        for at in range(blocks[number].first, blocks[number].last):
            misuse = _step(function.instructions[at], steps[at], at, state)
            if misuse is not None:
                found.setdefault(number, misuse)
        for successor in blocks[number].successors:
            if successor != EXIT and (into[successor].join(state) or successor not in reached):
                reached.add(successor)
                if successor not in pending:
                    pending.append(successor)
    return found


def _step(instruction: Instruction, step: Step | None, at: int, state: _State) -> Misuse | None:
    opcode = instruction.opcode
    if opcode.startswith("wgmma.mma_async"):
        return _product(instruction, at, state)
    if opcode.startswith("wgmma.fence"):
        state.written.clear()
        state.fenced = True
        return None
    if opcode.startswith("wgmma.commit_group"):
        for held in (state.results, state.operands):
            for register, (age, issued) in held.items():
                held[register] = (age + 1, issued)
        return None
    if opcode.startswith("wgmma.wait_group"):
        count = instruction.operands[0]
        assert isinstance(count, Number)
        for held in (state.results, state.operands):
            for register in [each for each, (age, _) in held.items() if age >= count.value]:
                del held[register]
        return None
    return _threads(instruction, step, at, state)


def _registers(operand: object) -> list[int]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    return [item.number for item in items if isinstance(item, Register)]


def _product(instruction: Instruction, at: int, state: _State) -> Misuse | None:
    results, left = _registers(instruction.operands[0]), instruction.operands[1]
    operands = _registers(left) if isinstance(left, Vector) else []
    misuse: Misuse | None = None
    for register in (*results, *operands):
        if register in state.written and register not in state.results:
            text = "the product takes a register that is written after the last wgmma.fence"
            misuse = misuse or Misuse(at, text, state.written[register])
    for register in operands:
        if register in state.results:
            text = "the product takes as A the result of a product that was not waited for"
            misuse = misuse or Misuse(at, text, state.results[register][1])
    state.results.update((register, (_OPEN, at)) for register in results)
    state.operands.update((register, (_OPEN, at)) for register in operands)
    for register in (*results, *operands):
        state.written.pop(register, None)
    return misuse


def _threads(instruction: Instruction, step: Step | None, at: int, state: _State) -> Misuse | None:
    reads = [operand.number for operand, _ in step.reads if isinstance(operand, Register)] if step is not None else []
    writes = [register.number for register, _ in step.writes if register is not None] if step is not None else []
    if instruction.guard is not None:
        reads.append(instruction.guard.number)
    misuse: Misuse | None = None
    for register in (*reads, *writes):
        if state.results.get(register, (0, 0))[0] == _OPEN:
            del state.results[register]
        elif register in state.results:
            text = "this uses the result of a wgmma that was not waited for"
            misuse = misuse or Misuse(at, text, state.results[register][1])
    for register in writes:
        if register in state.operands:
            text = "this writes a register that a wgmma may still read"
            misuse = misuse or Misuse(at, text, state.operands[register][1])
        if _is_old_copy(instruction, state):
            state.written.pop(register, None)
        else:
            state.written[register] = at
    return misuse


def _is_old_copy(instruction: Instruction, state: _State) -> bool:
    """Return whether an instruction copies what was there at the last fence, or a constant after one."""
    if instruction.name != "mov" or instruction.guard is not None:
        return False
    source = instruction.operands[-1]
    if isinstance(source, Register):
        return state.fenced and source.number not in state.written
    return state.fenced and isinstance(source, Number)
