"""The lines of the operations in a module's text, and their locations in the user's source.

A scanner over brackets and strings, not a parser: it must work on text that no parser takes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from tlx_xdsl.errors import SourceLocation

_TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|->|[()\[\]{}<>]')
_RESULTS = r"%[\w$.\-]+(?::\d+)?"
_OPERATION = re.compile(
    rf"\s*(?:{_RESULTS}(?:\s*,\s*{_RESULTS})*\s*=\s*)?\"?(?P<name>[a-z]\w*(?:\.\w+)+)\b\"?(?!\s*[=,}}])"
)
_CONTAINERS = ("builtin.module", "tt.func", "llvm.func", "func.func")
_PARTITION = re.compile(r"\bpartition\d+\s*\(|warp_specialize\.partitions")
_DEFINITION = re.compile(r"[#!]\w+\s*=(?!\s*loc\()")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
_ALIAS = re.compile(r"^(?P<name>#loc\d*)\s*=\s*loc\((?P<inside>.*)\)\s*$", re.MULTILINE)
_LOC = re.compile(r"\bloc\((?P<inside>.*)\)\s*$")
_PLACE = re.compile(r'"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):(?P<column>\d+)')
_ALIAS_USE = re.compile(r"#loc\d*\b")

_MOST_ALIASES = 64
"""Named locations that one location is made of, at most: an inlined call takes two."""


@dataclass(frozen=True)
class Statement:
    """An operation, or an alias's definition (`name` is empty), that begins a line of the text.

    `line` counts from 0; `group` numbers the functions and partitions: operations of one group are verified and
    lowered in the order of the text, groups in an order that we don't know.
    """

    name: str
    line: int
    column: int
    group: int


class ModuleText:
    """The text of a module, cut into statements."""

    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()
        self._aliases = {match["name"]: match["inside"] for match in _ALIAS.finditer(text)}
        self.statements = _statements(self.lines)

    def operations(self) -> list[Statement]:
        """The operations, without modules and functions themselves."""
        return [statement for statement in self.statements if statement.name]

    def text_of(self, statement: Statement) -> str:
        """Return what stands from a statement on, up to the next one."""
        following = bisect_right(self.statements, statement.line, key=lambda other: other.line)
        end = self.statements[following].line if following < len(self.statements) else len(self.lines)
        return "\n".join(self.lines[statement.line : end])

    def with_line(self, line: str, before: Statement) -> str:
        """Return the text with one more line before a statement."""
        return "\n".join([*self.lines[: before.line], line, *self.lines[before.line :], ""])

    def place_of(self, statement: Statement, source_name: str) -> tuple[SourceLocation, tuple[str, ...]]:
        """The place in the user's source, by the statement's `loc`, with its callers; else the place in the text."""
        # The lines of an operation with regions go on after them; its own location then stands where it ends.
        own = self.text_of(statement).splitlines()
        for line in own[:1] if own and own[0].rstrip().endswith("{") else own:
            if (match := _LOC.search(line)) and (found := location_and_callers(self._expanded(match["inside"]))):
                return found
        return SourceLocation(source_name, statement.line + 1, statement.column + 1), ()

    def end_of(self, statement: Statement) -> str:
        """Return the line on which an operation with regions ends, with its attributes and its `loc`; else nothing."""
        number = _end_of_region(self.lines, statement.line)
        return "" if number is None else self.lines[number]

    def place_of_end(self, line: str) -> SourceLocation | None:
        """The place in the user's source by the `loc` of a line that ends an operation."""
        match = _LOC.search(line)
        found = location_and_callers(self._expanded(match["inside"])) if match else None
        return found[0] if found else None

    def place_of_module(self, source_name: str) -> SourceLocation:
        """The place of the module's first line in the text."""
        numbers = (number for number, line in enumerate(self.lines) if re.match(r"\s*(builtin\.)?module\b", line))
        return SourceLocation(source_name, next(numbers, 0) + 1, 1)

    def place_of_function(self, source_name: str) -> SourceLocation | None:
        """The place of the first public function: its own `loc`, else the line in the text."""
        for number, line in enumerate(self.lines):
            if "tt.func" in line and "private" not in line:
                closing = _end_of_region(self.lines, number)
                found = None if closing is None else self.place_of_end(self.lines[closing])
                return found or SourceLocation(source_name, number + 1, line.index("tt.func") + 1)
        return None

    def _expanded(self, inside: str) -> str:
        """The text of a location without the names of other locations."""
        # A name per step; what refers to itself ends somewhere.
        for _ in range(_MOST_ALIASES):
            alias = _ALIAS_USE.search(inside)
            if alias is None:
                break
            inside = inside[: alias.start()] + self._aliases.get(alias[0], "unknown") + inside[alias.end() :]
        return inside


def location_and_callers(location: str) -> tuple[SourceLocation, tuple[str, ...]] | None:
    """Read the text inside of a `loc(...)`.

    Returns the innermost place and one note for each call through which it was reached; None if no place is named.
    """
    places = [
        SourceLocation(match["file"], int(match["line"]), int(match["column"])) for match in _PLACE.finditer(location)
    ]
    if not places:
        return None
    # The parts of a fused location are not callers of each other.
    callers = places[1:] if location.lstrip().startswith("callsite(") and "fused" not in location else []
    return places[0], tuple(f"{place}: called from here" for place in callers)


def _statements(lines: list[str]) -> list[Statement]:
    found: list[Statement] = []
    brackets: list[tuple[str, int]] = []
    """The open brackets, each with the group of what stands in it."""
    groups = 0
    for number, line in enumerate(lines):
        innermost, group = brackets[-1] if brackets else ("", 0)
        match = _OPERATION.match(line)
        if innermost == "{" and match is not None and match["name"] not in _CONTAINERS:
            column = len(line) - len(line.lstrip())
            found.append(Statement(match["name"], number, column, group))
        elif not innermost and _DEFINITION.match(line):
            found.append(Statement("", number, 0, 0))
        for token in _TOKEN.findall(line):
            if token in _CLOSING.values():
                if token == "{" and (_PARTITION.search(line) or "tt.func" in line):
                    groups += 1
                    group = groups
                else:
                    group = brackets[-1][1] if brackets else 0
                brackets.append((token, group))
            elif token in _CLOSING and brackets and brackets[-1][0] == _CLOSING[token]:
                brackets.pop()
    return found


def _end_of_region(lines: list[str], start: int) -> int | None:
    """The line on which what begins with line `start` closes its last brace."""
    depth = 0
    opened = False
    for number in range(start, len(lines)):
        for token in _TOKEN.findall(lines[number]):
            depth += (token == "{") - (token == "}")
        opened = opened or (depth > 0 and lines[number].rstrip().endswith("{"))
        if opened and not depth:
            return number
    return None
