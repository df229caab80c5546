"""Straight code of either side as a Python function, which runs it for one thread and lists what it accesses.

    /*0070*/ IMAD.SHL.U32 R14, R72, 0x8, RZ            R14 = R72 * 8 & M
    /*0110*/ LDG.E R4, desc[UR32][R2.64]          ->   e((3, R2 | R3 << 32)); R4 = ld("g", R2 | R3 << 32, 4)
    /*4690*/ @P1 BRA `(.L_x_2)                         if P1: pc = 7; continue

Only what addresses and branches are made of is computed: a register that none of them is computed of is left out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tlx_xdsl.errors import SourceLocation

from . import values
from .values import M64, UNKNOWN, M, UnknownBranchError


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An instruction whose operands are compared."""

    kind: str
    """What it does, such as `wgmma` or `load of shared memory`."""
    text: str
    names: tuple[str, ...]
    """What each operand is, for messages."""
    size: int = 0
    """Bytes of an access by one thread."""
    line: int = 0
    """Its line in the PTX, or its address in the machine code."""
    location: SourceLocation | None = None
    is_ordered: bool = True
    """Whether compilers keep the number and the order of those of its kind."""


@dataclass(slots=True)
class Step:
    """An instruction as Python."""

    targets: tuple[str, ...] = ()
    """The registers that it writes."""
    sources: tuple[str, ...] = ()
    """The registers that it reads."""
    code: tuple[str, ...] = ()
    """Statements that assign the targets; none if their values are not known."""
    guard: str = ""
    """The condition under which it runs, an expression."""
    event: str = ""
    """The operands to list, as the items of a tuple."""
    access: int = -1
    jump: str = ""
    """An expression of the next block; only where the guard holds."""
    ends: bool = False
    """Whether the thread ends here."""


Event: TypeAlias = tuple[Any, ...]
"""What one instruction accessed at one time: the number of the access, whether it is certain that the instruction ran,
and its operands.
"""


@dataclass(slots=True)
class Trace:
    """Accesses of one thread, in order."""

    events: list[Event] = field(default_factory=list[Event])
    is_whole: bool = True
    """False where the thread ran into a branch that is not known, or for too long."""


class World:
    """Surroundings of a thread: its numbers, parameters, and memory whose content is a function of the address."""

    def __init__(
        self,
        seed: int,
        specials: Mapping[str, int],
        words: Sequence[int],
        tables: bytes = b"",
        *,
        is_quick: bool = True,
    ):
        self.specials = specials
        self.words = words
        """The words of constant bank 0."""
        self.tables = tables
        self.seed = seed
        self.is_quick = is_quick
        self.counts: dict[int, int] = {}
        self.attempts = 0
        self._chance = random.Random(~seed)

    def special(self, name: str) -> int:
        """Return a number of the thread, of its block or of the launch."""
        return self.specials[name]

    def unwritten(self) -> Callable[[int], int]:
        """Return what registers hold that nothing has written, as a function of their bits."""
        return random.Random(self.seed).getrandbits

    def data(self, _text: str, *sources: Any) -> Any:
        """Return what an instruction makes of data: any number, if what it is made of is known."""
        return UNKNOWN if any(each is UNKNOWN for each in sources) else self._chance.getrandbits(32)

    def load(self, space: str, address: Any, size: int) -> Any:
        """Return the integer at an address."""
        if address is UNKNOWN:
            return UNKNOWN
        if space == "s" and size == 1:
            # What says which task a warp is to run: each time the next, as the warps that write it would.
            count = self.counts.get(address, 0)
            self.counts[address] = count + 1
            return count if count < 6 else UNKNOWN
        address = int(address)
        first, last = address >> 2, (address + size - 1) >> 2
        key = self.seed * 3 + (space == "s")
        whole = sum(_mixed(first + each, key) << 32 * each for each in range(last - first + 1))
        return whole >> 8 * (address & 3) & ((1 << 8 * size) - 1)

    def is_over(self) -> bool:
        """Return whether the wait at a barrier ends at this attempt; in every other world each takes two."""
        self.attempts += 1
        return self.is_quick or self.attempts % 2 == 0

    def table(self, address: Any) -> Any:
        """Return a word of the compiler's own constants."""
        if address is UNKNOWN or address < 0 or address + 4 > len(self.tables):
            return UNKNOWN
        return int.from_bytes(self.tables[address : address + 4], "little")

    def constant(self, address: Any) -> Any:
        """Return a word of bank 0."""
        if address is UNKNOWN or address & 3 or not 0 <= address >> 2 < len(self.words):
            return UNKNOWN
        place: int = address >> 2
        return self.words[place]


