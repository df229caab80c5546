"""A diff at a terminal: in colours with the words that differ, as one text or as two side by side."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.stages import Stage, kept_lines, unified_diff
from tlx_xdsl.runtime.show.diffs import Row, Side, folded, rows_of
from tlx_xdsl.terminal import wants_colour
from tlx_xdsl.transforms.registry import current_name

RESET, FAINT = "\033[0m", "\033[2m"
_KINDS: Mapping[str, str] = {
    "attribute": "35",
    "comment": "2",
    "function": "1",
    "keyword": "1",
    "number": "33",
    "string": "33",
    "type": "34",
    "value": "36",
}
_GONE, _CAME = "31", "32"
"""Red and green; a word that differs has them as its background."""
_UNKNOWN_WIDTH = 160
"""Characters of a line side by side where no terminal says how many it has."""


def diff(stages: Sequence[Stage], name: str, *, side_by_side: bool = False) -> str:
    """Return what the pass `name` changed, as standard output shows it, without locations; in words for no change.

    Without colours and not side by side it is a unified diff, which other programs read.
    Raises CompilationError when there is no such pass in the pipeline.
    """
    before, after = around(stages, name)
    old, new = before.lines, kept_lines(before, after)
    if old == new:
        return f"{name} changed nothing"
    colour = wants_colour(sys.stdout)
    if not colour and not side_by_side:
        return unified_diff(before, after)
    rows = rows_of(old, new)
    width = shutil.get_terminal_size((_UNKNOWN_WIDTH, 0)).columns
    titles = f"before {after.name}", f"after {after.name}"
    lines = _beside(rows, titles, width, colour=colour) if side_by_side else _below(rows, titles)
    return "\n".join(line.rstrip() for line in lines)


def around(stages: Sequence[Stage], name: str) -> tuple[Stage, Stage]:
    """Return the stages before and after the pass `name`.

    Raises CompilationError when there is no such pass in the pipeline.
    """
    for before, after in pairwise(stages):
        if after.name == current_name(name):
            return before, after
    passes = ", ".join(stage.name for stage in stages[1:])
    raise CompilationError(f"--diff: expected a pass that this kernel goes through ({passes}), found '{name}'")


def _below(rows: Sequence[Row], titles: tuple[str, str]) -> Iterator[str]:
    """The rows as a unified diff: of each change the lines before, then those after."""
    yield f"\033[1;{_GONE}m--- {titles[0]}{RESET}"
    yield f"\033[1;{_CAME}m+++ {titles[1]}{RESET}"
    for is_far, run in folded(rows):
        if is_far:
            yield f"{FAINT}... {len(run)} equal lines{RESET}"
            continue
        came: list[Side] = []
        for row in run:
            if row.same:
                yield from (f"\033[{_CAME}m+{RESET}{_coloured(side, _CAME)}" for side in came)
                came = []
                assert row.before is not None
                yield f" {_coloured(row.before, '')}"
                continue
            if row.before is not None:
                yield f"\033[{_GONE}m-{RESET}{_coloured(row.before, _GONE)}"
            if row.after is not None:
                came.append(row.after)
        yield from (f"\033[{_CAME}m+{RESET}{_coloured(side, _CAME)}" for side in came)


def _coloured(side: Side, change: str) -> str:
    return "".join(_styled(kind, text, marked, change) for kind, text, marked in side.pieces)


def _styled(kind: str, text: str, marked: bool, change: str) -> str:
    style = f"7;{change}" if marked else _KINDS.get(kind, "")
    return f"\033[{style}m{text}{RESET}" if style and text.strip() else text


def _beside(rows: Sequence[Row], titles: tuple[str, str], width: int, *, colour: bool) -> Iterator[str]:
    half = max(30, (width - 3) // 2)
    yield f"{titles[0]:{half}}   {titles[1]}"
    for is_far, run in folded(rows):
        if is_far:
            text = f"... {len(run)} equal lines"
            yield f"{FAINT}{text}{RESET}" if colour else text
            continue
        for row in run:
            mark, style = " ", ""
            if not row.same:
                mark, style = ("|", "33") if row.before and row.after else ("<", _GONE) if row.before else (">", _CAME)
            if colour and style:
                mark = f"\033[{style}m{mark}{RESET}"
            left = _wrapped(row.before, half, "" if row.same else _GONE, colour=colour)
            right = _wrapped(row.after, half, "" if row.same else _CAME, colour=colour)
            for number in range(max(len(left), len(right))):
                before = left[number] if number < len(left) else " " * half
                after = right[number] if number < len(right) else ""
                yield f"{before} {mark} {after}"


def _wrapped(side: Side | None, width: int, change: str, *, colour: bool) -> list[str]:
    """A side in lines of `width` characters, with its number before the first."""
    if side is None:
        return []
    room = width - 5
    lines, used = [f"{side.number:4} "], 0
    for kind, text, marked in side.pieces:
        while text:
            if used == room:
                lines.append(" " * 5)
                used = 0
            part, text = text[: room - used], text[room - used :]
            used += len(part)
            lines[-1] += _styled(kind, part, marked, change) if colour else part
    lines[-1] += " " * (room - used)
    return lines
