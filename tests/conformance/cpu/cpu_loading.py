"""Import the modules of the suites as they are, without what they need for anything but their kernels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.conformance.cpu.cpu_entries import one_config

PACKAGES = {
    "attorch": ("attorch",),
    "mamba": ("mamba_ssm", "ops", "ops.triton"),
    "unsloth": ("unsloth", "kernels"),
    "bitsandbytes": ("bitsandbytes", "backends", "backends.triton"),
    "xformers": ("xformers", "ops", "ops._triton"),
    "lmdeploy": ("lmdeploy", "pytorch", "pytorch.kernels", "pytorch.kernels.cuda"),
}
"""The package of a suite that is imported as it is, and those below it whose own `__init__` is left out.

Those import what is compiled, and models. The package's own is left out where there are any.
"""


OUTSIDE = {
    "unsloth": ("unsloth_zoo", "transformers"),
    "lmdeploy": ("lmdeploy.messages", "transformers"),
}
"""The modules that a suite imports and its kernels need next to nothing of: of other packages, or of much more."""

ABSENT = frozenset({"unsloth_zoo.mlx"})
"""Modules of them that a suite finds out by whether there are."""


def loader(suite: str, root: Path) -> Callable[[str], ModuleType]:
    """Return what imports modules of the suite in the folder `root/suite`, by their short names."""
    if suite == "inductor":
        installed = import_module("tests.conformance.cpu.inductor_on_cpu")
        installed.install()
        return lambda name: import_module(f"tests.conformance.cpu.{name}")
    folder = (root / suite).resolve()
    if not folder.is_dir():
        raise FileNotFoundError(f"no checkout of {suite} at {folder}")
    if suite == "vllm":
        sys.meta_path.insert(0, _OnlyKernels(folder))
        return lambda name: import_module(f"vllm.v1.worker.gpu.{name.replace('/', '.')}")
    if suite == "liger":
        sys.path.insert(0, str(folder / "src"))
        return lambda name: import_module(f"liger_kernel.ops.{name}")
    if suite == "fla":
        return _fla(folder)
    if suite in OUTSIDE:
        sys.meta_path.insert(0, _Outside(OUTSIDE[suite], folder))
    if suite in PACKAGES:
        return _package(folder, *PACKAGES[suite])
    return lambda name: _tutorial(folder / "python" / "tutorials" / f"{name}.py")


class _Outside(MetaPathFinder, Loader):
    """Stands in for modules, and for all below them."""

    def __init__(self, names: tuple[str, ...], folder: Path):
        self._names = names
        self._folder = folder

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname in ABSENT or not any(f"{fullname}.".startswith(f"{name}.") for name in self._names):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []
        if module.__name__ == "unsloth_zoo.utils":
            module.__dict__.update(Version=import_module("packaging.version").Version)
        if module.__name__ == "lmdeploy.messages":
            # What kinds of quantising there are: an enumeration of its own.
            tree = ast.parse((self._folder / "lmdeploy" / "messages.py").read_text(encoding="utf-8"))
            kinds = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "QuantPolicy"]
            module.__dict__.update(enum=import_module("enum"))
            exec(compile(ast.Module(list(kinds), []), "messages.py", "exec"), module.__dict__)


class _OnlyKernels(MetaPathFinder, Loader):
    """Finds vLLM's modules with kernels, and stands in for all of its others."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "vllm":
            return None
        place = self._folder.joinpath(*fullname.split("."))
        file = place.with_suffix(".py")
        if file.is_file() and "triton.jit" in file.read_text():
            return PathFinder.find_spec(fullname, [str(place.parent)])
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []
        if module.__name__ == "vllm.triton_utils":
            import triton

            module.__dict__.update(
                triton=triton, tl=triton.language, HAS_TRITON=True,
                tldevice=import_module("triton.language.extra.libdevice"),
            )  # fmt: skip
        if module.__name__ == "vllm.v1.attention.backends.utils":
            module.__dict__.update(PAD_SLOT_ID=-1)


class _StandIn(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _AnyName(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Anything(metaclass=_AnyName):
    """A class to inherit from, a type to annotate with, a decorator that changes nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args and callable(args[0]) else super().__new__(cls)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def _package(folder: Path, package: str, *bare: str) -> Callable[[str], ModuleType]:
    """Modules of a package, by their names below it; its tuners keep their first configuration."""
    sys.path.insert(0, str(folder))
    for name in ("", *bare) if bare else ():
        whole = f"{package}.{name}".rstrip(".")
        sys.modules[whole] = module = ModuleType(whole)
        module.__path__ = [str(folder.joinpath(*whole.split(".")))]

    def load(name: str) -> ModuleType:
        module = import_module(f"{package}.{name}")
        for each in [module for key, module in sys.modules.items() if key.partition(".")[0] == package]:
            one_config(each)
        return module

    return load


def _fla(folder: Path) -> Callable[[str], ModuleType]:
    """Load modules of `fla`, which asks the driver for a GPU; without one it takes tensors of the CPU."""
    sys.path.insert(0, str(folder))

    def load(name: str) -> ModuleType:
        with _no_driver():
            module = import_module(f"fla.ops.{name}")
        for each in [module for key, module in sys.modules.items() if key.startswith("fla.")]:
            one_config(each)
        return module

    return load


@contextmanager
def _no_driver() -> Generator[None]:
    driver: Any = import_module("triton").runtime.driver
    before = driver._active if hasattr(driver, "_active") else None
    driver.set_active(object())
    try:
        yield
    finally:
        driver.set_active(before)


def _tutorial(file: Path) -> ModuleType:
    """The definitions of a tutorial, without its own demonstrations and measurements."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    module = ModuleType(file.stem.replace("-", "_"))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    functions = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    for statement in tree.body:
        code = compile(ast.Module([statement], []), str(file), "exec")
        defines = isinstance(statement, ast.FunctionDef) and not _measures(statement)
        if defines or isinstance(statement, ast.Import | ast.ImportFrom | ast.ClassDef):
            exec(code, module.__dict__)
        elif isinstance(statement, ast.Assign | ast.If) and not _demonstrates(statement, functions):
            with suppress(NameError, RuntimeError):
                exec(code, module.__dict__)
    return module


def _measures(function: ast.FunctionDef) -> bool:
    text = " ".join(map(ast.unparse, function.decorator_list))
    return "perf_report" in text or "parametrize" in text


def _demonstrates(statement: ast.stmt, functions: set[str]) -> bool:
    """Return whether it runs a kernel, or makes tensors for that."""
    called = [each.func for each in ast.walk(statement) if isinstance(each, ast.Call)]
    names = {ast.unparse(each) for each in called}
    kept = {"is_cuda", "is_hip", "supports_tma", "supports_ws", "supports_host_descriptor", "keep", "is_hopper"}
    return any(name.startswith(("torch.", "print")) or name in functions - kept for name in names)
