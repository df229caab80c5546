"""Registers that the machine still reads or writes on its own: are they left alone until the wait for them?

    LDS R4, [R2]          releases scoreboard 1 when R4 is written
    HGMMA.64x64x16.F32 R24, R76, gdesc[UR8], R24      reads R76 to R79, writes R24 to R55, until the wait for its group
    WARPGROUP.DEPBAR.LE gsb0, 0x0                     waits for all groups of products
    IMAD R5, R4, ...      has to wait for scoreboard 1

What an instruction says of its registers beyond doubt is followed through the branches of the kernel. Guarded
instructions leave nothing under way: whether they ran is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .accesses import PRODUCTS
from .machine import ENDS, JUMPS, destinations, results, size_of
from .operands import TRUE, ZEROS, next_register, plain, registers_in
from .text import Code, Instruction

_DATA = {"STS", "STG", "ST", "STL"}
_SHORT = {
    "IADD3", "IADD", "VIADD", "IMAD", "MOV", "LOP3", "SHF", "LEA", "SEL", "PRMT", "FADD", "FMUL", "FFMA", "FSEL",
    "FMNMX", "HADD2", "HMUL2", "HFMA2", "F2FP",
}  # fmt: skip
"""What writes its result a few cycles after it starts."""
_SCOREBOARD = re.compile(r"SB(\d)")


@dataclass(frozen=True, slots=True)
class Hazard:
    """A register that is taken too early."""

    instruction: Instruction
    register: str
    cause: Instruction
    """What still reads or writes it."""
    message: str


@dataclass(slots=True)
class _State:
    """Operations under way at a place of the code, by register: the scoreboards, and the instruction."""

    written: dict[str, tuple[int, Instruction]] = field(default_factory=dict[str, tuple[int, Instruction]])
    read: dict[str, tuple[int, Instruction]] = field(default_factory=dict[str, tuple[int, Instruction]])
    groups: tuple[tuple[frozenset[str], frozenset[str], Instruction], ...] = ()
    """The registers that each group of products reads and writes, the newest first; the first may still grow."""
    is_open: bool = False

    def copy(self) -> _State:
        return _State(dict(self.written), dict(self.read), self.groups, self.is_open)

    def joined(self, other: _State) -> _State:
        """Return what is under way on both ways."""
        groups = tuple(
            (one[0] & two[0], one[1] & two[1], one[2]) for one, two in zip(self.groups, other.groups, strict=False)
        )
        return _State(
            {name: each for name, each in self.written.items() if other.written.get(name) == each},
            {name: each for name, each in self.read.items() if other.read.get(name) == each},
            groups if self.is_open == other.is_open else (),
            self.is_open,
        )


def hazards(code: Code) -> list[Hazard]:
    """The registers that a kernel takes before the wait for them."""
    blocks = _blocks(code)
    begins: dict[int, _State] = {0: _State()}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        state = begins[at].copy()
        instructions, following = blocks[at]
        for item in instructions:
            _step(state, item, None)
        for each in following:
            if each not in blocks:
                continue
            before = begins.get(each)
            after = state if before is None else before.joined(state)
            if before is None or after != before:
                begins[each] = after.copy()
                waiting.append(each)
    found: dict[tuple[int, str], Hazard] = {}
    for at, state in begins.items():
        state = state.copy()
        for item in blocks[at][0]:
            _step(state, item, found)
    return [found[key] for key in sorted(found)]


def _blocks(code: Code) -> dict[int, tuple[list[Instruction], list[int]]]:
    """The instructions of each block, by its address, and the blocks that may follow."""
    leaders = {0, *code.labels.values()}
    leaders.update(each.address + 16 for each in code.instructions if each.name in (*JUMPS, *ENDS))
    found: dict[int, tuple[list[Instruction], list[int]]] = {}
    current: list[Instruction] = []
    following: list[int] = []
    for item in code.instructions:
        if item.address in leaders:
            if current:
                following.append(item.address)
            current, following = [], []
            found[item.address] = current, following
        current.append(item)
        if item.name in (*JUMPS, *ENDS):
            target = next((code.labels[name] for each in item.operands for name in re.findall(r"`\(([^)]+)\)", each)
                           if name in code.labels), None)  # fmt: skip
            if target is not None and item.name in ("BRA", "JMP"):
                following.append(target)
            is_conditional = item.guard is not None or (item.name == "BRA" and len(item.operands) > 1)
            if is_conditional:
                following.append(item.address + 16)
            current, following = [], []
    return found


def _reads(item: Instruction) -> Iterator[str]:
    """The registers that an instruction reads beyond doubt."""
    for text in item.operands[len(destinations(item)) :]:
        yield from registers_in(text, 4 if "gdesc" in text else 1)
    if item.name in _DATA and (name := plain(item.operands[-1])) and name not in ZEROS:
        yield from (next_register(name, each) for each in range(1, max(1, size_of(item) // 4)))


def _wait(state: _State, item: Instruction) -> None:
    """Leave out what an instruction waits for."""
    mask = item.waits
    if item.name == "DEPBAR":
        for text in item.operands:
            mask |= sum(1 << int(each) for each in _SCOREBOARD.findall(text))
        mask |= sum(
            1 << int(each) for each in re.findall(r"\d", "".join(each for each in item.operands if "{" in each))
        )
    if mask:
        for each in (state.written, state.read):
            for name in [name for name, (board, _) in each.items() if mask >> board & 1]:
                del each[name]
    if item.name == "WARPGROUP" and "DEPBAR" in item.modifiers:
        most = int(item.operands[-1], 0)
        closed = state.groups[1:] if state.is_open else state.groups
        state.groups = (*state.groups[:1], *closed[:most]) if state.is_open else closed[:most]


def _step(state: _State, item: Instruction, found: dict[tuple[int, str], Hazard] | None) -> None:
    _wait(state, item)
    reads, writes = set(_reads(item)), set(results(item))
    is_product = item.name in PRODUCTS
    if found is not None:
        _report(state, item, reads, writes, found)
    for name in writes:
        state.written.pop(name, None)
        state.read.pop(name, None)
    if is_product:
        _add_product(state, item, writes)
    if item.guard is not None and item.guard not in TRUE:
        return
    board, read_board = item.releases
    if board is not None:
        state.written.update(dict.fromkeys(writes, (board, item)))
    if read_board is not None:
        state.read.update(dict.fromkeys(reads, (read_board, item)))


def _add_product(state: _State, item: Instruction, writes: set[str]) -> None:
    operands = item.operands
    first = plain(operands[1])
    read = {next_register(first, each) for each in range(4)} if first and first not in ZEROS else set[str]()
    if state.is_open:
        reads, written, _ = state.groups[0]
        state.groups = ((reads | read, written | writes, item), *state.groups[1:])
    else:
        state.groups = ((frozenset(read), frozenset(writes), item), *state.groups)
    state.is_open = not any(each.startswith("gsb") for each in operands)


def _report(
    state: _State, item: Instruction, reads: set[str], writes: set[str], found: dict[tuple[int, str], Hazard]
) -> None:
    def add(name: str, cause: Instruction, message: str) -> None:
        found.setdefault((item.address, name), Hazard(item, name, cause, message))

    for name in sorted(reads | writes):
        if (pending := state.written.get(name)) is not None:
            does = "reads" if name in reads else "writes"
            add(
                name, pending[1], f"{does} {name} before the wait for scoreboard {pending[0]}, with which it is written"
            )
    # What takes long itself comes after the earlier one in the same queue; predicates and uniform registers are read
    # when an instruction starts.
    for name in sorted(writes) if item.name in _SHORT else ():
        if name.startswith("R") and (pending := state.read.get(name)) is not None:
            add(name, pending[1], f"writes {name} before the wait for scoreboard {pending[0]}, with which it is read")
    if item.name in PRODUCTS:
        return
    for read, written, cause in state.groups:
        for name in sorted(writes & read):
            add(name, cause, f"writes {name} before the wait for the product that reads it as A")
        for name in sorted((reads | writes) & written):
            does = "reads" if name in reads else "writes"
            add(name, cause, f"{does} {name} before the wait for the product that writes it")
