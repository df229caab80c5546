"""`--verify-diagnostics`: compare what was reported with the `expected-...` comments of the input, as MLIR does.

    // expected-error {{message}}           on this line; also -warning, -note, -remark
    // expected-error @+1 {{message}}       on the next line; @-1, @above, @below likewise
    // expected-error-re {{need {{[0-9]+}} bytes}}    with regular expressions between inner braces

A message is expected when it contains the text. What was reported and not expected, or expected and not reported, is
an error at its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.text.diagnostics import Diagnostic

_EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)(?P<regex>-re)?"
    r"\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expectation:
    """One `expected-...` comment."""

    severity: str
    pattern: re.Pattern[str]
    shown: str
    line: int | None
    """Line of the file that the diagnostic must name; None when any place will do."""
    comment_line: int


@dataclass(frozen=True)
class Reported:
    """A diagnostic, or one of its notes."""

    severity: str
    message: str
    line: int | None


def expectations(text: str, first_line: int) -> list[Expectation]:
    """The expectations in `text`, whose first line is line `first_line` of its file."""
    found: list[Expectation] = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        match = _EXPECTATION.search(line)
        if match is None:
            continue
        number = first_line + index
        found.append(
            Expectation(
                match["severity"],
                _pattern(match["text"], is_regex=match["regex"] is not None),
                match["text"],
                _line(match["where"], number, lines, index, first_line),
                number,
            )
        )
    return found


def _pattern(text: str, *, is_regex: bool) -> re.Pattern[str]:
    if not is_regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))


def _line(where: str | None, number: int, lines: Sequence[str], index: int, first_line: int) -> int | None:
    match where:
        case None:
            return number
        case "unknown":
            return None
        case "above":
            # Lines of expectations stand together above or below what they are about.
            return first_line + next((i for i in range(index - 1, -1, -1) if "expected-" not in lines[i]), 0)
        case "below":
            return first_line + next(
                (i for i in range(index + 1, len(lines)) if "expected-" not in lines[i]), len(lines)
            )
        case _:
            return number + int(where)


def reported(diagnostics: Iterable[Diagnostic], error: CompilationError | None) -> list[Reported]:
    """Return all reports, notes at the line of what they belong to."""
    found: list[Reported] = []
    for diagnostic in diagnostics:
        found.extend(_with_notes(diagnostic.severity, diagnostic.message, diagnostic.location, diagnostic.notes))
    if error is not None:
        found.extend(_with_notes("error", error.message, error.location, error.notes))
    return found


def _with_notes(
    severity: str, message: str, location: SourceLocation | None, notes: Sequence[str]
) -> Iterable[Reported]:
    line = None if location is None else location.line
    yield Reported(severity, message, line)
    for note in notes:
        yield Reported("note", note, line)


def mismatches(filename: str, expected: Sequence[Expectation], found: Sequence[Reported]) -> list[CompilationError]:
    """One error for each expectation that nothing met, and for each report but a note that was not expected."""
    unmet = list(expected)
    errors: list[CompilationError] = []
    for report in found:
        match = next((e for e in unmet if _meets(e, report)), None)
        if match is not None:
            unmet.remove(match)
        elif report.severity != "note":
            place = SourceLocation(filename, report.line or 0)
            errors.append(CompilationError(f"unexpected {report.severity}: {report.message}", place))
    for expectation in unmet:
        message = f'expected {expectation.severity} "{expectation.shown}" was not produced'
        errors.append(CompilationError(message, SourceLocation(filename, expectation.comment_line)))
    return errors


def _meets(expectation: Expectation, report: Reported) -> bool:
    if expectation.severity != report.severity or expectation.pattern.search(report.message) is None:
        return False
    return expectation.line is None or expectation.line == report.line
