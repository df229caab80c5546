"""Put into stock Triton's texts what single versions leave out (`defects.py`).

A plain kernel meets our passes as TTIR only, so what stock Triton's own passes forget can be mended in their result
alone. Each mend of PTX adds one instruction, a fence or a barrier, that is legal wherever it stands, and looks at
instructions and labels, not at addresses: it may add one too many, and never changes a number. Triton writes an
instruction to a line. One mend is of TTGIR: that of scales, whose decoding has no trace of its origin in PTX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from .defects import DEFECTS

_PROXY_FENCE = "fence.proxy.async.shared::cta;"
_PRODUCT_FENCE = "wgmma.fence.sync.aligned;"
_PRODUCT_WAIT = "wgmma.wait_group.sync.aligned 0;"
_STORE_WAIT = "cp.async.bulk.wait_group 0;"
_BARRIER = "bar.sync 0;"

_LINE = re.compile(
    r"\s*(?:(?P<label>[$\w]+):(?!:)|(?:(?P<guard>@!?%?\w+)\s+)?(?P<opcode>[a-z][\w.:]*)(?P<operands>[^;]*))"
)
_NO_INSTRUCTION = ("\t.", "\t//", ".", "//")
_REGISTER = re.compile(r"%[a-z]+\d+")
_ASYNC_READ = re.compile(r"wgmma\.mma_async|tcgen05\.(?:mma|cp)|cp\.(?:reduce\.)?async\.bulk\.(?:tensor\.\dd\.)?global")
_PRODUCT = re.compile(r"wgmma\.mma_async\.")
_HALF_SUMS = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k\d+\.f16\.")
_BARRIERS = ("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync")
_SHARED_WRITE = re.compile(
    r"(?:st|red|atom)\.(?:\w+\.)*shared\b|stmatrix\.|cp\.async\.c[ag]\.|cp\.async\.bulk\.(?:\w+\.)*shared|"
    r"st\.async\.|mbarrier\.arrive"
)
_TENSOR_WRITE = re.compile(r"tcgen05\.(?:mma|cp|st)\b")
_RELEASE = re.compile(r"(?:atom|red|st|fence|ld)\.(?:\w+[.:]+)*(?:release|acq_rel|sc)\b")
_MOST_GROUPS = 7
"""Groups of products that are ever waited for all but so many."""
_WARP_GROUP = 128
"""Threads that multiply together."""
_ENDS = ("ret", "exit", "trap")


@dataclass(frozen=True)
class Mended:
    """A defect that was put right, and the lines of the PTX that did it, from 1."""

    defect: str
    lines: tuple[int, ...]


@dataclass
class _Block:
    first: int
    last: int
    """The line after it."""
    successors: list[int] = field(default_factory=list[int])


class _Text:
    """The lines of a PTX text, with the opcode of each."""

    def __init__(self, ptx: str, threads: int):
        self.lines = ptx.splitlines()
        self.threads = threads
        """Threads of a CTA that meet at barrier 0; 0 where they have parted into tasks."""
        self.parts = [None if line.startswith(_NO_INSTRUCTION) else _LINE.match(line) for line in self.lines]
        self._known: dict[int, list[str]] = {}
        self.opcodes = [part["opcode"] or "" if part else "" for part in self.parts]

    @cached_property
    def blocks(self) -> list[_Block]:
        """The basic blocks, in the order of the text."""
        branches = {opcode for opcode in set(self.opcodes) if _is_branch(opcode)}
        ends = {number + 1 for number, opcode in enumerate(self.opcodes) if opcode in branches}
        labels: dict[str, list[int]] = {}
        for number, part in enumerate(self.parts):
            if part is not None and part["label"]:
                labels.setdefault(part["label"], []).append(number)
        marked = [number for numbers in labels.values() for number in numbers]
        starts = sorted({0, *marked, *(end for end in ends if end < len(self.lines))})
        found = [_Block(first, last) for first, last in zip(starts, [*starts[1:], len(self.lines)], strict=True)]
        at = {block.first: number for number, block in enumerate(found)}
        for number, block in enumerate(found):
            part, opcode = self.parts[block.last - 1], self.opcodes[block.last - 1]
            if opcode.startswith("brx"):
                block.successors.extend(at[line] for line in marked)
            elif opcode.startswith("bra") and part is not None:
                # A label in braces has a name that others have, too.
                named = labels.get(part["operands"].strip(), marked)
                block.successors.append(at[min(named, key=lambda line: abs(line - block.last))])
            if (opcode not in branches or (part is not None and part["guard"])) and number + 1 < len(found):
                block.successors.append(number + 1)
        return found

    def reaching(self, start: str, wanted: re.Pattern[str], end: str | tuple[str, ...]) -> list[int]:
        """Return the lines after those that start, from which control may come to a wanted opcode before an end."""
        kinds = {opcode: _kind(opcode, wanted, end) for opcode in set(self.opcodes)}
        kind_of = [kinds[opcode] for opcode in self.opcodes]
        starts = [line + 1 for line, opcode in enumerate(self.opcodes) if opcode.startswith(start)]
        return [line for line in starts if self._reaches(line, kind_of)]

    def _reaches(self, line: int, kind_of: list[bool | None]) -> bool:
        block = next(block for block in self.blocks if block.first < line <= block.last)
        seen: set[int] = set()
        pending = [(line, block)]
        while pending:
            first, block = pending.pop()
            kind = next((each for each in kind_of[first : block.last] if each is not None), None)
            if kind:
                return True
            if kind is None:
                new = [number for number in block.successors if number not in seen]
                seen.update(new)
                pending.extend((self.blocks[number].first, self.blocks[number]) for number in new)
        return False

    def _targets(self, line: int, operands: str) -> list[str]:
        """The registers that an instruction may write, found once."""
        if line not in self._known:
            self._known[line] = _REGISTER.findall(_first_operand(operands))
        return self._known[line]

    def touches(self, line: int, registers: set[str], *, reads: bool) -> set[int]:
        """Return the lines after a commit that read, or write, one of its group's registers before a wait for it."""
        found: set[int] = set()
        block = next(block for block in self.blocks if block.first < line <= block.last)
        seen: set[tuple[int, int]] = set()
        pending = [(line, block, 0)]
        while pending:
            first, block, since = pending.pop()
            for at in range(first, block.last):
                part, opcode = self.parts[at], self.opcodes[at]
                if part is None or not opcode:
                    continue
                if opcode.startswith("wgmma."):
                    since += opcode.startswith("wgmma.commit_group")
                    if opcode.startswith("wgmma.wait_group") and since >= int(part["operands"], 0):
                        break
                elif not registers.isdisjoint(_sources(part) if reads else self._targets(at, part["operands"])):
                    found.add(at)
                    break
            else:
                new = {(number, min(since, _MOST_GROUPS)) for number in block.successors} - seen
                seen |= new
                pending.extend((self.blocks[number].first, self.blocks[number], age) for number, age in new)
        return found


