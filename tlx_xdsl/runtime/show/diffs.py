"""Two texts line by line beside each other, with the words that differ, for pages and for a terminal.

| before | after | |
|---|---|---|
| `%a = tlx.alloc : f16` | `%a = ttg.alloc : f16` | one for the other; the words `tlx.alloc` and `ttg.alloc` differ |
| | `ttg.barrier` | a line that came |
| `tt.return` | `tt.return` | the same |
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from tlx_xdsl.text.kept_names import names_in

if TYPE_CHECKING:
    from tlx_xdsl.text.highlight import Language, Piece

CONTEXT = 3
"""Equal lines that are shown around a change."""

_WORD = re.compile(r"[%#@!^]?[\w$.-]+|\s+|.")


@dataclass(frozen=True, slots=True)
class Side:
    """A line of one of two texts."""

    number: int
    """Its number, from 1."""
    pieces: tuple[tuple[str, str, bool], ...]
    """The line in pieces: the kind of word (`highlight.KINDS`), the text, and whether the other side differs there."""

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(text for _, text, _ in self.pieces)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the text before and its counterpart after; None on the side that has none."""

    before: Side | None
    after: Side | None
    same: bool


def coloured_pieces(lines: Sequence[str], language: Language = "mlir") -> list[list[Piece]]:
    """Each line in pieces with the kind of each word; in one piece without pygments."""
    try:
        from tlx_xdsl.text.highlight import pieces_of
    except ImportError:
        return [[("", line)] for line in lines]
    return pieces_of(lines, language)


def rows_of(before: Sequence[str], after: Sequence[str], language: Language = "mlir") -> list[Row]:
    """The rows of a diff, all lines of both texts in order."""
    old, new = coloured_pieces(before, language), coloured_pieces(after, language)
    rows: list[Row] = []
    for i, j in _aligned(before, after):
        mine, theirs = (None if i is None else before[i]), (None if j is None else after[j])
        same = mine == theirs
        spans = _words(mine, theirs) if mine is not None and theirs is not None and not same else ((), ())
        rows.append(
            Row(
                None if i is None else Side(i + 1, tuple(_marked(old[i], spans[0]))),
                None if j is None else Side(j + 1, tuple(_marked(new[j], spans[1]))),
                same,
            )
        )
    return rows


def folded(rows: Sequence[Row], context: int = CONTEXT) -> Iterator[tuple[bool, list[Row]]]:
    """The rows in runs, each with whether it is far from any change: more than `context` rows, and not alone."""
    near = [False] * len(rows)
    for number, row in enumerate(rows):
        if not row.same:
            low = max(0, number - context)
            near[low : number + context + 1] = [True] * (min(len(rows), number + context + 1) - low)
    start = 0
    for is_near, group in groupby(near):
        end = start + len(list(group))
        # A fold takes a line itself.
        yield not is_near and end - start > 1, list(rows[start:end])
        start = end


# --- which line stands for which ------------------------------------------------------------------------------------


def _aligned(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """The numbers of lines that belong together, equal ones and, between them, those that became another."""
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from _alike(before, after, range(i, i_end), range(j, j_end), (_operation, _result))


def _alike(
    before: Sequence[str], after: Sequence[str], old: range, new: range, keys: Sequence[Callable[[str], str]]
) -> Iterator[tuple[int | None, int | None]]:
    """The pairs among changed lines: those of one key in one order, and in what is left those of the next key."""
    if not keys or not old or not new:
        yield from ((i, None) for i in old)
        yield from ((None, j) for j in new)
        return
    key, *rest = keys
    matcher = difflib.SequenceMatcher(None, [key(before[i]) for i in old], [key(after[j]) for j in new], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(old[i:i_end], new[j:j_end], strict=True)
        else:
            yield from _alike(before, after, old[i:i_end], new[j:j_end], rest)


def _operation(line: str) -> str:
    """The first word after the results, which is the operation's name."""
    return line.rpartition(" = ")[2].split(" ", 1)[0] if line.lstrip()[:1] == "%" else line.strip().split(" ", 1)[0]


def _result(line: str) -> str:
    """The first name of a line; the whole line where there is none, so that it is like no other."""
    return next(iter(names_in(line)), line)


def _words(before: str, after: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The spans of characters that differ, of either line."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, *ends in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for words, (low, high), found in zip((old, new), (ends[:2], ends[2:]), spans, strict=True):
            start = sum(map(len, words[:low]))
            if high > low:
                found.append((start, start + sum(map(len, words[low:high]))))
    return spans


def _marked(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[str, str, bool]]:
    """The pieces, cut where a span begins or ends."""
    cuts = sorted({end for span in spans for end in span})
    position = 0
    for kind, text in pieces:
        ends = [cut for cut in cuts if position < cut < position + len(text)] + [position + len(text)]
        for end in ends:
            marked = any(low <= position < high for low, high in spans)
            yield kind, text[len(text) - (ends[-1] - position) : len(text) - (ends[-1] - end)], marked
            position = end


# --- pages ----------------------------------------------------------------------------------------------------------

STYLE = (
    ".tlx .diff{overflow-x:auto;padding:4px 0}"
    ".tlx .row{display:flex}"
    ".tlx .row>div{flex:1 1 50%;min-width:0;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 8px 0 6.5ch;"
    "text-indent:-5ch}"
    ".tlx .row i{display:inline-block;width:4ch;margin-right:1ch;color:var(--faint);font-style:normal;"
    "text-align:right;text-indent:0;user-select:none}"
    ".tlx .gone{background:var(--gone)}.tlx .came{background:var(--came)}"
    ".tlx .gone b{background:var(--gone-word)}.tlx .came b{background:var(--came-word)}.tlx .row b{font-weight:inherit}"
    ".tlx .none{background:var(--none)}"
    ".tlx .diff summary{color:var(--faint);background:var(--none);cursor:pointer}"
    ".tlx .diff details{border:0;padding:0}"
    # On a phone the sides stand one above the other, and what is the same once.
    "@media(max-width:700px){.tlx .row{display:block}.tlx .none,.tlx .row .again{display:none}}"
)


def spans_of(pieces: Sequence[tuple[str, str, bool]]) -> str:
    """The HTML of a line in pieces."""
    return "".join(_span(*piece) for piece in pieces)


def _span(kind: str, text: str, marked: bool) -> str:
    shown = f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)
    return f"<b>{shown}</b>" if marked else shown


def rows_as_html(rows: Sequence[Row]) -> str:
    """The two texts side by side, with what is far from any change folded."""
    parts: list[str] = []
    for is_far, run in folded(rows):
        body = "".join(map(_html_row, run))
        parts.append(f"<details><summary>{len(run)} equal lines</summary>{body}</details>" if is_far else body)
    return f'<div class="diff">{"".join(parts)}</div>'


def _html_row(row: Row) -> str:
    sides = ((row.before, "" if row.same else "gone"), (row.after, "again" if row.same else "came"))
    return f'<div class="row">{"".join(_html_side(*side) for side in sides)}</div>'


def _html_side(side: Side | None, kind: str) -> str:
    if side is None:
        return '<div class="none"></div>'
    return f"<div{f' class={kind!r}' if kind else ''}><i>{side.number}</i>{spans_of(side.pieces)}</div>"
