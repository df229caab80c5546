"""The layering of the packages, and rules that hold for every file.

A package is one directly under `tlx_xdsl`; a few modules there count as packages, too. It may import packages of
lower layers only.
"""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.size import BUDGETS, FULLEST, UNGROUPED

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tlx_xdsl"

LOWEST = {
    "aliases", "annotations", "by_name", "element_types", "errors", "forks", "lifeline", "progress", "targets",
    "terminal", "version", "wings",
}  # fmt: skip
"""What every package may import."""

LAYERS = {
    "aliases": -2,
    "annotations": -2,
    "by_name": -2,
    "element_types": -2,
    "errors": -2,
    "forks": -2,
    "lifeline": -2,
    "progress": -2,
    "terminal": -2,
    "grid": -1,
    "targets": -1,
    "version": -1,
    "wings": -1,
    "layouts": 0,
    "numerics": 0,
    "dialects": 1,
    "text": 2,
    "analysis": 3,
    "addresses": 4,
    "transforms": 4,
    "language": 3,
    "frontend": 5,
    "decompile": 5.5,
    "interpreter": 6,
    "ptx": 7,
    "backend": 7,
    "sass": 7.5,
    "timing": 7.6,
    "runtime": 8,
    "compat": 9,
    "torch": 9,
    "gate": 9.5,
    "tools": 10,
    # The wings: nothing of the core imports them, nor one the other.
    "cpu": 11,
    "ttl": 11,
    # The public names of the whole, with which kernels are written.
    "__init__": 12,
    "kernels": 13,
}

WINGS = {"cpu", "kernels", "ttl"}
"""Packages that plug in by `wings.py`, or that only use the whole."""

ALONE = {"language", "backend"}
"""Packages that import nothing of ours but the lowest layer: users' kernels and the worker start with them."""

RUNTIME_LAYERS = {
    "launch": 0,
    "show": 0,
    "driver": 1,
    "ranks": 1.5,
    "simulate": 2,
    "check": 3,
    "measure": 3,
    "clock": 3.5,
    "": 4,
    "bundle": 5,
    "host": 5,
    "specialize": 5.5,
    "repro": 5,
    "jit": 6,
    "sweep": 6,
}
"""The packages of `runtime`; the files beside them hold the class of kernels and what its methods do."""

TRITON_ALLOWED = {"backend", "runtime", "compat", "torch"}
"""Packages that may import Triton, somewhere: no `__init__` does."""

MAKES_OPERATORS = {PACKAGE / "kernels" / "library.py"}
"""What is imported to have operators of torch made, and so imports torch."""

WITHOUT_XDSL = {
    "aliases",
    "annotations",
    "by_name",
    "element_types",
    "errors",
    "forks",
    "grid",
    "lifeline",
    "targets",
    "version",
    "wings",
    "layouts",
    "numerics",
    "language",
    "ptx",
    "sass",
    "timing",
    "backend",
}
"""Packages in which no file imports xDSL."""

ENTRY_WITHOUT_XDSL = WITHOUT_XDSL | {"runtime", "__init__"}
"""Packages whose `__init__` can be imported without loading xDSL."""


PACKAGES = [package for package in LAYERS if (PACKAGE / package).is_dir() or (PACKAGE / f"{package}.py").is_file()]


def may_import(package: str, other: str) -> bool:
    """Say whether a file of `package` may import something of the package `other`."""
    if package == other:
        return True
    if package in ALONE:
        return other in LOWEST
    return LAYERS[other] < LAYERS[package]


