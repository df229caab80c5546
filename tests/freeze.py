"""Hashes of what the compiler makes, for reorganisations that may not change any of it.

    python -m tests.freeze --write FILE [--text DIR]        before
    python -m tests.freeze --compare FILE [--text DIR]      after each step; the exit status is 1 where anything differs
        --only ttgir,ptx                                    some of the categories

FILE has one hash for each `category/item`, DIR the texts themselves. Names and texts have no paths, no names of our
modules and no line numbers of our files, so that files may move. Kernels to import are those that the tests in
`tests/unit/kernels` launch and compile, without torch and without a GPU: the tests run with launches that only note
what they are of. Such an item is named by a hash of types, constants and options, which DIR has in its first line.
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.errors.catalogue import TOPICS
from tests.errors.entry import Entry
from tests.fuzz import ttl as fuzzed_ttl, ttl_programs
from tests.gallery.cases import Case
from tests.gallery.synchronisation.zoo import kernels as zoo
from tests.gallery.synchronisation.zoo.judging import rows
from tests.gallery.synchronisation.zoo.mutations import sites
from tests.oracle import loading, ours
from tests.zoo import test_zoo_ptx
from tests.zoo.bugs import Bug, Clean
from tests.zoo.table import AREAS, CLEAN
from tlx_xdsl.backend import compile_in_this_process, compile_ttgir
from tlx_xdsl.compat.__main__ import main as run_script
from tlx_xdsl.cpu.codegen.host import named_host
from tlx_xdsl.cpu.codegen.module import llvm_module
from tlx_xdsl.cpu.runtime.build import CpuSpecialization, bufferized_module
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.runtime import build
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.driver.specialization import Conversion
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.targets import TARGETS
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics
from tlx_xdsl.tools.launch_line.loading import kernels_of_file, run_file
from tlx_xdsl.ttl import runtime as ttl

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""Versions of Triton in whose spellings TTGIR is printed; PTX is that of the installed one."""
PROCESSES = 2

Made = Iterable[tuple[str, str]]
"""Names of items, and their texts."""
Job = Callable[[], Made]

# --- texts ----------------------------------------------------------------------------------------------------------

_OUR_FILE = re.compile(rf"{re.escape(str(ROOT))}/(?:[\w.-]+/)*([\w-]+\.py)(?:(\", line |\":|:)\d+)?")
_LINE = re.compile(r"(\w\.ptx:|^#line |\"line\": )\d+", re.M)
_OTHER_FILE = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+\.\w+)")
_MLIR_LOCATION = re.compile(r'^#loc.*\n| loc\((?:#\w+|unknown|"(?:[^"\\]|\\.)*"(?:\(#\w+\)|:\d+:\d+)?)\)', re.M)
_PTX_DEBUG = re.compile(r"^\s*(?:\.file|\.loc)\b.*\n|^\s*\.section\s+\.debug_[^}]*\}\n|^\$L__(?:tmp|func_)\w*:\n", re.M)
_KERNEL = re.compile(r"<tlx_xdsl\.Kernel (\w+)\(.*?\) of \S+?>")
_FUNCTION = re.compile(r"<function (?:\w+\.)*(\w+) at 0x\w+>")
_HEAD = re.compile(r"\A// of .*\n")
_MODULE = re.compile(r"\btlx_\w+(?:\.\w+)*\.(\w+)")


def without_places(text: str) -> str:
    """Return a text with the names of files for their paths, and without line numbers of files of this repository."""
    text = _OUR_FILE.sub(lambda found: found[1] + (f"{found[2]}_" if found[2] else ""), text)
    # Lines of PTX are counted with those for debuggers, and C++ and its manifest name those of the kernel.
    return _LINE.sub(r"\1_", _OTHER_FILE.sub(r"\1", text))


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


def without_debugging(text: str) -> str:
    """Return TTGIR without locations, or PTX without what is for debuggers."""
    return _PTX_DEBUG.sub("", _MLIR_LOCATION.sub("", text))


