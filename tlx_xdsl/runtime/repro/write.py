"""The folder of a reproducer: the script, what it reads, and what was installed."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import metadata
from pathlib import Path
from string import Template
from typing import Any, cast

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.version import __version__

from ..driver.specialization import Specialization
from ..simulate.options import Options
from .arrays import NoPython, Values
from .failing import Failing, Failure, find_failure

SCRIPT = "repro.py"
_TEMPLATE = Path(__file__).with_name("script.txt")
_PACKAGES = ("tlx-xdsl", "xdsl", "triton", "numpy", "ml_dtypes", "torch", "llvmlite")
_VARIABLES = ("TRITON_", "TLX_", "CUDA_", "PTXAS_", "LLVM_", "MLIR_")
"""Beginnings of the names of variables that compiles and launches look at."""


def write(folder: Path, what: Failing, failure: Failure) -> Path:
    """Write a reproducer into a folder, which is made; return its script."""
    for part in ("arguments", "source"):
        # What an earlier one has left would be taken for a part of this one.
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
    values = Values(folder / "arguments")
    copy_sources(folder / "source", Path(what.source.filename))
    if failure.text is not None:
        (folder / _text_name(failure)).write_text(failure.text, encoding="utf-8")
    try:
        body = _body(what, failure, values)
    except NoPython as error:
        values.notes.append(f"not complete: {error}")
        body = f"raise NotImplementedError({str(error)!r})"
    script = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        error=_in_docstring(str(failure.error).splitlines()[0]),
        step=failure.step,
        kernel=what.source.name,
        notes="".join(f"{_in_docstring(note)}\n" for note in values.notes),
        versions=", ".join(f"{name} {version}" for name, version in versions().items()),
        body="\n".join(f"    {line}".rstrip() for line in body.splitlines()),
    )
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    (folder / "report.json").write_text(
        json.dumps(_report(what, failure, values), indent=2, default=repr), encoding="utf-8"
    )
    return folder / SCRIPT


def write_into(parent: str | Path, source: KernelSource, error: CompilationError, **what: Any) -> Path:
    """Write a reproducer of a failure that was just met into a folder of its own below `parent`; return its script.

    The step is looked for by running it again. Where nothing fails then, the reproducer is of the step that the
    arguments speak of.
    """
    options = what.get("options")
    if isinstance(options, Options) and options.order is not None:
        # The order in which it has failed, and no other one.
        what["options"] = replace(options, order=Orders(options.order.text))
    failing = Failing(source, **what)
    failure = find_failure(failing)
    if failure is None:
        failure = Failure("frontend" if failing.grid is None else "PTX machine", error)
    digest = hashlib.sha256(f"{error}{failure.text}".encode()).hexdigest()[:8]
    return write(Path(parent) / f"{source.name}-{failure.step.split()[0].lower()}-{digest}", failing, failure)


def _in_docstring(text: str) -> str:
    """A text as the docstring of the script has it, with other quotes than those that end it."""
    return text.replace("\\", "\\\\").replace('"', "'")


# --- the script -------------------------------------------------------------------------------------------------------


def _text_name(failure: Failure) -> str:
    return "module.ttgir" if failure.step == "Triton" else "module.mlir"


def _body(what: Failing, failure: Failure, values: Values) -> str:
    text = f"(HERE / {_text_name(failure)!r}).read_text(encoding='utf-8')"
    match failure.step:
        case "passes":
            return f"lower({text}, {installed_triton_version()!r})"
        case "Triton":
            assert what.specialization is not None, "only a compile gets there"
            options = what.specialization.backend_options(num_stages=what.num_stages)
            name = f"{what.specialization.symbol or what.source.symbol}.ttgir"
            return f"compile_ttgir({text}, {options!r}, source_name={name!r})"
        case "interpreter":
            arguments = [f"    {values.python(name, value)}," for name, value in failure.values]
            listed = "\n".join(["arguments = [", *arguments, "]"])
            options = _run_options(what.options, values)
            return f"{listed}\ntlx_xdsl.interpret_text({text}, {failure.sizes}, arguments{options})"
        case "frontend" | "ranks" | "PTX machine" | "launch":
            file = f"/source/{Path(what.source.filename).name}:{what.source.name}"
            load = f"kernel, _ = load_kernel(str(HERE) + {file!r})"
            if what.grid is not None:
                return f"{load}\n{_run_of_source(what, failure, values)}"
            assert what.specialization is not None, "what is no run is a compile"
            wanted = _specialization(what.specialization, values)
            return f"{load}\ncompile_text(kernel.source, {wanted}, triton_version={installed_triton_version()!r})"


def _run_of_source(what: Failing, failure: Failure, values: Values) -> str:
    given = [f"    {name!r}: {values.python(name, value)}," for name, value in what.arguments.items()]
    listed = "\n".join(["arguments = {", *given, "}"])
    options = _run_options(what.options, values).removeprefix(", ")
    return f"{listed}\nkernel.interpret({failure.sizes}, options=dict({options}), **arguments)"


def _run_options(options: Options, values: Values) -> str:
    usual = Options()
    changed = {
        each.name: getattr(options, each.name)
        for each in fields(Options)
        if each.name not in ("trace", "reachable") and getattr(options, each.name) != getattr(usual, each.name)
    }
    return "".join(f", {name}={values.python(name, _plain(value))}" for name, value in changed.items())


def _plain(value: Any) -> Any:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _specialization(wanted: Specialization, values: Values) -> str:
    usual = Specialization({})
    types = {name: values.python(name, type_) for name, type_ in wanted.signature.items()}
    constants = {name: values.python(name, value) for name, value in wanted.constexprs.items()}
    parts = [_mapping(types), _mapping(constants)]
    plain = replace(wanted, cluster=tuple(wanted.cluster))
    for each in fields(Specialization)[2:]:
        value = getattr(plain, each.name)
        if value != getattr(usual, each.name):
            parts.append(f"{each.name}={value!r}")
    return f"Specialization({', '.join(parts)})"


def _mapping(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in items.items()) + "}"


# --- what stands beside it --------------------------------------------------------------------------------------------


def copy_sources(folder: Path, file: Path) -> None:
    """Copy a file, and the files beside it that it imports."""
    if not file.is_file() or (folder / file.name).exists():
        return
    shutil.copy(file, folder / file.name)
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
        for name in names:
            beside = file.parent / name.split(".")[0]
            copy_sources(folder, beside.with_suffix(".py"))
            if (beside / "__init__.py").is_file() and not (folder / beside.name).exists():
                shutil.copytree(beside, folder / beside.name, ignore=shutil.ignore_patterns("__pycache__"))


def environment() -> dict[str, str]:
    """The variables that compiles and launches look at."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith(_VARIABLES)}


def versions() -> dict[str, str]:
    """Return what is installed of what compiles and launches depend on."""
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {"tlx-xdsl": __version__}


def _report(what: Failing, failure: Failure, values: Values) -> dict[str, Any]:
    return {
        "kernel": what.source.name,
        "file": what.source.filename,
        "step": failure.step,
        "error": str(failure.error),
        "kind": type(failure.error).__name__,
        "notes": values.notes,
        "versions": versions(),
        "platform": platform.platform(),
        "environment": environment(),
        "specialization": None if what.specialization is None else vars(what.specialization),
        "options": None if what.grid is None else vars(what.options),
        "grid": failure.sizes if what.grid is not None else None,
    }