def _sources(part: re.Match[str]) -> list[str]:
    """The registers that an instruction reads, but those of its first operand, where it writes."""
    return _REGISTER.findall(part["operands"][len(_first_operand(part["operands"])) :])


def _kind(opcode: str, wanted: re.Pattern[str], end: str | tuple[str, ...]) -> bool | None:
    return True if wanted.match(opcode) else False if opcode.startswith(end) else None


def _is_branch(opcode: str) -> bool:
    return opcode in _ENDS or opcode.startswith(("bra", "brx"))


def _after_copies(text: _Text) -> list[int]:
    """Return the lines after waits for `cp.async` from which what was copied goes to the async proxy."""
    return text.reaching("cp.async.wait", _ASYNC_READ, "fence.proxy.async")


def _before_products(text: _Text) -> list[int]:
    """Return the lines of products that take registers which were written after the last `wgmma.fence`.

    A copy of what was there at the fence is as old as that: stock Triton keeps accumulators by such copies.
    """
    found: list[int] = []
    written: set[str] | None = None
    """None where no fence has been seen in this block."""
    looked_at = 0
    for line, (part, opcode) in enumerate(zip(text.parts, text.opcodes, strict=True)):
        if part is None:
            continue
        if part["label"]:
            written = None
        elif opcode.startswith("wgmma.fence"):
            written, looked_at = set[str](), line + 1
        elif opcode.startswith("wgmma.mma_async"):
            taken = set(_REGISTER.findall(_registers_of_product(part["operands"])))
            if written is not None:
                _note_writes(text.parts[looked_at:line], written)
            if written is None or taken & written:
                found.append(line)
                written = set[str]()
            written -= taken
            looked_at = line + 1
    return found


