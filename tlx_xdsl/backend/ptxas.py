"""Reading what ptxas prints: resource use under `-v`, warnings, and errors with their place in the kernel.

The tool is called `ptxas` or `ptxas-blackwell`, whichever one Triton picked, and says so at the start of a
line.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from tlx_xdsl.errors import SourceLocation

from .result import BackendWarning, KernelResources

_TOOL = r"ptxas(?:-\w+)?"
_FRAME = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<store>\d+) bytes spill stores, (?P<load>\d+) bytes spill loads"
)
_REGISTERS = re.compile(r"\bUsed (\d+) registers")
_BARRIERS = re.compile(r"\bused (\d+) barriers")
_SHARED = re.compile(r"\b(\d+) bytes smem")
_CONSTANT = re.compile(r"\b(\d+) bytes cmem\[\d+\]")
_CODED_INFO = re.compile(rf"^{_TOOL} info\s*: \((?P<code>C\d+)\) (?P<text>.*)$")
_WARNING = re.compile(rf"^{_TOOL}(?: [^;]*?(?:, line (?P<line>\d+))?;)? warning\s*: (?P<text>.*)$")
_NOTED_ONLY = "Too many maxnreg specified"
_ERROR = re.compile(rf"^{_TOOL} .*, line (?P<line>\d+); error\s*: (?P<text>.*)$")
_FATAL = re.compile(rf"^{_TOOL} (?:.*; )?(?:fatal|error)\s*: (?P<text>.*)$")
_FILE = re.compile(r'^\s*\.file\s+(?P<number>\d+)\s+"(?P<first>[^"]*)"(?:\s+"(?P<second>[^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+(?P<column>\d+)")
_FUNCTION = (".visible", ".func", ".entry")
_WGMMA = re.compile(r"wgmma\.mma_async")
_OF_REGISTERS = re.compile(r"wgmma\.mma_async[^{]*\{[^}]*\}\s*,\s*\{")
_ABOUT_WGMMA = re.compile(r"wgmma|GMMA|warpgroup")
_AROUND = re.compile(r"\baround line (?P<line>\d+)")


def parse_resources(log: str) -> KernelResources:
    """Return the resource use in a `-v` log; spills are summed over the kernel and what it calls."""
    frames = list(_FRAME.finditer(log))
    return KernelResources(
        registers=_most(_REGISTERS, log),
        spill_store_bytes=sum(int(m["store"]) for m in frames),
        spill_load_bytes=sum(int(m["load"]) for m in frames),
        stack_bytes=max((int(m["stack"]) for m in frames), default=0),
        static_shared_bytes=_most(_SHARED, log),
        constant_bytes=sum(map(int, _CONSTANT.findall(log))),
        barriers=_most(_BARRIERS, log),
    )


def _most(pattern: re.Pattern[str], log: str) -> int:
    return max(map(int, pattern.findall(log)), default=0)


def parse_warnings(log: str, ptx: str) -> tuple[BackendWarning, ...]:
    """Return ptxas's warnings, each once, without the tool's name and at the places that they concern.

    Those with a code, such as `C7510: Potential Performance Loss: ...`, are printed as `info` by ptxas
    although they may cost half of the speed (`wgmma` instructions that were serialised). Some name a line of the
    PTX in their text; those about `wgmma` that don't are placed at all such instructions of the kernel.
    """
    found: list[BackendWarning] = []
    for line in log.splitlines():
        if match := _CODED_INFO.match(line):
            about = _AROUND.search(match["text"])
            number = about["line"] if about else None
            found.append(_warning(f"{match['code']}: {match['text'].strip()}", number, ptx))
        elif (match := _WARNING.match(line)) and not match["text"].startswith(_NOTED_ONLY):
            found.append(_warning(_code_first(match["text"].strip()), match["line"], ptx))
    return tuple(dict.fromkeys(found))


def _warning(text: str, number: str | None, ptx: str) -> BackendWarning:
    place = source_of_line(ptx, int(number)) if number else None
    if place is not None or not _ABOUT_WGMMA.search(text):
        return BackendWarning(text, place)
    places = sources_of_instruction(ptx, _WGMMA)
    return BackendWarning(
        text, next(iter(places), None), notes=tuple(f"{other}: another wgmma of this kernel" for other in places[1:])
    )


def _code_first(text: str) -> str:
    return re.sub(r"^\((C\d+)\) ", r"\1: ", text)


def parse_error(log: str, ptx: str) -> tuple[str, SourceLocation | None] | None:
    """Return ptxas's first error and the place in the kernel's source that the failing PTX line came from."""
    for line in log.splitlines():
        if match := _ERROR.match(line):
            return match["text"].strip(), source_of_line(ptx, int(match["line"]))
    for line in log.splitlines():
        if match := _FATAL.match(line):
            return match["text"].strip(), None
    return None


def source_of_line(ptx: str, number: int) -> SourceLocation | None:
    """Return the source location in force at line `number` (from 1) of a PTX text, by its `.loc` lines."""
    lines = ptx.splitlines()
    for line in reversed(lines[:number]):
        # A location does not reach beyond the function that it stands in.
        if line.startswith(_FUNCTION):
            return None
        if match := _LOC.match(line):
            return _place(match, _files(lines))
    return None


def products_of_registers(ptx: str) -> list[SourceLocation | None]:
    """Return the places of wgmma whose operand A is in registers, one for each line; None where no place is known."""
    if _OF_REGISTERS.search(ptx) is None:
        return []
    lines = {(place.filename, place.line): place for place in reversed(sources_of_instruction(ptx, _OF_REGISTERS))}
    return [*reversed(lines.values())] or [None]


def sources_of_instruction(ptx: str, pattern: re.Pattern[str]) -> list[SourceLocation]:
    """Return the distinct source locations of an instruction in a PTX text, in the order of the source."""
    lines = ptx.splitlines()
    files = _files(lines)
    found: set[SourceLocation] = set()
    current = None
    for line in lines:
        if line.startswith(_FUNCTION):
            current = None
        elif match := _LOC.match(line):
            current = _place(match, files)
        elif current is not None and pattern.search(line):
            found.add(current)
    return sorted(found, key=lambda place: (place.filename, place.line, place.column))


def _place(match: re.Match[str], files: dict[int, str]) -> SourceLocation | None:
    filename = files.get(int(match["file"]))
    if filename is None or not int(match["line"]):
        return None
    return SourceLocation(filename, int(match["line"]), int(match["column"]))


def _files(lines: list[str]) -> dict[int, str]:
    """The file table: `.file 1 "name"` or, with a directory, `.file 1 "directory" "name"`."""
    table: dict[int, str] = {}
    for match in filter(None, map(_FILE.match, lines)):
        second = match["second"]
        table[int(match["number"])] = match["first"] if second is None else str(PurePath(match["first"], second))
    return table
