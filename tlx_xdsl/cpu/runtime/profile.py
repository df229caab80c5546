"""Profiles of machine code by line: the cycles of each line of a kernel, counted by the code itself.

The kernel is compiled once more, with a reading of the CPU's cycle counter after the work of each line
(`codegen.ticks`), and runs on this thread alone. Work that was fused from several lines counts for the line that it
gives the result of.
"""

from __future__ import annotations

import ctypes
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tlx_xdsl.errors import InputError, SourceLocation, shown_path
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.text.diagnostics import source_line

from .build import CpuSpecialization, bufferized_module, load_code
from .program import Program

if TYPE_CHECKING:
    from ..codegen.ticks import Ticks


@dataclass(frozen=True)
class ProfiledLine:
    """A line of a kernel, and what it takes."""

    file: str
    line: int
    ms: float
    share: float
    """Of the time of all lines, from 0 to 1."""
    passages: int
    """Times that its work was done, in all programs."""
    fused: tuple[int, ...]
    """Other lines whose work is part of it."""

    @property
    def text(self) -> str:
        """Return the line of the source."""
        return (source_line(SourceLocation(self.file, self.line, 1)) or "").strip()


@dataclass(frozen=True)
class LineProfile:
    """The time of a launch by lines, as text (`str`) and as a picture (`svg`)."""

    kernel: str
    programs: int
    ms: float
    """Time of the launch on one thread, its counting included."""
    lines: tuple[ProfiledLine, ...]
    """The lines with work, those that take most first."""

    def __str__(self) -> str:
        """Return a table, the lines in the order of their time."""
        programs = f"{self.programs:,} program{'' if self.programs == 1 else 's'}"
        said = f"{self.kernel}: {programs} on one thread, {self.ms:.3f} ms"
        rows = [f"{'share':>6} {'ms':>10} {'passages':>10}  line"]
        for each in self.lines:
            place = f"{shown_path(each.file)}:{each.line}: {each.text}"
            fused = f" (with {_lines(each.fused)})" if each.fused else ""
            rows.append(f"{each.share:6.1%} {each.ms:10.3f} {each.passages:10,}  {place}{fused}")
        return "\n".join([said, *rows])

    def svg(self) -> str:
        """Return a picture: a bar for each line, in the order of the source."""
        from tlx_xdsl.runtime.show.bars_svg import bars_as_svg

        in_order = sorted(self.lines, key=lambda each: (each.file, each.line))
        bars = [(f"{each.line}: {each.text}", each.ms, f"({each.share:.1%})") for each in in_order]
        title = f"{self.kernel}, {self.programs:,} programs on one thread, {self.ms:.3f} ms"
        return bars_as_svg(title, "ms", bars, marked=max)

    def write_svg(self, path: str | Path) -> None:
        """Write the picture to a file. Raises OSError where that can't be written."""
        Path(path).write_text(self.svg(), encoding="utf-8")


def _lines(numbers: tuple[int, ...]) -> str:
    return f"line{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def load_profiled(source: KernelSource, wanted: CpuSpecialization) -> tuple[Program, Ticks]:
    """Compile a kernel with counters, which the cache on disk takes no part in.

    Raises CompilationError as a launch does, and InputError on a CPU without a cycle counter for programs.
    """
    from ..codegen.host import host
    from ..codegen.llvm import optimized
    from ..codegen.module import llvm_module
    from ..codegen.ticks import Ticks

    if not host().triple.startswith(("x86_64", "amd64")):
        raise InputError(f"profiles by line need the cycle counter of x86-64, this CPU is {host().triple}")
    ticks = Ticks()
    text, metadata = llvm_module(bufferized_module(source, wanted), host(), checks=wanted.checks, ticks=ticks)
    program = load_code(optimized(text, wanted.opt_level).object_code(), metadata)
    program.runs_alone = True
    return program, ticks


ROUNDS = 5
"""Runs of a launch, of which the shortest counts: in the first ones caches are cold, and memory is new."""


def profile(program: Program, ticks: Ticks, packed: bytes, grid: tuple[int, int, int]) -> LineProfile:
    """Run a launch of a program with counters several times, and read those of the shortest.

    Raises Fault where the program fails.
    """
    ms, counted = math.inf, dict[tuple[str, int], tuple[int, int]]()
    for _ in range(ROUNDS):
        ctypes.memset(ticks.address, 0, ctypes.sizeof(ticks.memory))
        began = time.perf_counter()
        program.run(packed, grid)
        taken = (time.perf_counter() - began) * 1e3
        if taken < ms:
            ms = taken
            counted = {place: ticks.counted(number) for place, number in ticks.numbers.items()}
    total = sum(cycles for cycles, _ in counted.values()) or 1
    lines: list[ProfiledLine] = []
    for (file, line), (cycles, passages) in counted.items():
        fused = tuple(sorted(ticks.fused.get((file, line), set()) - {line}))
        if passages:
            lines.append(ProfiledLine(file, line, ms * cycles / total, cycles / total, passages, fused))
    lines.sort(key=lambda each: -each.share)
    x, y, z = grid
    return LineProfile(program.metadata.name, x * y * z, ms, tuple(lines))
