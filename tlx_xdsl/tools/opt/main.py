"""`tlx-opt`: xdsl-opt with our dialects, our passes and located one-line errors.

    tlx-opt FILE.mlir -p pass1,pass2{option=1}
    tlx-opt FILE.mlir --pass1 --pass2="option=1"
    tlx-opt FILE.mlir --pass-pipeline='builtin.module(pass1,pass2{option=1})'

Reads `.mlir`, `.ttir` and `.ttgir` files and standard input, in any supported Triton version's spelling.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ..entry import exit_status, with_plugins


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""

    def load() -> Callable[[], int]:
        from .driver import run

        given = with_plugins(sys.argv[1:] if args is None else args)
        return lambda: run(given)

    return exit_status(load)


if __name__ == "__main__":
    sys.exit(main())