def files_of(package: str) -> list[Path]:
    """Return the Python files of a package."""
    module = PACKAGE / f"{package}.py"
    if module.is_file():
        return [module]
    return sorted((PACKAGE / package).rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name under which a file of the package is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which several tests walk."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of all that a file imports, wherever in the file the import stands.

    `from a import b` yields `a.b`: what follows the module's name does no harm below.
    """
    own_package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = own_package[: len(own_package) - level + 1] if level else ()
                prefix = ".".join([*parents, *([module] if module else [])])
                yield from ((node.lineno, f"{prefix}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def package_of(name: str) -> str | None:
    """Return the package that a dotted name belongs to; None for what is not ours."""
    root, *rest = name.split(".")
    if root != "tlx_xdsl":
        return None
    return rest[0] if rest and rest[0] in LAYERS else "__init__"


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("numpy.typing", None),
        ("tlx_xdsl", "__init__"),
        ("tlx_xdsl.jit", "__init__"),
        ("tlx_xdsl.layouts.shared.nbytes", "layouts"),
        ("tlx_xdsl.backend.compile", "backend"),
        ("tlx_xdsl.cpu.codegen.module", "cpu"),
    ],
)
def test_package_of(name: str, package: str | None):
    assert package_of(name) == package


def test_every_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "tlx_xdsl" / "text" / "parser.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import json, xdsl.ir as ir\n"
        "from . import printer\n"
        "from ..errors import CompilationError as E\n"
        "def f():\n"
        "    from tlx_xdsl import dialects\n"
        "    importlib.import_module('triton.knobs')\n"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert sorted(imports_of(path)) == [
        (1, "json"),
        (1, "xdsl.ir"),
        (2, "tlx_xdsl.text.printer"),
        (3, "tlx_xdsl.errors.CompilationError"),
        (5, "tlx_xdsl.dialects"),
        (6, "triton.knobs"),
    ]


def test_every_module_belongs_to_a_package():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert sorted(found - LAYERS.keys()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_climbs(package: str):
    """Every import statement of the package's files, those inside functions included."""
    climbing = [
        f"{path.relative_to(ROOT)}:{line}: {package} must not import {other} ({name})"
        for path in files_of(package)
        for line, name in imports_of(path)
        if (other := package_of(name)) and not may_import(package, other)
    ]
    assert climbing == []


def test_the_core_imports_no_wing_and_no_wing_another():
    crossing = [
        f"{path.relative_to(ROOT)}:{line}: {package} must not import {other} ({name}): it plugs in (wings.py)"
        for package in PACKAGES
        if package != "__init__"
        for path in files_of(package)
        for line, name in imports_of(path)
        if (other := package_of(name)) in WINGS - {package}
    ]
    assert crossing == []


def test_every_wing_that_plugs_in_is_an_entry_point():
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    plugged = {path.parent.name: f"tlx_xdsl.{path.parent.name}.wing:WING" for path in PACKAGE.glob("*/wing.py")}
    assert named["tlx_xdsl.wings"] == plugged
    assert plugged.keys() <= WINGS


def test_packages_of_the_runtime_import_lower_ones_only():
    runtime = PACKAGE / "runtime"

    def layer_of(name: str) -> str:
        first = name.removeprefix("tlx_xdsl.runtime.").partition(".")[0]
        return first if first in RUNTIME_LAYERS else ""

    climbing = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files_of("runtime")
        if path != runtime / "__init__.py"
        for line, name in imports_of(path)
        if name.startswith("tlx_xdsl.runtime.")
        and (own := layer_of(module_name(path))) != (other := layer_of(name))
        and RUNTIME_LAYERS[other] >= RUNTIME_LAYERS[own]
    ]
    assert climbing == []


ALLOWED_CYCLES: set[tuple[str, ...]] = {
    ("addresses.carried", "addresses.loops", "addresses.walk", "addresses.while_loops"),
    ("addresses.model", "addresses.values"),
}
"""Files that import each other in a circle, by their names below `tlx_xdsl`."""


def import_graph(paths: dict[str, Path]) -> dict[str, set[str]]:
    """Return the files that each file imports, anywhere in it, by dotted name; `paths` gives the file of each name.

    Stubs are left out: they describe to type checkers what refers to itself, such as tensors, whose methods are
    functions of tensors, and are never imported by a program.
    """
    stubs = {module_name(path) for path in PACKAGE.rglob("*.pyi")}

    def file_of(name: str) -> str:
        while name and name not in paths:
            if name in stubs:
                return ""
            name = name.rpartition(".")[0]
        return name

    return {name: {file_of(other) for _, other in imports_of(path)} - {name, ""} for name, path in paths.items()}


