"""`tlx`: compile kernels from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tlx_xdsl import wings
from tlx_xdsl.version import __version__

from .entry import exit_status, with_plugins
from .parser import Parser, add_completion_argument

VERSION = f"tlx {__version__}"

COMMANDS = {
    "compile": ("compile", "compile a kernel and write its stages"),
    "run": ("faces:RUN", "run a kernel on the CPU, at any stage of the pipeline"),
    "debug": ("faces:DEBUG", "look at a run of a kernel on the CPU, forwards and backwards"),
    "check": ("faces:CHECK", "run a kernel in all orders that matter, and report what is wrong in any of them"),
    "minimize-sync": ("faces:MINIMIZE", "show which waits, arrivals and fences of a kernel are redundant"),
    "explain": ("faces:EXPLAIN", "show what every pass does to a kernel, and what its layouts cost"),
    "reverse": ("faces:REVERSE", "write IR as the Python of a kernel"),
    "warp-specialize": ("faces:WARP_SPECIALIZE", "write a plain kernel as warp-specialised TLX"),
    "map": ("map", "show which memory every buffer of a kernel has"),
    "addresses": ("faces:ADDRESSES", "show where each program of a kernel touches memory"),
    "sweep": ("sweep", "compile all combinations of choices, with a verdict on each"),
    "gate": ("gate:GATE", "judge the final code of kernels, of Triton versions and configurations"),
    "lint": ("faces:LINT", "check kernels without compiling them to a binary"),
    "mcp": ("faces:MCP", "serve commands as tools of the Model Context Protocol, for agents"),
    "repro": ("repro", "write a script that fails as a kernel does"),
    "doctor": ("doctor", "show what is installed here, and how to get what is missing"),
}
"""The module in `commands/`, or what it is there, and the help of each command of the core.

Only the module that is asked for is imported.
"""


def all_commands() -> dict[str, tuple[str, str]]:
    """Return the place and the help of each command, those of wings too."""
    ours = {name: (f"tlx_xdsl.tools.commands.{module}", help_) for name, (module, help_) in COMMANDS.items()}
    return {**ours, **{name: command for name, (command, _) in wings.names("commands", COMMANDS).items()}}


def _face(place: str) -> Any:
    """Return what has `add_arguments` and `run`: a module, or what a place such as `module:NAME` names in one."""
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""

    def load() -> Callable[[], int | None]:
        given = with_plugins(sys.argv[1:] if args is None else args)
        # To look for the commands of wings takes as long as all that this needs.
        if list(given) in (["--version"], ["-v"]):
            return lambda: print(VERSION)
        parsed = parser(asked=next((arg for arg in given if not arg.startswith("-")), "")).parse_args(given)
        # The parser has refused any other command.
        run = _face(all_commands()[parsed.command][0]).run
        if getattr(parsed, "format", None) == "json":
            from .documents import reported

            return lambda: reported(f"tlx {parsed.command}", lambda: run(parsed))
        return lambda: run(parsed)

    return exit_status(load)


def parser(asked: str | None = None) -> Parser:
    """The parser of all commands; the one that is `asked` for has its arguments, or each if that is None."""
    made = Parser(prog="tlx", description="A pure-Python compiler for Triton's TLX")
    made.add_argument("-v", "--version", action="version", version=VERSION)
    made.add_argument("--no-plugins", action="store_true", help="leave out the plug-ins of other packages")
    add_completion_argument(made, parser)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (place, help_) in all_commands().items():
        command = commands.add_parser(name, help=help_)
        if asked in (None, name):
            _face(place).add_arguments(command)
            made.commands[name] = command
    return made


if __name__ == "__main__":
    sys.exit(main())
