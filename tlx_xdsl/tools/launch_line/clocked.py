"""The launch that a command line says, for the clock; and the options of commands that ask the clock."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tlx_xdsl.errors import CompilationError, InputTypeError
from tlx_xdsl.runtime.clock.launch import Configuration

from .launches import grid_of, launch_at
from .request import Request, assignments, constexpr_value

_HERTZ = re.compile(r"(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?P<unit>[kMG]?)(?:Hz)?", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def configuration_of(request: Request) -> Configuration:
    """Return the launch that a command line says. Raises CompilationError for what does not fit."""
    launch = launch_at(request, request.sizes, "integers")

    def grid(known: Mapping[str, Any]) -> tuple[int, int, int]:
        return grid_of(request, {**launch.names, **known})

    options = {**launch.options, "cluster": tuple(launch.options["cluster"]), "maxnreg": request.options["maxnreg"]}
    return Configuration(launch.source, grid, launch.arguments, options, launch.types)


def beside(configuration: Configuration, text: str) -> tuple[Configuration, dict[str, Any]]:
    """Return the configuration that `--beside` names, and its settings: `NAME=VALUE`, with commas between them.

    Raises CompilationError for a name that is no compile-time argument and no option of the launch.
    """
    settings: dict[str, Any] = {
        name: value if name == "target" else constexpr_value(name, value, "--beside")
        for name, value in assignments([text], "--beside").items()
    }
    try:
        return configuration.changed(settings), settings
    except InputTypeError as error:
        raise CompilationError(f"--beside: {error}") from error


def settings_of(configuration: Configuration, names: Sequence[str]) -> dict[str, Any]:
    """Return the values that a configuration has for these names."""
    constants = configuration.typed.constexprs
    found: dict[str, Any] = {}
    for name in names:
        value = constants.get(name, configuration.options.get(name))
        found[name] = getattr(value, "value", value)
    return found


def hertz_of(text: str | None) -> float | None:
    """Return the clock of the multiprocessors that a text such as `1.7GHz`, `1755 MHz` or `1.98e9` says.

    Raises CompilationError for anything else.
    """
    if text is None:
        return None
    match = _HERTZ.fullmatch(text.strip())
    hertz = 0.0 if match is None else float(match["number"]) * _UNITS[match["unit"].lower()]
    if not hertz:
        raise CompilationError(f"--clock: expected a frequency such as 1.7GHz or 1755MHz, found '{text}'")
    return hertz
