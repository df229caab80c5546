"""`python -m tlx_xdsl.compat script.py ...`: run a script that was written for Meta's TLX, or for Triton, as it is."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tlx_xdsl.errors import CompilationError, InputError, SourceLocation

from . import NEEDS_TRITON, install, uninstall
from .installation import Mode

_MODES: tuple[tuple[str, Mode, str], ...] = (
    ("--cpu", "cpu", "run kernels as machine code of the CPU"),
    ("--interpret", "interpret", "run kernels in the interpreter"),
    ("--check", "check", "check each launch as `tlx check` does, then interpret it"),
    ("--ptx", "ptx", "run kernels' final PTX on the CPU"),
    ("--compile-only", "compile", "compile kernels and run none"),
)


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
    for flag, name, meaning in _MODES:
        mode.add_argument(flag, dest="mode", action="store_const", const=name, help=f"{meaning}; needs no GPU")
    parser.set_defaults(mode="launch")
    parser.add_argument("--target", default="sm_90a", metavar="SM", help="GPU to assume without one (sm_90a)")
    parser.add_argument("--seconds", type=float, metavar="S", help="time to check each launch (2), with --check")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, such as pytest, as Python does")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    parsed = parser.parse_args(arguments)
    if parsed.seconds is not None and parsed.mode != "check":
        parser.error("--seconds is for --check")
    try:
        if parsed.module and not _is_module(parsed.script):
            raise CompilationError(f"no module named '{parsed.script}'")
        if not parsed.module and not Path(parsed.script).is_file():
            raise CompilationError("no such file", SourceLocation(parsed.script, 0))
        try:
            install(mode=parsed.mode, target=parsed.target)
        except ModuleNotFoundError as error:
            raise CompilationError(str(error), notes=(NEEDS_TRITON,)) from error
        except InputError as error:
            raise CompilationError(str(error)) from error
        if parsed.mode == "check":
            return _checked(parsed)
        _run(parsed)
    except CompilationError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        uninstall()
    return 0


def _checked(parsed: argparse.Namespace) -> int:
    """Run with each launch checked; the exit status is 1 where an error was found."""
    from .checked import RECORD, CheckedKernel

    CheckedKernel.seconds = parsed.seconds or CheckedKernel.seconds
    try:
        _run(parsed)
    except CompilationError as error:
        # A fault that stops the script was reported as a finding; any other error was not.
        if not RECORD.errors:
            print(error, file=sys.stderr)
        return 1
    finally:
        print(RECORD.summary, file=sys.stderr)
    return int(bool(RECORD.errors))


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        # A package that it would be in is missing.
        return False


def _run(parsed: argparse.Namespace) -> None:
    before = sys.argv, list(sys.path)
    sys.argv = [parsed.script, *parsed.arguments]
    try:
        if parsed.module:
            runpy.run_module(parsed.script, run_name="__main__", alter_sys=True)
        else:
            # As for `python script.py`, what lies beside the script can be imported.
            sys.path.insert(0, str(Path(parsed.script).resolve().parent))
            runpy.run_path(parsed.script, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before


if __name__ == "__main__":
    sys.exit(main())