def cycles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """Return the strongly connected components of several nodes (Tarjan, SIAM J. Comput. 1(2), 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[tuple[str, ...]] = set()

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == order[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.add(tuple(sorted(stack[at:])))
            del stack[at:]

    for node in graph:
        if node not in order:
            visit(node)
    return found


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g", "e"}, "g": {"f", "a"}}
    assert cycles(graph) == {("a", "b", "c"), ("f", "g")}


def test_files_form_no_cycles():
    """Imports inside functions and for type checkers count: a cycle is one design, wherever it is written down."""
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    found = {tuple(name.removeprefix("tlx_xdsl.") for name in names) for names in cycles(import_graph(paths))}
    assert sorted(found - ALLOWED_CYCLES) == []
    assert sorted(ALLOWED_CYCLES - found) == [], "these cycles are gone: delete their lines"


@pytest.mark.parametrize("package", PACKAGES)
def test_triton_and_xdsl_stay_where_they_belong(package: str):
    rules = {"xdsl": package in WITHOUT_XDSL, "triton": package not in TRITON_ALLOWED}
    forbidden = {library for library, applies in rules.items() if applies}
    imported = [
        f"{path.relative_to(ROOT)}:{line}: {package} must not import {name}"
        for path in files_of(package)
        for line, name in imports_of(path)
        if name.split(".")[0] in forbidden
    ]
    assert imported == []


IMPORT_AND_REPORT = """\
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def loaded_by(*names: str) -> set[str]:
    """Return the modules that a fresh process has loaded after importing the named ones."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_REPORT, *names],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def names_to_import(package: str) -> list[str]:
    """Return the modules to import: all of a package, but only its entry point if there may be Triton further in."""
    if package in TRITON_ALLOWED or package == "__init__":
        return ["tlx_xdsl" if package == "__init__" else f"tlx_xdsl.{package}"]
    return [module_name(path) for path in files_of(package) if path.stem != "__main__" and path not in MAKES_OPERATORS]


@pytest.mark.parametrize("package", [package for package in PACKAGES if package not in {"compat", "torch"}])
def test_a_package_is_imported_alone(package: str):
    """A fresh process loads nothing from above, nor Triton and torch, nor xDSL where it is not needed."""
    loaded = loaded_by(*names_to_import(package))
    # A kernel is made for Triton's runtime where it is decorated, so a module with kernels loads Triton.
    forbidden = (
        {"torch"}
        | ({"triton"} if package != "kernels" else set())
        | ({"xdsl"} if package in ENTRY_WITHOUT_XDSL else set())
    )
    assert sorted(forbidden & loaded) == []
    # Whoever asks for plug-ins has loaded the names of ours.
    plugged = {f"tlx_xdsl.{wing}{module}" for wing in WINGS for module in ("", ".wing")}
    packages = {package_of(name) for name in loaded - plugged if name.startswith("tlx_xdsl.")} - LOWEST
    assert sorted(other for other in packages if not may_import(package, other)) == []


@functools.cache
def repository_files() -> list[Path]:
    """Return the repository's files, also those not added yet, as git sees them or else as they lie there."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        generated = {"build", "dist", "__pycache__"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part in generated or (part.startswith(".") and part != ".ci")
                for part in path.relative_to(ROOT).parts[:-1]
            )
        ]
    return sorted(path for path in paths if path.is_file())


def test_the_repository_s_files_are_found():
    assert {ROOT / "pyproject.toml", PACKAGE / "errors.py", Path(__file__)} <= set(repository_files())


def test_no_file_names_a_path_of_one_machine():
    place = re.compile(rb"(?<![\w.\-/])/(?:work/|opt/envs\b)")
    named = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in repository_files()
        for match in place.finditer(path.read_bytes())
    ]
    assert named == []


def test_every_python_file_says_what_it_is():
    silent = [
        str(path.relative_to(ROOT))
        for path in repository_files()
        if path.suffix == ".py" and not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def full_folders(names: Iterable[str]) -> dict[str, int]:
    """Return the folders of the package, its tests and its benchmarks with more files than a reader takes in."""
    counts = Counter(
        name.rpartition("/")[0] for name in names if name.startswith(("tlx_xdsl/", "tests/", "benchmarks/"))
    )
    return {folder: count for folder, count in counts.items() if count > BUDGETS[FULLEST]}


def test_no_folder_holds_more_files_than_a_reader_takes_in():
    names = [path.relative_to(ROOT).as_posix() for path in repository_files()]
    allowed = {f"tlx_xdsl/{name}" for name in UNGROUPED}
    assert {folder: count for folder, count in full_folders(names).items() if folder not in allowed} == {}
    assert allowed <= full_folders(names).keys(), "these folders are no longer full: delete their exception"


def test_a_full_folder_is_found():
    names = [f"{folder}/{number}.py" for folder in ("tests/a", "tests/a/b", "docs") for number in range(30)]
    assert full_folders(names) == {}
    assert full_folders([*names, "tests/a/b/30.json", "docs/30.md"]) == {"tests/a/b": 31}
