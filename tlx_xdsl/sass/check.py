"""A cubin beside the PTX that it was made from: have the operands of its accesses the values that the PTX gives them?

Both are run for a few threads with drawn parameters, as integers only, and each access of the machine code is compared
with that of the PTX. Expressions that give the same number for each draw, of some hundred bits, are taken for equal.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.ptx.read.inlining import inlined
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.ptx.read.syntax import Function, Module

from .accesses import accessed
from .compare import Comparison, Difference
from .hazards import Hazard, hazards
from .kernel import Translator
from .machine import steps_of
from .program import Program, Trace, World
from .text import Code, disassemble, find_nvdisasm
from .values import UNKNOWN, M, Traced, shown

_DRAWS, _MOST_DRAWS = 2, 9
"""Draws of parameters for all, and the most where instructions are left that no thread has reached."""
_MOST_BLOCKS = 250, 1000
"""Blocks that a thread may enter in these, and in the others."""
_MOST_WARPS = 16
_WORDS = 0x1200 // 4
"""Words of constant bank 0."""


@dataclass(frozen=True)
class SassFinding:
    """A place where the machine code does something else than its PTX."""

    location: SourceLocation | None
    """The line of Python."""
    ptx_line: int
    sass_address: str
    """The address in the function, as a disassembly shows it: `/*2090*/`."""
    message: str
    ptx_expression: str = ""
    sass_expression: str = ""


@dataclass(frozen=True)
class SassReport:
    """Findings in a cubin, and how much of it was compared."""

    findings: tuple[SassFinding, ...]
    compared: int
    """Operands of instructions that have the same value on both sides."""
    undecided: int
    """Operands of instructions whose value is not known on one side, or that no thread reached."""
    seconds: float


@dataclass(frozen=True)
class _Layout:
    """Offsets of a launch's values in constant bank 0, in bytes, by the architecture."""

    parameters: int
    threads: int
    blocks: int
    descriptor: int
    """What accesses to global memory name beside their address."""
    reserved: int
    """Bytes of shared memory before the kernel's own."""


def _layout(capability: int) -> _Layout:
    if capability >= 100:
        return _Layout(0x380, 0x360, 0x370, 0x358, 0x400)
    return _Layout(0x210, 0, 12, 0x208, 0x400) if capability >= 90 else _Layout(0x160, 0, 12, 0x118, 0)


def validate(ptx: str, cubin: bytes, *, nvdisasm: Path | None = None) -> SassReport:
    """Compare a cubin with the PTX that it was assembled from.

    Raises CompilationError if there is no nvdisasm, or it refuses the cubin; PtxError for PTX that cannot be read.
    """
    begin = time.perf_counter()
    nvdisasm = nvdisasm or find_nvdisasm()
    if nvdisasm is None:
        raise CompilationError(
            "there is no nvdisasm: stock Triton ('pip install tlx-xdsl[nvidia]') and the CUDA toolkit have it"
        )
    module = read(ptx)
    codes = disassemble(cubin, nvdisasm)
    findings: list[SassFinding] = []
    same = undecided = 0
    for function in module.functions.values():
        if not function.is_entry:
            continue
        if (code := codes.get(function.name)) is None:
            raise CompilationError(f"the cubin has no kernel '{function.name}' of the PTX")
        found = validate_kernel(module, inlined(module, function), code)
        findings += found.findings
        same += found.compared
        undecided += found.undecided
    return SassReport(tuple(findings), same, undecided, time.perf_counter() - begin)


def validate_kernel(module: Module, function: Function, code: Code) -> SassReport:
    """Compare the code of a kernel with its PTX."""
    begin = time.perf_counter()
    capability = int((re.search(r"\d+", module.target) or ["90"])[0])
    layout = _layout(capability)
    offsets = _offsets(function, layout)
    translator = Translator(module, function, _symbols(module, function, layout, offsets))
    theirs = Program(translator.steps, translator.starts, translator.accesses)
    steps, starts, accesses = steps_of(code, accessed)
    ours = Program(steps, starts, accesses)
    comparison = Comparison(theirs.accesses, ours.accesses)
    worlds: list[_Thread] = []
    undecided, idle = 1, 0
    for draw in range(_MOST_DRAWS):
        if draw >= _DRAWS and (not undecided or idle > 2 or comparison.different):
            break
        for thread in _threads(function, layout, offsets, draw):
            most = _MOST_BLOCKS[draw >= _DRAWS]
            ptx = theirs.run(thread.world(code.constants), most)
            comparison.add(ptx, ours.run(thread.world(code.constants), most), len(worlds))
            worlds.append(thread)
        before, undecided = undecided, comparison.counts()[1]
        idle = idle + 1 if undecided == before else 0
    names = {at + 4 * word: f"{name}{'.high' * word}" for name, at in offsets.items() for word in (0, 1)}
    made = _Findings(comparison, (theirs, ours), worlds, names, code.constants)
    findings = tuple(made.of(each) for each in comparison.different.values())
    findings += tuple(_of_hazard(each) for each in hazards(code))
    same, undecided = comparison.counts()
    return SassReport(findings, same, undecided, time.perf_counter() - begin)