# --- TTGIR and PTX ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Wanted:
    """A kernel to compile."""

    source: KernelSource
    specialization: Specialization
    name: str
    """The item's."""
    is_compiled: bool = True
    """Whether it is compiled to PTX anyway."""

    def on(self, target: str) -> Wanted:
        """The kernel for another target."""
        return replace(self, specialization=replace(self.specialization, target=target), name=f"{self.name}-{target}")

    def ttgir(self, versions: Sequence[str] = VERSIONS) -> Made:
        """Make the texts for Triton versions, of a plain kernel also one with our own conversion to TTGIR."""
        for version in versions:
            text = outcome(lambda version=version: without_debugging(self._text(version)))
            yield f"{self.name}@{version}", self._headed(text)
            if version == VERSIONS[-1] and "ttg." not in text:
                own = outcome(lambda version=version: without_debugging(self._text(version, "own")))
                yield f"{self.name}@{version}-own", self._headed(own)

    def ptx(self) -> Made:
        """Make the PTX of the installed Triton."""
        options = self.specialization.backend_options()

        def make() -> str:
            return without_debugging(compile_ttgir(self._text(VERSIONS[-1]), options, stages="ptx").ptx)

        yield self.name, self._headed(outcome(make))

    def _text(self, version: str, conversion: Conversion = "auto") -> str:
        compiled = compile_text(
            self.source, self.specialization,
            triton_version=version, conversion=conversion, keep_ttir=False, verify_each=False,
        )  # fmt: skip
        return compiled.ttgir

    def _headed(self, text: str) -> str:
        return f"// of {_config(self.specialization)}\n{text}"


def _config(wanted: Specialization) -> str:
    """Return the types, constants and options of a kernel in one line, without names of modules."""
    options = (wanted.target, wanted.num_warps, wanted.cluster, wanted.maxnreg)
    text = repr((sorted(wanted.signature.items(), key=str), sorted(wanted.constexprs.items(), key=str), options))
    return _MODULE.sub(r"\1", _FUNCTION.sub(r"\1", _KERNEL.sub(r"\1", text)))


def oracle_cases() -> dict[str, Case]:
    """Return the oracle's kernels, and those of the corpus that are of the plain language, by name."""
    every = [*loading.names(), *((loading.CORPUS, name) for name in loading.corpus_names())]
    return {name: loading.load(path, ours=True)[name] for path, name in every}


def oracle_kernels() -> Iterator[Wanted]:
    """Return each of them for the targets that stock Triton compiles it for."""
    for name, case in oracle_cases().items():
        signature, constexprs = ours.argument_types(case)
        for target in [f"sm_{arch}a" for arch in case.archs]:
            wanted = Specialization(signature, constexprs, target, case.options.get("num_warps", 4))
            yield Wanted(ours.source(case.kernel), wanted, f"oracle.{name}-{target}")


def example_kernels() -> Iterator[Wanted]:
    """Return the kernels of the examples, each for the target that its file names."""
    for path in (*sorted(ROOT.glob("examples/*.py")), ROOT / "tests/unit/targets/portable_kernels.py"):
        # An example imports torch, of which its kernels need nothing.
        with mock.patch.dict(sys.modules, torch=mock.MagicMock()):
            kernels = kernels_of_file(str(path)).values()
        for kernel, defaults in kernels:
            options = {name: value for name, value in defaults.options.items() if name != "num_stages"}
            wanted = Specialization(defaults.signature, defaults.constexprs, **options)
            if defaults.signature:
                yield Wanted(kernel.source, wanted, f"{path.stem}.{kernel.source.name}")


