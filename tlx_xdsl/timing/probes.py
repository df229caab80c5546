"""Probes in final PTX: each warp writes down when it waits, and when it starts copies and products.

`instrument` is text to text. A probe reads `%clock`, the low 32 bits of the multiprocessor's counter of cycles, and
one lane of the warp stores 16 bytes:

| word | record of a site | first record of a warp | last record of a warp |
|---|---|---|---|
| 0 | clock when the wait begins | clock at the start | clock at the end |
| 1 | clock when it ends | `%globaltimer_lo`, in ns | `%globaltimer_lo`, in ns |
| 2 | number of the site + 1 | `%smid` | the offset that the next record would have had |
| 3 | shared address of its mbarrier, or 0 | shared address of the first dynamic byte | 0 |

The kernel is there twice: a few CTAs branch at their start to a copy that has probes, and all others run the kernel as
it was. Before a wait only the clock is read, into a register that lives until the wait ends; all else happens after it.
What is recorded stays within a buffer of `records` records for each warp. A warp keeps one register for it, the offset
of its next record: the other lanes keep an offset beyond the end, so that one comparison says whether to store. Warps
take turns in the buffer, record by record, in steps of a power of two bytes, and so an offset that has run past the end
still says how many records were dropped.

The buffer comes from the kernel's last parameter: Triton gives every kernel two pointers to scratch memory, of which
our compiler leaves the last, the profiler's, null. A `.global` variable would need a cubin for each size, a way of
reading it that the PTX machine has not, and does not save a register: both addresses are constants of the launch. With
a null pointer nothing is recorded.

A warp goes on for some cycles after `bar.sync` before it waits (`BAR.SYNC.DEFER_BLOCKING` in the machine code), far
enough to read the clock. So there the clock is read twice after the wait, the second time with the first as a
condition, and such a wait has about 20 cycles of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tlx_xdsl.errors import InputError
from tlx_xdsl.ptx.program import entry_of
from tlx_xdsl.ptx.read.faults import PtxError
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.ptx.read.syntax import Address, Function, Instruction, Module, Register, Symbol

from .places import user_line

SiteKind: TypeAlias = Literal[
    "mbarrier",  # a loop that waits for a phase of an mbarrier
    "barrier",  # bar.sync and the like, and the cluster's barrier
    "group",  # a wait for groups of copies or products, for tensor memory, for earlier grids
    "copy",  # TMA starts
    "product",  # the first of some wgmma, or tcgen05.mma
    "signal",  # an arrival at an mbarrier
]
KINDS: tuple[SiteKind, ...] = ("mbarrier", "barrier", "group", "copy", "product")
"""What is probed by default. Arrivals are not: they show causes, and cost one more record for each wait."""
FEWER: tuple[SiteKind, ...] = ("mbarrier", "group")
"""What costs least: of a loop with products a few waits, and nothing between products."""
WAITS: tuple[SiteKind, ...] = ("mbarrier", "barrier", "group")

RECORD_BYTES = 16
MOST_CTAS = 16
"""CTAs that record, at most: each costs every CTA of the launch an instruction at its start."""
_IDLE = 1 << 31
"""The bit of an offset that says that the lane records nothing. It is kept while offsets grow."""
_WARP = 32

_GROUP_WAITS = (
    "wgmma.wait_group", "cp.async.wait_", "cp.async.bulk.wait_group", "tcgen05.wait", "griddepcontrol.wait",
)  # fmt: skip
_BARRIERS = ("bar.sync", "barrier.sync", "bar.red", "barrier.red", "bar.cta", "barrier.cta", "barrier.cluster.wait")
_NO_WAITS = (".arrive",)
_COPIES = re.compile(r"cp\.(?:reduce\.)?async\.bulk\.(?!commit|wait|prefetch)")
_PRODUCTS = ("wgmma.mma_async", "tcgen05.mma.")
_GROUP_ENDS = ("wgmma.commit_group", "wgmma.wait_group", "tcgen05.commit")
_TRIES = ("mbarrier.try_wait", "mbarrier.test_wait")
_MOST_IN_LOOP = 12
"""Instructions of a loop around `mbarrier.try_wait`, at most."""

_PLAIN, _RECORDED = "$tlx_plain", "$tlx_recorded"
_COPY = "$tlx"
"""What is added to the names of labels in the copy with probes."""
_DECLARATION = re.compile(r"\s*(?:\.(?:reg|local|shared)\b.*)?$")
_NAME = re.compile(r"(?<![\w$%.])[A-Za-z_$][\w$]*")
_REGISTERS = """\
	.reg .pred %tlx_store, %tlx_one;
	.reg .b32 %tlx_at, %tlx_w0, %tlx_w1, %tlx_w2, %tlx_w3, %tlx_idle;
	.reg .b64 %tlx_to, %tlx_wide;"""
_STORES = (
    "@%tlx_store st.global.v2.b32 [%tlx_to], {%tlx_w0, %tlx_w1};",
    "@%tlx_store st.global.v2.b32 [%tlx_to+8], {%tlx_w2, %tlx_w3};",
)
"""Two halves: four registers side by side are what a warp with 24 of them lacks."""


@dataclass(frozen=True)
class Site:
    """A place in the PTX that probes stand around, or before."""

    kind: SiteKind
    opcode: str
    line: int
    """Its line in the PTX that `instrument` was given, from 1."""
    file: str = ""
    """The Python source that it comes from; empty where the PTX does not say it."""
    source_line: int = 0
    target: str = ""
    """The number of a named barrier, or the groups that may be left, as the PTX writes it."""

    @property
    def is_wait(self) -> bool:
        """True if it has a beginning and an end."""
        return self.kind in WAITS


@dataclass(frozen=True)
class Probes:
    """PTX with probes, and what its records mean."""

    text: str
    kernel: str
    warps: int
    """The warps of a CTA."""
    ctas: tuple[int, ...]
    """The CTAs that record, by their numbers in the grid, along x first."""
    records: int
    """The records that a warp has room for, the first and the last included."""
    sites: tuple[Site, ...] = ()
    skipped: tuple[str, ...] = field(default=())
    """The waits that have no probes, each with its line of the PTX and why."""

    @property
    def step(self) -> int:
        """The bytes from a record of a warp to its next one."""
        return step_of(self.warps * len(self.ctas))

    @property
    def size(self) -> int:
        """The bytes of the buffer."""
        return self.step * self.records


def step_of(warps: int) -> int:
    """Return the bytes of a record of each of so many warps, as a power of two."""
    return RECORD_BYTES << max(0, warps - 1).bit_length()


def instrument(
    text: str,
    kernel: str | None = None,
    *,
    ctas: Sequence[int] = (0,),
    records: int = 2048,
    kinds: Sequence[SiteKind] = KINDS,
    num_warps: int | None = None,
    registers: int | None = None,
) -> Probes:
    """Put probes into a kernel of PTX, for the CTAs of these numbers and up to `records` records of each warp.

    The kernel must have the two pointers to scratch memory that Triton adds as its last parameters, and the last must
    point to `size` bytes of zeros at the launch. `num_warps` is needed where the PTX has no `.reqntid`. With probes a
    thread has up to `registers`, so that as many CTAs run side by side, unless the PTX has a bound of its own or moves
    registers between warps. What a `.func` that the kernel calls waits for is not recorded.

    Raises PtxError for PTX that cannot be read, InputError for a kernel without those parameters or impossible numbers.
    """
    lines = one_to_a_line(text)
    module = read("\n".join(line for line, _ in lines), "<ptx>")
    function = entry_of(module, kernel)
    warps = _warps(function, num_warps)
    if not 1 <= len(ctas) <= MOST_CTAS or min(ctas) < 0 or len({*ctas}) < len(ctas):
        raise InputError(f"ctas: expected 1 to {MOST_CTAS} different numbers of CTAs, found {list(ctas)}")
    if records < 3 or records * step_of(warps * len(ctas)) > _IDLE // 2:
        raise InputError(f"records: expected 3 or more that fit into 1 GiB, found {records}")
    if len(function.parameters) < 2 or any(each.size != 8 for each in function.parameters[-2:]):
        raise InputError(f"the kernel '{function.name}' has no pointers to scratch memory as its last parameters")
    made = Probes("", function.name, warps, tuple(ctas), records)
    moves = any(each.name == "setmaxnreg" for each in function.instructions)
    bound = None if moves or "maxnreg" in function.directives else registers
    return _Pass(lines, module, function, made, kinds, bound).run()


def one_to_a_line(text: str) -> list[tuple[str, int]]:
    """Return the lines of PTX with at most one instruction on each, with the number that each had before, from 1."""
    found: list[tuple[str, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        code, comment, rest = line.partition("//")
        if code.count(";") > 1 and '"' not in code:
            parts = re.findall(r"[^;]*;|[^;]+$", code)
            found.extend((part, number) for part in parts)
            if comment:
                found.append((comment + rest, number))
        else:
            found.append((line, number))
    return found


def _warps(function: Function, num_warps: int | None) -> int:
    threads = function.directives.get("reqntid") or (() if num_warps else function.directives.get("maxntid") or ())
    if len([each for each in threads if each > 1]) > 1:
        raise InputError(f"probes need CTAs with threads along x alone, found {list(threads)}")
    if threads:
        return -(-threads[0] // _WARP)
    if num_warps is None:
        raise InputError("the PTX does not say how many threads a CTA has: give num_warps")
    return num_warps


class _Pass:
    """Places of probes in the lines of one kernel."""

    def __init__(
        self, lines: Sequence[tuple[str, int]], module: Module, function: Function, made: Probes,
        kinds: Sequence[SiteKind], bound: int | None,
    ):  # fmt: skip
        self._lines, self._numbers = [line for line, _ in lines], [number for _, number in lines]
        self._made, self._kinds, self._bound = made, kinds, bound
        self._module, self._function = module, function
        self._limit = (made.records - 1) * made.step
        self._before: dict[int, list[str]] = {}
        """Text that goes before a line, by its number from 1."""
        self._after: dict[int, list[str]] = {}
        self._sites: list[Site] = []
        self._skipped: list[str] = []
        self._uses: dict[str, list[int]] = {}
        """The branches to each label."""
        for at, each in enumerate(function.instructions):
            for operand in each.operands:
                if isinstance(operand, Symbol) and operand.name in function.labels:
                    self._uses.setdefault(operand.name, []).append(at)
        for table in function.tables.values():
            for name in table:
                self._uses.setdefault(name, []).append(-1)

    def run(self) -> Probes:
        """Return the text with probes."""
        instructions = self._function.instructions
        labels, multiplies = {*self._function.labels.values()}, False
        for at, each in enumerate(instructions):
            kind = kind_of(each.opcode)
            if at in labels or each.opcode.startswith(_GROUP_ENDS):
                multiplies = False
            if each.name in ("ret", "exit"):
                self._put_before(each.line, self._end())
            elif kind in self._kinds:
                assert kind is not None
                if kind == "mbarrier":
                    self._mbarrier(at, each)
                elif kind in WAITS:
                    self._around(kind, each)
                elif not (kind == "product" and multiplies):
                    self._at(kind, each)
                multiplies |= kind == "product"
        made = self._made
        return Probes(
            "\n".join(self._woven()) + "\n", made.kernel, made.warps, made.ctas, made.records, tuple(self._sites),
            tuple(self._skipped),
        )  # fmt: skip

    def _woven(self) -> list[str]:
        """The lines of the module, the kernel's twice."""
        opening, first, last = self._body()
        lines, copy = list(self._lines), list[str]()
        names = {name.partition("#")[0] for name in (*self._function.labels, *self._function.tables)}
        depth = 0
        for number in range(first, last):
            line = lines[number - 1]
            # The variables of the kernel are declared once.
            kept = "" if depth == 0 and _DECLARATION.match(line) else line
            depth += _opened(line)
            own = [*self._before.get(number, ()), kept, *self._after.get(number, ())]
            copy += [_NAME.sub(lambda found: found[0] + _COPY * (found[0] in names), each) for each in own if each]
        if self._bound is not None:
            before, brace, after = lines[opening - 1].partition("{")
            lines[opening - 1] = f"{before}\n.maxnreg {self._bound}\n{brace}{after}"
        return [
            *lines[: first - 1], _REGISTERS, *self._choice(), f"{_PLAIN}:", *lines[first - 1 : last - 1], "\tret;",
            f"{_RECORDED}:", *self._start(), *copy, *lines[last - 1 :],
        ]  # fmt: skip

    def _body(self) -> tuple[int, int, int]:
        """The lines of the kernel's first brace, of what follows its declarations, and of its last brace, from 1."""
        opening, depth = self._function.line, _opened(self._lines[self._function.line - 1])
        while not depth:
            opening += 1
            depth = _opened(self._lines[opening - 1])
        first = opening + 1
        while _DECLARATION.match(self._lines[first - 1].partition("//")[0]):
            first += 1
        number = first
        while (depth := depth + _opened(self._lines[number - 1])) > 0:
            number += 1
        return opening, first, number

    def _put_before(self, line: int, text: Sequence[str]) -> None:
        self._before.setdefault(line, []).extend(text)

    # The ends --------------------------------------------------------------------------------------------------------

    def _choice(self) -> list[str]:
        """Branch to the copy with probes in the CTAs that record."""
        # The number of the CTA in the grid.
        text = ["mov.u32 %tlx_w3, %ctaid.z;", "mov.u32 %tlx_w2, %nctaid.y;", "mov.u32 %tlx_w1, %ctaid.y;"]
        text += ["mad.lo.u32 %tlx_w3, %tlx_w3, %tlx_w2, %tlx_w1;"]
        text += ["mov.u32 %tlx_w2, %nctaid.x;", "mov.u32 %tlx_w1, %ctaid.x;"]
        text += ["mad.lo.u32 %tlx_w3, %tlx_w3, %tlx_w2, %tlx_w1;"]
        first, *others = self._made.ctas
        text += [f"setp.eq.u32 %tlx_store, %tlx_w3, {first};"]
        text += [f"setp.eq.or.u32 %tlx_store, %tlx_w3, {cta}, %tlx_store;" for cta in others]
        return [f"\t{each}" for each in (*text, f"@%tlx_store bra.uni {_RECORDED};")]

    def _start(self) -> list[str]:
        """The first record: whether this lane is one that records, and from where."""
        made, target = self._made, re.match(r"sm_(\d+)", self._module.target)
        shared = next((each.name for each in self._module.variables.values() if each.space == "shared"), None)
        scratch = self._function.parameters[-1].name
        text = ["mov.u32 %tlx_w0, %clock;", f"ld.param.b64 %tlx_to, [{scratch}];"]
        # After a branch ptxas does not keep what it has read here for later, in registers that there may not be.
        text += ["setp.eq.u64 %tlx_store, %tlx_to, 0;", f"@%tlx_store bra.uni {_PLAIN};", "mov.u32 %tlx_at, 0;"]
        for place, cta in enumerate(made.ctas[1:], 1):
            text += [f"setp.eq.u32 %tlx_store, %tlx_w3, {cta};"]
            text += [f"selp.b32 %tlx_at, {place * made.warps * RECORD_BYTES}, %tlx_at, %tlx_store;"]
        text += ["mov.u32 %tlx_w1, %tid.x;", "shr.u32 %tlx_w2, %tlx_w1, 5;"]
        text += [f"mad.lo.u32 %tlx_at, %tlx_w2, {RECORD_BYTES}, %tlx_at;"]
        if target is not None and int(target[1]) >= 90:
            # The lane that starts copies where they are started by one that `elect.sync` chooses.
            text += ["elect.sync _|%tlx_one, 0xffffffff;"]
        else:
            text += ["and.b32 %tlx_w2, %tlx_w1, 31;", "setp.eq.u32 %tlx_one, %tlx_w2, 0;"]
        text += [f"selp.b32 %tlx_at, %tlx_at, {_IDLE}, %tlx_one;"]
        text += [f"mov.u32 %tlx_w3, {shared or 0};", "mov.u32 %tlx_w1, %globaltimer_lo;", "mov.u32 %tlx_w2, %smid;"]
        return [f"\t{each}" for each in (*text, *self._store())]

    def _end(self) -> list[str]:
        """The last record, which has its place also where others were dropped."""
        text = ["mov.u32 %tlx_w0, %clock;", "mov.u32 %tlx_w1, %globaltimer_lo;", "mov.u32 %tlx_w2, %tlx_at;"]
        text += ["mov.u32 %tlx_w3, 0;", f"setp.lt.u32 %tlx_store, %tlx_at, {_IDLE};"]
        text += [f"and.b32 %tlx_at, %tlx_at, {self._made.step - 1};", f"add.u32 %tlx_at, %tlx_at, {self._limit};"]
        # A conditional `ret` leaves some threads here.
        return [f"\t{each}" for each in (*text, *self._address(), *_STORES, "mov.u32 %tlx_at, %tlx_w2;")]

    def _address(self) -> list[str]:
        scratch = self._function.parameters[-1].name
        return [
            f"ld.param.b64 %tlx_to, [{scratch}];", "cvt.u64.u32 %tlx_wide, %tlx_at;",
            "add.s64 %tlx_to, %tlx_to, %tlx_wide;",
        ]  # fmt: skip

    def _store(self, guard: str = "") -> list[str]:
        """Store the four words, and move on, in threads where the guard holds."""
        condition = f".and.u32 %tlx_store, %tlx_at, {self._limit}, {guard.lstrip('@')};"
        text = [f"setp.lt{condition if guard else f'.u32 %tlx_store, %tlx_at, {self._limit};'}"]
        moves = f"{guard} " if guard else ""
        text += [*self._address(), *_STORES, f"and.b32 %tlx_idle, %tlx_at, {_IDLE};"]
        return [*text, f"{moves}add.u32 %tlx_at, %tlx_at, {self._made.step};", "or.b32 %tlx_at, %tlx_at, %tlx_idle;"]

    # Sites -----------------------------------------------------------------------------------------------------------

    def _site(self, kind: SiteKind, each: Instruction, target: str = "") -> int:
        where = user_line(self._module, each.place)
        file, line = ("", 0) if where is None else (where.filename, where.line)
        self._sites.append(Site(kind, each.opcode, self._numbers[each.line - 1], file, line, target))
        return len(self._sites)

    def _around(self, kind: SiteKind, each: Instruction, lines: tuple[int, int] | None = None) -> None:
        """Put probes around a wait, of several lines if they are given."""
        first, last = lines or (each.line, each.line)
        site = self._site(kind, each, "" if kind == "mbarrier" else _target(each))
        self._before.setdefault(first, []).append("\tmov.u32 %tlx_w0, %clock;")
        text = ["mov.u32 %tlx_w1, %clock;"]
        if kind == "barrier":
            text += ["setp.ne.u32 %tlx_store, %tlx_w1, 0;", "@%tlx_store mov.u32 %tlx_w1, %clock;"]
        text += [f"mov.u32 %tlx_w2, {site};", self._operand(_mbarrier_of(each)), *self._store()]
        self._after[last] = [f"\t{line}" for line in text] + self._after.get(last, [])

    def _at(self, kind: SiteKind, each: Instruction) -> None:
        """Put a probe before an instruction that starts something, in threads that run it."""
        text = ["mov.u32 %tlx_w0, %clock;", "mov.u32 %tlx_w1, %tlx_w0;", f"mov.u32 %tlx_w2, {self._site(kind, each)};"]
        text += [self._operand(_mbarrier_of(each)), *self._store(self._guard(each))]
        self._put_before(each.line, [f"\t{line}" for line in text])

    def _guard(self, each: Instruction) -> str:
        if each.guard is None:
            return ""
        return f"@{'!' * each.negated}{self._function.registers[each.guard.number][0]}"

    def _operand(self, address: Address | None) -> str:
        """Put the shared address of an mbarrier into the last word."""
        if address is None:
            return "mov.u32 %tlx_w3, 0;"
        if isinstance(address.base, Register):
            name, type_ = self._function.registers[address.base.number]
            if type_.endswith("64"):
                return f"cvt.u32.u64 %tlx_w3, {name};"
            return f"add.u32 %tlx_w3, {name}, {address.offset};"
        base = address.base.name if isinstance(address.base, Symbol) else str(address.base.value)
        offset = address.offset + (address.base.offset if isinstance(address.base, Symbol) else 0)
        return f"mov.u32 %tlx_w3, {base}{f'+{offset}' if offset else ''};"

    def _mbarrier(self, at: int, each: Instruction) -> None:
        """Probe the loop around a try, from before its label to after its branch."""
        found = self._loop(at)
        if isinstance(found, str):
            self._skipped.append(f"line {self._numbers[each.line - 1]}: {found}")
            return
        self._around("mbarrier", each, found)

    def _loop(self, at: int) -> tuple[int, int] | str:
        """The first and the last line of the loop around the instruction, or why there is none to be probed."""
        function = self._function
        instructions, labels = function.instructions, function.labels
        for end in range(at, min(at + _MOST_IN_LOOP, len(instructions))):
            branch = instructions[end]
            target = branch.operands[-1] if branch.name == "bra" and branch.operands else None
            if not isinstance(target, Symbol) or target.name not in labels:
                continue
            start = labels[target.name]
            if not at - _MOST_IN_LOOP <= start <= at:
                continue
            if any(not start <= user <= end for user in self._uses[target.name]):
                return "other code branches into its loop"
            first = self._label_line(target.name)
            if branch.guard is not None:
                return first, branch.line
            # The way out is a branch of the loop to what follows it.
            leaves = {
                operand.name
                for user in range(start, end)
                for operand in instructions[user].operands
                if instructions[user].name == "bra" and isinstance(operand, Symbol)
            }
            if len(leaves) != 1 or labels[leaf := leaves.pop()] != end + 1:
                return "its loop has several ways out"
            if any(not start <= user <= end for user in self._uses[leaf]):
                return "other code branches to the end of its loop"
            return first, self._label_line(leaf)
        return "it is in no loop"

    def _label_line(self, name: str) -> int:
        """The line of a label, from 1."""
        number, instructions = self._function.labels[name], self._function.instructions
        wanted = re.compile(rf"[\s{{]*{re.escape(name.partition('#')[0])}\s*:(?!:)")
        first = instructions[number - 1].line if number else self._function.line
        last = instructions[number].line if number < len(instructions) else len(self._lines)
        line = next((line for line in range(last, first - 1, -1) if wanted.match(self._lines[line - 1])), None)
        if line is None:
            raise PtxError(f"the line of the label '{name}' is not found")
        return line


