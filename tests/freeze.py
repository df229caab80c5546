"""Hashes of what the compiler makes, for reorganisations that may not change any of it.

    python -m tests.freeze --write FILE [--text DIR]        before
    python -m tests.freeze --compare FILE [--text DIR]      after each step; the exit status is 1 where anything differs
        --only ttgir,ptx                                    some of the categories

FILE has one hash for each `category/item`, DIR the texts themselves. Names of items and texts have no paths, no names of
our modules and no line numbers of our files, so that files may move. Kernels to import are those that the tests in
`tests/unit/kernels` launch and compile, without torch and without a GPU: the tests run with launches that only note what
they are of. A kernel's item is named by a hash of its types, constants and options, which DIR has in its first line.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.oracle import loading, ours
from tlx_xdsl.backend import compile_in_this_process, compile_ttgir
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.runtime import build
from tlx_xdsl.runtime.compilation import Specialization, compile_text
from tlx_xdsl.runtime.specialization import Conversion
from tlx_xdsl.targets import TARGETS
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.tools.loading import kernels_of_file

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""Versions of Triton in whose spellings TTGIR is printed; PTX is that of the installed one."""
PROCESSES = 2

Made = Iterable[tuple[str, str]]
"""Names of items, and their texts."""
Job = Callable[[], Made]

# --- texts ----------------------------------------------------------------------------------------------------------

_OUR_FILE = re.compile(rf"{re.escape(str(ROOT))}/(?:[\w.-]+/)*([\w-]+\.py)(?:(\", line |\":|:)\d+)?")
_OTHER_FILE = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+\.\w+)")
_MLIR_LOCATION = re.compile(r' loc\((?:#\w+|unknown|"(?:[^"\\]|\\.)*"(?:\(#\w+\)|:\d+:\d+)?)\)')
_PTX_DEBUG = re.compile(r"^\s*(?:\.file|\.loc)\b.*\n|^\s*\.section\s+\.debug_[^}]*\}\n|^\$L__(?:tmp|func_)\w*:\n", re.M)
_KERNEL = re.compile(r"<tlx_xdsl\.Kernel (\w+)\(.*?\) of \S+?>")
_FUNCTION = re.compile(r"<function (?:\w+\.)*(\w+) at 0x\w+>")
_HEAD = re.compile(r"\A// of .*\n")
_MODULE = re.compile(r"\btlx_\w+(?:\.\w+)*\.(\w+)")


def without_places(text: str) -> str:
    """Return a text with the names of files for their paths, and without line numbers of files of this repository."""
    return _OTHER_FILE.sub(r"\1", _OUR_FILE.sub(lambda found: found[1] + (f"{found[2]}_" if found[2] else ""), text))


def outcome(make: Callable[[], str]) -> str:
    """Return the text that is made, or the error, and the warnings and remarks below it."""
    with collected_diagnostics() as said:
        try:
            text = make()
        except CompilationError as error:
            text = f"refused: {error}"
        # Whatever is raised is what comes of the item.
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return without_places("\n".join([text, *map(str, said)]))


# --- TTGIR and PTX ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """A kernel to compile; `key` says which of its specializations."""

    source: KernelSource
    specialization: Specialization
    key: str = ""
    is_compiled: bool = False
    """Whether a test asks for its binary."""

    @property
    def name(self) -> str:
        """The item's name."""
        return f"{self.source.name}{self.key and '-'}{self.key}"

    def text(self, version: str, conversion: Conversion = "auto") -> str:
        """Return the input of a Triton version."""
        compiled = compile_text(
            self.source, self.specialization,
            triton_version=version, conversion=conversion, keep_ttir=False, verify_each=False,
        )  # fmt: skip
        return compiled.ttgir

    def spelled(self, version: str, conversion: Conversion = "auto") -> str:
        """Return the same without locations."""
        lines = self.text(version, conversion).splitlines()
        return _MLIR_LOCATION.sub("", "\n".join(line for line in lines if not line.startswith("#loc")))

    def ttgir(self, title: str) -> Iterator[tuple[str, str]]:
        """Make the texts for all versions, of a plain kernel also with our own conversion to TTGIR."""
        for version in VERSIONS:
            text = outcome(lambda version=version: self.spelled(version))
            yield f"{title}@{version}", self._headed(text)
            if "ttg." not in text:
                yield f"{title}@{version}-own", self._headed(outcome(lambda v=version: self.spelled(v, "own")))

    def ptx(self, title: str) -> Iterator[tuple[str, str]]:
        """Make the PTX of the installed Triton, without what is for debuggers."""

        def make() -> str:
            options = self.specialization.backend_options()
            return _PTX_DEBUG.sub("", compile_ttgir(self.text(VERSIONS[-1]), options, stages="ptx").ptx)

        yield title, self._headed(outcome(make))

    def _headed(self, text: str) -> str:
        return f"// of {_config(self.specialization)}\n{text}"


