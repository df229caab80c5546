"""Statements of Python for what integer instructions of the machine compute (names as `nvdisasm` prints them).

The manual of the CUDA binary utilities names the instructions of each architecture and leaves out what they compute;
that is from their names, from what ptxas makes of small PTX, and from comparing whole kernels with their PTX.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from .operands import (
    CONSTANT,
    NUMBER,
    TRUE,
    WIDTHS,
    ZEROS,
    NotKnownError,
    as_signed,
    assign,
    condition,
    constant,
    double,
    is_predicate,
    next_register,
    plain,
    word,
)
from .text import Instruction
from .values import M

_COMPARISONS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}
SPECIALS = {
    "SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_LANEID", "SR_CgaCtaId",
    "SR_VIRTUALSMID", "SR_SWINHI", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK",
}  # fmt: skip
"""The special registers that a thread of a launch has here."""


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


def _pair(name: str, value: str) -> list[str]:
    return ["t = " + value, *assign(name, "t & M"), *assign(next_register(name), "t >> 32 & M")]


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
        return _pair(to, f"({whole}) & M64") if wide else assign(to, f"({whole}) & {mask}")
    made = [f"s = {whole}", *(_pair(to, "s & M64") if wide else assign(to, "s & M"))]
    for number, each in enumerate(outs):
        made += assign(each, f"s >= {number + 1} << {bits}")
    return made


def _product(item: Instruction) -> list[str]:
    """Multiply and add: IMAD, UIMAD in all forms."""
    to, outs, sources, ins = _split(item.operands)
    words = item.modifiers
    one, other, added = (*sources, "RZ", "RZ")[:3]
    is_signed = "U32" not in words
    if "WIDE" in words or "HI" in words:
        left, right = ((as_signed(word(each)) if is_signed else word(each)) for each in (one, other))
        whole = f"{left} * {right} + {double(added, carries=bool(outs))}"
        if "X" in words:
            whole += "".join(f" + {condition(each)}" for each in ins)
        if outs:
            whole = f"({left} * {right} & M64) + {double(added)}" + "".join(
                f" + {condition(each)}" for each in ins if "X" in words
            )
            result = assign(to, "s >> 32 & M") if "HI" in words else _pair(to, "s & M64")
            return [f"s = {whole}", *result, *assign(outs[0], "s >= 1 << 64")]
        if "HI" in words:
            return assign(to, f"({whole}) >> 32 & M")
        return _pair(to, f"({whole}) & M64")
    product = "" if "0" in (word(one), word(other)) else f"{word(one)} * {word(other)}"
    terms = [each for each in (product, word(added, carries=bool(outs))) if each not in ("", "0")]
    if "X" in words:
        terms += [condition(each) for each in ins]
    whole = " + ".join(terms) or "0"
    if outs:
        cut = f"({product} & M) + " if product else ""
        rest = " + ".join(terms[1:] if product else terms) or "0"
        return [f"s = {cut}{rest}", *assign(to, "s & M"), *assign(outs[0], "s >= 1 << 32")]
    return assign(to, f"({whole}) & M")


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
        return assign(to, value)
    if rest and rest[0] not in ("!PT", "!UPT"):
        raise NotKnownError(str(item))
    return [f"t = {value}", *assign(to, "t"), *assign(out, "t != 0")]


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
        left, right = (as_signed(each, 64 if wide else 32) for each in (left, right))
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
    return made + assign(first, f"t {mixed} q") + assign(second, f"(t ^ True) {mixed} q")


def _shift(item: Instruction) -> list[str]:
    to, low, amount, *rest = item.operands
    words = item.modifiers
    high = rest[0] if rest else "RZ"
    to_left, takes_high = words[0] == "L", "HI" in words
    wide, is_signed = any(each in words for each in ("U64", "S64")), any(each in words for each in ("S32", "S64"))
    wraps = "W" in words
    if NUMBER.match(amount) and not wraps:
        count = int(amount, 0)
        if to_left and not takes_high and count < 32:
            return assign(to, f"{word(low)} << {count} & M")
        if not to_left and takes_high and count < 32:
            return assign(to, f"{as_signed(word(high))} >> {count} & M" if is_signed else f"{word(high)} >> {count}")
    where = (
        f"to_left={to_left}, wraps={wraps}, takes_high={takes_high}, is_signed={is_signed}, most={64 if wide else 32}"
    )
    return assign(to, f"funnel({word(low)}, {word(high)}, {word(amount)}, {where})")


def _scaled(item: Instruction) -> list[str]:
    """Shift and add: LEA, ULEA and their upper halves."""
    to, outs, sources, ins = _split(item.operands)
    words = item.modifiers
    carry = "".join(f" + {condition(each)}" for each in ins) if "X" in words else ""
    if "HI" not in words:
        one, other, amount = sources
        value = f"({word(one)} << {_count(amount)} & M) + {word(other, carries=bool(outs))}{carry}"
        if not outs:
            return assign(to, f"({value}) & M")
        return [f"s = {value}", *assign(to, "s & M"), *assign(outs[0], "s >= 1 << 32")]
    if "SX32" in words:
        one, other, amount = sources
        moved = f"({as_signed(word(one))} << {_count(amount)} >> 32 & M)"
    else:
        one, other, top, amount = sources
        moved = f"(({word(one)} | {word(top)} << 32) << {_count(amount)} >> 32 & M)"
    value = f"{moved} + {word(other, carries=bool(outs))}{carry}"
    if not outs:
        return assign(to, f"({value}) & M")
    return [f"s = {value}", *assign(to, "s & M"), *assign(outs[0], "s >= 1 << 32")]


def _count(text: str) -> str:
    if not NUMBER.match(text):
        raise NotKnownError(text)
    return str(int(text, 0) & 31)


def _chosen(item: Instruction) -> list[str]:
    to, one, other, which = item.operands
    if "64" in item.modifiers:
        return _pair(to, f"select({condition(which)}, {double(one)}, {double(other)})")
    return assign(to, f"select({condition(which)}, {_bits(one)}, {_bits(other)})")


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
    return assign(to, str(_half(rest[0]) << 16 | _half(rest[1])))


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
        sources = [as_signed(each) for each in sources]
    value = f"{'most' if which.startswith('!') else 'least'}({sources[0]}, {sources[1]})"
    if "RELU" in item.modifiers:
        value = f"most({value}, 0)"
    if "U16x2" in item.modifiers or "S16x2" in item.modifiers:
        raise NotKnownError(str(item))
    return assign(to, f"{value} & M")


def _moved(item: Instruction) -> list[str]:
    if "64" in item.modifiers:
        return _pair(item.operands[0], double(item.operands[1]))
    return assign(item.operands[0], word(item.operands[1]))


def _extended(item: Instruction) -> list[str]:
    to, value, length = item.operands
    if "W" in item.modifiers:
        raise NotKnownError(str(item))
    return assign(to, f"extended({word(value)}, {word(length)}, is_signed={'U32' not in item.modifiers})")


def _constants(item: Instruction) -> list[str]:
    """Read constants: LDC, ULDC, LDCU."""
    to, source = item.operands[0], item.operands[-1]
    match = CONSTANT.match(source)
    if match is None:
        raise NotKnownError(source)
    size = next((WIDTHS[each] for each in item.modifiers if each in WIDTHS), 4)
    if size < 4:
        at = match["at"]
        if not NUMBER.match(at):
            raise NotKnownError(source)
        value = f"C[{int(at, 0) >> 2}] >> {8 * (int(at, 0) & 3)} & {(1 << 8 * size) - 1}"
        if any(each.startswith("S") for each in item.modifiers if each in WIDTHS):
            value = f"signed({value}, {8 * size}) & M"
        return assign(to, value)
    # The address may be in a register that is written.
    made = [f"t{each} = {constant(match['bank'], match['at'], 4 * each)}" for each in range(size // 4)]
    return made + [line for each in range(size // 4) for line in assign(next_register(to, each), f"t{each}")]


def _special(item: Instruction) -> list[str]:
    to, source = item.operands
    if source in ZEROS:
        return _pair(to, "0") if item.name == "CS2R" and "32" not in item.modifiers else assign(to, "0")
    if source not in SPECIALS:
        raise NotKnownError(source)
    return assign(to, f"special('{source}')")


def _voted(item: Instruction) -> list[str]:
    """A vote of a warp in which only this thread is active: VOTE, VOTEU."""
    operands = list(item.operands)
    condition_of = condition(operands.pop())
    made: list[str] = [f"q = {condition_of}"]
    for to in operands:
        if is_predicate(to):
            made += assign(to, "q")
        else:
            made += assign(to, "select(q, 1 << special('SR_LANEID'), 0)")
    return made


def _elected(item: Instruction) -> list[str]:
    operands = item.operands
    return [
        line
        for to in operands[: 2 if len(operands) > 2 else 1]
        for line in assign(to, "True" if is_predicate(to) else "special('SR_LANEID')")
    ]


def _shuffled(item: Instruction) -> list[str]:
    out, to, value = item.operands[:3]
    return [*assign(to, word(value)), *assign(out, "True")]


def _packed(item: Instruction) -> list[str]:
    """Predicates as bits of a register: P2R."""
    to, what, kept, mask = item.operands
    if what != "PR" or not NUMBER.match(mask) or len(item.modifiers):
        raise NotKnownError(str(item))
    bits = int(mask, 0)
    parts = [f"select(P{each}, {1 << each}, 0)" for each in range(7) if bits >> each & 1]
    return assign(to, " | ".join([*parts, f"{word(kept)} & {~bits & M}"]))


def _unpacked(item: Instruction) -> list[str]:
    """Bits of a register as predicates: R2P."""
    where, value, mask = item.operands
    if where != "PR" or not NUMBER.match(mask) or len(item.modifiers):
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
        read = as_signed(read)
    return assign(to, f"to_single({read}, up={'RP' in item.modifiers})")


def _integer_of(item: Instruction) -> list[str]:
    to, value = item.operands
    words = set(item.modifiers)
    if not words <= {"FTZ", "U32", "TRUNC", "NTZ", "U64"} or "TRUNC" not in words:
        raise NotKnownError(str(item))
    if "U64" in words:
        return _pair(to, f"from_single({word(value)}, 64)")
    return assign(to, f"from_single({word(value)}, 32)")


def _reciprocal(item: Instruction) -> list[str]:
    if item.opcode != "MUFU.RCP":
        raise NotKnownError(item.opcode)
    return assign(item.operands[0], f"reciprocal({word(item.operands[1])})")


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
    return assign(item.operands[0], value)


def _permuted(item: Instruction) -> list[str]:
    to, one, selector, other = item.operands
    if item.modifiers:
        raise NotKnownError(str(item))
    return assign(to, f"permute({word(one)}, {word(other)}, {word(selector)})")


def _masked(item: Instruction) -> list[str]:
    to, at, length = item.operands
    if item.modifiers:
        raise NotKnownError(str(item))
    return assign(to, f"left(left(1, {word(length)}, 33) - 1, {word(at)})")


def _allocated(item: Instruction) -> list[str]:
    return [line for each in item.operands if is_predicate(each) for line in assign(each, "True")]


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
OF_PAIRS = (_sum, _compared, _shift, _chosen, _moved, _constants, _float_of, _integer_of)
"""Those that know words of 64 bits."""
