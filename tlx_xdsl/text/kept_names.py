"""The text of a module in the names that another text of it has, so that a diff shows what a pass changed.

The printer numbers values and aliases from the top: one operation more, and all numbers below it are others.

Before, and after a pass that put a constant in front and made another product:
```mlir
%0 = tt.load %p : !tt.ptr<f32>              %0 = arith.constant 2.0 : f32
%1 = arith.mulf %0, %0 : f32                %1 = tt.load %p : !tt.ptr<f32>
tt.store %p, %1 : !tt.ptr<f32>              %2 = arith.mulf %1, %0 : f32
                                            tt.store %p, %2 : !tt.ptr<f32>
```
The second text in the names of the first, of which it differs in two lines:
```mlir
%2 = arith.constant 2.0 : f32
%0 = tt.load %p : !tt.ptr<f32>
%1 = arith.mulf %0, %2 : f32
tt.store %p, %1 : !tt.ptr<f32>
```
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

NAME = re.compile(r'"(?:[^"\\]|\\.)*+"|[%^][\w$.-]+|#[A-Za-z_][\w$-]*+(?![.<\w])')
"""A value, the label of a block or an alias of an attribute; or a string, in which none of these is one."""
_FUNCTION = re.compile(r"^\s*\S*\bfunc\b.*?(@[\w$.]+)")
_ALIAS = re.compile(r"^(#[\w$-]+) = (.*)$")
_SUFFIX = re.compile(r"(?:_\d+|\d+)$")
"""The number that the printer adds to a name that is taken."""

_Key: TypeAlias = tuple[str, str]
"""The function in which a name holds, none for an alias, and the name."""


def names_in(line: str) -> list[str]:
    """The values, labels and aliases that a line names, from left to right."""
    return [found for found in NAME.findall(line) if found[0] != '"']


def erased(line: str) -> str:
    """A line without its names, of which the first character is left: `% = arith.addi %, %1 : i32`."""
    return NAME.sub(lambda found: found[0] if found[0][0] == '"' else found[0][0], line)


def with_names_of(before: str, after: str) -> str:
    """The module `after` in the names of `before`: each value, block and alias that both have is called the same.

    Which these are is read from the texts. Lines that agree but for names are paired: what such a pair defines
    at one place is one value, and so is what it uses there, where nothing else is known of it. Then come lines that
    have moved, and values that are defined in another way. New names stay as they are, or get a number that is free in
    both texts. The result is `after` up to the choice of names.
    """
    if before == after:
        return after
    old, new = _Text(before.splitlines()), _Text(after.splitlines())
    names = _Names(old, new)
    pairs = list(_paired(old.erased, new.erased))
    for use in (False, True):
        for i, j in pairs:
            names.bind_line(i, j, uses=use)
    for i, j in _moved(pairs, old.erased, new.erased):
        names.bind_line(i, j, uses=False)
    for old_lines, new_lines in _gaps(pairs, len(old.keys), len(new.keys)):
        names.bind_alike(old_lines, new_lines)
    names.name_the_rest()
    lines = [names.renamed(number) for number in range(len(new.lines))]
    return "\n".join([*_in_order_of(old, lines[: new.aliases]), *lines[new.aliases :]]) + "\n" * after.endswith("\n")


@dataclass
class _Text:
    """The lines of a module, with the names in each."""

    lines: Sequence[str]
    first: dict[_Key, int] = field(default_factory=dict[_Key, int])
    """The line in which each name stands first, and so is defined."""
    aliases: int = 0
    """Lines at the top that define aliases."""
    meanings: dict[str, str] = field(default_factory=dict[str, str])
    """What each alias stands for, with no alias in it."""

    def __post_init__(self) -> None:
        for number, line in enumerate(self.lines):
            if (found := _ALIAS.match(line)) is None:
                self.aliases = number
                break
            self.meanings[found[1]] = NAME.sub(lambda each: self.meanings.get(each[0], each[0]), found[2])
        for number, keys in enumerate(self.keys):
            for key in keys:
                self.first.setdefault(key, number)

    @cached_property
    def keys(self) -> list[list[_Key]]:
        """The names of each line, with the function that it is in."""
        found: list[list[_Key]] = []
        function = ""
        for line in self.lines:
            head = _FUNCTION.match(line)
            function = function if head is None else head[1]
            names = [name for name in names_in(line) if name[0] != "#" or name in self.meanings]
            found.append([("" if name[0] == "#" else function, name) for name in names])
        return found

    @cached_property
    def erased(self) -> list[str]:
        """Each line without names; a line that defines an alias says which kind."""
        return [erased(line) for line in self.lines]


class _Names:
    """The name in `old` of each name of `new` that is known."""

    def __init__(self, old: _Text, new: _Text):
        self.old, self.new = old, new
        self.known: dict[_Key, _Key] = {}
        self.taken: set[_Key] = set()
        meanings = {meaning: alias for alias, meaning in old.meanings.items()}
        for alias, meaning in new.meanings.items():
            if meaning in meanings:
                self._bind(("", meanings[meaning]), ("", alias))

    def _bind(self, ours: _Key, theirs: _Key) -> None:
        if ours[0] == theirs[0] and ours not in self.taken and theirs not in self.known:
            self.known[theirs] = ours
            self.taken.add(ours)

    def bind_line(self, i: int, j: int, *, uses: bool) -> None:
        """Take the names of line `i` for those of line `j`, which is the same but for names."""
        for ours, theirs in zip(self.old.keys[i], self.new.keys[j], strict=False):
            defines = self.old.first[ours] == i and self.new.first[theirs] == j
            if uses or defines:
                self._bind(ours, theirs)

    def bind_alike(self, old_lines: range, new_lines: range) -> None:
        """Take the names that lines without a counterpart define in the order in which they stand.

        First those whose operation is the same, then those that only their stem says to be one: the value of a
        variable that a pass computes in another way.
        """
        for stem_alone in (False, True):
            free: dict[str, list[_Key]] = {}
            for i in old_lines:
                for stem, key in self._defined(self.old, i, stem_alone=stem_alone):
                    if key not in self.taken:
                        free.setdefault(stem, []).append(key)
            for j in new_lines:
                for stem, key in self._defined(self.new, j, stem_alone=stem_alone):
                    if key not in self.known and free.get(stem):
                        self._bind(free[stem].pop(0), key)

    @staticmethod
    def _defined(text: _Text, number: int, *, stem_alone: bool) -> Iterator[tuple[str, _Key]]:
        """The names that a line defines, each with what its counterpart must have, too."""
        _, equals, body = text.lines[number].partition(" = ")
        op = body.split(" ", 1)[0].split("(", 1)[0] if equals else ""
        for key in text.keys[number]:
            stem = _SUFFIX.sub("", key[1])
            if text.first[key] == number and (len(stem) > 1 or not stem_alone):
                yield (stem if stem_alone else f"{stem} {op}"), key

    def name_the_rest(self) -> None:
        """Keep a name that nothing else has, and give others a number that is free."""
        numbers: Counter[_Key] = Counter()
        for theirs in self.new.first:
            if theirs in self.known:
                continue
            function, name = theirs
            stem = _SUFFIX.sub("", name)
            between = "_" if name[0] == "%" and len(stem) > 1 else ""
            while (function, name) in self.taken or (function, name) in self.old.first:
                numbers[function, stem] += 1
                name = f"{stem}{between}{numbers[function, stem]}"
            self.known[theirs] = (function, name)
            self.taken.add((function, name))

    def renamed(self, number: int) -> str:
        """Line `number` of the new text."""
        keys = iter(self.new.keys[number])
        key = next(keys, None)

        def name(found: re.Match[str]) -> str:
            nonlocal key
            if key is None or found[0] != key[1]:
                return found[0]
            ours, key = self.known[key][1], next(keys, None)
            return ours

        return NAME.sub(name, self.new.lines[number])


def _paired(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of a longest common subsequence, as difflib finds it."""
    for i, j, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        yield from ((i + k, j + k) for k in range(size))


def _moved(pairs: Sequence[tuple[int, int]], old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines that stand in no pair and are the same elsewhere, in their order."""
    mine, theirs = {i for i, _ in pairs}, {j for _, j in pairs}
    free: dict[str, list[int]] = {}
    for i, line in enumerate(old):
        if i not in mine:
            free.setdefault(line, []).append(i)
    for j, line in enumerate(new):
        if j not in theirs and free.get(line):
            yield free[line].pop(0), j


def _gaps(pairs: Iterable[tuple[int, int]], old: int, new: int) -> Iterator[tuple[range, range]]:
    """The lines between the pairs that follow each other, of both texts, where both have some."""
    i = j = 0
    for next_i, next_j in (*pairs, (old, new)):
        if next_i > i and next_j > j:
            yield range(i, next_i), range(j, next_j)
        i, j = next_i + 1, next_j + 1


def _in_order_of(old: _Text, definitions: Iterable[str]) -> list[str]:
    """The definitions of aliases as `old` orders them, and new ones below."""
    order = {alias: number for number, alias in enumerate(old.meanings)}
    return sorted(definitions, key=lambda line: order.get(line.partition(" ")[0], len(order)))
