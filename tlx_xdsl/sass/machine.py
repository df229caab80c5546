"""Machine code as steps: what each instruction writes, and what that is computed of."""

from __future__ import annotations

import re
from collections.abc import Callable

from .integers import INTEGERS, OF_PAIRS
from .operands import (
    TRUE,
    WIDTHS,
    ZEROS,
    NotKnownError,
    address,
    assign,
    condition,
    is_predicate,
    next_register,
    plain,
    registers_in,
    word,
)
from .program import Access, Step
from .text import Code, Instruction

JUMPS, ENDS = ("BRA", "BRX", "BRXU", "RET", "CALL", "JMP"), ("EXIT",)
STACK = "stack"
"""What stands for the stack among the registers."""
_COLLECTIVE = {"HGMMA", "IGMMA", "QGMMA", "BGMMA", "HMMA", "IMMA", "QMMA", "DMMA", "LDSM"}
"""What makes data of what other threads have, too."""
_HALVES = {"HFMA2", "MUFU"}
"""Floating-point operations of which some forms make integers, too."""
_FLOATS = _COLLECTIVE | {
    "FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "FMNMX", "HADD2", "HMUL2", "HMNMX2", "F2FP", "F2F", "DADD",
    "DMUL", "DFMA",
}  # fmt: skip
"""What makes data. No compiler makes an integer of the PTX of that: where the code does, it reads a wrong register."""
WITHOUT_RESULT = {
    "BAR", "BSSY", "BSYNC", "BREAK", "CCTL", "CGAERRBAR", "DEPBAR", "ERRBAR", "FENCE", "LDGDEPBAR", "MEMBAR", "NOP",
    "UTMACMDFLUSH", "WARPGROUP", "WARPSYNC", "YIELD", "ACQBULK", "PREEXIT", "NANOSLEEP", "UTMACCTL", "BMOV",
    "UCGABAR_ARV", "UCGABAR_WAIT", "PMTRIG", "ARRIVES", "WARPSYNC.ALL", "CCTLL", "UTMAPF", "UBLKPF", "ENDCOLLECTIVE",
}  # fmt: skip
"""What writes no register that is followed."""
STORES = {
    "STG",
    "ST",
    "STS",
    "STSM",
    "STL",
    "RED",
    "REDG",
    "UTMASTG",
    "UTMAREDG",
    "UTMALDG",
    "UBLKCP",
    "UBLKRED",
    "LDGSTS",
    "REDS",
}


_PREDICATES = {"ISETP", "UISETP", "FSETP", "HSETP2", "DSETP", "PLOP3", "UPLOP3", "PSETP", "FCHK"}
"""What writes predicates only, two of them at most."""


def destinations(item: Instruction) -> tuple[str, ...]:
    """The operands that an instruction of any kind may write, as far as its text shows: the first ones."""
    if item.name in (*WITHOUT_RESULT, *STORES, *JUMPS, *ENDS):
        return ()
    count = 0
    operands = item.operands
    while count < len(operands) and is_predicate(operands[count]) and not operands[count].startswith("!"):
        count += 1
    if item.name in _PREDICATES:
        return operands[: min(count, 2)]
    if count < len(operands) and (name := plain(operands[count])) and "P" not in name:
        count += 1
        # A carry, of which sources follow.
        while count + 1 < len(operands) and is_predicate(operands[count]) and not is_predicate(operands[count + 1]):
            count += 1
    return operands[:count]


def results(item: Instruction) -> tuple[str, ...]:
    """The registers that an instruction of any kind may write, as far as its text shows."""
    found: list[str] = []
    for text in destinations(item):
        name = plain(text)
        found.extend([name] if "P" in name else (next_register(name, each) for each in range(_width(item))))
    return tuple(each for each in found if each not in (*ZEROS, *TRUE))


