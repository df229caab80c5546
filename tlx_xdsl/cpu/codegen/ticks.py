"""Counters of a profile: the code reads the cycle counter after the work of each line, and adds what has passed.

The counters lie at an address of this process, which is a constant of the code: it runs here, on one thread, and no
cache holds it.
"""

from __future__ import annotations

import ctypes

from xdsl.ir import Block, Operation

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.text.diagnostics import users_place

from .builder import I64, PTR, Builder, Value, constant

MOST_LINES = 4096
"""Lines with counters of their own; all others count for the last one."""

_WORK = ("linalg.", "memref.copy", "memref.load", "memref.store", "memref.generic_atomic_rmw", "memref.atomic_rmw",
         "func.call")  # fmt: skip
"""Beginnings of the names of operations that take time; views and scalars are part of what follows them."""


class Ticks:
    """The counters of one module, by line."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_int64 * (2 * MOST_LINES + 1))()
        """The reading before, then cycles and passages of each line."""
        self.address = ctypes.addressof(self.memory)
        self.numbers: dict[tuple[str, int], int] = {}
        """The number of each line, by file and line."""
        self.fused: dict[tuple[str, int], set[int]] = {}
        """The lines whose work is in that of a line."""

    def counted(self, number: int) -> tuple[int, int]:
        """Return the cycles and the passages of a line."""
        return self.memory[2 * number + 1], self.memory[2 * number + 2]

    def number(self, op: Operation) -> int | None:
        """The number of the line of an operation that takes time; None for any other, and where no line is known."""
        place = users_place(op.location)
        if place is None or not op.name.startswith(_WORK):
            return None
        key = place.filename, place.line
        inside = {each.line for each in _places(op) if each.filename == place.filename}
        self.fused.setdefault(key, set()).update(inside)
        return self.numbers.setdefault(key, min(len(self.numbers), MOST_LINES - 1))

    def tick(self, b: Builder, number: int | None) -> None:
        """Write what adds the cycles since the reading before to a line; None only reads."""
        b.externals.declare("llvm.readcyclecounter", I64, [])
        now = b.emit("call i64 @llvm.readcyclecounter()", I64)
        before = self._at(b, 0)
        if number is not None:
            passed = b.binary("sub", now, b.load(I64, before, align=8))
            for slot, amount in ((2 * number + 1, passed), (2 * number + 2, constant(1, I64))):
                place = self._at(b, slot)
                b.store(b.binary("add", b.load(I64, place, align=8), amount), place, 8)
        b.store(now, before, 8)

    def _at(self, b: Builder, slot: int) -> Value:
        return b.emit(f"inttoptr i64 {self.address + 8 * slot} to ptr", PTR)


def is_counted(block: Block) -> bool:
    """Return whether the operations of a block are work of their own: those of a loop nest's body are its."""
    parent = block.parent_op()
    return parent is not None and parent.name.startswith(("func.", "scf."))


def _places(op: Operation) -> list[SourceLocation]:
    found = [users_place(each.location) for each in op.walk()]
    return [each for each in found if each is not None]
