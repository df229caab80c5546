"""`python -m tlx_xdsl.compat script.py ...`: run a script that was written for Meta's TLX, as it is."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from tlx_xdsl.compat import installed
from tlx_xdsl.errors import CompilationError, SourceLocation


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error that the compiler has found."""
    parser = argparse.ArgumentParser(
        prog="python -m tlx_xdsl.compat",
        description="Run a script that was written for Meta's TLX on stock Triton.",
        epilog="What stands behind the script's name are the script's own arguments.",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--interpret", action="store_true", help="run kernels in the interpreter; needs no GPU")
    mode.add_argument("--compile-only", action="store_true", help="compile kernels and run none; needs no GPU")
    parser.add_argument("--target", default="sm_90a", metavar="SM", help="the GPU that scripts see without one (sm_90a)")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    parsed = parser.parse_args(arguments)
    what = "interpret" if parsed.interpret else "compile" if parsed.compile_only else "launch"
    before = sys.argv, list(sys.path)
    try:
        if not Path(parsed.script).is_file():
            raise CompilationError("no such file", SourceLocation(parsed.script, 0))
        with installed(mode=what, target=parsed.target):
            sys.argv = [parsed.script, *parsed.arguments]
            # As for `python script.py`, what lies beside the script can be imported.
            sys.path.insert(0, str(Path(parsed.script).resolve().parent))
            runpy.run_path(parsed.script, run_name="__main__")
    except CompilationError as error:
        print(error, file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        print(CompilationError("this needs Triton: pip install 'tlx-xdsl[nvidia]'"), file=sys.stderr)
        return 1
    except ValueError as error:
        if "target" not in str(error):
            raise
        print(CompilationError(str(error)), file=sys.stderr)
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


if __name__ == "__main__":
    sys.exit(main())
