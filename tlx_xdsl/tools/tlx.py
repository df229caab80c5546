"""`tlx`: compile kernels from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.version import __version__


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""
    from tlx_xdsl.tools import compile_command, map_command, run_command

    parser = argparse.ArgumentParser(prog="tlx", description="A pure-Python compiler for Triton's TLX")
    parser.add_argument("-v", "--version", action="version", version=f"tlx {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    compile_command.add_arguments(commands.add_parser("compile", help="compile a kernel and write its stages"))
    map_command.add_arguments(commands.add_parser("map", help="show which memory every buffer of a kernel has"))
    run_command.add_arguments(commands.add_parser("run", help="run a kernel on the CPU, at any stage of the pipeline"))
    parsed = parser.parse_args(args)
    runs = {"compile": compile_command.run, "map": map_command.run, "run": run_command.run}
    try:
        runs[parsed.command](parsed)
    except CompilationError as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(CompilationError(str(error)), file=sys.stderr)
        return 1
    except Exception as error:
        print(internal_error(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
