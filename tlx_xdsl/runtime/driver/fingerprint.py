"""Fingerprint of a compiled kernel, a hash that needs no compiler: the key of caches.

A kernel's fingerprint covers its own text, the text of all that it calls, and the values of the globals that any of
them reads. The compiler's covers every file of this package. Neither runs the frontend or loads xDSL, so that a
cached kernel starts as fast as reading a few files.
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from tlx_xdsl import wings
from tlx_xdsl.frontend.python.foreign import aggregate_of, constexpr_function_of, source_of
from tlx_xdsl.frontend.python.source import KernelSource

GlobalValues = dict[tuple[str, int], tuple[Any, Mapping[str, Any]]]
"""(name, id of its holder) -> (value, names of the holder): what Triton's runtime compares before every launch.

The holder is a function's globals, a module or a class.
"""

_PACKAGE = Path(__file__).parents[2]
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_COVERED = ("tlx_xdsl", "triton")
"""Packages whose versions are in the key anyway."""


@dataclass(frozen=True)
class Fingerprint:
    """The hash of a kernel's source with all that it reaches, and the plain globals among that."""

    digest: str
    global_values: GlobalValues = field(compare=False)


def kernel_fingerprint(source: KernelSource) -> Fingerprint:
    """The fingerprint of a kernel.

    Raises CompilationError where the text of a function that it calls is not available.
    """
    walk = _Walk()
    walk.function(source)
    if source.passes:
        walk.parts.add(f"passes {source.passes} {passes_fingerprint(source.passes)}")
    return Fingerprint(walk.digest(), walk.global_values)


def values_fingerprint(values: Mapping[Any, Any]) -> str:
    """The hash of the compile-time arguments of a kernel, by where they stand: functions by their text.

    Raises CompilationError where that is not available.
    """
    walk = _Walk()
    for place, value in values.items():
        walk.value(str(place), value)
    return walk.digest()


@functools.cache
def compiler_fingerprint() -> str:
    """The hash of this package's files, the versions of what it is built on, and the plug-ins of other packages."""
    own = _own_digest()
    others = wings.identity()
    return hashlib.sha256(f"{own}\n{others}".encode()).hexdigest() if others else own


@functools.cache
def _own_digest() -> str:
    """The hash of this package's files as they were when it was first asked for."""
    return _package_digest(_PACKAGE)


def passes_fingerprint(passes: tuple[str, ...]) -> str:
    """The hash of passes of other packages that a compile asks for; empty without any.

    Raises CompilationError for one that there is not.
    """
    if not passes:
        return ""
    from tlx_xdsl.transforms.placed import identity

    return identity(passes)


def compiler_changed() -> bool:
    """True if the package's files differ from what `compiler_fingerprint` saw: then its products are not cached."""
    return _own_digest() != _package_digest(_PACKAGE)


def _package_digest(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(content)}\n".encode())
        digest.update(content)
    digest.update(metadata.version("xdsl").encode())
    return digest.hexdigest()


class _Walk:
    """Visits functions, and collects a line of text for each thing that they depend on."""

    def __init__(self) -> None:
        self.parts: set[str] = set()
        self.global_values: GlobalValues = {}
        self._seen: set[int] = set()
        self._keep: list[object] = []

    def digest(self) -> str:
        """The hash of what was collected."""
        return hashlib.sha256("\n".join(sorted(self.parts)).encode()).hexdigest()

    def function(self, source: KernelSource) -> None:
        """A kernel or a helper: its text, and what its names stand for."""
        if self._met(source.fn):
            return
        # Lines are a part of the binary: they are its debug information, and what errors point at.
        self.parts.add(f"function {source.name}:{source.tree.lineno}:{source.noinline}:{source.text}")
        code, globals_ = source.fn.__code__, source.fn.__globals__
        own = _local_names(code)
        for name, attributes in _names(source.tree):
            found, value = source.lookup(name)
            if name in own or not found:
                continue
            resolved, rest, holder = _resolve(value, attributes)
            if holder is not None:
                if _may_change(holder) and _is_comparable(resolved):
                    attribute = attributes[len(attributes) - len(rest) - 1]
                    self.global_values[attribute, id(holder)] = (resolved, vars(holder))
            # A global of the function, not a variable of one that encloses it: those can't change unseen.
            elif name in globals_ and name not in code.co_freevars and _is_comparable(value):
                self.global_values[name, id(globals_)] = (value, globals_)
            self.value(name, resolved, rest)
        # Read once, when the function was defined: whatever has become of the names since then.
        for name, value in _defaults(source.fn):
            self.value(f"{source.name}({name}=...)", value)

    def value(self, name: str, value: Any, attributes: tuple[str, ...] = ()) -> None:
        """Add the value that a name, followed by the rest of its attributes, stands for."""
        if attributes:
            name = ".".join((name, *attributes))
        if (source := source_of(value)) is not None:
            if not source.is_library:
                self.function(source)
        elif isinstance(value, ModuleType) or _is_covered(value):
            self.parts.add(f"{name} is {getattr(value, '__name__', None) or value!r}")
        elif (helper := constexpr_function_of(value)) is not None or isinstance(value, FunctionType):
            self._helper(name, helper if helper is not None else value)
        elif isinstance(value, type):
            self._class(name, cast("type[Any]", value))
        else:
            self._object(name, value)

    def _helper(self, name: str, fn: Callable[..., Any]) -> None:
        """A Python function that runs at compile time; one without a text is known by its code alone."""
        fn = inspect.unwrap(fn)
        if not isinstance(fn, FunctionType) or fn.__name__ == "<lambda>":
            code = getattr(fn, "__code__", None)
            self.parts.add(f"{name} is {getattr(code, 'co_code', None)!r} {getattr(code, 'co_consts', None)!r}")
            return
        self.function(KernelSource(fn))

    def _class(self, name: str, value: type[Any]) -> None:
        value = aggregate_of(value) or value
        if self._met(value):
            return
        try:
            text, file = inspect.getsource(value), inspect.getsourcefile(value)
        except (OSError, TypeError):
            text, file = repr(sorted(vars(value))), None
        self.parts.add(f"class {name}:{text}")
        for key, member in vars(value).items():
            if isinstance(member, FunctionType) and member.__module__ == value.__module__:
                # What a decorator such as `dataclass` adds has no text of its own, nor what Python 3.14 adds.
                if file in (None, member.__code__.co_filename) and key != "__annotate_func__":
                    self._helper(f"{name}.{key}", member)
            elif not key.startswith("__") and (source_of(member) is not None or _is_plain(member)):
                self.value(f"{name}.{key}", member)

    def _object(self, name: str, value: Any) -> None:
        if isinstance(value, tuple | list):
            items = cast("tuple[Any, ...] | list[Any]", value)
            self.parts.add(f"{name} is {type(items).__qualname__} of {len(items)}")
            for index, item in enumerate(items):
                self.value(f"{name}[{index}]", item)
        elif isinstance(value, dict):
            for key, item in cast("dict[Any, Any]", value).items():
                self.value(f"{name}[{key!r}]", item)
        elif _is_plain(value) or not hasattr(value, "__dict__"):
            self.parts.add(f"{name} is {type(value).__qualname__} {_ADDRESS.sub('', repr(value))}")
        elif not self._met(value):
            # Python's own text of an object says where it is, not what it holds.
            text = "" if type(value).__repr__ is object.__repr__ else _ADDRESS.sub("", repr(value))
            self.parts.add(f"{name} is {type(value).__qualname__} {text}")
            for key, item in cast("dict[str, Any]", vars(value)).items():
                self.value(f"{name}.{key}", item)

    def _met(self, thing: object) -> bool:
        """Return whether we were here before; if not, we are now. Keeps it alive, for ids are used again."""
        if id(thing) in self._seen:
            return True
        self._seen.add(id(thing))
        self._keep.append(thing)
        return False


