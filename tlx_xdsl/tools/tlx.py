"""`tlx`: compile kernels from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from tlx_xdsl.tools.completion import add_completion_argument
from tlx_xdsl.tools.entry import exit_status
from tlx_xdsl.tools.parser import Parser
from tlx_xdsl.version import __version__

COMMANDS = {
    "compile": ("tools.commands.compile", "compile a kernel and write its stages"),
    "run": ("tools.commands.run", "run a kernel on the CPU, at any stage of the pipeline"),
    "check": (
        "tools.commands.check",
        "run a kernel in all orders that matter, and report what is wrong in any of them",
    ),
    "minimize-sync": ("tools.commands.minimize", "show which waits, arrivals and fences of a kernel are redundant"),
    "explain": ("tools.commands.explain", "show what every pass does to a kernel, and what its layouts cost"),
    "map": ("tools.commands.map", "show which memory every buffer of a kernel has"),
    "addresses": ("tools.commands.addresses", "show where each program of a kernel touches memory"),
    "sweep": ("tools.commands.sweep", "compile all combinations of choices, with a verdict on each"),
    "lint": ("tools.commands.lint", "check kernels without compiling them to a binary"),
    "repro": ("tools.commands.repro", "write a script that fails as a kernel does"),
    "reverse": ("decompile.tools.command", "write IR as the Python of a kernel"),
    "ttl": ("ttl.tools.command", "compile, run or check a kernel for Tenstorrent's cores"),
    "doctor": ("tools.commands.doctor", "show what is installed here, and how to get what is missing"),
}
"""The module below `tlx_xdsl` and the help of each command; only the one that is asked for is imported."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""

    def load() -> Callable[[], int | None]:
        parsed, run = _parsed(sys.argv[1:] if args is None else args)
        return lambda: run(parsed)

    return exit_status(load)


def _parsed(args: Sequence[str]) -> tuple[argparse.Namespace, Callable[[argparse.Namespace], int | None]]:
    """The command line, and the function of its command."""
    asked = next((arg for arg in args if not arg.startswith("-")), None)
    parsed = parser([] if asked is None else [asked]).parse_args(args)
    # The parser has refused any other command.
    return parsed, import_module(f"tlx_xdsl.{COMMANDS[parsed.command][0]}").run


def parser(wanted: Iterable[str] = COMMANDS) -> Parser:
    """The parser of all commands; those that are `wanted` have their arguments."""
    made = Parser(prog="tlx", description="A pure-Python compiler for Triton's TLX")
    made.add_argument("-v", "--version", action="version", version=f"tlx {__version__}")
    add_completion_argument(made, parser)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_)
        if name in wanted:
            import_module(f"tlx_xdsl.{module}").add_arguments(command)
            made.commands[name] = command
    return made


if __name__ == "__main__":
    sys.exit(main())