def _mixed(word: int, key: int) -> int:
    """A number that is as good as drawn, and small enough that loops over it end."""
    mixed = (word * 0x9E3779B97F4A7C15 + key * 0xD1B54A32D192ED03) & M64
    mixed ^= mixed >> 29
    mixed = mixed * 0xBF58476D1CE4E5B9 & M64
    return mixed >> (54, 60, 56, 53)[mixed & 3]


def param(constant: Callable[[int], int], at: int, size: int) -> int:
    """An integer among the parameters, which are words of bank 0."""
    whole = constant(at & ~3)
    if size > 4:
        whole = whole | constant(at + 4) << 32
    return whole >> 8 * (at & 3) & ((1 << 8 * size) - 1)


HELPERS: dict[str, Any] = {
    name: getattr(values, name)
    for name in (
        "signed", "select", "least", "most", "left", "right", "funnel", "permute", "field", "inserted", "extended",
        "leading", "ones", "reversed_bits", "quotient", "remainder", "to_single", "reciprocal", "from_single",
    )
} | {"U": UNKNOWN, "param": param, "M": M, "M64": M64}  # fmt: skip


class Program:
    """The function of a kernel on one side."""

    def __init__(self, steps: Sequence[Step], starts: Mapping[int, int], accesses: Sequence[Access], begin: str = ""):
        """Compile steps; `starts` has the step that each numbered block begins with, and block 0 begins at step 0."""
        self.accesses = accesses
        self._registers: list[str] = []
        self._run = self._compiled(steps, starts, begin)

    def run(self, world: World, most_blocks: int) -> Trace:
        """Run it for the thread of a world, until it has entered so many blocks."""
        trace = Trace()
        try:
            trace.is_whole = self._run(world, trace.events.append, most_blocks)
        except UnknownBranchError:
            trace.is_whole = False
        return trace

    def _compiled(self, steps: Sequence[Step], starts: Mapping[int, int], begin: str) -> Callable[..., bool]:
        wanted = needed(steps)
        written = sorted({each for step in steps for each in (*step.targets, *step.sources) if each in wanted})
        ordered = sorted(starts.items(), key=lambda item: item[1])
        place = {block: number for number, (block, _) in enumerate(ordered)}
        firsts = [first for _, first in ordered]
        blocks = [steps[first:last] for first, last in zip(firsts, [*firsts[1:], len(steps)], strict=True)]
        flow = _Flow(blocks, place, self.accesses)
        bodies: list[list[str]] = []
        for number, block in enumerate(blocks):
            body: list[str] = []
            for at, step in enumerate(block):
                around = flow.way_around(number) if at == len(block) - 1 and step.jump and step.guard else None
                body.extend(_statements(step, wanted, around))
            bodies.append(body)
        lines = ["def run(world, e, budget):"]
        lines += [
            " ld, table, constant = world.load, world.table, world.constant",
            " data, is_over = world.data, world.is_over",
        ]
        lines += [" special, fill = world.special, world.unwritten()"]
        lines += [" C = world.words", " local = {}", " pc = 0", " whole = True"]
        for name in written:
            lines.append(f" {name} = {'fill(1) == 1' if name.lstrip('U').startswith('P') else 'fill(32)'}")
        lines += [f" {begin}"] if begin else []
        lines += [" while True:", "  budget -= 1", "  if budget < 0: return False"]
        _tree(bodies, 0, len(bodies), "  ", lines)
        scope = dict(HELPERS)

        def where(block: Any) -> int:
            if block is UNKNOWN or (found := place.get(block)) is None:
                raise UnknownBranchError
            return found

        scope["where"] = where
        exec(compile("\n".join(lines), "<sass>", "exec"), scope)
        return scope["run"]