def _note_writes(parts: Sequence[re.Match[str] | None], written: set[str]) -> None:
    """Add the registers that some instructions write, but for copies of older ones."""
    for part in parts:
        if part is None or not part["opcode"]:
            continue
        source = part["operands"].partition(",")[2].strip()
        registers = _REGISTER.findall(_first_operand(part["operands"]))
        if part["opcode"].startswith("mov.") and not part["guard"] and _is_old(source, written):
            written.difference_update(registers)
        else:
            written.update(registers)


def _registers_of_product(operands: str) -> str:
    """Return the accumulator of a product, and its A where that is in registers, without descriptors."""
    return operands.partition("}")[0] + _left_of_product(operands)


def _left_of_product(operands: str) -> str:
    rest = operands.partition("}")[2]
    return rest.partition("}")[0] if rest.lstrip(" ,").startswith("{") else ""


def _first_operand(operands: str) -> str:
    operands = operands.strip()
    return operands.partition("}")[0] if operands.startswith("{") else operands.partition(",")[0]


def _is_old(source: str, written: set[str]) -> bool:
    return source not in written and not source.startswith("{")


def _after_waits(text: _Text) -> list[int]:
    """Return the lines after waits of a product from which a warp group may overwrite what others still multiply."""
    return text.reaching("wgmma.wait_group", _SHARED_WRITE, _BARRIERS) if text.threads > _WARP_GROUP else []


def _after_reads(text: _Text) -> list[int]:
    """Return the lines after reads of tensor memory from which one warp may overwrite what others still read."""
    return text.reaching("tcgen05.wait::ld", _TENSOR_WRITE, _BARRIERS) if text.threads else []


def _after_store_waits(text: _Text) -> list[int]:
    """Return the lines after waits for the reads of TMA stores from which their writes may be released."""
    return text.reaching("cp.async.bulk.wait_group.read", _RELEASE, "cp.async.bulk.wait_group")


def _before_overwrites(text: _Text) -> list[int]:
    """Return the lines that write registers from which a product in flight takes its A."""
    return _touched(text, _left_of_product, reads=False)


def _before_uses(text: _Text) -> list[int]:
    """Return the lines that read sums of fp16 of a product in flight."""
    return _touched(text, lambda operands: operands.partition("}")[0], reads=True, kind=_HALF_SUMS)


def _touched(
    text: _Text, registers_of: Callable[[str], str], *, reads: bool, kind: re.Pattern[str] = _PRODUCT
) -> list[int]:
    """Return the lines that touch registers of products of a kind before these are waited for."""
    found: set[int] = set()
    taken: set[str] = set()
    for line, (part, opcode) in enumerate(zip(text.parts, text.opcodes, strict=True)):
        if part is not None and kind.match(opcode):
            taken.update(_REGISTER.findall(registers_of(part["operands"])))
        elif opcode.startswith("wgmma.commit_group"):
            if taken:
                found.update(text.touches(line + 1, taken, reads=reads))
            taken = set()
    return sorted(found)


# --- scales in TTGIR --------------------------------------------------------------------------------------------------

SCALES = "scale_of_byte_zero"
_DECODED = re.compile(
    r"^(?P<indent> *)(?P<shifted>%\w+) = arith\.shli (?P<byte>%\w+), %\w+ : (?P<type>tensor<[\dx]+xi16, .*?>)"
    r"(?P<place>(?: loc\([^\n]*\))?)\n(?P=indent)(?P<decoded>%\w+ = tt\.bitcast )(?P=shifted)"
    r"(?P<rest> : tensor<[\dx]+xi16, [^\n]* -> tensor<[\dx]+xbf16, )",
    re.MULTILINE,
)
_LEAST_SCALE = 0x40
"""The bits of 2**-127 in bf16."""


