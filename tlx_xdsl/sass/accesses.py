"""Accesses of the machine's instructions, in the words in which their PTX is described, too.

HGMMA.64x64x16.F32 R24, gdesc[UR8], R24       wgmma                 descriptors of A and B, whether it adds
UTMALDG.2D [UR8], [UR4]                       TMA load              shared memory, barrier, coordinates, map
LDGSTS.E.BYPASS.128 [R9], desc[UR4][R2.64]    cp.async              shared memory, global memory
SYNCS.ARRIVE.TRANS64 RZ, [UR31+0x8], R3       arrival at a barrier  shared memory
"""

from __future__ import annotations

import re

from tlx_xdsl.errors import SourceLocation

from .machine import size_of
from .operands import NotKnownError, address, condition, double, is_predicate, next_register, plain, word
from .program import Access
from .text import Instruction

WGMMA, TMA_LOAD, TMA_STORE, TMA_REDUCTION = "wgmma", "TMA load", "TMA store", "TMA reduction"
COPY, BULK_COPY = "cp.async", "bulk copy"
INIT, ARRIVAL, WAIT, INVALIDATION = (
    "start of a barrier",
    "arrival at a barrier",
    "wait at a barrier",
    "end of a barrier",
)
LOAD, STORE, ATOMIC = "load of", "store to", "atomic operation on"
MATRIX_LOAD, MATRIX_STORE = "ldmatrix", "stmatrix"
SHARED, GLOBAL, GENERIC = "shared memory", "global memory", "generic memory"
_SPACES = {
    "LDS": (LOAD, SHARED), "STS": (STORE, SHARED), "LDSM": (MATRIX_LOAD, SHARED), "STSM": (MATRIX_STORE, SHARED),
    "LDG": (LOAD, GLOBAL), "STG": (STORE, GLOBAL), "LD": (LOAD, GENERIC), "ST": (STORE, GENERIC),
    "ATOMG": (ATOMIC, GLOBAL), "ATOM": (ATOMIC, GENERIC), "RED": (ATOMIC, GLOBAL), "REDG": (ATOMIC, GLOBAL),
    "ATOMS": (ATOMIC, SHARED),
}  # fmt: skip
DESCRIPTOR = "memory descriptor"
"""What an access to global memory names beside its address: the same for all of a launch."""
LAUNCH_DESCRIPTOR = "special('descriptor')"
ADDS = "adds"
"""The operand of a product that says whether it adds to what its registers hold."""
_KINDS = {
    "UTMALDG": TMA_LOAD, "UTMASTG": TMA_STORE, "UTMAREDG": TMA_REDUCTION, "UBLKCP": BULK_COPY, "LDGSTS": COPY,
    "HGMMA": WGMMA, "IGMMA": WGMMA, "QGMMA": WGMMA, "BGMMA": WGMMA,
}  # fmt: skip
PRODUCTS = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
TMA_NAMES = {
    TMA_LOAD: ("shared memory", "barrier", "tensor map"), TMA_STORE: ("shared memory", "tensor map"),
    TMA_REDUCTION: ("shared memory", "tensor map"),
}  # fmt: skip


COPY_NAMES = (SHARED, GLOBAL, DESCRIPTOR, "condition (without it zeros are written)")
NOT_KNOWN = ("operands",)
"""The operands of what is there in a form that is not known."""


def coordinates(count: int) -> tuple[str, ...]:
    """The names of the coordinates of a tensor."""
    return tuple(f"coordinate {each}" for each in range(count))


def accessed(item: Instruction) -> tuple[Access, str] | None:
    """Return what an instruction accesses, with its operands as expressions; None where nothing of it is compared."""
    try:
        found = _accessed(item)
    except NotKnownError:
        # It keeps its place among those of its kind.
        kind = _KINDS.get(item.name)
        found = None if kind is None else (kind, NOT_KNOWN, ["U"], 0, True)
    if found is None:
        return None
    kind, names, operands, size, is_ordered = found
    location = None if item.place is None else SourceLocation(*item.place)
    return Access(kind, str(item), names, size, item.address, location, is_ordered), "".join(
        f"{each}, " for each in operands
    )


