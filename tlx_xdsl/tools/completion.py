"""Completion in shells: `tlx --print-completion bash`, by shtab, which reads the parsers that there are.

shtab rather than argcomplete: its script completes without starting Python at each TAB.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

from tlx_xdsl.errors import CompilationError

SHELLS = ("bash", "zsh", "tcsh")
"""Those that shtab writes for."""

FILES = ("FILE", "FILE.py:KERNEL", "DIR", "FILE.json", "FILE.py")
"""Metavariables of arguments that are completed to files; so is what begins with one."""


def add_completion_argument(parser: argparse.ArgumentParser, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Declare the argument that prints the script for a shell; `whole` makes the parser with all that there is."""

    class PrintCompletion(argparse.Action):
        def __call__(
            self,
            parser: argparse.ArgumentParser,
            namespace: argparse.Namespace,
            values: str | Sequence[Any] | None,
            option_string: str | None = None,
        ) -> None:
            print(script(whole(), str(values)))
            parser.exit()

    parser.add_argument(
        "--print-completion", action=PrintCompletion, choices=SHELLS, help="print the completion script for a shell"
    )


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that completes the arguments of a parser in a shell.

    Raises CompilationError where shtab is not installed.
    """
    try:
        shtab: Any = import_module("shtab")
    except ImportError as error:
        raise CompilationError("completion needs shtab: pip install 'tlx-xdsl[cli]'") from error
    _complete_files(parser, shtab.FILE)
    return shtab.complete(parser, shell)


def _complete_files(parser: argparse.ArgumentParser, files: Any) -> None:
    # argparse has no public list of them, nor a place for what shtab wants to know.
    actions: Any = parser._actions
    for action in actions:
        choices: object = action.choices
        if isinstance(choices, dict):
            for command in cast("dict[str, argparse.ArgumentParser]", choices).values():
                _complete_files(command, files)
        elif action.metavar in FILES or action.dest in ("input_file", "output_file"):
            action.complete = files
