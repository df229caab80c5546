"""`tlx`: compile kernels from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from tlx_xdsl.tools.entry import exit_status
from tlx_xdsl.tools.parser import Parser
from tlx_xdsl.version import __version__

COMMANDS = {
    "compile": ("compile_command", "compile a kernel and write its stages"),
    "run": ("run_command", "run a kernel on the CPU, at any stage of the pipeline"),
    "check": ("check_command", "run a kernel in many orders, and report what is wrong in any of them"),
    "explain": ("explain_command", "show what every pass does to a kernel, and what its layouts cost"),
    "map": ("map_command", "show which memory every buffer of a kernel has"),
    "addresses": ("addresses_command", "show where each program of a kernel touches memory"),
    "sweep": ("sweep_command", "compile all combinations of choices, with a verdict on each"),
    "lint": ("lint_command", "check kernels without compiling them to a binary"),
    "repro": ("repro_command", "write a script that fails as a kernel does"),
    "reverse": ("reverse_command", "write IR as the Python of a kernel"),
    "ttl": ("ttl_command", "compile, run or check a kernel for Tenstorrent's cores"),
    "doctor": ("doctor_command", "show what is installed here, and how to get what is missing"),
}
"""The module below `tlx_xdsl.tools` and the help of each command; only the one that is asked for is imported."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""

    def load() -> Callable[[], int | None]:
        parsed, run = _parsed(sys.argv[1:] if args is None else args)
        return lambda: run(parsed)

    return exit_status(load)


def _parsed(args: Sequence[str]) -> tuple[argparse.Namespace, Callable[[argparse.Namespace], int | None]]:
    """The command line, and the function of its command."""
    parser = Parser(prog="tlx", description="A pure-Python compiler for Triton's TLX")
    parser.add_argument("-v", "--version", action="version", version=f"tlx {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    asked = next((arg for arg in args if not arg.startswith("-")), None)
    run: Callable[[argparse.Namespace], int | None] | None = None
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_)
        if name == asked:
            home = import_module(f"tlx_xdsl.tools.{module}")
            home.add_arguments(command)
            parser.commands[name] = command
            run = home.run
    parsed = parser.parse_args(args)
    assert run is not None, "the parser has refused any other command"
    return parsed, run


if __name__ == "__main__":
    sys.exit(main())
