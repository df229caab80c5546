"""Reading what ptxas prints: resource use under `-v`, warnings, and errors with their place in the kernel.

The tool is called `ptxas` or `ptxas-blackwell`, whichever one Triton picked, and says so at the start of a
line.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from tlx_xdsl.backend.result import KernelResources
from tlx_xdsl.errors import SourceLocation

_TOOL = r"ptxas(?:-\w+)?"
_FRAME = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<store>\d+) bytes spill stores, (?P<load>\d+) bytes spill loads"
)
_REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
_CODED_INFO = re.compile(rf"^{_TOOL} info\s*: \((?P<code>C\d+)\) (?P<text>.*)$")
_WARNING = re.compile(rf"^{_TOOL}(?: [^;]*;)? warning\s*: (?P<text>.*)$")
_NOTED_ONLY = "Too many maxnreg specified"
_ERROR = re.compile(rf"^{_TOOL} .*, line (?P<line>\d+); error\s*: (?P<text>.*)$")
_FATAL = re.compile(rf"^{_TOOL} (?:.*; )?(?:fatal|error)\s*: (?P<text>.*)$")
_FILE = re.compile(r'^\s*\.file\s+(?P<number>\d+)\s+"(?P<first>[^"]*)"(?:\s+"(?P<second>[^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+(?P<column>\d+)")


def parse_resources(log: str) -> KernelResources:
    """Return the resource use in a `-v` log; spills are summed over the kernel and what it calls."""
    frames = list(_FRAME.finditer(log))
    return KernelResources(
        registers=max((int(m["registers"]) for m in _REGISTERS.finditer(log)), default=0),
        spill_store_bytes=sum(int(m["store"]) for m in frames),
        spill_load_bytes=sum(int(m["load"]) for m in frames),
        stack_bytes=max((int(m["stack"]) for m in frames), default=0),
    )


def parse_warnings(log: str) -> tuple[str, ...]:
    """Return ptxas's warnings, each once, without the tool's name.

    Those with a code, such as `C7510: Potential Performance Loss: ...`, are printed as `info` by ptxas
    although they may cost half of the speed (`wgmma` instructions that were serialised).
    """
    found: list[str] = []
    for line in log.splitlines():
        if match := _CODED_INFO.match(line):
            found.append(f"{match['code']}: {match['text'].strip()}")
        elif (match := _WARNING.match(line)) and not match["text"].startswith(_NOTED_ONLY):
            found.append(_code_first(match["text"].strip()))
    return tuple(dict.fromkeys(found))


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
        if line.startswith((".visible", ".func", ".entry")):
            return None
        if match := _LOC.match(line):
            filename = _files(lines).get(int(match["file"]))
            if filename is None or not int(match["line"]):
                return None
            return SourceLocation(filename, int(match["line"]), int(match["column"]))
    return None


def _files(lines: list[str]) -> dict[int, str]:
    """The file table: `.file 1 "name"` or, with a directory, `.file 1 "directory" "name"`."""
    table: dict[int, str] = {}
    for match in filter(None, map(_FILE.match, lines)):
        second = match["second"]
        table[int(match["number"])] = match["first"] if second is None else str(PurePath(match["first"], second))
    return table
