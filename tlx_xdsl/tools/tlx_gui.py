"""`tlx-gui [FILE]`: xDSL's interactive pass explorer with our dialects and passes. Needs the extra `gui`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import CompilationError

from .entry import exit_status
from .parser import Parser

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""

    def load() -> Callable[[], None]:
        path = parser().parse_args(args).file
        text = None if path is None else Path(path).read_text(encoding="utf-8")
        return lambda: _explore(path, text)

    return exit_status(load)


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = Parser(prog="tlx-gui", description="Explore passes over a module interactively")
    made.add_argument("file", nargs="?", help="the .mlir, .ttir or .ttgir file to start with")
    return made


def passes_in_order() -> dict[str, type[ModulePass]]:
    """The passes that the explorer offers: those of a compile in their order, then our others, then xDSL's, by name."""
    from xdsl.transforms import get_all_passes

    from tlx_xdsl.transforms.pipelines import ttgir_pipeline
    from tlx_xdsl.transforms.registry import OVERRIDES, all_passes

    pipeline = [each.name for each in ttgir_pipeline()]
    ours = {**all_passes(), **OVERRIDES}
    theirs = {**get_all_passes(), **ours}
    return {name: theirs[name]() for name in dict.fromkeys([*pipeline, *sorted(ours), *sorted(theirs)])}


def shown(text: str, path: str | None) -> str:
    """A module as the explorer shows it, without locations: there may be a page of them.

    What is no module stays as it is, for the explorer says why.
    """
    from tlx_xdsl.text.parser import parse_module
    from tlx_xdsl.text.printer import print_module

    try:
        return print_module(parse_module(text, filename=path or "input"), locations=False)
    except CompilationError:
        return text


def _explore(path: str | None, text: str | None) -> None:
    try:
        from xdsl.interactive.app import InputApp
    except ImportError as error:
        missing = f"no module '{error.name}'" if error.name else str(error)
        raise CompilationError(f"tlx-gui is not installed here ({missing}): pip install 'tlx-xdsl[gui]'") from error

    from xdsl.dialects import get_all_dialects

    from tlx_xdsl.dialects.registry import all_dialects

    dialects = {**get_all_dialects(), **all_dialects()}
    module = None if text is None else shown(text, path)
    app: Any = InputApp(tuple(dialects.items()), tuple(passes_in_order().items()), path, module)
    app.run()


if __name__ == "__main__":
    sys.exit(main())
