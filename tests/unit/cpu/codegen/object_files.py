"""Reads object files of every system as far as a linker looks for what they call."""

from __future__ import annotations

import struct
from collections.abc import Iterator

MACHINES = {
    "linux-x86-64": (b"\x7fELF", 18, 62),
    "linux-arm64": (b"\x7fELF", 18, 183),
    "macos-x86-64": (b"\xcf\xfa\xed\xfe", 4, 0x01000007),
    "macos-arm64": (b"\xcf\xfa\xed\xfe", 4, 0x0100000C),
    "windows-x86-64": (b"\x64\x86", 0, 0x8664),
    "windows-arm64": (b"\x64\xaa", 0, 0xAA64),
}
"""Beginning of a file, and the place and the number of its machine: elf.h, mach/machine.h, and the page "PE Format"."""


def is_for(code: bytes, machine: str) -> bool:
    """Return whether an object file is for a system and an architecture of `MACHINES`."""
    magic, at, number = MACHINES[machine]
    return code.startswith(magic) and code[at : at + 4].startswith(number.to_bytes(4, "little").rstrip(b"\0"))


def undefined(code: bytes) -> set[str]:
    """Return the symbols that a 64-bit ELF, Mach-O or COFF object refers to and does not define."""
    found = _elf(code) if code.startswith(b"\x7fELF") else _mach(code) if code[:1] == b"\xcf" else _coff(code)
    return {name for name in found if name}


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _elf(code: bytes) -> Iterator[str]:
    (headers,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, headers + each * size) for each in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind == 2:  # SHT_SYMTAB
            for at in range(start, start + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0:
                    yield _text(code, sections[link][4] + name)


def _mach(code: bytes) -> Iterator[str]:
    (count,) = struct.unpack_from("<I", code, 16)
    command = 32
    for _ in range(count):
        kind, size, *table = struct.unpack_from("<6I", code, command)
        if kind == 2:  # LC_SYMTAB
            symbols, number, names = table[:3]
            for at in range(symbols, symbols + 16 * number, 16):
                name, type_ = struct.unpack_from("<IB", code, at)
                if type_ == 1:  # N_UNDF | N_EXT
                    yield _text(code, names + name)
        command += size


def _coff(code: bytes) -> Iterator[str]:
    symbols, count = struct.unpack_from("<II", code, 8)
    at, end = symbols, symbols + 18 * count
    while at < end:
        zero, place = struct.unpack_from("<II", code, at)
        value, section, _, storage, more = struct.unpack_from("<IhHBB", code, at + 8)
        if section == 0 and value == 0 and storage == 2:  # IMAGE_SYM_CLASS_EXTERNAL
            yield _text(code, end + place) if zero == 0 else code[at : at + 8].rstrip(b"\0").decode()
        at += 18 * (1 + more)
