"""The arguments of a kernel by name, and the types that it is compiled for to take them. No compiler is loaded."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.frontend.python.suggestions import did_you_mean

from .host_values import flattened, is_constant, signature_of, specialized


@dataclass(frozen=True)
class Typed:
    """Arguments, apart by what the compiler makes of them."""

    signature: dict[str, Signature]
    """The type of each argument that a launch passes."""
    constexprs: dict[str, Any]
    """The value of each that is a part of the kernel."""
    values: list[tuple[str, Any]]
    """What is passed, by name and in order; tuples item by item."""


def typed(source: KernelSource, arguments: Mapping[str, Any], types: Mapping[str, Signature] | None = None) -> Typed:
    """The types of arguments by name, as a launch with these values has them: what is a multiple of 16 says so.

    `types` has those that are not to be derived from values.

    Raises TypeError for a value that no argument can have, OverflowError for an integer of more than 64 bits.
    """
    found = Typed({}, {}, [])
    for parameter in source.parameters:
        name = parameter.name
        if name not in arguments:
            continue
        value = arguments[name]
        if parameter.is_constexpr or is_constant(value):
            found.constexprs[name] = value
        else:
            found.signature[name] = (types or {}).get(name) or specialized(name, signature_of(name, value), value)
            found.values.extend(flattened(name, value))
    return found


def defaults_of(source: KernelSource) -> dict[str, Any]:
    """The values of parameters that the definition of a kernel gives."""
    return {each.name: each.default for each in source.parameters if each.default is not inspect.Parameter.empty}


def split_options(
    source: KernelSource, named: Mapping[str, Any], options: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a call names, apart: arguments of the kernel, and options, which a parameter of the same name hides.

    Raises TypeError for a name that is neither.
    """
    parameters = source.signature.parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for name in named:
        if name not in parameters and name not in options and not takes_any:
            raise InputTypeError(f"'{source.name}' has no parameter '{name}'{_meant(name, parameters, named, options)}")
    chosen = {name: value for name, value in named.items() if name in options and name not in parameters}
    return {name: value for name, value in named.items() if name not in chosen}, chosen


def _meant(name: str, parameters: Collection[str], named: Mapping[str, Any], options: Collection[str]) -> str:
    """What a name that is not known may stand for, and what else there is."""
    similar = did_you_mean(name, [*(each for each in parameters if each not in named), *options])
    if not similar:
        # `BLOCK` for `B`: difflib finds them different, an eye does not.
        alike = [each for each in parameters if each not in named and name.lower().startswith(each.lower())]
        similar = f", did you mean '{alike[0]}'?" if len(alike) == 1 else ""
    have = f"ts parameters are {', '.join(parameters) or 'none'}"
    return f"{similar} I{have}" if similar else f", i{have}"


def bound(source: KernelSource, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name. Raises TypeError for those that do not fit."""
    try:
        return dict(source.signature.bind(*args, **named).arguments)
    except TypeError as error:
        have = ", ".join(source.signature.parameters)
        raise InputTypeError(f"{source.name}: {error}, its parameters are {have}") from error
