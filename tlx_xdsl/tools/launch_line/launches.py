"""The launch that a command line says: its grid and its arguments, over named sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.grid import sizes_of
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.driver.host_values import Typed, defaults_of, typed

from .argument_values import fitting_value, hint_of_signature
from .expressions import evaluate
from .request import Request, Said, constexpr_value

_LAUNCH = ("num_warps", "num_ctas", "cluster", "target", "enable_fp_fusion", "passes")
"""Options of a launch that a run has, too."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel."""

    source: KernelSource
    arguments: Mapping[str, Any]
    """Values by parameter, constants included."""
    types: Mapping[str, Any]
    """What is not to be derived from values."""
    names: Mapping[str, Any]
    """What the expressions of a command line may name."""
    grid: tuple[int, int, int]
    options: Mapping[str, Any]


def launch_at(request: Request, sizes: Mapping[str, int]) -> Launch:
    """Return the launch that a command line says, at these sizes. Raises CompilationError for what does not fit."""
    source = request.source
    given = _given(request, sizes)
    _check_missing(request, {**given.constants, **given.values})
    arguments = {name: constexpr(value) for name, value in given.constants.items() if name not in given.values}
    arguments |= given.values
    names = {**sizes, **defaults_of(source), **given.constants, **given.values}
    options = {name: request.options[name] for name in _LAUNCH}
    return Launch(source, arguments, given.types, names, grid_of(request, names), options)


def grid_of(said: Said, names: Mapping[str, Any], *, least: int = 0) -> tuple[int, int, int]:
    """Return the grid, whose expressions may name these numbers.

    Raises CompilationError for an expression that has no value, InputError for one that is no grid.
    """
    return sizes_of(evaluate("--grid", said.grid or "1", numbers_of(names)), least=least, of="--grid: ")


def types_of(request: Request) -> Typed:
    """Return the types and constants of the arguments that are given by value; arrays are not filled.

    Raises CompilationError for what does not fit.
    """
    given = _given(request, request.sizes, only_type=True)
    return typed(request.source, {**given.constants, **given.values}, given.types)


def values_of(request: Request) -> Mapping[str, Any]:
    """Return the values of the arguments, without constants. Raises CompilationError for what does not fit."""
    return _given(request, request.sizes).values


@dataclass(frozen=True)
class _Given:
    """What a command line and the file give of the arguments."""

    constants: Mapping[str, Any]
    values: Mapping[str, Any]
    types: Mapping[str, Any]
    """What is not to be derived from values."""


def _given(request: Request, sizes: Mapping[str, int], *, only_type: bool = False) -> _Given:
    source, defaults, texts, stated = request.source, request.defaults, request.lists["arg"], request.lists["constexpr"]
    _check_sizes(request, sizes)
    # A parameter with the name of a size has its value, unless the command line says another one.
    own = {name: size for name, size in sizes.items() if name in source.signature.parameters and name not in texts}
    for name in (*texts, *defaults.constexprs, *own, *stated):
        _check_parameter(name, source)
    passed = {name: size for name, size in own.items() if name not in stated and not _is_constant(source, name)}
    constants = {name: _constant(name, text, sizes) for name, text in stated.items()}
    hints = {name: hint_of_signature(defaults.signature.get(name)) for name in (*texts, *own)}
    values = {
        name: fitting_value(name, text, hints[name], request.seed, sizes, only_type=only_type)
        for name, text in texts.items()
    }
    types = {
        name: defaults.signature[name]
        for name, hint in hints.items()
        if hint.is_number and name in (*values, *passed) and ":" not in texts.get(name, "")
    }
    return _Given({**defaults.constexprs, **own, **constants}, {**values, **passed}, types)


def _constant(name: str, text: str, sizes: Mapping[str, int]) -> Any:
    """The value of a compile-time argument: as the text says, or what it computes from sizes."""
    try:
        return constexpr_value(name, text)
    except CompilationError:
        if not sizes:
            raise
    return evaluate("--constexpr", text, sizes)


def _is_constant(source: KernelSource, name: str) -> bool:
    return next(each.is_constexpr for each in source.parameters if each.name == name)


def numbers_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are numbers."""
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | np.generic)}


def _check_parameter(name: str, source: KernelSource) -> None:
    """Check that a kernel has a parameter that a command line names. Raises CompilationError."""
    parameters = source.signature.parameters
    if name not in parameters:
        have = f"its parameters are {', '.join(parameters) or 'none'}"
        similar = did_you_mean(name, parameters)
        raise CompilationError(f"--arg: '{source.name}' has no parameter '{name}'{similar or ','} {have}")


def _check_sizes(request: Request, sizes: Mapping[str, int]) -> None:
    """Check that something depends on each size: one that is misspelled would be run at all of its values in vain."""
    texts = (request.grid or "", *request.lists["arg"].values(), *request.lists["constexpr"].values())
    for name in sizes:
        is_named = re.compile(rf"\b{name}\b").search
        if name not in request.source.signature.parameters and not any(map(is_named, texts)):
            raise CompilationError(f"--size: no parameter, --arg, --constexpr or --grid names '{name}'")


def _check_missing(request: Request, given: Mapping[str, Any]) -> None:
    """Check that every argument has a value."""
    source, signature = request.source, request.defaults.signature
    missing = [
        name
        for name, parameter in source.signature.parameters.items()
        if name not in given and parameter.default is parameter.empty
    ]
    if missing:
        known = {parameter.name: parameter for parameter in source.parameters}
        wanted = [
            f"--constexpr {name}=VALUE" if known[name].is_constexpr else _example(name, signature.get(name))
            for name in missing
        ]
        raise CompilationError(f"'{source.name}' needs values: {' '.join(wanted)}")


def _example(name: str, type_: object) -> str:
    hint = hint_of_signature(type_)
    return f"--arg {name}={'NUMBER' if hint.is_number else 'randn[ROWS,COLUMNS]' if hint.block else 'VALUE'}"
