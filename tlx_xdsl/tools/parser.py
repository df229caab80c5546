"""The parser of command lines: what is wrong is one line, with what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

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
