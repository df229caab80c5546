"""Names and parameters of another TLX that ours lacks: `python -m tests.conformance.names FOLDER ...`.

A folder is the package `tlx` of a checkout of Meta's fork (`third_party/tlx/language/tlx`), or `utlx_plugin` of an
unpacked wheel. Its files are parsed, never imported. What the package exports is looked up in
`tlx_xdsl.language.tlx`: functions and classes by name, their parameters by keyword, methods and members of classes.
Prints what is missing, and exits with 1 where something is.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlx_xdsl.language import tlx
from tlx_xdsl.language.core import SPELLINGS, builtin_name

AMD_ONLY = "tlx.amd_only"
INTERNAL = "how that compiler makes values and IR"
EXCEPTIONS: tuple[tuple[str, str], ...] = (
    (r"CLCPipeliner", "stands in `__all__` of the fork, and is defined nowhere"),
    (r"dot_operand_layout\(op_idx=\)", "the others disagree about this name; ours is the fork's"),
    (r"padded_shared_layout_encoding\(.*", "kernels make it by with_identity_for and with_bases, which are the same"),
    (r"_to_mxfp8_block\((data|scale)_out_tile=\)", "of an early form that stored; the later one returns both"),
    (r"(buffered_tensor|mbarrier|clc_response|async_token|tensor_descriptor_ptr)(_type)?\(.*", INTERNAL),
    (r"(storage_alias_spec_type\w*|reuse_group_ir_type)\(.*", INTERNAL),
    (r"\w+\.(to_ir|mangle|make_permute|is_block)|TLX_WITH_DISPATCH|install_semantic|tlx_value", INTERNAL),
)
"""Patterns of what is missing on purpose, and why."""


@dataclass
class Exported:
    """Names that a package exports."""

    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of each function and class; of a method under `class.method`."""
    members: set[str] = field(default_factory=set[str])
    """Everything else, and names whose definition the folder does not hold."""


def exported(folder: Path) -> Exported:
    """Return what the package in `folder` exports.

    Raises FileNotFoundError for a folder that is no package.
    """
    root = ast.parse((folder / "__init__.py").read_text("utf-8"))
    result = Exported()
    for statement in ast.walk(root):
        if isinstance(statement, ast.ImportFrom) and statement.level and statement.module:
            definitions = _definitions(folder / f"{statement.module}.py")
            for alias in statement.names:
                name = alias.asname or alias.name
                if not name.startswith("_") or alias.name in _listed(root):
                    _add(result, name, definitions.get(alias.name))
    for name in _listed(root) - result.parameters.keys():
        result.members.add(name)
    return result


def _listed(root: ast.Module) -> set[str]:
    """The names in `__all__`."""
    return {
        word
        for statement in root.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
        for word in ast.literal_eval(statement.value)
    }


def _definitions(path: Path) -> dict[str, ast.stmt]:
    if not path.is_file():
        return {}
    body = ast.parse(path.read_text("utf-8")).body
    return {each.name: each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)}


def _add(result: Exported, name: str, definition: ast.stmt | None) -> None:
    if isinstance(definition, ast.FunctionDef):
        result.parameters[name] = _parameters(definition)
        return
    if not isinstance(definition, ast.ClassDef):
        result.members.add(name)
        return
    result.parameters[name] = ()
    for each in definition.body:
        if isinstance(each, ast.FunctionDef):
            if each.name == "__init__":
                result.parameters[name] = _parameters(each)
            elif not each.name.startswith("_"):
                result.parameters[f"{name}.{each.name}"] = _parameters(each)
        elif isinstance(each, ast.Assign) and not (member := ast.unparse(each.targets[0])).startswith("_"):
            result.members.add(f"{name}.{member}")


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    """Names that a caller may give: without the object of a method, and what the compiler fills in."""
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return tuple(each.arg for each in every if not each.arg.startswith("_") and each.arg not in ("self", "cls"))


def missing(package: Exported) -> Iterator[str]:
    """Yield what ours lacks: `name`, `class.member`, or `name(parameter=)`."""
    for name in sorted({*package.parameters, *package.members}):
        ours = _ours(name)
        if ours is _NOTHING:
            yield name
        elif builtin_name(ours) != AMD_ONLY and (taken := _taken(ours)) is not None:
            yield from (f"{name}({each}=)" for each in package.parameters.get(name, ()) if each not in taken)


_NOTHING = object()


def _ours(name: str) -> Any:
    found: Any = tlx
    for part in name.split("."):
        # The field of a dataclass is none of its class's attributes.
        found = getattr(found, part, getattr(found, "__annotations__", {}).get(part, _NOTHING))
    return found


def _taken(ours: Any) -> set[str] | None:
    """The parameters that ours takes; None where it takes any."""
    try:
        parameters = inspect.signature(ours).parameters
    except (TypeError, ValueError):
        return set()
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return {*parameters, *getattr(ours, SPELLINGS, ())}


def reason(name: str) -> str:
    """Return why a missing name is no gap; nothing where it is one."""
    return next((why for pattern, why in EXCEPTIONS if re.fullmatch(pattern, name)), "")


def main(arguments: list[str]) -> int:
    """Print what is missing for each folder; 1 where something is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    gaps = 0
    for folder in parser.parse_args(arguments).folders:
        package = exported(folder)
        lacking = list(missing(package))
        found = [name for name in lacking if not reason(name)]
        size = len(package.parameters.keys() | package.members), sum(map(len, package.parameters.values()))
        print(f"{folder}: {size[0]} names with {size[1]} parameters, {len(found)} missing")
        print(*(f"  {name}" for name in found), sep="\n", end="\n" if found else "")
        reasons = Counter(map(reason, lacking))
        reasons["for AMD GPUs only: a call of ours says so"] = sum(
            builtin_name(_ours(name)) == AMD_ONLY for name in package.parameters.keys() | package.members
        )
        for why, count in reasons.items():
            if why and count:
                print(f"  {count} left out: {why}")
        gaps += len(found)
    return int(gaps > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
