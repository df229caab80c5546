"""Machine code as steps: what each instruction computes of integers (names as `nvdisasm` prints them).

The manual of the CUDA binary utilities names the instructions of each architecture and leaves out what they compute;
that is from their names, from what ptxas makes of small PTX, and from comparing whole kernels with their PTX.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from .program import Access, Step
from .text import Code, Instruction
from .values import M

_REGISTER = re.compile(r"(?P<sign>[-~!]?)(?P<bars>\|?)(?P<name>U?[RP](?:\d+|Z|T))(?P<wide>\.64)?\|?$")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
_CONSTANT = re.compile(r"(?P<sign>[-~]?)\|?c\[0x(?P<bank>[0-9a-f]+)\]\[(?P<at>[^\]]+)\]\|?$")
_TERM = re.compile(r"(?P<sign>[-+]?)(?P<what>[^-+]+)")
_COMPARISONS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
JUMPS, ENDS = ("BRA", "BRX", "BRXU", "RET", "CALL", "JMP"), ("EXIT",)
STACK = "stack"
"""What stands for the stack among the registers."""
SPECIALS = {
    "SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_LANEID", "SR_CgaCtaId",
    "SR_VIRTUALSMID", "SR_SWINHI", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK",
}  # fmt: skip
"""The special registers that a thread of a launch has here."""
ZEROS = ("RZ", "URZ", "SRZ")
TRUE = ("PT", "UPT")


class NotKnownError(Exception):
    """An operand or a form that the evaluation does not know: the results of the instruction are unknown."""


def next_register(name: str, count: int = 1) -> str:
    """The register after another: `R5` after `R4`."""
    if name in ZEROS:
        return name
    kind, number = re.match(r"(U?[RP])(\d+)", name).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return f"{kind}{int(number) + count}"


def plain(text: str) -> str:
    """The name of a register without what is done to it: `R4` for `-R4.64`; empty for another operand."""
    match = _REGISTER.match(text)
    return match["name"] if match is not None else ""


def is_predicate(text: str) -> bool:
    """Say whether an operand is a predicate: `!UP0`."""
    return bool(re.match(r"!?U?P(\d+|T)$", text))


def registers_in(text: str, count: int = 1) -> list[str]:
    """The registers that an operand reads, of which each is the first of `count`, or of 2 with `.64`."""
    found: list[str] = []
    for name, wide in re.findall(r"\b(U?[RP]\d+)(\.64)?", text):
        found.extend(next_register(name, each) for each in range(max(count, 2 if wide else 1)))
    return found


def condition(text: str) -> str:
    """A predicate as an expression."""
    name = text.removeprefix("!")
    if name in TRUE:
        return "False" if text.startswith("!") else "True"
    return f"({name} ^ True)" if text.startswith("!") else name


def word(text: str, *, carries: bool = False) -> str:
    """An operand of 32 bits as an expression; with `carries` what is subtracted is not cut off at 32 bits."""
    if _NUMBER.match(text):
        return str(int(text, 0) & M)
    if (match := _REGISTER.match(text)) is not None and "P" not in match["name"]:
        value = "0" if match["name"] in ZEROS else match["name"]
    elif (match := _CONSTANT.match(text)) is not None:
        value = _constant(match["bank"], match["at"])
    else:
        raise NotKnownError(text)
    if match["sign"] == "-":
        return f"(({value} ^ M) + 1)" if carries else ("0" if value == "0" else f"(-{value} & M)")
    if match["sign"] == "~":
        return f"({value} ^ M)"
    return value


def _constant(bank: str, at: str, offset: int = 0) -> str:
    if _NUMBER.match(at):
        if bank == "0":
            return f"C[{int(at, 0) + offset >> 2}]"
        return f"table({int(at, 0) + offset})"
    where = address(f"[{at}]", 32)
    return f"{'constant' if bank == '0' else 'table'}({where} + {offset})"


def double(text: str, *, carries: bool = False) -> str:
    """An operand of 64 bits as an expression: a pair of registers."""
    if _NUMBER.match(text):
        return str(int(text, 0) & ((1 << 64) - 1))
    if (match := _REGISTER.match(text)) is not None and "P" not in match["name"]:
        name = match["name"]
        value = "0" if name in ZEROS else f"({name} | {next_register(name)} << 32)"
    elif (match := _CONSTANT.match(text)) is not None:
        value = f"({_constant(match['bank'], match['at'])} | {_constant(match['bank'], match['at'], 4)} << 32)"
    else:
        raise NotKnownError(text)
    if match["sign"] == "-":
        return f"(({value} ^ M64) + 1)" if carries else f"(-{value} & M64)"
    return f"({value} ^ M64)" if match["sign"] == "~" else value


def address(text: str, bits: int) -> str:
    """The address in brackets as an expression: `[R2.64+UR4+0x40]`, and with a descriptor before it."""
    inside = re.search(r"\[([^\[\]]*)\]$", text)
    if inside is None:
        raise NotKnownError(text)
    terms: list[str] = []
    for match in _TERM.finditer(inside[1]):
        what, minus = match["what"].strip(), match["sign"] == "-"
        name, _, form = what.partition(".")
        if _NUMBER.match(what):
            value = str(int(what, 0))
        elif form == "64":
            value = double(name)
        elif form in ("", "U32") or re.match(r"X\d+$", form):
            value = word(name) if not form.startswith("X") else f"{word(name)} * {form[1:]}"
        else:
            raise NotKnownError(text)
        if value != "0":
            terms.append(f"-{value}" if minus else value)
    whole = " + ".join(terms) or "0"
    return f"(({whole}) & {'M' if bits == 32 else 'M64'})"


def _signed(value: str, bits: int = 32) -> str:
    """The expression of an unsigned value read as a signed one."""
    if value.isdigit():
        return str(int(value) - (int(value) >> (bits - 1) << bits))
    return f"(({value} ^ {1 << (bits - 1)}) - {1 << (bits - 1)})"


# Integer operations ----------------------------------------------------------------------------------------------


def _split(operands: tuple[str, ...]) -> tuple[str, list[str], list[str], list[str]]:
    """The destination, the predicates after it, the sources, and the predicates after those."""
    rest = list(operands[1:])
    outs: list[str] = []
    while rest and is_predicate(rest[0]):
        outs.append(rest.pop(0))
    ins: list[str] = []
    while rest and is_predicate(rest[-1]):
        ins.insert(0, rest.pop())
    return operands[0], outs, rest, ins


def _assign(name: str, value: str) -> list[str]:
    return [] if name in (*ZEROS, *TRUE) else [f"{name} = {value}"]


def _pair(name: str, value: str) -> list[str]:
    return ["t = " + value, *_assign(name, "t & M"), *_assign(next_register(name), "t >> 32 & M")]


def _sum(item: Instruction) -> list[str]:
    """Add up to three words, with carries: IADD3, UIADD3, VIADD."""
    to, outs, sources, ins = _split(item.operands)
    wide = "64" in item.modifiers
    read = double if wide else word
    bits, mask = (64, "M64") if wide else (32, "M")
    terms = [read(each, carries=bool(outs)) for each in sources]
    if "X" in item.modifiers:
        terms += [condition(each) for each in ins]
    whole = " + ".join(each for each in terms if each not in ("0", "False")) or "0"
    if not any(each not in TRUE for each in outs):
        return _pair(to, f"({whole}) & M64") if wide else _assign(to, f"({whole}) & {mask}")
    made = [f"s = {whole}", *(_pair(to, "s & M64") if wide else _assign(to, "s & M"))]
    for number, each in enumerate(outs):
        made += _assign(each, f"s >= {number + 1} << {bits}")
    return made


def _product(item: Instruction) -> list[str]:
    """Multiply and add: IMAD, UIMAD in all forms."""
    to, outs, sources, ins = _split(item.operands)
    words = item.modifiers
    one, other, added = (*sources, "RZ", "RZ")[:3]
    is_signed = "U32" not in words
    if "WIDE" in words or "HI" in words:
        left, right = ((_signed(word(each)) if is_signed else word(each)) for each in (one, other))
        whole = f"{left} * {right} + {double(added, carries=bool(outs))}"
        if "X" in words:
            whole += "".join(f" + {condition(each)}" for each in ins)
        if outs:
            whole = f"({left} * {right} & M64) + {double(added)}" + "".join(
                f" + {condition(each)}" for each in ins if "X" in words
            )
            result = _assign(to, "s >> 32 & M") if "HI" in words else _pair(to, "s & M64")
            return [f"s = {whole}", *result, *_assign(outs[0], "s >= 1 << 64")]
        if "HI" in words:
            return _assign(to, f"({whole}) >> 32 & M")
        return _pair(to, f"({whole}) & M64")
    product = "" if "0" in (word(one), word(other)) else f"{word(one)} * {word(other)}"
    terms = [each for each in (product, word(added, carries=bool(outs))) if each not in ("", "0")]
    if "X" in words:
        terms += [condition(each) for each in ins]
    whole = " + ".join(terms) or "0"
    if outs:
        cut = f"({product} & M) + " if product else ""
        rest = " + ".join(terms[1:] if product else terms) or "0"
        return [f"s = {cut}{rest}", *_assign(to, "s & M"), *_assign(outs[0], "s >= 1 << 32")]
    return _assign(to, f"({whole}) & M")


_SIGNS: dict[str, Callable[[int, int], int]] = {"&": int.__and__, "|": int.__or__, "^": int.__xor__}
_TABLES = 0xF0, 0xCC, 0xAA
_SHORT = {
    _SIGNS[outer](_TABLES[a], _SIGNS[inner](_TABLES[b], _TABLES[c])): ((a, b, c), outer, inner)
    for a, b, c in ((0, 1, 2), (1, 0, 2), (2, 0, 1))
    for outer in _SIGNS
    for inner in _SIGNS
}
"""The truth tables of two operations on three operands."""


def logic(table: int, names: tuple[str, str, str]) -> str:
    """The expression of a truth table of three operands: bit 4a + 2b + c says what a, b, c give."""
    terms: list[str] = []
    zeros = [each == "0" for each in names]
    live = [each for each in range(3) if not zeros[each]]
    wanted = {tuple(bits >> (2 - each) & 1 for each in live): table >> bits & 1 for bits in range(8)
              if not any(zeros[each] and bits >> (2 - each) & 1 for each in range(3))}  # fmt: skip
    if not any(wanted.values()):
        return "0"
    if all(wanted.values()):
        return "M"
    if len(live) == 1:
        return names[live[0]] if wanted[1,] else f"({names[live[0]]} ^ M)"
    simple = {(0, 0, 0, 1): "&", (0, 1, 1, 1): "|", (0, 1, 1, 0): "^"}
    if len(live) == 2:
        row = wanted[0, 0], wanted[0, 1], wanted[1, 0], wanted[1, 1]
        if row in simple:
            return f"({names[live[0]]} {simple[row]} {names[live[1]]})"
    if len(live) == 3 and (known := _SHORT.get(table)) is not None:
        (first, second, last), outer, inner = known
        return f"({names[first]} {outer} ({names[second]} {inner} {names[last]}))"
    for key, holds in wanted.items():
        if holds:
            parts = [names[each] if bit else f"({names[each]} ^ M)" for each, bit in zip(live, key, strict=True)]
            terms.append(" & ".join(parts))
    return f"({' | '.join(terms)})"


def _logic(item: Instruction) -> list[str]:
    operands = list(item.operands)
    out = operands.pop(0) if is_predicate(operands[0]) else "PT"
    to, one, other, third, table, *rest = operands
    value = logic(int(table, 0), (word(one), word(other), word(third)))
    if out in TRUE:
        return _assign(to, value)
    if rest and rest[0] not in ("!PT", "!UPT"):
        raise NotKnownError(str(item))
    return [f"t = {value}", *_assign(to, "t"), *_assign(out, "t != 0")]


def _predicates(item: Instruction) -> list[str]:
    """Two truth tables of three predicates."""
    first, second, *sources = item.operands
    *names, table, other = sources
    if len(names) != 3:
        raise NotKnownError(str(item))
    made: list[str] = []
    conditions = tuple(condition(each) for each in names)
    for number, (to, bits) in enumerate(((first, int(table, 0)), (second, int(other, 0)))):
        rows = [f"{row:03b}" for row in range(8) if bits >> row & 1]
        terms = [
            " & ".join(each if bit == "1" else f"({each} ^ True)" for each, bit in zip(conditions, row, strict=True))
            for row in rows
        ]
        if to not in TRUE:
            made.append(f"t{number} = {' | '.join(f'({each})' for each in terms) or 'False'}")
    return made + [f"{to} = t{number}" for number, to in enumerate((first, second)) if to not in TRUE]


def _compared(item: Instruction) -> list[str]:
    first, second, one, other, *rest = item.operands
    words = item.modifiers
    wide = "U64" in words or "S64" in words
    left, right = (double(one), double(other)) if wide else (word(one), word(other))
    sign = next((_COMPARISONS[each] for each in words if each in _COMPARISONS), "")
    join = next((each for each in words if each in ("AND", "OR", "XOR")), "AND")
    if not sign:
        raise NotKnownError(str(item))
    if not ({"U32", "U64"} & set(words)) and sign not in ("==", "!="):
        left, right = (_signed(each, 64 if wide else 32) for each in (left, right))
    mixed = {"AND": "&", "OR": "|", "XOR": "^"}[join]
    if "EX" in words:
        before = condition(rest[1])
        if sign == "!=":
            value = f"(({left} != {right}) | {before})"
        elif sign == "==":
            value = f"(({left} == {right}) & {before})"
        else:
            value = f"(({left} {sign[0]} {right}) | (({left} == {right}) & {before}))"
    else:
        value = f"({left} {sign} {right})"
    made = [f"t = {value}", f"q = {condition(rest[0]) if rest else 'True'}"]
    return made + _assign(first, f"t {mixed} q") + _assign(second, f"(t ^ True) {mixed} q")


def _shift(item: Instruction) -> list[str]:
    to, low, amount, *rest = item.operands
    words = item.modifiers
    high = rest[0] if rest else "RZ"
    to_left, takes_high = words[0] == "L", "HI" in words
    wide, is_signed = any(each in words for each in ("U64", "S64")), any(each in words for each in ("S32", "S64"))
    wraps = "W" in words
    if _NUMBER.match(amount) and not wraps:
        count = int(amount, 0)
        if to_left and not takes_high and count < 32:
            return _assign(to, f"{word(low)} << {count} & M")
        if not to_left and takes_high and count < 32:
            return _assign(to, f"{_signed(word(high))} >> {count} & M" if is_signed else f"{word(high)} >> {count}")
    where = (
        f"to_left={to_left}, wraps={wraps}, takes_high={takes_high}, is_signed={is_signed}, most={64 if wide else 32}"
    )
    return _assign(to, f"funnel({word(low)}, {word(high)}, {word(amount)}, {where})")


def _scaled(item: Instruction) -> list[str]:
    """Shift and add: LEA, ULEA and their upper halves."""
    to, outs, sources, ins = _split(item.operands)
    words = item.modifiers
    carry = "".join(f" + {condition(each)}" for each in ins) if "X" in words else ""
    if "HI" not in words:
        one, other, amount = sources
        value = f"({word(one)} << {_count(amount)} & M) + {word(other, carries=bool(outs))}{carry}"
        if not outs:
            return _assign(to, f"({value}) & M")
        return [f"s = {value}", *_assign(to, "s & M"), *_assign(outs[0], "s >= 1 << 32")]
    if "SX32" in words:
        one, other, amount = sources
        moved = f"({_signed(word(one))} << {_count(amount)} >> 32 & M)"
    else:
        one, other, top, amount = sources
        moved = f"(({word(one)} | {word(top)} << 32) << {_count(amount)} >> 32 & M)"
    value = f"{moved} + {word(other, carries=bool(outs))}{carry}"
    if not outs:
        return _assign(to, f"({value}) & M")
    return [f"s = {value}", *_assign(to, "s & M"), *_assign(outs[0], "s >= 1 << 32")]


def _count(text: str) -> str:
    if not _NUMBER.match(text):
        raise NotKnownError(text)
    return str(int(text, 0) & 31)


def _chosen(item: Instruction) -> list[str]:
    to, one, other, which = item.operands
    if "64" in item.modifiers:
        return _pair(to, f"select({condition(which)}, {double(one)}, {double(other)})")
    return _assign(to, f"select({condition(which)}, {_bits(one)}, {_bits(other)})")


def _bits(text: str) -> str:
    """A word, or a float of 32 bits in bits."""
    try:
        return word(text)
    except NotKnownError:
        pass
    try:
        return str(int.from_bytes(struct.pack("<f", float(text.replace("QNAN", "nan"))), "little"))
    except (ValueError, OverflowError):
        raise NotKnownError(text) from None


def _half(text: str) -> int:
    try:
        return int.from_bytes(struct.pack("<e", float(text.replace("QNAN", "nan"))), "little")
    except (ValueError, OverflowError):
        raise NotKnownError(text) from None


def _two_halves(item: Instruction) -> list[str]:
    """A constant that comes by the way of the multiplier of halves: HFMA2.MMA R6, -RZ, RZ, 0, 2."""
    to, one, other, *rest = item.operands
    if plain(one) != "RZ" or plain(other) != "RZ" or len(rest) != 2 or "BF16" in item.opcode:
        raise NotKnownError(str(item))
    return _assign(to, str(_half(rest[0]) << 16 | _half(rest[1])))


def _extreme(item: Instruction) -> list[str]:
    """The smaller or the larger: IMNMX, VIMNMX, after a sum VIADDMNMX."""
    operands = list(item.operands)
    to, which = operands[0], operands[-1]
    if which not in (*TRUE, "!PT", "!UPT") or not is_predicate(which):
        raise NotKnownError(str(item))
    sources = [word(each) for each in operands[1:-1] if not is_predicate(each)]
    if item.name == "VIADDMNMX":
        sources = [f"({sources[0]} + {sources[1]} & M)", *sources[2:]]
    if len(sources) != 2:
        raise NotKnownError(str(item))
    if not {"U32", "U16x2", "S16x2"} & set(item.modifiers):
        sources = [_signed(each) for each in sources]
    value = f"{'most' if which.startswith('!') else 'least'}({sources[0]}, {sources[1]})"
    if "RELU" in item.modifiers:
        value = f"most({value}, 0)"
    if "U16x2" in item.modifiers or "S16x2" in item.modifiers:
        raise NotKnownError(str(item))
    return _assign(to, f"{value} & M")


def _moved(item: Instruction) -> list[str]:
    if "64" in item.modifiers:
        return _pair(item.operands[0], double(item.operands[1]))
    return _assign(item.operands[0], word(item.operands[1]))


def _extended(item: Instruction) -> list[str]:
    to, value, length = item.operands
    if "W" in item.modifiers:
        raise NotKnownError(str(item))
    return _assign(to, f"extended({word(value)}, {word(length)}, is_signed={'U32' not in item.modifiers})")


def _constants(item: Instruction) -> list[str]:
    """Read constants: LDC, ULDC, LDCU."""
    to, source = item.operands[0], item.operands[-1]
    match = _CONSTANT.match(source)
    if match is None:
        raise NotKnownError(source)
    size = next((_WIDTHS[each] for each in item.modifiers if each in _WIDTHS), 4)
    if size < 4:
        at = match["at"]
        if not _NUMBER.match(at):
            raise NotKnownError(source)
        value = f"C[{int(at, 0) >> 2}] >> {8 * (int(at, 0) & 3)} & {(1 << 8 * size) - 1}"
        if any(each.startswith("S") for each in item.modifiers if each in _WIDTHS):
            value = f"signed({value}, {8 * size}) & M"
        return _assign(to, value)
    # The address may be in a register that is written.
    made = [f"t{each} = {_constant(match['bank'], match['at'], 4 * each)}" for each in range(size // 4)]
    return made + [line for each in range(size // 4) for line in _assign(next_register(to, each), f"t{each}")]


def _special(item: Instruction) -> list[str]:
    to, source = item.operands
    if source in ZEROS:
        return _pair(to, "0") if item.name == "CS2R" and "32" not in item.modifiers else _assign(to, "0")
    if source not in SPECIALS:
        raise NotKnownError(source)
    return _assign(to, f"special('{source}')")


def _voted(item: Instruction) -> list[str]:
    """A vote of a warp in which only this thread is active: VOTE, VOTEU."""
    operands = list(item.operands)
    condition_of = condition(operands.pop())
    made: list[str] = [f"q = {condition_of}"]
    for to in operands:
        if is_predicate(to):
            made += _assign(to, "q")
        else:
            made += _assign(to, "select(q, 1 << special('SR_LANEID'), 0)")
    return made


def _elected(item: Instruction) -> list[str]:
    operands = item.operands
    return [
        line
        for to in operands[: 2 if len(operands) > 2 else 1]
        for line in _assign(to, "True" if is_predicate(to) else "special('SR_LANEID')")
    ]


def _shuffled(item: Instruction) -> list[str]:
    out, to, value = item.operands[:3]
    return [*_assign(to, word(value)), *_assign(out, "True")]


def _packed(item: Instruction) -> list[str]:
    """Predicates as bits of a register: P2R."""
    to, what, kept, mask = item.operands
    if what != "PR" or not _NUMBER.match(mask) or len(item.modifiers):
        raise NotKnownError(str(item))
    bits = int(mask, 0)
    parts = [f"select(P{each}, {1 << each}, 0)" for each in range(7) if bits >> each & 1]
    return _assign(to, " | ".join([*parts, f"{word(kept)} & {~bits & M}"]))


def _unpacked(item: Instruction) -> list[str]:
    """Bits of a register as predicates: R2P."""
    where, value, mask = item.operands
    if where != "PR" or not _NUMBER.match(mask) or len(item.modifiers):
        raise NotKnownError(str(item))
    return [f"t = {word(value)}"] + [
        f"P{each} = (t >> {each} & 1) == 1" for each in range(7) if int(mask, 0) >> each & 1
    ]


def _float_of(item: Instruction) -> list[str]:
    """The floats of integer division: I2F of a word, rounded upwards."""
    to, value = item.operands
    if set(item.modifiers) - {"RP", "U32", "S32", "U64"}:
        raise NotKnownError(str(item))
    read = double(value) if "U64" in item.modifiers else word(value)
    if "U32" not in item.modifiers and "U64" not in item.modifiers:
        read = _signed(read)
    return _assign(to, f"to_single({read}, up={'RP' in item.modifiers})")


def _integer_of(item: Instruction) -> list[str]:
    to, value = item.operands
    words = set(item.modifiers)
    if not words <= {"FTZ", "U32", "TRUNC", "NTZ", "U64"} or "TRUNC" not in words:
        raise NotKnownError(str(item))
    if "U64" in words:
        return _pair(to, f"from_single({word(value)}, 64)")
    return _assign(to, f"from_single({word(value)}, 32)")


def _reciprocal(item: Instruction) -> list[str]:
    if item.opcode != "MUFU.RCP":
        raise NotKnownError(item.opcode)
    return _assign(item.operands[0], f"reciprocal({word(item.operands[1])})")


def _counted(item: Instruction) -> list[str]:
    value = word(item.operands[-1])
    match item.name.removeprefix("U"):
        case "POPC":
            value = f"ones({value})"
        case "BREV":
            value = f"reversed_bits({value})"
        case "IABS":
            value = f"abs(signed({value})) & M"
        case _:
            words = item.modifiers
            value = f"leading({value}, is_signed={'U32' not in words}, shift={'SH' in words})"
    return _assign(item.operands[0], value)


def _permuted(item: Instruction) -> list[str]:
    to, one, selector, other = item.operands
    if item.modifiers:
        raise NotKnownError(str(item))
    return _assign(to, f"permute({word(one)}, {word(other)}, {word(selector)})")


def _masked(item: Instruction) -> list[str]:
    to, at, length = item.operands
    if item.modifiers:
        raise NotKnownError(str(item))
    return _assign(to, f"left(left(1, {word(length)}, 33) - 1, {word(at)})")


def _allocated(item: Instruction) -> list[str]:
    return [line for each in item.operands if is_predicate(each) for line in _assign(each, "True")]


INTEGERS: dict[str, Callable[[Instruction], list[str]]] = {
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "IADD", "UIADD", "UVIADD"), _sum),
    **dict.fromkeys(("IMAD", "UIMAD"), _product),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), _predicates),
    **dict.fromkeys(("ISETP", "UISETP"), _compared),
    **dict.fromkeys(("SHF", "USHF"), _shift),
    **dict.fromkeys(("LEA", "ULEA"), _scaled),
    **dict.fromkeys(("SEL", "USEL", "FSEL"), _chosen),
    **dict.fromkeys(("IMNMX", "UIMNMX", "VIMNMX", "UVIMNMX", "VIADDMNMX"), _extreme),
    **dict.fromkeys(("MOV", "UMOV", "R2UR"), _moved),
    **dict.fromkeys(("SGXT", "USGXT"), _extended),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _constants),
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), _special),
    **dict.fromkeys(("VOTE", "VOTEU"), _voted),
    **dict.fromkeys(("POPC", "UPOPC", "BREV", "UBREV", "IABS", "FLO", "UFLO"), _counted),
    **dict.fromkeys(("PRMT", "UPRMT"), _permuted),
    **dict.fromkeys(("BMSK", "UBMSK"), _masked),
    "HFMA2": _two_halves,
    "ELECT": _elected,
    "SHFL": _shuffled,
    "P2R": _packed,
    "R2P": _unpacked,
    "I2F": _float_of,
    "F2I": _integer_of,
    "MUFU": _reciprocal,
    "USETMAXREG": _allocated,
}
"""What computes integers, by the first part of the operation code."""
_OF_PAIRS = (_sum, _compared, _shift, _chosen, _moved, _constants, _float_of, _integer_of)
"""Those that know words of 64 bits."""
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
        return max(_WIDTHS.get(each, 4) for each in words) // 4
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
        step.code, step.targets = (), results(item)
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
        made = [line for each in destinations(item) if is_predicate(each) for line in _assign(each, "is_over()")]
        if not made:
            return (), results(item)
    elif (rule := INTEGERS.get(item.name)) is not None:
        if rule not in _OF_PAIRS and {"64", "U64", "S64"} & set(item.modifiers):
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
    size = next((_WIDTHS[each] for each in item.modifiers if each in _WIDTHS), 4)
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
    return next((_WIDTHS[each] for each in item.modifiers if each in _WIDTHS), 4)


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
