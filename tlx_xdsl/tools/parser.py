"""The parser of command lines: what is wrong is one line, with what was probably meant; completion in shells."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.terminal import coloured

_CHOICE = re.compile(r"(?P<what>argument .*): invalid choice: '?(?P<found>[^']*)'? \(choose from (?P<known>.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<found>.*)")
USAGE = 2
"""The exit status for a command line that means nothing, as argparse has it."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors say which word is meant, in the look of all diagnostics."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.commands: dict[str, Parser] = {}
        """The parsers of its commands that have arguments."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and end the process."""
        # What a command does not know is reported by the parser of them all.
        prog = next((each.prog for each in self.commands.values()), self.prog)
        text = f"{prog}: error: {self._explained(message)}\nnote: {prog} --help lists what there is"
        print(coloured(text), file=sys.stderr)
        sys.exit(USAGE)

    def _explained(self, message: str) -> str:
        if (match := _CHOICE.fullmatch(message)) is not None:
            known = [each.strip(" '") for each in match["known"].split(",")]
            what = "there is no command" if "COMMAND" in match["what"] else f"{match['what']}: there is no"
            said = did_you_mean(match["found"], known) or f", expected one of {', '.join(known)}"
            return f"{what} '{match['found']}'{said}"
        if (match := _UNKNOWN.fullmatch(message)) is not None:
            word = match["found"].split()[0]
            return f"unknown argument '{word}'{did_you_mean(word.split('=')[0], self._options())}"
        return message

    def _options(self) -> Iterable[str]:
        """All options, those of commands too."""
        parsers = (self, *self.commands.values())
        return [option for parser in parsers for action in parser._actions for option in action.option_strings]


# --- completion -------------------------------------------------------------------------------------------------------
#
# Completion in shells: `tlx --print-completion bash`, by shtab, which reads the parsers that there are.
#
# shtab rather than argcomplete: its script completes without starting Python at each TAB.


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
