"""The plug-in point: what a package adds to the compiler, be it a part of this one or not.

A package names an object of the class `Wing` in the entry-point group `tlx_xdsl.wings`:

    [project.entry-points."tlx_xdsl.wings"]
    counting = "counting.wing:WING"

The object holds names only, so that nothing is imported before it is needed. TTL and the CPU are wings
of this package, found in the same way. `docs/plug-ins.md` shows a package of one pass.

Our wings come first, then those of others, each by name. Where two define the same name, the first has it, and a
warning says so.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tlx_xdsl.errors import CompilationError, InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tlx_xdsl.wings"
"""The group of entry points."""

DISTRIBUTION = "tlx-xdsl"
"""The distribution whose wings are ours."""

DISABLED = "TLX_NO_PLUGINS"
"""The environment variable that leaves out the wings of others, in child processes too; `--no-plugins` sets it."""

T = TypeVar("T")


def _names() -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Wing:
    """The names of what a package adds. A place is `module:attribute`, or `module` where that is said."""

    dialects: Mapping[str, str] = field(default_factory=_names)
    """Name of a dialect -> the place of xDSL's `Dialect`."""
    passes: Mapping[str, str] = field(default_factory=_names)
    """Name of a pass -> the module or the place of the `ModulePass` with that name."""
    former_passes: Mapping[str, str] = field(default_factory=_names)
    """Another name of a pass -> its name."""
    placed: Sequence[str] = ()
    """Passes of every compile, as `after:NAME=PASS` or `before:NAME=PASS` (`transforms/placed.py`)."""
    lowerings: Sequence[str] = ()
    """Modules that register the meaning of functions of the language (`frontend.calls.lowers`) when imported."""
    operations: Sequence[str] = ()
    """Modules that register the code of operations (`interpreter.registry`) when imported."""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Command of `tlx` -> a module with `add_arguments(parser)` and `run(args)`, and the line of `tlx --help`."""
    targets: Mapping[str, str] = field(default_factory=_names)
    """Value of `--target` -> a module with `compile(args)` and `explain(args)`, for `tlx compile` and `tlx explain`."""
    launchers: Mapping[str, str] = field(default_factory=_names)
    """Kind of memory that a launch finds its arrays in (`cpu`) -> the place of what launches there."""
    stages: Mapping[str, str] = field(default_factory=_names)
    """Stage of `tlx run --stage` and `kernel.interpret` -> the place of a function that returns the passes from the
    frontend's module to it."""
    findings: Sequence[str] = ()
    """Places of functions that yield the lines of `tlx doctor` (`tools.commands.doctor.Finding`)."""


@dataclass(frozen=True)
class Installed:
    """A wing, and the package that has it."""

    name: str
    """The name of the entry point."""
    wing: Wing
    distribution: str
    version: str
    module: str
    """The module that holds the object."""

    @property
    def is_ours(self) -> bool:
        """Return whether this package brings it."""
        return self.distribution == DISTRIBUTION

    @property
    def owner(self) -> str:
        """Return how messages name it."""
        return f"plug-in '{self.name}' of {self.distribution} {self.version}"


@cache
def installed() -> tuple[Installed, ...]:
    """Return all wings in their order. A package whose object can't be imported is left out with a warning."""
    return tuple(_installed())


def _installed() -> Iterator[Installed]:
    for point, distribution, version in _entry_points():
        if distribution != DISTRIBUTION and os.environ.get(DISABLED):
            continue
        made = Installed(point.name, Wing(), distribution, version, point.value.partition(":")[0])
        wing = guarded(made, point.load)
        if isinstance(wing, Wing):
            yield Installed(made.name, wing, distribution, version, made.module)
        elif wing is not None:
            leave_out(made, f"{point.value} is no tlx_xdsl.wings.Wing, but of {type(wing).__name__}")


def _entry_points() -> list[tuple[EntryPoint, str, str]]:
    from importlib import metadata

    found = [
        (point, point.dist.name if point.dist else "?", point.dist.version if point.dist else "?")
        for point in metadata.entry_points(group=GROUP)
    ]
    if not any(name == DISTRIBUTION for _, name, _ in found):
        found.extend((metadata.EntryPoint(name, place, GROUP), DISTRIBUTION, "") for name, place in _of_the_tree())
    return sorted(found, key=lambda each: (each[1] != DISTRIBUTION, each[0].name, each[1]))


def _of_the_tree() -> Iterator[tuple[str, str]]:
    """Yield our own entry points where the package was not installed but lies in a checkout on the path."""
    import tomllib

    file = Path(__file__).parents[1] / "pyproject.toml"
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        yield from project["entry-points"][GROUP].items()


def guarded(owner: Installed, load: Callable[[], T]) -> T | None:
    """Return what `load` imports of a wing. One of another package that fails is a warning, and None."""
    if owner.is_ours:
        return load()
    try:
        return load()
    except (Exception, SystemExit) as error:  # Code of others may fail in every way, and is not to break the compiler.
        leave_out(owner, f"{type(error).__name__}: {error}")
        return None


def leave_out(owner: Installed, why: str) -> None:
    """Warn that a wing, or one thing that it names, is not taken."""
    warnings.warn(f"the {owner.owner} is left out: {why} (--no-plugins does without)", RuntimeWarning, stacklevel=2)


def names(kind: str, taken: Collection[str] = ()) -> dict[str, tuple[Any, Installed]]:
    """Return what all wings name of a kind, such as `passes`: name -> its place, and whose it is.

    `taken` are names that the core has: a wing's of the same name is left out with a warning.
    """
    found: dict[str, tuple[Any, Installed]] = {}
    for each in installed():
        for name, place in getattr(each.wing, kind).items():
            if name in taken:
                leave_out(each, f"'{name}' of its {kind} is one of tlx_xdsl itself")
            elif name in found:
                leave_out(each, f"'{name}' of its {kind} is one of the {found[name][1].owner}")
            else:
                found[name] = place, each
    return found


def attribute(place: str) -> Any:
    """Return what a place `module:attribute` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def import_all(kind: str) -> None:
    """Import, once, the modules that all wings name of a kind: `lowerings` or `operations`."""
    for each in installed():
        for module in getattr(each.wing, kind):
            guarded(each, lambda module=module: import_module(module))


def launcher(kind: str) -> Any:
    """Return what launches kernels on arrays in a kind of memory.

    Raises ValueError where no wing does.
    """
    found = names("launchers").get(kind)
    if found is None:
        raise InputError(f"no installed package of tlx_xdsl launches on '{kind}'")
    return attribute(found[0])


# --- identity: a part of the keys of caches -------------------------------------------------------------------------


@cache
def identity() -> str:
    """Return the names, versions and hashes of the wings of others, a line each; empty without any."""
    return "\n".join(
        f"{each.name} {each.distribution} {each.version} {source_digest(each.module)}"
        for each in installed()
        if not each.is_ours
    )


@cache
def source_digest(module: str) -> str:
    """Return the hash of the Python files of the package that a module lies in; of its own file if it lies in none.

    Raises CompilationError for a module that has no file.
    """
    top = import_module(module.partition(".")[0])
    folders, file = getattr(top, "__path__", None), getattr(top, "__file__", None)
    if folders is None and file is None:
        raise CompilationError(f"the module '{module}' has no file: a pass that compiles are cached by needs one")
    files = [path for folder in folders for path in Path(folder).rglob("*.py")] if folders else [Path(str(file))]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
