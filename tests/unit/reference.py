"""The public surface of the package, as `reference.json` keeps it for `test_reference.py`.

python -m tests.unit.reference         writes the file anew, when a release may drop names
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

FILE = Path(__file__).with_suffix(".json")

MODULES = (
    "tlx_xdsl",
    "tlx_xdsl.backend",
    "tlx_xdsl.compat",
    "tlx_xdsl.errors",
    "tlx_xdsl.kernels.attention.forward",
    "tlx_xdsl.kernels.attention.config",
    "tlx_xdsl.kernels.gemm.dense",
    "tlx_xdsl.kernels.gemm.config",
    "tlx_xdsl.kernels.rows.norm",
    "tlx_xdsl.kernels.rows.softmax",
    "tlx_xdsl.language",
    "tlx_xdsl.language.extra",
    "tlx_xdsl.language.extra.cuda",
    "tlx_xdsl.language.extra.libdevice",
    "tlx_xdsl.language.extra.mxfp8_utils",
    "tlx_xdsl.language.extra.subtile_ops",
    "tlx_xdsl.language.math",
    "tlx_xdsl.language.target_info",
    "tlx_xdsl.language.tlx",
    "tlx_xdsl.runtime",
    "tlx_xdsl.runtime.sweep",
    "tlx_xdsl.targets",
    "tlx_xdsl.torch",
)
"""Modules whose public names are listed whole."""

PROGRAMS = {
    "tlx": "tlx_xdsl.tools.tlx",
    "tlx-opt": "tlx_xdsl.tools.opt.main",
    "python -m tlx_xdsl.compat": "tlx_xdsl.compat.__main__",
}
"""The modules with the `main` of each command line."""


# --- names -----------------------------------------------------------------------------------------------------------


def resolve(path: str) -> Any:
    """Return the object of a dotted name.

    Raises ImportError or AttributeError if there is none; ModuleNotFoundError, too, for what it needs.
    """
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        return functools.reduce(getattr, parts[length:], found)
    raise ModuleNotFoundError(path)


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`, or what the module defines itself without a leading underscore."""
    if (names := getattr(module, "__all__", None)) is not None:
        return sorted(names)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def documented() -> set[str]:
    """Return the dotted names that the reference pages of the site document."""
    from docs.site import pages

    texts = [make() for path, make in pages.generated().items() if path.startswith("reference/")]
    return {path for text in texts for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}


def signature(value: Any) -> str | None:
    """Return the parameters without annotations, a default that is no literal as `...`; None if not callable."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, enum.Enum)):
        return None
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    bare = [
        parameter.replace(annotation=parameter.empty, default=_plain(parameter.default))
        for parameter in found.parameters.values()
    ]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def _plain(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    with contextlib.suppress(ValueError, SyntaxError):
        if ast.literal_eval(repr(default)) == default:
            return default
    return ...


def members(value: Any) -> list[str]:
    """Return the public members of a class of ours, inherited ones too, and its fields."""
    if not inspect.isclass(value):
        return []
    ours = [cls for cls in value.__mro__ if cls.__module__.startswith("tlx_xdsl")]
    names = itertools.chain(*((*vars(cls), *inspect.get_annotations(cls)) for cls in ours))
    return sorted({name for name in names if not name.startswith("_")})


def described(value: Any) -> dict[str, Any]:
    """Return what is kept of an object."""
    kept = {"signature": signature(value), "members": members(value)}
    return {name: each for name, each in kept.items() if each}


def accepts(new: str, old: str) -> bool:
    """Return whether each call that fits the old signature fits the new one, and means the same."""
    before, after = _parameters(old), _parameters(new)
    required = {name for name, (kind, _, default) in after.items() if default is None and "VAR" not in kind}
    return required <= set(before) and all(
        name in after and _stays(parameter, after[name]) for name, parameter in before.items()
    )


def _stays(before: tuple[str, int, str | None], after: tuple[str, int, str | None]) -> bool:
    (kind, place, default), (new_kind, new_place, new_default) = before, after
    if kind == "KEYWORD_ONLY":
        return new_kind in (kind, "POSITIONAL_OR_KEYWORD") and new_default == default
    by_both = new_kind == kind or (kind == "POSITIONAL_ONLY" and new_kind == "POSITIONAL_OR_KEYWORD")
    return by_both and new_place == place and (default is None or new_default == default)


def _parameters(text: str) -> dict[str, tuple[str, int, str | None]]:
    """Return kind, place and default of each parameter of a signature's text."""
    text = text.replace("=Ellipsis", "=...")
    definition = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    args = definition.args
    positional = [(each.arg, "POSITIONAL_ONLY") for each in args.posonlyargs]
    positional += [(each.arg, "POSITIONAL_OR_KEYWORD") for each in args.args]
    missing = [None] * (len(positional) - len(args.defaults))
    found: dict[str, tuple[str, int, str | None]] = {}
    for place, ((name, kind), default) in enumerate(zip(positional, (*missing, *args.defaults), strict=True)):
        found[name] = kind, place, None if default is None else ast.unparse(default)
    for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found[each.arg] = "KEYWORD_ONLY", 0, None if default is None else ast.unparse(default)
    for each, kind in ((args.vararg, "VAR_POSITIONAL"), (args.kwarg, "VAR_KEYWORD")):
        if each is not None:
            # Their names mean nothing to a caller.
            found[kind] = kind, 0, None
    return found