class _Flow:
    """The ways between blocks: where those from a branch meet again, and what is done on them."""

    def __init__(self, blocks: list[Sequence[Step]], place: Mapping[int, int], accesses: Sequence[Access]):
        self._blocks = blocks
        self._accesses = accesses
        end = len(blocks)
        self._next: list[list[int]] = []
        for number, block in enumerate(blocks):
            last = block[-1] if block else Step()
            found: list[int] = []
            if last.jump:
                target = re.match(r"where\((\d+)\)$", last.jump)
                found.append(place.get(int(target[1]), end) if target is not None else end)
            if last.ends:
                found.append(end)
            if not (last.jump or last.ends) or last.guard:
                found.append(number + 1)
            self._next.append(found)
        # Bit sets of the blocks on every way to the end.
        everything = (1 << (end + 1)) - 1
        self._after = [everything] * end + [1 << end]
        changed = True
        while changed:
            changed = False
            for number in range(end - 1, -1, -1):
                common = everything
                for each in self._next[number]:
                    common &= self._after[each]
                common |= 1 << number
                if common != self._after[number]:
                    self._after[number], changed = common, True

    def way_around(self, number: int) -> tuple[int, set[str], bool] | None:
        """Return where the ways from a branch meet, the registers written on them, and whether they access memory.

        None where they do something whose order and number is compared, or meet at the end only.
        """
        end = len(self._blocks)
        common = self._after[number] & ~(1 << number)
        meets = next((each for each in range(end) if common >> each & 1 and self._after[each] == common), None)
        if meets is None:
            return None
        seen: set[int] = set()
        waiting = list(self._next[number])
        written: set[str] = set()
        has_access = False
        while waiting:
            block = waiting.pop()
            if block in seen or block == meets:
                continue
            if block == end:
                return None
            seen.add(block)
            for step in self._blocks[block]:
                written.update(step.targets)
                if step.event:
                    has_access = True
                    if self._accesses[step.access].is_ordered:
                        return None
            waiting.extend(self._next[block])
        return meets, written, has_access


def needed(steps: Sequence[Step]) -> set[str]:
    """The registers that operands, conditions and branches are computed of, wherever they are written."""
    needed: set[str] = set()
    waiting: list[str] = []
    by_target: dict[str, list[Step]] = {}
    for step in steps:
        for each in step.targets:
            by_target.setdefault(each, []).append(step)
        if step.event or step.jump or step.ends:
            waiting.extend(step.sources)
    while waiting:
        if (register := waiting.pop()) not in needed:
            needed.add(register)
            for step in by_target.get(register, ()):
                waiting.extend(step.sources)
    return needed


def _statements(step: Step, needed: set[str], around: tuple[int, set[str], bool] | None) -> list[str]:
    made: list[str] = []
    if step.event:
        if step.guard:
            made += [f"g = {step.guard}", f"if g is U or g: e(({step.access}, g is not U, {step.event}))"]
        else:
            made.append(f"e(({step.access}, True, {step.event}))")
    if kept := [each for each in step.targets if each in needed]:
        unknown = f"{' = '.join(kept)} = U"
        body = list(step.code) or [unknown]
        if step.guard:
            made += [f"g = {step.guard}", f"if g is U: {unknown}", "elif g:", *(f" {each}" for each in body)]
        else:
            made += body
    if around is not None:
        meets, lost, has_access = around
        unknown = "".join(f"{each} = " for each in sorted(lost & needed))
        made += [f"g = {step.guard}", "if g is U:", *([f" {unknown}U"] if unknown else [])]
        made += [" whole = False"] if has_access else []
        made += [f" pc = {meets}", " continue", "if g:", f" pc = {step.jump}", " continue"]
    elif step.jump or step.ends:
        action = ["return whole"] if step.ends else [f"pc = {step.jump}", "continue"]
        made += [f"if {step.guard}:", *(f" {each}" for each in action)] if step.guard else action
    return made


def _tree(blocks: list[list[str]], low: int, high: int, indent: str, lines: list[str]) -> None:
    """Choose the block by halving, so that each is found in a few comparisons; a block goes on in the one after it."""
    if high - low == 1:
        body = blocks[low]
        lines.extend(f"{indent}{each}" for each in body)
        if not body or not body[-1].startswith(("continue", "return")):
            lines.append(f"{indent}pc = {low + 1}" if low + 1 < len(blocks) else f"{indent}return whole")
        return
    middle = (low + high) // 2
    lines.append(f"{indent}if pc < {middle}:")
    _tree(blocks, low, middle, indent + " ", lines)
    lines.append(f"{indent}else:")
    _tree(blocks, middle, high, indent + " ", lines)
