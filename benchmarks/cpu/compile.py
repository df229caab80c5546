"""Time the compilation of kernels for the CPU, stage by stage, and from the cache on disk.

The kernels are the oracle's, those of the test that compares machine code with the interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

from tests.gallery.cases import Case, Constant
from tests.unit.cpu.linalg.test_oracle_kernels import CHECKS, REFUSED
from tests.unit.interpreter.oracle import running
from tlx_xdsl import CompilationError
from tlx_xdsl.cpu.bufferize.bufferize import bufferize_pipeline
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.codegen.llvm import optimized
from tlx_xdsl.cpu.codegen.module import llvm_module
from tlx_xdsl.cpu.linalg.triton_to_linalg import linalg_pipeline
from tlx_xdsl.cpu.runtime.build import CpuSpecialization, load_program
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.runtime.driver.cache import FOLDER
from tlx_xdsl.runtime.driver.compilation import frontend_module
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.verify import verify_module

IMPORT = (
    "import sys, time; before = time.perf_counter(); import tlx_xdsl; print((time.perf_counter() - before) * 1e3);"
    "assert 'llvmlite' not in sys.modules"
)


@dataclass(frozen=True)
class Oracle:
    """A kernel of the oracle."""

    name: str
    source: Any
    wanted: CpuSpecialization


def kernels() -> list[Oracle]:
    """All that compile for the CPU."""
    names = dict.fromkeys(parameters.values[0].kernel for parameters in CHECKS)
    return [_oracle(name, running.cases()[name]) for name in names if name not in REFUSED]


def _oracle(name: str, case: Case) -> Oracle:
    signature: dict[str, Any] = {}
    constexprs: dict[str, Any] = {}
    for argument, value in case.arguments.items():
        if isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(each, str) for each in value)):
            signature[argument] = value
        else:
            constexprs[argument] = value.value if isinstance(value, Constant) else value
    return Oracle(name, case.kernel.source, CpuSpecialization(signature, constexprs))


def stages(kernel: Oracle) -> dict[str, float]:
    """Milliseconds of each stage."""
    times: dict[str, float] = {}
    context = make_context()
    clock = time.thread_time
    before = clock()

    def done(stage: str) -> None:
        nonlocal before
        now = clock()
        times[stage] = (now - before) * 1e3
        before = now

    with collected_diagnostics():
        module = frontend_module(kernel.source, kernel.wanted.for_frontend())
        verify_module(module)
        done("frontend")
        for each in linalg_pipeline():
            each.apply(context, module)
        done("linalg")
        for each in bufferize_pipeline():
            each.apply(context, module)
        done("bufferize")
        text, _ = llvm_module(module, host(), checks=False)
        done("LLVM IR")
        compiled = optimized(text)
        done("LLVM passes")
        compiled.object_code()
        done("code")
    return times


def cold(rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of every stage of every kernel, the least of the rounds; all imports are done before."""
    found: dict[str, dict[str, float]] = {}
    every = kernels()
    stages(every[0])
    for _ in range(rounds):
        for kernel in every:
            gc.collect()
            times = stages(kernel)
            known = found.setdefault(kernel.name, times)
            if sum(times.values()) < sum(known.values()):
                found[kernel.name] = times
    return found


def from_disk(rounds: int) -> dict[str, float]:
    """Milliseconds until a kernel that was compiled before can run, the least of the rounds."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        before, os.environ[FOLDER] = os.environ.get(FOLDER), folder
        for kernel in kernels():
            with collected_diagnostics(), contextlib.suppress(CompilationError):
                # One or the other has an operation that only the oracle's test lowers.
                load_program(kernel.source, kernel.wanted)
                found[kernel.name] = min(_loaded(kernel) for _ in range(rounds))
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
    return found


def _loaded(kernel: Oracle) -> float:
    before = time.thread_time()
    load_program(kernel.source, kernel.wanted)
    return (time.thread_time() - before) * 1e3


def imports(rounds: int) -> list[float]:
    """Milliseconds that the package takes to be imported, in processes of their own; none of them loads llvmlite."""
    command = [sys.executable, "-c", IMPORT]
    return [float(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout) for _ in range(rounds)]
