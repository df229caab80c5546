"""`tlx-gui [FILE]`: xDSL's interactive pass explorer with our dialects and passes. Needs the extra `gui`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError

from .entry import exit_status
from .parser import Parser


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


def _explore(path: str | None, text: str | None) -> None:
    from xdsl.dialects import get_all_dialects
    from xdsl.transforms import get_all_passes

    try:
        from xdsl.interactive.app import InputApp
    except ImportError as error:
        missing = f"no module '{error.name}'" if error.name else str(error)
        raise CompilationError(f"tlx-gui is not installed here ({missing}): pip install 'tlx-xdsl[gui]'") from error

    from tlx_xdsl.dialects.registry import all_dialects
    from tlx_xdsl.transforms.registry import OVERRIDES, all_passes

    dialects = {**get_all_dialects(), **all_dialects()}
    passes = {name: load() for name, load in {**get_all_passes(), **all_passes(), **OVERRIDES}.items()}
    app: Any = InputApp(tuple(dialects.items()), tuple(sorted(passes.items())), path, text)
    app.run()


if __name__ == "__main__":
    sys.exit(main())