def mend_scales(ttgir: str, given: str, version: str) -> tuple[str, tuple[Mended, ...]]:
    """Return TTGIR in which a scale of byte 0 is 2**-127, not 0.0, of what stock Triton has made of `given`.

    Source: OCP Microscaling Formats (MX) 1.0, E8M0: the value is 2**(byte - 127), there is no zero. The text comes back
    as it was where the release has it right, and where `given` itself casts integers to bf16, which look the same.
    """
    has = any(version in defect.versions for defect in DEFECTS if defect.name == SCALES)
    if not has or "tt.dot_scaled" not in given or _CAST_TO_BF16.search(given):
        return ttgir, ()
    lines: list[int] = []

    def raised(match: re.Match[str]) -> str:
        type_, place, shifted = match["type"], match["place"], match["shifted"]
        if not re.search(rf"{re.escape(match['byte'])} = arith\.extui %\w+ : tensor<[\dx]+xi8,", ttgir):
            return match[0]
        lines.append(ttgir.count("\n", 0, match.end()) + 1)
        least, most = f"%least_scale_{len(lines)}", f"%scale_bits_{len(lines)}"
        return "\n".join(
            match["indent"] + line
            for line in (
                match[0].partition("\n")[0].strip(),
                f"{least} = arith.constant dense<{_LEAST_SCALE}> : {type_}{place}",
                f"{most} = arith.maxui {shifted}, {least} : {type_}{place}",
                f"{match['decoded']}{most}{match['rest']}",
            )
        )

    text = _DECODED.sub(raised, ttgir)
    return text, (Mended(SCALES, tuple(lines)),) if lines else ()


_CAST_TO_BF16 = re.compile(r"tt\.bitcast [^\n]*xi16[^\n]* -> tensor<[\dx]+xbf16")

# --- PTX --------------------------------------------------------------------------------------------------------------

_Mend: TypeAlias = tuple[str, Callable[[_Text], Sequence[int]]]

_MENDS: dict[str, _Mend] = {
    "cp_async_before_wgmma": (_PROXY_FENCE, _after_copies),
    "fence_before_copies": (_PRODUCT_FENCE, _before_products),
    "shared_operand_of_two_groups": (_BARRIER, _after_waits),
    "left_operand_in_registers": (_PRODUCT_WAIT, _before_overwrites),
    "half_sums_in_flight": (_PRODUCT_WAIT, _before_uses),
    "tensor_memory_read_in_loop": (_BARRIER, _after_reads),
    "release_of_tma_store": (_STORE_WAIT, _after_store_waits),
}
"""For each defect that is mended here: the instruction that is missing, and the lines before which it belongs."""


def mend(ptx: str, version: str, *, threads: int = 0) -> tuple[str, tuple[Mended, ...]]:
    """Return PTX of a Triton release without that release's defects, and what was put right.

    `threads` is how many meet at barrier 0: those of a CTA, and 0 in a kernel with tasks, where no barrier is added.
    The text comes back as it was where the release has no defect that shows in it. Source of what is missing: PTX ISA,
    "Async proxy" and "wgmma.fence".
    """
    wanted = [defect.name for defect in DEFECTS if version in defect.versions and defect.name in _MENDS]
    if not wanted:
        return ptx, ()
    text = _Text(ptx, threads)
    added = [(line, name) for name in wanted for line in _MENDS[name][1](text)]
    if not added:
        return ptx, ()
    added.sort(key=lambda each: each[0])
    lines: list[str] = []
    places: dict[str, list[int]] = {}
    begin = 0
    for line, name in added:
        lines += text.lines[begin:line]
        lines.append(f"\t{_MENDS[name][0]}  // added: {name}")
        places.setdefault(name, []).append(len(lines))
        begin = line
    lines += text.lines[begin:]
    return "\n".join(lines) + "\n", tuple(Mended(name, tuple(found)) for name, found in places.items())