def _is_plain(value: Any) -> bool:
    """Return whether the text of a value says all of it."""
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in cast("tuple[Any, ...]", value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)


def _is_comparable(value: Any) -> bool:
    """True if a global can be compared with what it was: plain values, element types, and `constexpr` around them."""
    if isinstance(value, tuple):
        return all(map(_is_comparable, cast("tuple[Any, ...]", value)))
    if type(value).__name__ in ("constexpr", "dtype") and _home(value) in _COVERED:
        return _is_comparable(getattr(value, "value", None))
    # NaN is not even what it is itself.
    return _is_plain(value) and value == value


def _home(value: Any) -> str:
    """The package that defines an object's class."""
    return type(value).__module__.split(".")[0]


def _defaults(fn: Any) -> Iterator[tuple[str, Any]]:
    """The parameters that have a default, and its value."""
    positional = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    defaults = fn.__defaults__ or ()
    yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    yield from (fn.__kwdefaults__ or {}).items()


def _local_names(code: CodeType) -> set[str]:
    """The names that are a function's own everywhere: its parameters and variables, those of functions within too."""
    own: set[str] = set()
    read: set[str] = set()
    todo = [code]
    while todo:
        each = todo.pop()
        own.update(each.co_varnames, each.co_cellvars)
        read.update(step.argval for step in dis.get_instructions(each) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        todo.extend(constant for constant in each.co_consts if isinstance(constant, CodeType))
    return own - read


def _is_covered(value: Any) -> bool:
    """True if a function, a class or an object comes from a package whose version is in the key, or from Python."""
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        module = type(value).__module__
        if module == builtins.__name__:
            return False
    return module.split(".")[0] in (*_COVERED, builtins.__name__) and type(value).__name__ != "constexpr"


def _names(tree: ast.FunctionDef) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names in a function's annotations and body, each with the attributes that are taken of it: `cfg.tile.m`.

    Not those of its decorators and defaults, which the compiler does not read.
    """
    inner: set[int] = set()
    parameters = (node for node in ast.walk(tree.args) if isinstance(node, ast.arg) and node.annotation is not None)
    parts = (*(cast(ast.expr, node.annotation) for node in parameters), *tree.body)
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            attributes: list[str] = []
            base: ast.expr = node
            while isinstance(base, ast.Attribute):
                inner.add(id(base))
                attributes.insert(0, base.attr)
                base = base.value
            inner.add(id(base))
            if isinstance(base, ast.Name):
                yield base.id, tuple(attributes)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            yield node.id, ()


def _resolve(value: Any, attributes: tuple[str, ...]) -> tuple[Any, tuple[str, ...], ModuleType | type[Any] | None]:
    """Follow attributes through modules and classes: what is there, what is left of them, and who has it as its own."""
    holder: ModuleType | type[Any] | None = None
    while attributes and isinstance(value, ModuleType | type):
        owner = cast("ModuleType | type[Any]", value)
        members = cast("Mapping[str, Any]", vars(owner))
        if attributes[0] not in members:
            # Inherited, or made when it is asked for.
            if not hasattr(owner, attributes[0]):
                break
            value, holder = getattr(owner, attributes[0]), None
        else:
            value, holder = members[attributes[0]], owner
        attributes = attributes[1:]
    return value, attributes, holder


def _may_change(holder: ModuleType | type[Any]) -> bool:
    """Return whether the user may give a module's or a class's attributes other values."""
    if isinstance(holder, enum.EnumMeta):
        return False
    home = holder.__name__ if isinstance(holder, ModuleType) else holder.__module__
    return home.split(".")[0] not in (*_COVERED, *sys.stdlib_module_names)