# --- command lines ---------------------------------------------------------------------------------------------------


def parser_of(main: Callable[[Sequence[str]], int], *arguments: str) -> argparse.ArgumentParser:
    """Return the parser that a `main` makes for these arguments."""

    class Caught(BaseException):
        pass

    def caught(parser: argparse.ArgumentParser, *_args: Any, **_named: Any) -> None:
        raise Caught(parser)

    with patch.object(argparse.ArgumentParser, "parse_known_args", caught):
        try:
            main(arguments)
        except Caught as found:
            return found.args[0]
    raise AssertionError("no arguments were parsed")


def options(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the options of a parser, each with its choices."""
    return {
        name: sorted(map(str, action.choices or ()))
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
        for name in action.option_strings
    }


def command_lines() -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield each command line with its options."""
    for program, path in PROGRAMS.items():
        main = importlib.import_module(path).main
        parser = parser_of(main)
        yield program, options(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command in action.choices:
                    yield f"{program} {command}", options(parser_of(main, command)._actions[-1].choices[command])


# --- passes and dialects ---------------------------------------------------------------------------------------------


def passes() -> dict[str, list[str]]:
    """Return the options of each pass, by all its names."""
    from tlx_xdsl.transforms.registry import OVERRIDES, all_passes

    return {
        name: sorted(field.name for field in dataclasses.fields(load()) if field.name != "name")
        for name, load in {**all_passes(), **OVERRIDES}.items()
    }


def dialects() -> dict[str, list[str]]:
    """Return the names of operations, and of attributes and types, of our dialects."""
    from tlx_xdsl.dialects.registry import our_dialects

    found = {name: load() for name, load in our_dialects().items()}
    return {name: sorted(each.name for each in (*it.operations, *it.attributes)) for name, it in found.items()}


# --- the file --------------------------------------------------------------------------------------------------------


def exports() -> dict[str, list[str]]:
    """Return the public names of the modules that are listed whole."""
    return {name: public_names(importlib.import_module(name)) for name in MODULES}


def snapshot() -> dict[str, Any]:
    """Return the public surface as it is now."""
    names = documented() | {f"{module}.{name}" for module, all_names in exports().items() for name in all_names}
    return {
        "exports": exports(),
        "names": {path: described(resolve(path)) for path in sorted(names)},
        "commands": dict(command_lines()),
        "passes": passes(),
        "dialects": dialects(),
    }


def load() -> dict[str, Any]:
    """Return the public surface as the file has it."""
    return _map_lists(json.loads(FILE.read_text(encoding="utf-8")), str, lambda line: line.split())


def save() -> None:
    """Write the public surface to the file: a list of names is one line."""
    kept = _map_lists(snapshot(), list, " ".join)
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _map_lists(value: Any, kind: type, change: Callable[[Any], Any], name: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _map_lists(each, kind, change, name) for name, each in value.items()}
    return change(value) if isinstance(value, kind) and name != "signature" else value


if __name__ == "__main__":
    save()
