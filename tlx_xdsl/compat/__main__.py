"""`python -m tlx_xdsl.compat script.py ...`: run a script that was written for Meta's TLX, as it is."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from tlx_xdsl.compat import NEEDS_TRITON, install, uninstall
from tlx_xdsl.compat.installation import Mode
from tlx_xdsl.errors import CompilationError, InputError, SourceLocation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for a script that can't be started or a kernel with an error.

    Any other exception is the script's own, and goes on.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tlx_xdsl.compat",
        description="Run a script that was written for Meta's TLX on stock Triton.",
        epilog="What follows the script's name are its own arguments.",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--cpu", action="store_true", help="run kernels as machine code of the CPU; needs no GPU")
    mode.add_argument("--interpret", action="store_true", help="run kernels in the interpreter; needs no GPU")
    mode.add_argument("--ptx", action="store_true", help="run kernels' final PTX on the CPU; needs no GPU")
    mode.add_argument("--compile-only", action="store_true", help="compile kernels and run none; needs no GPU")
    parser.add_argument("--target", default="sm_90a", metavar="SM", help="GPU to assume without one (sm_90a)")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    parsed = parser.parse_args(arguments)
    script = Path(parsed.script)
    try:
        if not script.is_file():
            raise CompilationError("no such file", SourceLocation(parsed.script, 0))
        try:
            install(
                mode=_mode(parsed),
                target=parsed.target,
            )
        except ModuleNotFoundError as error:
            raise CompilationError(str(error), notes=(NEEDS_TRITON,)) from error
        except InputError as error:
            raise CompilationError(str(error)) from error
        _run(script, parsed.arguments)
    except CompilationError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        uninstall()
    return 0


def _mode(parsed: argparse.Namespace) -> Mode:
    if parsed.compile_only:
        return "compile"
    return "cpu" if parsed.cpu else "interpret" if parsed.interpret else "ptx" if parsed.ptx else "launch"


def _run(script: Path, arguments: Sequence[str]) -> None:
    before = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    # As for `python script.py`, what lies beside the script can be imported.
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before


if __name__ == "__main__":
    sys.exit(main())
