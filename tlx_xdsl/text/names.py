"""Names in text: MLIR, PTX and their tools know the letters of ASCII only."""

from __future__ import annotations

import re

_VALID_NAME = re.compile(r"[\w$.-]+", re.ASCII)
_VALID_BYTE = re.compile(rb"[\w$.-]")


def ascii_name(name: str) -> str:
    """`name` as MLIR prints the name of a value: a blank is `_`, any other byte that it can't hold two hex digits."""
    if _VALID_NAME.fullmatch(name):
        return name
    return "".join(
        chr(byte) if _VALID_BYTE.fullmatch(bytes([byte])) else "_" if byte == 0x20 else f"{byte:02X}"
        for byte in name.encode()
    )
