"""What a command line says of a launch: the kernel, its grid and its arguments, over named sizes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.driver.arguments import Typed, defaults_of, typed
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.tools.launch_line.argument_values import Hint, argument_value, hint_of_signature
from tlx_xdsl.tools.launch_line.expressions import evaluate, grid_sizes
from tlx_xdsl.tools.launch_line.launch_settings import launch_options
from tlx_xdsl.tools.launch_line.loading import assignments, check_parameter, constexpr_value, load_kernel
from tlx_xdsl.tools.launch_line.size_values import one_size


@dataclass(frozen=True)
class ReadKernel:
    """A kernel and a launch of it, as a command line says them."""

    source: KernelSource
    arguments: Mapping[str, Any]
    """Values by parameter, constants included."""
    types: Mapping[str, Any]
    """What is not to be derived from values."""
    names: Mapping[str, Any]
    """What the expressions of a command line may name."""
    grid: tuple[int, ...]
    launch: Mapping[str, Any]
    """Options of the launch."""


def read_kernel(args: argparse.Namespace) -> ReadKernel:
    """Read the kernel and the launch that a command line names. Raises CompilationError for what does not fit."""
    return read_launch(args, *load_kernel(args.kernel), sizes_of(args))


def sizes_of(args: argparse.Namespace) -> dict[str, int]:
    """The named sizes of one launch. Raises CompilationError for one that has several values."""
    return {name: one_size(name, text) for name, text in assignments(args.size, "--size").items()}


def read_launch(
    args: argparse.Namespace, kernel: Kernel, defaults: KernelDefaults, sizes: Mapping[str, int]
) -> ReadKernel:
    """Read the launch that a command line describes, at these sizes. Raises CompilationError for what does not fit."""
    source = kernel.source
    options = launch_options(args, defaults)
    read = _read_values(args, source, defaults, sizes)
    _check_missing(source, {**read.constants, **read.values}, defaults)
    arguments = {name: constexpr(value) for name, value in read.constants.items() if name not in read.values}
    arguments |= read.values
    names = {**sizes, **defaults_of(source), **read.constants, **read.values}
    launch = {name: options[name] for name in ("num_warps", "num_ctas", "cluster", "target", "enable_fp_fusion")}
    return ReadKernel(source, arguments, read.types, names, grid_sizes(args.grid, numbers_of(names)), launch)


def read_types(args: argparse.Namespace, source: KernelSource, defaults: KernelDefaults) -> Typed:
    """The types and constants of the arguments that a command line gives by value; arrays are not filled.

    Raises CompilationError for what does not fit.
    """
    read = _read_values(args, source, defaults, sizes_of(args), only_type=True)
    return typed(source, {**read.constants, **read.values}, read.types)


def read_values(
    args: argparse.Namespace, source: KernelSource, defaults: KernelDefaults, sizes: Mapping[str, int]
) -> Mapping[str, Any]:
    """The values of the arguments that a command line gives, without constants.

    Raises CompilationError for what does not fit.
    """
    return _read_values(args, source, defaults, sizes).values


@dataclass(frozen=True)
class _Read:
    """What a command line and the file give of the arguments."""

    constants: Mapping[str, Any]
    values: Mapping[str, Any]
    types: Mapping[str, Any]
    """What is not to be derived from values."""


def _read_values(
    args: argparse.Namespace,
    source: KernelSource,
    defaults: KernelDefaults,
    sizes: Mapping[str, int],
    *,
    only_type: bool = False,
) -> _Read:
    _check_sizes(args, source, sizes)
    stated = {name: _constant(name, text, sizes) for name, text in assignments(args.constexpr, "--constexpr").items()}
    texts = assignments(args.arg, "--arg")
    # A parameter with the name of a size has its value, unless the command line says another one.
    own = {name: size for name, size in sizes.items() if name in source.signature.parameters and name not in texts}
    constants = {**defaults.constexprs, **own, **stated}
    for name in (*texts, *constants):
        check_parameter("--arg", name, source)
    hints = {name: hint_of_signature(defaults.signature.get(name)) for name in (*texts, *own)}
    seed = getattr(args, "seed", 0)
    values = {
        name: argument_value(name, text, hints[name], seed, sizes, only_type=only_type) for name, text in texts.items()
    }
    for name, value in values.items():
        check_fits(name, texts[name], value, hints[name])
    values |= {name: size for name, size in own.items() if name not in stated and not _is_constant(source, name)}
    types = {
        name: defaults.signature[name]
        for name, hint in hints.items()
        if hint.is_number and name in values and ":" not in texts.get(name, "")
    }
    return _Read(constants, values, types)


def check_fits(name: str, text: str, value: Any, hint: Hint) -> None:
    """Check that a value is of the kind that the file's TLX_COMPILE, or IR, states."""
    if hint.is_number and hint.dtype is not None and hint.dtype.kind in "iu" and isinstance(value, float):
        raise CompilationError(f"--arg {name}: expected an integer, found '{text}'")
    if hint.dtype is not None and not hint.is_number and isinstance(value, bool | int | float | np.generic):
        raise CompilationError(f"--arg: '{name}' is an array: give it as in randn[1024,512], found '{text}'")


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


def _check_sizes(args: argparse.Namespace, source: KernelSource, sizes: Mapping[str, int]) -> None:
    """Check that something depends on each size: one that is misspelled would be run at all of its values in vain."""
    for name in sizes:
        is_named = re.compile(rf"\b{name}\b").search
        texts = (getattr(args, "grid", None) or "", *args.arg, *args.constexpr)
        if name not in source.signature.parameters and not any(map(is_named, texts)):
            raise CompilationError(f"--size: no parameter, --arg, --constexpr or --grid names '{name}'")


def _check_missing(source: KernelSource, given: Mapping[str, Any], defaults: KernelDefaults) -> None:
    """Check that every argument has a value."""
    missing = [
        name
        for name, parameter in source.signature.parameters.items()
        if name not in given and parameter.default is parameter.empty
    ]
    if missing:
        known = {parameter.name: parameter for parameter in source.parameters}
        wanted = [
            f"--constexpr {name}=VALUE" if known[name].is_constexpr else _example(name, defaults.signature.get(name))
            for name in missing
        ]
        raise CompilationError(f"'{source.name}' needs values: {' '.join(wanted)}")


def _example(name: str, type_: object) -> str:
    hint = hint_of_signature(type_)
    return f"--arg {name}={'NUMBER' if hint.is_number else 'randn[ROWS,COLUMNS]' if hint.block else 'VALUE'}"