@dataclass(frozen=True)
class _Thread:
    """A thread and the launch that it is of."""

    seed: int
    is_quick: bool
    specials: dict[str, int]
    words: list[int]

    def world(self, tables: bytes) -> World:
        """Return what it finds."""
        return World(self.seed, self.specials, self.words, tables, is_quick=self.is_quick)


def _offsets(function: Function, layout: _Layout) -> dict[str, int]:
    """The place of each parameter in bank 0, where it is aligned as its type says."""
    at, found = layout.parameters, dict[str, int]()
    for each in function.parameters:
        at = -(-at // each.alignment) * each.alignment
        found[each.name] = at
        at += each.size
    return found


def _symbols(module: Module, function: Function, layout: _Layout, offsets: Mapping[str, int]) -> dict[str, str]:
    names = {
        "%laneid": "SR_LANEID", "%cluster_ctarank": "SR_CgaCtaId", "%smid": "SR_VIRTUALSMID",
        "%lanemask_eq": "SR_EQMASK", "%lanemask_lt": "SR_LTMASK", "%lanemask_le": "SR_LEMASK",
        "%lanemask_gt": "SR_GTMASK", "%lanemask_ge": "SR_GEMASK",
    }  # fmt: skip
    for axis in "xyz":
        names[f"%tid.{axis}"], names[f"%ctaid.{axis}"] = f"SR_TID.{axis.upper()}", f"SR_CTAID.{axis.upper()}"
    found = {name: f"special('{each}')" for name, each in names.items()}
    for number, axis in enumerate("xyz"):
        found[f"%ntid.{axis}"] = f"C[{layout.threads // 4 + number}]"
        found[f"%nctaid.{axis}"] = f"C[{layout.blocks // 4 + number}]"
    for name, at in offsets.items():
        found[f"[{name}]"] = found[name] = str(at)
    # Shared variables in the order of the text; that without a size is after all others.
    shared = [each for each in (*module.variables.values(), *function.variables) if each.space == "shared"]
    at = 0
    for each in sorted(shared, key=lambda each: each.size == 0):
        at = -(-at // each.alignment) * each.alignment
        found[each.name] = f"(special('shared') + {at})" if at else "special('shared')"
        at += each.size
    return found


def _threads(function: Function, layout: _Layout, offsets: Mapping[str, int], draw: int) -> Iterator[_Thread]:
    """One thread of each warp of a launch with drawn parameters."""
    count = (function.directives.get("reqntid") or function.directives.get("maxntid") or (128,))[0]
    for warp in range(min(-(-count // 32), _MOST_WARPS)):
        seed = draw * 1000 + warp
        chance = random.Random(seed)
        lane = 0 if (draw + warp) % 2 == 0 else chance.randrange(1, 32)
        thread = min(32 * warp + lane, count - 1)
        words = [chance.getrandbits(32) for _ in range(_WORDS)]
        for number, each in enumerate((count, 1, 1)):
            words[layout.threads // 4 + number] = each
            words[layout.blocks // 4 + number] = chance.randrange(1, 9) if number else chance.randrange(40, 200)
        for parameter in function.parameters:
            place = offsets[parameter.name] // 4
            if parameter.size == 4:
                sizes = chance.randrange(1, 9), 16 * chance.randrange(4, 40), chance.randrange(64, 800)
                words[place] = chance.choice(sizes)
            elif parameter.size == 8:
                words[place], words[place + 1] = chance.getrandbits(28) << 4, chance.getrandbits(15)
        blocks = 2 if draw % 3 else 40
        rank = chance.randrange(2) if draw else 0
        bit = 1 << thread % 32
        specials = {
            "SR_TID.X": thread, "SR_TID.Y": 0, "SR_TID.Z": 0, "SR_LANEID": thread % 32, "SR_CgaCtaId": rank,
            "SR_CTAID.X": chance.randrange(blocks), "SR_CTAID.Y": chance.randrange(blocks),
            "SR_CTAID.Z": chance.randrange(blocks),
            "SR_VIRTUALSMID": chance.randrange(132), "SR_SWINHI": chance.getrandbits(16),
            "SR_EQMASK": bit, "SR_LTMASK": bit - 1, "SR_LEMASK": 2 * bit - 1,
            "SR_GTMASK": M & -2 * bit, "SR_GEMASK": M & -bit, "shared": layout.reserved | rank << 24,
            "descriptor": words[layout.descriptor // 4] | words[layout.descriptor // 4 + 1] << 32,
            "parameters": (words[0x198 // 4] | words[0x19C // 4] << 32) - layout.parameters,
        }  # fmt: skip
        yield _Thread(seed, draw % 2 == 0, specials, words)


class _TracedWorld(World):
    """The same world with values that know where they came from."""

    def __init__(self, thread: _Thread, tables: bytes, names: Mapping[int, str]):
        words = [Traced.of(each, names.get(4 * at, f"c[{4 * at:#x}]")) for at, each in enumerate(thread.words)]
        super().__init__(thread.seed, thread.specials, words, tables, is_quick=thread.is_quick)

    def special(self, name: str) -> int:
        """Return a number of the thread with its name."""
        return Traced.of(self.specials[name], _NAMES.get(name, name.removeprefix("SR_").lower()))

    def unwritten(self) -> Callable[[int], int]:
        """Return what registers hold that nothing has written."""
        draw = super().unwritten()
        return lambda bits: Traced.of(draw(bits), "unwritten")

    def data(self, text: str, *sources: Any) -> Any:
        """Return what an instruction makes of data, with the instruction."""
        found = super().data(text, *sources)
        return found if found is UNKNOWN else Traced.of(found, f"[{text}]")

    def load(self, space: str, address: Any, size: int) -> Any:
        """Return the integer at an address, with that."""
        found = super().load(space, address, size)
        where = address.text if isinstance(address, Traced) else str(address)
        return found if found is UNKNOWN else Traced.of(found, f"{'shared' if space == 's' else 'global'}[{where}]")


_NAMES = {"SR_CgaCtaId": "rank"}


class _Findings:
    """Makes findings of differences, with the expressions of both sides."""

    def __init__(
        self,
        comparison: Comparison,
        programs: tuple[Program, Program],
        threads: list[_Thread],
        names: Mapping[int, str],
        tables: bytes,
    ):
        self._comparison, self._programs, self._threads = comparison, programs, threads
        self._names, self._tables = names, tables
        self._traces: dict[int, tuple[Trace, Trace]] = {}

    def of(self, found: Difference) -> SassFinding:
        """The finding of a difference."""
        access = found.sass or found.ptx
        assert access is not None
        location = found.ptx.location if found.ptx is not None else access.location
        line = found.ptx.line if found.ptx is not None else 0
        address = f"/*{found.sass.line:04x}*/" if found.sass is not None else ""
        if found.operand < 0:
            side = ("PTX", "cubin") if found.sass is None else ("cubin", "PTX")
            return SassFinding(
                location, line, address, f"the {side[0]} has more of this {found.kind} than the {side[1]}"
            )
        if found.world not in self._traces:
            thread, most = self._threads[found.world], _MOST_BLOCKS[1]
            worlds = [_TracedWorld(thread, self._tables, self._names) for _ in self._programs]
            one, other = (program.run(world, most) for program, world in zip(self._programs, worlds, strict=True))
            self._traces[found.world] = one, other
        ptx, sass = self._traces[found.world]
        ours = sass.events[found.sass_event][2 + found.operand]
        if found.ptx is None:
            message = f"the cubin has a {found.kind} at {int(ours):#x}, where the PTX has none"
            return SassFinding(location, line, address, message, "", _shown(ours))
        theirs = ptx.events[found.ptx_event][2 + found.operand]
        what = f"the {found.ptx.names[found.operand]} of this {found.kind}"
        message = f"{what} is {int(ours):#x} in the cubin and {int(theirs):#x} in its PTX"
        return SassFinding(location, line, address, message, _shown(theirs), _shown(ours))


def _of_hazard(found: Hazard) -> SassFinding:
    """The finding of a register that is taken too early."""
    place = found.instruction.place or found.cause.place
    location = None if place is None else SourceLocation(*place)
    message = f"'{found.instruction}' {found.message}, '{found.cause}'"
    return SassFinding(location, 0, f"/*{found.instruction.address:04x}*/", message)


def _shown(value: Any) -> str:
    """The expression of a value; the machine makes the base of shared memory out of the rank of the block."""
    return re.sub(r"\(?rank(?: << 0x18\))? \+ 0x400", "shared", shown(value))