def _config(wanted: Specialization) -> str:
    """Return the types, constants and options of a kernel in one line, without names of modules."""
    options = (wanted.target, wanted.num_warps, wanted.cluster, wanted.maxnreg)
    text = repr((sorted(wanted.signature.items(), key=str), sorted(wanted.constexprs.items(), key=str), options))
    return _MODULE.sub(r"\1", _FUNCTION.sub(r"\1", _KERNEL.sub(r"\1", text)))


def oracle_kernels() -> Iterator[Wanted]:
    """Return the oracle's kernels, and those of the corpus that are of the plain language."""
    every = [*loading.names(), *((loading.CORPUS, name) for name in loading.corpus_names())]
    for path, name in every:
        case = loading.load(path, ours=True)[name]
        signature, constexprs = ours.argument_types(case)
        for arch in case.archs:
            wanted = Specialization(signature, constexprs, f"sm_{arch}a", case.options.get("num_warps", 4))
            yield Wanted(ours.source(case.kernel), wanted, f"{name}-sm_{arch}a")


def example_kernels() -> Iterator[tuple[str, Wanted]]:
    """Return the kernels of the examples, and the file of each."""
    for path in sorted(ROOT.glob("examples/*.py")):
        # An example imports torch, of which its kernels need nothing; what is loaded later is to miss it, or to find it.
        with mock.patch.dict(sys.modules, torch=mock.MagicMock()):
            kernels = kernels_of_file(str(path)).values()
        for kernel, defaults in kernels:
            options = {name: value for name, value in defaults.options.items() if name != "num_stages"}
            if defaults.signature:
                yield (
                    path.stem,
                    Wanted(kernel.source, Specialization(defaults.signature, defaults.constexprs, **options)),
                )


def ttgir_jobs() -> Iterator[Job]:
    for stem, wanted in example_kernels():
        yield partial(wanted.ttgir, f"{stem}.{wanted.name}")


def ptx_jobs() -> Iterator[Job]:
    for stem, wanted in example_kernels():
        yield partial(wanted.ptx, f"{stem}.{wanted.name}")


# --- the program ------------------------------------------------------------------------------------------------------

CATEGORIES: Mapping[str, Callable[[], Iterator[Job]]] = {"ttgir": ttgir_jobs, "ptx": ptx_jobs}

_jobs: list[Job] = []
"""Those of a category: its processes are forks, and find them here."""


def _run(at: int) -> list[tuple[str, str]]:
    compile_in_this_process()
    return list(_jobs[at]())


def texts_of(category: str) -> dict[str, str]:
    """Make the texts of a category in processes of their own, and say how long that took."""
    began, cpu = time.monotonic(), _cpu_seconds()
    _jobs[:] = CATEGORIES[category]()
    found: dict[str, str] = {}
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork")) as pool:
        for made in pool.map(_run, range(len(_jobs))):
            for name, text in made:
                if name in found:
                    raise ValueError(f"two items are called {category}/{name}")
                found[name] = text
    seconds = f"{time.monotonic() - began:.0f} s, CPU {_cpu_seconds() - cpu:.0f} s"
    print(f"{category}: {len(found)} items, {seconds}", flush=True)
    return found


def _cpu_seconds() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def hashed(text: str) -> str:
    """Return the hash of an item's text, without the line that says what it is of."""
    return hashlib.sha256(_HEAD.sub("", text).encode()).hexdigest()[:16]


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each item that differs, is new or is gone; one that has another name only is named with it."""
    gone = {hash_: name for name, hash_ in before.items() if name not in after}
    for name in sorted({*before, *after}):
        if name not in before:
            old = gone.pop(after[name], None)
            yield f"new      {name}" if old is None else f"renamed  {old} -> {name}"
        elif name in after and before[name] != after[name]:
            yield f"differs  {name}"
    yield from (f"gone     {name}" for name in sorted(gone.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--write", type=Path, metavar="FILE")
    wanted.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--only", default=",".join(CATEGORIES), help=f"some of {', '.join(CATEGORIES)}")
    parser.add_argument("--text", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    categories = arguments.only.split(",")
    hashes: dict[str, str] = {}
    for category in categories:
        for name, text in texts_of(category).items():
            hashes[f"{category}/{name}"] = hashed(text)
            if arguments.text:
                path = arguments.text / category / (re.sub(r"[^\w.@+=-]", "_", name) + ".txt")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if arguments.write:
        arguments.write.write_text(json.dumps(hashes, indent=0, sort_keys=True) + "\n")
        return 0
    known = json.loads(arguments.compare.read_text())
    before = {name: hash_ for name, hash_ in known.items() if name.partition("/")[0] in categories}
    lines = list(differences(before, hashes))
    print("\n".join([*lines, f"{len(lines)} of {len(hashes)} items differ"]))
    return bool(lines)


if __name__ == "__main__":
    raise SystemExit(main())