def kind_of(opcode: str) -> SiteKind | None:
    """Return which kind of site an instruction is; None for what gets no probe."""
    if opcode.startswith(_TRIES):
        return "mbarrier"
    if opcode.startswith(_GROUP_WAITS):
        return "group"
    if opcode.startswith(_BARRIERS):
        return None if opcode.endswith(_NO_WAITS) else "barrier"
    if _COPIES.match(opcode):
        return "copy"
    if opcode.startswith(_PRODUCTS):
        return "product"
    return "signal" if opcode.startswith("mbarrier.arrive") and ".expect_tx" not in opcode else None


def _opened(line: str) -> int:
    """The braces that a line opens, less those that it closes."""
    code = line.partition("//")[0]
    return code.count("{") - code.count("}")


def _mbarrier_of(each: Instruction) -> Address | None:
    """The operand that is the address of an mbarrier: of a copy the last one, else the first."""
    if _COPIES.match(each.opcode):
        if "mbarrier" not in each.opcode:
            return None
        addresses = [operand for operand in each.operands if isinstance(operand, Address)]
        return addresses[-1] if addresses else None
    if each.name != "mbarrier":
        return None
    return next((operand for operand in each.operands if isinstance(operand, Address)), None)


def _target(each: Instruction) -> str:
    """Return the constant that a barrier or a wait for groups names; empty where it is none."""
    value = getattr(each.operands[0], "value", None) if each.operands else None
    return "" if value is None else str(value)
