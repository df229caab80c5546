"""Compile the kernels of the corpus with the installed Triton, up to TTIR and TTGIR: no GPU is needed.

python -m tests.corpus.generate --out DIR     writes every text to DIR/NAME.sm90.ttir and the like
"""

import argparse
import contextlib
import functools
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime import driver

from tests.corpus.stock import reprint
from tests.gallery import cases as gallery
from tests.gallery.cases import Case, Constant
from tests.gallery.language import stock
from tests.gallery.synchronisation import gluon

Level = Literal["ttir", "ttgir"]
LEVELS: tuple[Level, ...] = ("ttir", "ttgir")


@dataclass(frozen=True)
class CorpusEntry:
    """A text that the installed Triton printed, or the reason why there is none.

    `text` comes from a module that stock itself has read from a text, so stock reads and prints it without a change.
    That isn't always so for `first_print`, the text of the module just compiled: stock names values after their
    locations, but `scf.for` prints no locations of its arguments, so their names don't survive.
    """

    name: str
    level: Level
    arch: int
    text: str
    first_print: str
    skipped_reason: str | None = None

    @property
    def file_name(self) -> str:
        return f"{self.name}.sm{self.arch}.{self.level}"


@functools.cache
def cases() -> dict[str, Case]:
    """Return all kernels of the corpus by name."""
    for folder in (stock, gluon):
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)
    return gallery.named(gallery.registered())


def keys(level: Level) -> list[tuple[str, Level, int]]:
    """Return name, level and architecture of all entries of a level, without compiling them.

    Gluon kernels have no text at TTIR level. At that level there is hardly anything that depends on the architecture,
    so each kernel has one entry there.
    """
    return [
        (case.name, level, arch)
        for case in cases().values()
        if level == "ttgir" or not case.is_gluon
        for arch in (case.archs if level == "ttgir" else case.archs[:1])
    ]


@functools.cache
def entry(name: str, level: Level, arch: int) -> CorpusEntry:
    """Return one entry of the corpus, compiled by the installed Triton, or skipped if that can't express it."""
    case = cases()[name]
    if case.skipped_reason:
        return CorpusEntry(name, level, arch, "", "", case.skipped_reason)
    first_print = compiled(name, arch)[level]
    return CorpusEntry(name, level, arch, reprint(first_print), first_print)


def corpus(level: Level) -> list[CorpusEntry]:
    """Return all entries of a level, those that are skipped with the reason."""
    return [entry(*key) for key in keys(level)]


def skipped() -> dict[str, str]:
    """Return the kernels that the installed Triton can't express, each with the reason."""
    return {case.name: case.skipped_reason for case in cases().values() if case.skipped_reason}


@functools.cache
def compiled(name: str, arch: int) -> dict[Level, str]:
    """Compile a kernel with the installed Triton and return its text at each level, as stock prints it."""
    case = cases()[name]
    target = GPUTarget("cuda", arch, 32)
    with _active_target(target), warnings.catch_warnings():
        # Some kernels use what is deprecated: as long as it can be expressed, it can be met.
        warnings.simplefilter("ignore")
        backend = make_backend(target)
        options = backend.parse_options({"enable_fp_fusion": True, **case.options})
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        source = _source(case)
        module = source.make_ir(
            target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        metadata: dict[str, Any] = {}
        texts: dict[Level, str] = {}
        for level in LEVELS:
            if level in stages:
                module = stages[level](module, metadata)
                texts[level] = str(module)
    return texts


Attributes = dict[tuple[int, ...], list[list[Any]]]
"""What is known of arguments, by their position, and in a tuple by the position in it too."""


def _typed(argument: str, path: tuple[int, ...], attributes: Attributes) -> str:
    """Return the type of a run-time argument, and note by what it is divisible."""
    dtype, _, divisor = argument.partition(":")
    if divisor:
        attributes[path] = [["tt.divisibility", int(divisor)]]
    return dtype


def _source(case: Case) -> ASTSource:
    signature: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    attributes: Attributes = {}
    for position, parameter in enumerate(case.kernel.arg_names):
        argument = case.arguments[parameter]
        if isinstance(argument, str):
            signature[parameter] = _typed(argument, (position,), attributes)
        elif isinstance(argument, tuple):
            signature[parameter] = tuple(_typed(item, (position, i), attributes) for i, item in enumerate(argument))
        else:
            signature[parameter] = "constexpr"
            constants[parameter] = argument.value if isinstance(argument, Constant) else argument
    source = GluonASTSource if case.is_gluon else ASTSource
    return source(case.kernel, signature, constants, attributes)


class _TargetOnly:
    """Stands in for the driver of a GPU, which a few functions of the language ask for the target."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return self._target


@contextlib.contextmanager
def _active_target(target: GPUTarget) -> Iterator[None]:
    before = driver._active
    driver.set_active(_TargetOnly(target))
    try:
        yield
    finally:
        driver._active = before


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the corpus of texts that the installed Triton prints.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    entries = [entry for level in LEVELS for entry in corpus(level)]
    texts = [entry for entry in entries if entry.skipped_reason is None]
    for text in texts:
        (arguments.out / text.file_name).write_text(text.text, encoding="utf-8")
    for name, reason in skipped().items():
        print(f"skipped {name}: {reason}")
    print(f"Triton {triton.__version__}: {len(texts)} texts of {len(cases()) - len(skipped())} kernels")


if __name__ == "__main__":
    main()
