"""Failed assertions and checks of machine code, as errors at the kernel's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.text.diagnostics import source_line

if TYPE_CHECKING:
    from ..codegen.metadata import Site


def fault_of(sites: Sequence[Site], number: int, program: int, grid: tuple[int, int, int]) -> Fault:
    """The fault of a run whose site `number`, counted from 1, failed in a program of the grid, counted along x first.

    It is the interpreter's class: who catches the one catches the other.
    """
    x, y, _ = grid
    note = f"in program ({program % x}, {program // x % y}, {program // (x * y)})"
    if not 1 <= number <= len(sites):
        return Fault(f"the kernel ended with the unknown status {number}", notes=(note,))
    site = sites[number - 1]
    place = SourceLocation(site.file, site.line, site.column) if site.file else None
    return Fault(site.message, place, source_line=source_line(place), notes=(note,))
