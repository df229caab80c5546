"""A module as the pipeline left it after one stage, and what is different between two of them."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.text.kept_names import with_names_of
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

NOTHING = "nothing"
"""What a pass has changed that has left the module as it was."""

_SHOWN = 4
"""The number of kinds of operation that `changes` names before it counts the rest."""


@dataclass(frozen=True)
class Stage:
    """The module after one stage of the pipeline."""

    name: str
    """The pass, or `frontend`."""
    printed: str
    """The module as text with locations."""

    @property
    def _module(self) -> ModuleOp:
        return _parsed(self.printed)

    @cached_property
    def operations(self) -> Counter[str]:
        """Return how many operations there are of each kind, without the module itself."""
        return Counter(op.name for op in self._module.walk() if op is not self._module)

    @cached_property
    def text(self) -> str:
        """The module as text without locations, which move with every pass and explain nothing."""
        return print_module(self._module, locations=False)

    @property
    def lines(self) -> list[str]:
        """The lines of `text`."""
        return self.text.splitlines()


@lru_cache(maxsize=2)
def _parsed(printed: str) -> ModuleOp:
    """The module of a text; most passes leave a module as it is, and its text is not read again then."""
    return parse_module(printed, filename="a stage")


def changes(before: Stage, after: Stage) -> str:
    """Summarize what a pass changed: the kinds of operation that it added and removed, most first."""
    if before.printed == after.printed:
        return NOTHING
    added, removed = after.operations - before.operations, before.operations - after.operations
    signed = [(count, f"+{count} {name}") for name, count in added.items()]
    signed += [(count, f"-{count} {name}") for name, count in removed.items()]
    if not signed:
        return NOTHING if before.lines == after.lines else "types, attributes or order only"
    signed.sort(key=lambda each: -each[0])
    rest = sum(count for count, _ in signed[_SHOWN:])
    return ", ".join(text for _, text in signed[:_SHOWN]) + (f", and {rest} more" if rest else "")


def kept_lines(before: Stage, after: Stage) -> list[str]:
    """The lines of `after` in the names of `before`, so that only what changed differs."""
    return with_names_of(before.text, after.text).splitlines()


def unified_diff(before: Stage, after: Stage) -> str:
    """The unified diff between the texts of two stages, without locations; empty where they are equal.

    Values and aliases of `after` have the names that they have in `before`.
    """
    names = f"before {after.name}", f"after {after.name}"
    return "\n".join(difflib.unified_diff(before.lines, kept_lines(before, after), *names, lineterm=""))