@cache
def kernels_to_import() -> list[Wanted]:
    """Return what the tests of the kernels to import launch, and what they compile, in the order of their names."""
    found: dict[str, Wanted] = {}

    def note(kernel: Kernel, wanted: Specialization, is_compiled: bool) -> None:
        name = f"{kernel.source.name}-{hashed(_config(wanted))}"
        known = found.get(name)
        found[name] = Wanted(kernel.source, wanted, name, is_compiled or (known is not None and known.is_compiled))

    def compile_kernel(kernel: Kernel, wanted: Specialization) -> None:
        note(kernel, wanted, True)
        pytest.skip("noted")

    def interpret(launch: Launch, **_: Any) -> None:
        options: dict[str, Any] = {"cluster": launch.cluster, "maxnreg": launch.maxnreg}
        wanted = Specialization(launch.signature, launch.constexprs, num_warps=launch.num_warps, **options)
        note(launch.kernel, wanted, False)

    with (
        mock.patch.object(build, "compile_kernel", compile_kernel),
        mock.patch.object(Launch, "interpret", interpret),
        mock.patch.dict(os.environ, TLX_TEST_VOLUME="full"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        # Most tests fail for want of results, of which they compare nothing before their launches.
        pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", str(ROOT / "tests" / "unit" / "kernels")])
    return [found[name] for name in sorted(found)]


def drop_in(ending: str) -> Made:
    """Make what the example for Meta's TLX, unmodified, leaves with this ending in Triton's cache."""
    from triton import knobs

    from tests.unit.compat import numpy_torch

    with (
        mock.patch.dict(sys.modules, torch=numpy_torch.module()),
        tempfile.TemporaryDirectory() as folder,
        knobs.cache.scope(),
    ):
        knobs.cache.dir = folder
        (script,) = ROOT.glob("examples/drop_in/*.py")
        run_script(["--compile-only", str(script), "--no-check"])
        texts = sorted((path.stem, path.read_text()) for path in Path(folder).rglob(f"*.{ending}"))
    for number, (stem, text) in enumerate(texts):
        yield f"drop_in.{stem}-{number}", without_debugging(text)


def ttgir_jobs() -> Iterator[Job]:
    yield partial(drop_in, "handoff")
    for wanted in example_kernels():
        for target in TARGETS:
            yield partial(wanted.on(target.name).ttgir, VERSIONS[-1:])
    for wanted in (*example_kernels(), *oracle_kernels(), *some_to_import()):
        yield wanted.ttgir


MOST = 8
"""Of how many specializations of a kernel to import there are items: of a sample, that is."""


def some_to_import(*, compiled: bool = False) -> Iterator[Wanted]:
    """Return `MOST` specializations of each kernel to import, all or those only that a test compiles."""
    of = Counter[str]()
    for wanted in kernels_to_import():
        if wanted.is_compiled or not compiled:
            of[wanted.source.name] += 1
            if of[wanted.source.name] <= MOST:
                yield wanted


def ptx_jobs() -> Iterator[Job]:
    yield partial(drop_in, "ptx")
    first = {wanted.source.name: wanted for wanted in reversed(kernels_to_import())}.values()
    for wanted in dict.fromkeys((*example_kernels(), *some_to_import(compiled=True), *first)):
        yield wanted.ptx


# --- reports ----------------------------------------------------------------------------------------------------------

SHARES = 8
"""Jobs that share the mutants of a kernel."""


def checked(bug: Bug) -> Made:
    """Make the reports of a mistake, and of the kernel without."""
    # With a tight limit, a busy machine would see fewer orders of programs: these end long before.
    unhurried = replace(bug, seconds=60.0 if bug.seconds else 0.0)
    yield f"zoo.{bug.name}", outcome(lambda: _said(unhurried.check()))
    yield f"zoo.{bug.name}@twin", outcome(lambda: _said(bug.check_twin()))


def _said(found: Iterable[Diagnostic]) -> str:
    return "\n".join(map(str, found)) or "clean"


def run_as_ptx(name: str, of: Bug | Clean, settings: Mapping[str, Any]) -> Made:
    """Make the report of a run of the final PTX."""

    def make() -> str:
        test_zoo_ptx.run(of.kernel, of.grid, of.arguments, settings)  # pyright: ignore[reportUnknownMemberType]
        return "clean"

    yield f"zoo-ptx.{name}", outcome(make)


def mutants(case: zoo.Case, share: int) -> Made:
    """Make the reports of a share of the mutants of a kernel."""
    module = case.module()
    chosen = range(share, len(sites(module)), SHARES)
    for number, row in zip(chosen, rows(case, module, case.make(), chosen), strict=True):
        runs = [f"{each.policy}: {each.kind} {each.text}" for each in row.outcomes]
        place = location_of(row.site.op)
        text = "\n".join([f"{row.site.mutation.name} {row.site.op.name} {place}", *runs])
        yield f"mutants.{case.name}-{number:03}", without_places(text)


def message(entry: Entry) -> Made:
    """Make what is printed about a wrong kernel."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"errors.{entry.title}", outcome(lambda: entry.printed(Path(folder)))


def report_jobs() -> Iterator[Job]:
    for case in zoo.CASES:
        for share in range(SHARES):
            yield partial(mutants, case, share)
    every = [bug for bugs in AREAS.values() for bug in bugs]
    for bug in every:
        yield partial(checked, bug)
        yield partial(run_as_ptx, bug.name, bug, {**bug.constants, "BUG": bug.mistake, **bug.options})
    for bug in test_zoo_ptx.TWINS.values():
        yield partial(run_as_ptx, f"{bug.name}@twin", bug, {**bug.constants, "BUG": "", **bug.twin, **bug.options})
    for run in CLEAN:
        yield lambda run=run: [(f"zoo.{run.name}@clean", outcome(lambda: _said(run.check())))]
        yield partial(run_as_ptx, f"{run.name}@clean", run, run.settings)
    for topic in TOPICS:
        for entry in topic.entries:
            yield partial(message, entry)


# --- C++ and LLVM IR --------------------------------------------------------------------------------------------------

TTL_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "as-written": {"schedule": False},
    "2025-12": {"profile": "2025-12"},
    "fpu-always": {"fpu": "always"},
    "fpu-never": {"fpu": "never", "schedule": False},
}
FUZZED = 150
"""Random TTL kernels."""


def ttl_example(path: Path) -> Made:
    """Make the C++ of the kernels that a TTL example runs."""
    run, calls = ttl.run, list[tuple[Any, Any]]()

    def note(kernel: Any, *tensors: Any) -> None:
        calls.append((kernel, ttl.specs_of(kernel, tensors)))
        run(kernel, *tensors)

    with mock.patch.object(ttl, "run", note):
        run_file(str(path)).main()
    for number, (kernel, specs) in enumerate(calls):
        for title, options in TTL_OPTIONS.items():
            made = partial(ttl.compile_kernel, kernel, specs, ttl.Options(**options))
            yield f"{path.stem}.{kernel.name}-{number}@{title}", outcome(lambda made=made: _cpp(made()))


def ttl_fuzzed(number: int) -> Made:
    """Make the C++ of a random TTL kernel."""
    made = ttl_programs.case(number)
    with tempfile.TemporaryDirectory() as folder:
        kernel = fuzzed_ttl.kernel_of(made.text, folder, number)
        yield f"fuzzed-{number:03}", outcome(lambda: _cpp(fuzzed_ttl.compiled(kernel, made)))


def _cpp(compiled: ttl.CompiledKernel) -> str:
    files = [f"==== {name}\n{text}" for name, text in sorted(compiled.sources.items())]
    return "\n".join([*files, "==== manifest", compiled.manifest_text])


def cpp_jobs() -> Iterator[Job]:
    for path in sorted(ROOT.glob("examples/ttl/*.py")):
        yield partial(ttl_example, path)
    for number in range(FUZZED):
        yield partial(ttl_fuzzed, number)


CPU = "x86-64-v3"
BENCHMARK = "benchmarks/cpu/kernels.py"
_SIZES = ("M", "N", "K", "a_rows", "a_columns", "b_rows", "b_columns", "c_rows", "c_columns")
BENCHMARKS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Mapping[str, int]]] = {
    "vector_add": (("x", "y", "z"), ("n",), {"BLOCK": 16384}),
    "softmax": (("result", "source"), ("result_stride", "source_stride", "columns"), {"BLOCK": 1024}),
    "layer_norm": (("source", "result", "weight", "bias"), ("stride", "columns"), {"BLOCK": 1024}),
    "matmul": (("a", "b", "c"), _SIZES, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}),
}
"""For each kernel of the CPU's benchmark its arrays, its whole numbers and its constants."""


def llvm(name: str, source: KernelSource, signature: Mapping[str, Any], constexprs: Mapping[str, Any]) -> Made:
    """Make the LLVM IR of a kernel for a CPU, without and with checks of its accesses."""
    for checks in (False, True):

        def make(checks: bool = checks) -> str:
            module = bufferized_module(source, CpuSpecialization(signature, constexprs, checks=checks))
            return llvm_module(module, named_host(CPU), checks=checks)[0]

        yield f"{name}{'@checked' if checks else ''}", outcome(make)


def llvm_jobs() -> Iterator[Job]:
    for name, case in oracle_cases().items():
        yield partial(llvm, f"oracle.{name}", ours.source(case.kernel), *ours.argument_types(case))
    kernels = kernels_of_file(str(ROOT / BENCHMARK))
    for name, (arrays, numbers, constexprs) in BENCHMARKS.items():
        for element in ("fp32", "fp16", "bf16"):
            signature = {**dict.fromkeys(arrays, f"*{element}:16"), **dict.fromkeys(numbers, "i32")}
            signature |= {"epsilon": "fp32"} if name == "layer_norm" else {}
            yield partial(llvm, f"benchmark.{name}-{element}", kernels[name][0].source, signature, constexprs)
    for wanted in some_to_import():
        yield partial(
            llvm, wanted.name, wanted.source, wanted.specialization.signature, wanted.specialization.constexprs
        )


# --- the program ------------------------------------------------------------------------------------------------------

CATEGORIES: Mapping[str, Callable[[], Iterator[Job]]] = {
    "ttgir": ttgir_jobs, "ptx": ptx_jobs, "report": report_jobs, "cpp": cpp_jobs, "llvm": llvm_jobs,
}  # fmt: skip

_jobs: list[Job] = []
"""Those of a category: its processes are forks, and find them here."""


def _run(at: int) -> list[tuple[str, str]]:
    compile_in_this_process()
    # Kernels and scripts print.
    with contextlib.redirect_stdout(io.StringIO()):
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


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the text of each item to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / (re.sub(r"[^\w.@+=-]", "_", name) + ".txt")).write_text(text, encoding="utf-8")


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
    with tempfile.TemporaryDirectory() as folder:
        # No binary of an earlier compiler plays a part.
        os.environ["TLX_CACHE_DIR"] = folder
        for category in categories:
            texts = texts_of(category)
            hashes |= {f"{category}/{name}": hashed(text) for name, text in texts.items()}
            if arguments.text:
                write_texts(arguments.text / category, texts)
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
