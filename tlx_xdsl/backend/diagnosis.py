"""Diagnosis of what Triton and LLVM printed: one helpful line with a place.

The texts looked for (Triton 3.6 to 3.9):

- `loc("user.py":3:4): error: text` or `user.py:3:4: error: text`, also with `callsite(...)` and `fused[...]`
  inside;
- `python: file.cpp:47: function: Assertion `x' failed.`, in passes caught by MLIR, in the parser deadly;
- `UNREACHABLE executed at ...` and `LLVM ERROR: ...`;
- `error: text` of LLVM's code generation, without a place, after which 3.9 carries on as if nothing had
  happened;
- MLIR's closing words "Failures have been detected ..." or "A signal was caught ...": no reason, but a
  note names the pass.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from tlx_xdsl.errors import SourceLocation

from .errors import BackendError
from .module_text import location_and_callers
from .result import BackendWarning

_LOCATED = re.compile(r"^loc\((?P<where>.*?)\): error: (?P<text>.*)$")
_PLACED = re.compile(r"^(?P<file>[^\s:\"][^:\"]*):(?P<line>\d+):(?P<column>\d+): error: (?P<text>.*)$")
_UNPLACED = re.compile(r"^(?:loc\(unknown\): |<unknown>:0: )?error: (?P<text>.*)$")
_WARNING = re.compile(r"^(?:loc\((?P<where>.*)\): |.*: )?warning: (?P<text>.*)$")
_ASSERTION = re.compile(r"^[^ ]+: (?P<file>[^ ]+):(?P<line>\d+): .*Assertion `(?P<text>.*)' failed\.$")
_LLVM_ERROR = re.compile(r"^LLVM ERROR: (?P<text>.*)$")
_UNREACHABLE = re.compile(r"^(?P<text>.*?)\s*UNREACHABLE executed at (?P<file>[^ ]+):(?P<line>\d+)!$")
_PIPELINE = re.compile(r"Pipeline failed while executing \[`(?P<name>[^`]+)`")
_CLOSING_WORDS = ("Failures have been detected while processing", "A signal was caught while processing")


@dataclass(frozen=True)
class Finding:
    """The reason found in a log, the place in the user's source if one was given, and a note per caller of it."""

    text: str
    location: SourceLocation | None = None
    callers: tuple[str, ...] = ()


def diagnose(
    log: str, *, stage: str, exception: str = "", death: str = "", triton_version: str | None = None
) -> BackendError:
    """Build the error for a failed stage.

    `exception` is the text of the Python exception that Triton raised, `death` says how the process ended if
    it did.
    """
    finding = find_reason(log) or Finding(_last_line(exception) or _last_line(log) or "no reason given")
    text = f"the stock Triton process {death}: {finding.text}" if death else finding.text
    where = note_of_stage(stage, triton_version)
    if match := _PIPELINE.search(log):
        where += f", pass {match['name']}"
    return BackendError(text, finding.location, notes=(*finding.callers, where), stage=stage, log=log, death=death)


def note_of_stage(stage: str, triton_version: str | None) -> str:
    """Say where it failed, for a note."""
    return f"stock Triton {triton_version or '(unknown version)'} failed in stage '{stage}'"


def find_reason(log: str) -> Finding | None:
    """Return the first reason in a log, the better kinds first: located, crash, unlocated, name of pass."""
    lines = log.splitlines()
    for find in (_find_located, _find_crash, _find_unlocated):
        for index in range(len(lines)):
            finding = find(lines, index)
            if finding is not None:
                return finding
    if match := _PIPELINE.search(log):
        return Finding(f"the pass {match['name']} failed without saying why")
    return None


def find_unlocated_error(log: str) -> str | None:
    """Return an error that LLVM's code generation printed without failing, None if there is none."""
    for line in log.splitlines():
        if match := _UNPLACED.match(line):
            return match["text"]
    return None


def find_warnings(log: str) -> tuple[BackendWarning, ...]:
    """Return the compiler's warnings, each once."""
    found: list[BackendWarning] = []
    for match in filter(None, map(_WARNING.match, log.splitlines())):
        location, callers = location_and_callers(match["where"] or "") or (None, ())
        found.append(BackendWarning(match["text"].strip(), location, notes=callers))
    return tuple(dict.fromkeys(found))


def how_it_ended(returncode: int) -> str:
    """Say in words how a process ended: by a signal (`subprocess` gives a negative code) or by exiting."""
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    hint = " (out of memory?)" if -returncode == signal.SIGKILL else ""
    return f"died of {name}{hint}"


def _find_located(lines: list[str], index: int) -> Finding | None:
    if match := _LOCATED.match(lines[index]):
        location, callers = location_and_callers(match["where"]) or (None, ())
        text = match["text"]
        # Verifiers of layouts put the interesting half into a second sentence, on a line of its own.
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if text.endswith(".") and following.endswith(".") and following[:1].isupper():
            text = f"{text} {following}"
        return Finding(text, location, callers)
    match = _PLACED.match(lines[index])
    if match is None or match["text"].startswith(_CLOSING_WORDS):
        return None
    return Finding(match["text"], SourceLocation(match["file"], int(match["line"]), int(match["column"])))


def _find_crash(lines: list[str], index: int) -> Finding | None:
    line = lines[index]
    if match := _ASSERTION.match(line):
        return Finding(f"assertion `{match['text']}` failed ({_basename(match['file'])}:{match['line']})")
    if match := _LLVM_ERROR.match(line):
        return Finding(match["text"])
    if match := _UNREACHABLE.match(line):
        reason = match["text"] or (lines[index - 1] if index else "unreachable code reached")
        return Finding(f"{reason} ({_basename(match['file'])}:{match['line']})")
    return None


def _basename(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _find_unlocated(lines: list[str], index: int) -> Finding | None:
    match = _UNPLACED.match(lines[index])
    return Finding(match["text"]) if match else None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