def _accessed(item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
    name = item.name
    if name in PRODUCTS:
        return _product(item)
    if name in ("UTMALDG", "UTMASTG", "UTMAREDG"):
        return _tensor_copy(item)
    if name == "UBLKCP":
        return _bulk_copy(item)
    if name == "LDGSTS":
        to, source = [each for each in item.operands if "[" in each][:2]
        reads = condition(item.operands[-1]) if is_predicate(item.operands[-1]) else "True"
        operands = [address(to, 32), address(source, 64), _descriptor(source), reads]
        return COPY, COPY_NAMES, operands, size_of(item), True
    if name == "SYNCS":
        return _barrier(item)
    if (found := _SPACES.get(name)) is None:
        return None
    place = next((each for each in item.operands if re.search(r"\[.*\]$", each)), None)
    if place is None or (name == "LDS" and place == "[RZ]"):
        return None
    kind, space = found
    bits = 32 if space == SHARED else 64
    size = size_of(item)
    if kind in (MATRIX_LOAD, MATRIX_STORE):
        size = 16
        kind = f"{kind} of"
    if space == SHARED:
        return f"{kind} {space}", ("address",), [address(place, bits)], size, kind == ATOMIC
    return f"{kind} {space}", ("address", DESCRIPTOR), [address(place, bits), _descriptor(place)], size, kind == ATOMIC


def _descriptor(text: str) -> str:
    found = re.match(r"desc\[(UR\d+)\]", text)
    return double(found[1]) if found is not None else LAUNCH_DESCRIPTOR


def descriptor_register(item: Instruction) -> str | None:
    """The uniform register that the descriptors of a product begin at."""
    found = re.search(r"gdesc\[(UR\d+)\]", ", ".join(item.operands))
    return found[1] if found is not None else None


def _product(item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool]:
    first = descriptor_register(item)
    if first is None:
        raise NotKnownError(str(item))
    in_registers = not item.operands[1].startswith("gdesc")
    one, other = double(first), double(next_register(first, 2))
    adds = next((each for each in reversed(item.operands) if is_predicate(each)), "PT")
    names = ("descriptor of B", ADDS) if in_registers else ("descriptor of A", "descriptor of B", ADDS)
    operands = [other] if in_registers else [one, other]
    return WGMMA, names, [*operands, condition(adds)], 0, True


def _uniform(text: str) -> str:
    found = plain(text.strip("[]"))
    if not found.startswith("UR") or found == "URZ":
        raise NotKnownError(text)
    return found


def _tensor_copy(item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool]:
    rank = next((int(each[0]) for each in item.modifiers if re.match(r"\dD$", each)), 0)
    kind = _KINDS[item.name]
    if {"IM2COL", "GATHER4", "SCATTER4"} & set(item.modifiers):
        raise NotKnownError(str(item))
    first, tensor = (_uniform(each) for each in item.operands[:2])
    words = [word(next_register(first, each)) for each in range(rank + 2)]
    if kind == TMA_LOAD:
        operands = [words[0], words[1], double(tensor), *words[2:]]
    else:
        operands = [words[0], double(tensor), *words[1 : rank + 1]]
    return kind, (*TMA_NAMES[kind], *coordinates(rank)), operands, 0, True


def _bulk_copy(item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool]:
    to, source = (_uniform(each) for each in item.operands[:2])
    if "S" not in item.modifiers or not item.opcode.startswith("UBLKCP.S.G"):
        raise NotKnownError(str(item))
    return BULK_COPY, (SHARED, GLOBAL), [word(to), double(source)], 0, True


def _barrier(item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
    place = next((each for each in item.operands if each.startswith("[")), None)
    if place is None:
        return None
    what, where = item.modifiers[0], address(place, 32)
    if what == "EXCH":
        return INIT, ("barrier",), [where], 0, True
    if what == "ARRIVE":
        return ARRIVAL, ("barrier",), [where], 0, True
    if what == "PHASECHK":
        return WAIT, ("barrier", "phase"), [where, f"{word(item.operands[-1])} >> 31"], 0, True
    if what == "CCTL":
        return INVALIDATION, ("barrier",), [where], 0, True
    return None