def _width(item: Instruction) -> int:
    """The registers of a result."""
    words = set(item.modifiers)
    if item.name in ("SHF", "USHF"):
        return 1
    if item.name in INTEGERS and "64" in words:
        return 2
    if item.name in ("HGMMA", "IGMMA", "QGMMA", "BGMMA"):
        _, columns, _ = item.modifiers[0].split("x")
        return max(1, int(columns) // (4 if "F16" in item.modifiers[1:2] else 2))
    if item.name == "LDSM":
        return int(next((each for each in item.modifiers if each in "124"), "1"))
    if item.name in ("HMMA", "IMMA", "QMMA", "OMMA"):
        return 2 if "F16" in item.modifiers[1:2] else 4
    if item.name == "DMMA":
        return 4
    if {"64", "128", "256"} & words and item.name.startswith(
        ("LD", "ULDC", "MOV", "UMOV", "UIADD", "IADD", "ATOM", "SYNCS")
    ):
        return max(WIDTHS.get(each, 4) for each in words) // 4
    if "WIDE" in words or item.opcode.startswith(
        ("CS2R", "D", "I2F.F64", "F2F.F64", "F2I.U64", "F2I.S64", "FADD2", "FMUL2", "FFMA2")
    ):
        return 1 if "32" in words else 2
    if "U64" in words or "S64" in words or "F64" in words:
        return 2
    return 1


def steps_of(
    code: Code, accessed: Callable[[Instruction], tuple[Access, str] | None]
) -> tuple[list[Step], dict[int, int], list[Access]]:
    """The steps of a kernel, the step that begins at each address of a block, and its accesses.

    `accessed` gives what an instruction accesses, with its operands as expressions.
    """
    steps: list[Step] = []
    accesses: list[Access] = []
    leaders = {0, *code.labels.values()}
    for item in code.instructions:
        if item.name in (*JUMPS, *ENDS):
            leaders.add(item.address + 16)
    starts: dict[int, int] = {}
    for number, item in enumerate(code.instructions):
        if item.address in leaders:
            starts[item.address] = number
        steps.append(_step(item, code, accessed, accesses))
    return steps, starts, accesses


def _step(
    item: Instruction, code: Code, accessed: Callable[[Instruction], tuple[Access, str] | None], accesses: list[Access]
) -> Step:
    guard = "" if item.guard is None else condition(f"{'!' * item.negated}{item.guard}")
    guards = [] if item.guard is None or item.guard in TRUE else [item.guard]
    step = Step(guard=guard)
    if item.name in (*JUMPS, *ENDS):
        _jump(step, item, code, guards)
        return step
    try:
        found = accessed(item)
    except NotKnownError:
        found = None
    if found is not None:
        access, operands = found
        step.access, step.event = len(accesses), operands
        accesses.append(access)
    if item.name in WITHOUT_RESULT:
        return step
    try:
        step.code, step.targets = _effect(item)
    except (NotKnownError, ValueError, IndexError):
        step.code, step.targets = _data(item) if item.name in _HALVES else ((), results(item))
    step.sources = (*guards, *_sources(item))
    return step


def _sources(item: Instruction) -> tuple[str, ...]:
    """The registers that may be read; more than one for each operand that may be wide."""
    count = 4 if item.name in ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED", "HGMMA", "IGMMA", "QGMMA") else 1
    if count > 1:
        return tuple(each for part in item.operands if "[" in part for each in registers_in(part, 8))
    if item.name == "LDL":
        return (STACK, *(each for part in item.operands for each in registers_in(part)))
    wide = {"WIDE", "64", "U64", "S64", "HI"} & set(item.modifiers) or item.name in ("SYNCS",)
    return tuple(each for part in item.operands for each in registers_in(part, 2 if wide else 1))


def _jump(step: Step, item: Instruction, code: Code, guards: list[str]) -> None:
    step.sources = tuple(guards)
    if item.name == "EXIT":
        step.ends = True
        return
    if item.name in ("BRX", "BRXU", "RET"):
        register = next((each for each in item.operands[0].split() if plain(each)), "")
        number = re.search(r"(-?0x[0-9a-f]+)\s*$", item.operands[0]) if item.name != "RET" else None
        offset = int(number[1], 0) + item.address + 16 if number is not None else 0
        step.sources += (plain(register),) if register else ()
        step.jump = f"where(signed({word(register)}) + {offset})" if register else "where(U)"
        return
    target = next((match[1] for each in item.operands if (match := re.search(r"`\(([^)]+)\)", each))), "")
    extra = [each for each in item.operands if is_predicate(each)]
    if "DIV" in item.modifiers or "CONV" in item.modifiers:
        step.guard = "False"
    for each in extra:
        step.guard = f"{step.guard} & {condition(each)}" if step.guard else condition(each)
        step.sources += tuple(registers_in(each))
    step.jump = f"where({code.labels[target]})" if target in code.labels else "where(U)"


def _effect(item: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statements of an instruction, and the registers that they assign."""
    if item.name in ("LDL", "STL"):
        made = _local(item)
    elif item.name in ("LDS", "LDG", "LD"):
        made = _loaded(item)
    elif item.name == "SYNCS":
        made = [line for each in destinations(item) if is_predicate(each) for line in assign(each, "is_over()")]
        if not made:
            return (), results(item)
    elif item.name in _FLOATS:
        return _data(item)
    elif (rule := INTEGERS.get(item.name)) is not None:
        if rule not in OF_PAIRS and {"64", "U64", "S64"} & set(item.modifiers):
            return (), results(item)
        made = rule(item)
    else:
        return (), results(item)
    if item.name == "STL":
        return tuple(made), (STACK,)
    targets = tuple(
        dict.fromkeys(match[1] for line in made if (match := re.match(r"(U?[RP]\d+) = ", line)) is not None)
    )
    return (tuple(made), targets) if targets else ((), ())


def _local(item: Instruction) -> list[str]:
    """Spilled registers: the stack is memory of this thread alone."""
    size = next((WIDTHS[each] for each in item.modifiers if each in WIDTHS), 4)
    if size < 4:
        raise NotKnownError(str(item))
    place = address(item.operands[0] if item.name == "STL" else item.operands[1], 32)
    register = plain(item.operands[1] if item.name == "STL" else item.operands[0])
    words = range(size // 4)
    if item.name == "STL":
        return [f"local[{place} + {4 * each}] = {word(next_register(register, each))}" for each in words]
    made = [f"t = {place}"]
    return made + [f"{next_register(register, each)} = local.get(t + {4 * each}, U)" for each in words]


def size_of(item: Instruction) -> int:
    """The bytes of a load or a store of one thread."""
    return next((WIDTHS[each] for each in item.modifiers if each in WIDTHS), 4)


def _data(item: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the statement that draws what a floating-point unit or a tensor core makes of registers that are known."""
    registers = results(item)
    sources = [] if item.name in _COLLECTIVE else registers_in(", ".join(item.operands[len(destinations(item)) :]))
    if not registers or not (sources or item.name in _COLLECTIVE):
        return (), registers
    text = f"{item.opcode} at /*{item.address:04x}*/"
    return (f"{' = '.join(registers)} = data({', '.join([repr(text), *sources])})",), registers


def _loaded(item: Instruction) -> list[str]:
    to, *rest = item.operands
    if to in ZEROS:
        return []
    place = next(each for each in rest if "[" in each)
    space, bits = ("s", 32) if item.name == "LDS" else ("g", 64)
    size = size_of(item)
    made = [f"t = {address(place, bits)}"]
    if size >= 4:
        return made + [f"{next_register(to, each)} = ld('{space}', t + {4 * each}, 4)" for each in range(size // 4)]
    value = f"ld('{space}', t, {size})"
    if {"S8", "S16"} & set(item.modifiers):
        value = f"signed({value}, {8 * size}) & M"
    return [*made, f"{to} = {value}"]
