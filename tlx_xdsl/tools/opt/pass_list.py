"""The list of passes in `tlx-opt --help`: ours with what each does, and the names of xDSL's."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Collection, Iterator

from xdsl.passes import ModulePass

from tlx_xdsl.runtime.driver.compilation import passes_for
from tlx_xdsl.transforms.registry import OVERRIDES, all_passes, current_name

WIDTH = 100


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the list, which replaces the names that xDSL puts into the help of `-p`."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an option to the text."""
        if action.dest == "passes":
            action.help = "passes to run, in this order, with their options: a,b{x=1}; the list is below"
        super().add_argument(action)


def pass_list(known: Collection[str]) -> str:
    """All passes of these names: the compiler's in its order, our others, and xDSL's."""
    return "\n".join(_lines(known))


def _lines(known: Collection[str]) -> Iterator[str]:
    ours = {name: load() for name, load in {**all_passes(), **OVERRIDES}.items()}
    order = list(dict.fromkeys(each.name for each in passes_for(plain=False)))
    yield "what the compiler does, in this order:"
    yield from (_line(name, ours[name]) for name in order if name in ours)
    yield "\nour other passes:"
    others = [name for name in sorted(ours) if name not in order]
    yield from (_line(name, ours[name]) for name in others if current_name(name) == name)
    yield "\nolder names:"
    yield from (f"  {name} is {now}" for name in others if (now := current_name(name)) != name)
    yield "\npasses of xDSL:"
    xdsl_names = " ".join(sorted(set(known) - set(ours)))
    yield textwrap.fill(xdsl_names, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _line(name: str, cls: type[ModulePass]) -> str:
    summary = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]
    return f"  {name:34} {summary}"
