"""`tlx-gui [FILE]`: xDSL's interactive pass explorer with our dialects and passes. Needs the extra `gui`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tlx-gui", description="Explore passes over a module interactively")
    parser.add_argument("file", nargs="?", help="the .mlir, .ttir or .ttgir file to start with")
    path = parser.parse_args(args).file
    try:
        text = None if path is None else Path(path).read_text()
        _explore(path, text)
    except ImportError as error:
        print(CompilationError(f"{error}: install tlx-xdsl[gui]"), file=sys.stderr)
        return 1
    except OSError as error:
        print(CompilationError(str(error)), file=sys.stderr)
        return 1
    return 0


def _explore(path: str | None, text: str | None) -> None:
    from xdsl.dialects import get_all_dialects
    from xdsl.interactive.app import InputApp
    from xdsl.transforms import get_all_passes

    from tlx_xdsl.dialects.registry import ALL as ALL_DIALECTS
    from tlx_xdsl.transforms.registry import ALL_PASSES, OVERRIDES

    dialects = {**get_all_dialects(), **ALL_DIALECTS}
    passes = {name: load() for name, load in {**get_all_passes(), **ALL_PASSES, **OVERRIDES}.items()}
    app: Any = InputApp(tuple(dialects.items()), tuple(sorted(passes.items())), path, text)
    app.run()


if __name__ == "__main__":
    sys.exit(main())
