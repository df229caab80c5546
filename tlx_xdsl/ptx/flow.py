"""Basic blocks, what is alive between them, and where threads that part meet again.

A block ends with a branch, and before an instruction that may have to wait: such a one begins a block, so that what
waits runs it again. Threads of a warp that part meet at the immediate post-dominator of the branch (what
compilers put reconvergence points at; Fung et al., "Dynamic Warp Formation", MICRO 2007, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .read.faults import error_on_line
from .read.syntax import Function, Instruction, Module, Register, Symbol
from .steps import Step

ENDS = ("ret", "exit", "trap")
EXIT = -1
"""The block after all others."""


@dataclass(slots=True)
class Block:
    """Instructions without a branch between them."""

    number: int
    first: int
    last: int
    """The number of the instruction after it."""
    successors: list[int] = field(default_factory=list[int])
    live_in: set[int] = field(default_factory=set[int])
    """Registers whose values at its beginning may be read."""
    live_out: set[int] = field(default_factory=set[int])
    meets: int = EXIT
    """The block where all ways from here meet."""


def is_branch(instruction: Instruction) -> bool:
    """Return whether what runs next need not be the instruction that follows."""
    return instruction.name in ("bra", "brx", *ENDS)


def blocks_of(module: Module, function: Function, steps: list[Step | None]) -> list[Block]:
    """The blocks of a function in the order of its text.

    Raises PtxError for a branch to a label that is not there.
    """
    count = len(function.instructions)
    starts = {0, *(each for each in function.labels.values() if each < count)}
    for number, instruction in enumerate(function.instructions):
        step = steps[number]
        if step is not None and step.suspends:
            starts.add(number)
        if is_branch(instruction):
            starts.add(number + 1)
    ordered = sorted(start for start in starts if start < count)
    blocks = [
        Block(number, first, last)
        for number, (first, last) in enumerate(zip(ordered, [*ordered[1:], count], strict=True))
    ]
    number_at = {block.first: block.number for block in blocks}
    for block in blocks:
        if block.first == block.last:
            continue
        last = function.instructions[block.last - 1]
        following = number_at.get(block.last, EXIT)
        if last.name == "bra":
            block.successors.append(_target(module, function, number_at, last, 0))
        elif last.name == "brx":
            block.successors.extend(_table(module, function, number_at, last))
        if last.guard is not None or not is_branch(last):
            block.successors.append(following)
        elif last.name in ENDS:
            block.successors.append(EXIT)
    _liveness(function, steps, blocks)
    _meetings(blocks)
    return blocks


def _target(module: Module, function: Function, number_at: dict[int, int], last: Instruction, at: int) -> int:
    name = last.operands[at].name if at < len(last.operands) and isinstance(last.operands[at], Symbol) else None  # pyright: ignore
    if name is None or name not in function.labels:
        raise error_on_line(module, last.line, f"there is no label '{name}'")
    return number_at.get(function.labels[name], EXIT)


def _table(module: Module, function: Function, number_at: dict[int, int], last: Instruction) -> list[int]:
    table = last.operands[1] if len(last.operands) == 2 else None
    names = function.tables.get(table.name) if isinstance(table, Symbol) else None
    if names is None:
        raise error_on_line(module, last.line, "there are no '.branchtargets' of this name")
    missing = next((name for name in names if name not in function.labels), None)
    if missing is not None:
        raise error_on_line(module, last.line, f"there is no label '{missing}'")
    return [number_at.get(function.labels[name], EXIT) for name in names]


def _liveness(function: Function, steps: list[Step | None], blocks: list[Block]) -> None:
    read: list[set[int]] = []
    written: list[set[int]] = []
    for block in blocks:
        uses: set[int] = set()
        kills: set[int] = set()
        for number in range(block.first, block.last):
            instruction, step = function.instructions[number], steps[number]
            here = {operand.number for operand in _reads(instruction, step)}
            uses |= here - kills
            results = {each.number for each, _ in step.writes if each is not None} if step is not None else set[int]()
            if instruction.guard is not None:
                uses |= results - kills
            kills |= results
        read.append(uses)
        written.append(kills)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            out: set[int] = set()
            for successor in block.successors:
                if successor != EXIT:
                    out |= blocks[successor].live_in
            into = read[block.number] | out - written[block.number]
            if into != block.live_in:
                changed = True
            block.live_in, block.live_out = into, out


def _reads(instruction: Instruction, step: Step | None) -> list[Register]:
    found = [operand for operand, _ in step.reads if isinstance(operand, Register)] if step is not None else []
    if instruction.name == "brx" and isinstance(instruction.operands[0], Register):
        found.append(instruction.operands[0])
    if instruction.guard is not None:
        found.append(instruction.guard)
    return found


def _meetings(blocks: list[Block]) -> None:
    """Immediate post-dominators (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001, reversed)."""
    order = _postorder_of_reverse(blocks)
    rank = {number: place for place, number in enumerate(order)}
    parent: dict[int, int] = {EXIT: EXIT}

    def meet(a: int, b: int) -> int:
        while a != b:
            while rank[a] < rank[b]:
                a = parent[a]
            while rank[b] < rank[a]:
                b = parent[b]
        return a

    changed = True
    while changed:
        changed = False
        for number in reversed(order):
            if number == EXIT:
                continue
            known = [each for each in blocks[number].successors if each in parent]
            if not known:
                continue
            found = known[0]
            for other in known[1:]:
                found = meet(found, other)
            if parent.get(number) != found:
                parent[number] = found
                changed = True
    for block in blocks:
        block.meets = parent.get(block.number, EXIT)


def _postorder_of_reverse(blocks: list[Block]) -> list[int]:
    """The blocks from which the end can be reached, in postorder from the end against the edges."""
    before: dict[int, list[int]] = {EXIT: []}
    for block in blocks:
        before.setdefault(block.number, [])
        for successor in block.successors:
            before.setdefault(successor, []).append(block.number)
    order: list[int] = []
    seen = {EXIT}
    stack = [(EXIT, iter(before[EXIT]))]
    while stack:
        number, rest = stack[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(number)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(before[following])))
    return order
