"""Upstream MLIR as an independent reader: it parses, verifies, transforms and runs modules that we have printed.

The wheel `torch-mlir` has MLIR's Python API and an execution engine, and needs no torch. It runs in a process of its
own, which may die of a text; `REASON` says why there is none. Debian's `mlir-opt-19` reads the spelling of LLVM 19.

A kernel is a function of `memref<*xT>` and numbers that ends in the program's coordinates (`tt.program_ids`); a
functional module has a function of tensors.
"""

from __future__ import annotations

import ctypes
import importlib.util
import multiprocessing
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
VERSION = _PROJECT["optional-dependencies"]["mlir"][0].partition("==")[2].partition(";")[0]
"""Of `torch-mlir`: each version has another LLVM."""
TIMEOUT = 120.0
"""Seconds that one question may take."""


def _reason() -> str | None:
    if importlib.util.find_spec("torch_mlir") is None:
        return f"torch-mlir {VERSION} is not installed (the extra 'mlir')"
    found = metadata.version("torch-mlir")
    return None if found == VERSION else f"torch-mlir is {found}, not {VERSION}"


REASON = _reason()
"""Why upstream MLIR can't be asked, or None where it can."""
MLIR_OPT_19 = shutil.which("mlir-opt-19")
"""Debian's `mlir-opt` of LLVM 19, from the package `mlir-19-tools`."""


class UpstreamError(Exception):
    """Upstream MLIR refuses a module, or dies of it."""


def check(text: str) -> None:
    """Parse and verify a module; raises UpstreamError with what MLIR says."""
    _ask(_check, text)


def transformed(text: str, script: str) -> str:
    """The module after a script of the transform dialect: named sequences, the one that begins is `@__transform_main`.

    Raises UpstreamError with what MLIR says.
    """
    return _ask(_transformed, text, script)


def run_kernel(
    text: str, function: str, grid: tuple[int, int, int], arguments: Sequence[Any], opt_level: int = 1
) -> list[np.ndarray]:
    """Make a shared library of a module, and run all programs of a grid (`examples/linalg/to_library.py`).

    Numbers are numpy scalars. Returns the arrays among the arguments as they are after it.
    Raises UpstreamError with what MLIR says.
    """
    return _ask(_run_kernel, text, function, grid, list(arguments), opt_level)


def run_function(text: str, function: str, arguments: Sequence[Any], results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Bufferize a functional module and run a function of tensors of static shapes; `results` say theirs.

    Raises UpstreamError with what MLIR says.
    """
    return _ask(_run_function, text, function, list(arguments), list(results))


def read_by_19(text: str) -> str:
    """Give a module to `mlir-opt-19`, which prints it again; raises UpstreamError with what it says."""
    assert MLIR_OPT_19 is not None
    done = subprocess.run([MLIR_OPT_19], input=text, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise UpstreamError(done.stderr)
    return done.stdout


# --- the worker -------------------------------------------------------------------------------------------------------


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _ask(function: Any, *arguments: Any) -> Any:
    pool = _pool()
    try:
        return pool.submit(function, *arguments).result(TIMEOUT)
    except BrokenProcessPool as error:
        _pool.cache_clear()
        raise UpstreamError("upstream MLIR died of the module") from error
    except TimeoutError as error:
        _pool.cache_clear()
        for process in pool._processes.values():
            process.kill()
        raise UpstreamError(f"upstream MLIR has no answer after {TIMEOUT:g} s") from error


_BUFFERIZE_FUNCTIONS = (
    "one-shot-bufferize{allow-return-allocs-from-loops=1 bufferize-function-boundaries=1"
    " function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions=1}"
)
_TO_LLVM = (
    "convert-linalg-to-loops,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "func.func(arith-expand{include-bf16=true}),memref-expand,"
    "convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,convert-ub-to-llvm,"
    "finalize-memref-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts"
)
_PRINTERS = ("printI64", "printU64", "printF32", "printF64", "printF16", "printBF16", "printString", "printOpen",
             "printClose", "printComma", "printNewline")  # fmt: skip
"""Functions of the same runtime that `vector.print` calls."""
_COPY = re.compile(r"memref\.copy (%[\w#]+), (%[\w#]+) : (.+?) to (.+)$", re.MULTILINE)
"""A copy with strides lowers to a call of a runtime that the wheel lacks, `memrefCopy`: it becomes a loop instead."""


def _check(text: str) -> None:
    _parsed(text)


def _parsed(text: str) -> Any:
    from torch_mlir import ir

    try:
        with ir.Context():
            module = ir.Module.parse(text)
            module.operation.verify()
            return module
    except ir.MLIRError as error:
        raise UpstreamError(str(error)) from None


def _passed(module: Any, pipeline: str) -> None:
    from torch_mlir import ir, passmanager

    try:
        with module.context:
            passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
    except ir.MLIRError as error:
        raise UpstreamError(str(error)) from None


def _transformed(text: str, script: str) -> str:
    from torch_mlir import ir

    module = _parsed(text)
    with module.context:
        steps = ir.Module.parse(f"module attributes {{transform.with_named_sequence}} {{ {script} }}")
        module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
        sequences = [op.operation.detach_from_parent() for op in list(steps.body.operations)]
        for sequence in sequences:
            module.body.append(sequence)
    _passed(module, "transform-interpreter")
    for sequence in sequences:
        sequence.erase()
    return str(module)


def _bits_of_bfloat16(x: float) -> float:
    """Return the f32 whose low half is the bf16: where that is returned, only this half counts."""
    return int(np.float32(x).astype(ml_dtypes.bfloat16).view(np.uint16)) * 2.0**-149


_CONVERSIONS = {
    "__truncsfbf2": ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(_bits_of_bfloat16),
}
"""Functions of compiler-rt that LLVM calls on processors without an instruction for bf16; MLIR's engine has none."""

_CONVERSIONS_IN_C = """
float __truncsfbf2(float x) {
  union { float value; unsigned bits; } it = {x};
  it.bits = x != x ? it.bits >> 16 | 64 : (it.bits + 0x7fff + (it.bits >> 16 & 1)) >> 16;
  return it.value;
}
"""
"""The same for a library."""


def _compiled(text: str, function: str) -> Any:
    from torch_mlir import execution_engine, ir

    module = _parsed(text)
    with module.context:
        for op in module.body.operations:
            if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == function:
                op.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    _passed(module, _BUFFERIZE_FUNCTIONS)
    module = _parsed(_COPY.sub(r"linalg.copy ins(\1 : \3) outs(\2 : \4)", str(module)))
    _passed(module, _TO_LLVM)
    try:
        # Not -O3, which may contract what is computed: the numbers are compared.
        engine = execution_engine.ExecutionEngine(module, opt_level=1)
        for name, function_of in _CONVERSIONS.items():
            engine.raw_register_runtime(name, ctypes.cast(function_of, ctypes.c_void_p))
        engine.lookup(function)
        return engine
    except RuntimeError as error:
        raise UpstreamError(str(error)) from None


def _run_kernel(
    text: str, function: str, grid: tuple[int, int, int], arguments: list[Any], opt_level: int
) -> list[np.ndarray]:
    from torch_mlir import ir

    from examples.linalg.to_library import launch, write_library

    with tempfile.TemporaryDirectory() as folder:
        prints, library = Path(folder) / "prints.c", Path(folder) / "kernel.so"
        prints.write_text("".join(f"void {name}() {{}}\n" for name in _PRINTERS) + _CONVERSIONS_IN_C)
        try:
            write_library(text, library, sources=[prints], opt_level=opt_level)
        except (ir.MLIRError, RuntimeError) as error:
            raise UpstreamError(str(error)) from None
        launch(ctypes.CDLL(str(library)), function, grid, arguments)
    return [each for each in arguments if isinstance(each, np.ndarray)]


def _run_function(text: str, function: str, arguments: list[Any], results: list[np.ndarray]) -> list[np.ndarray]:
    engine = _compiled(text, function)
    values = [*arguments, *results]
    held = [ctypes.pointer(_ranked(each)) if isinstance(each, np.ndarray) else _number(each) for each in values]
    engine.lookup(function)(_pointers(held))
    return results


def _pointers(values: Sequence[Any]) -> Any:
    """Pack the arguments of a call: the address of each."""
    packed = (ctypes.c_void_p * len(values))(*(ctypes.addressof(each) for each in values))
    packed.held = values
    return packed


def _number(value: Any) -> Any:
    """A scalar of any type as bytes."""
    return ctypes.create_string_buffer(np.asarray(value).tobytes(), max(8, np.asarray(value).nbytes))


def _ranked(array: np.ndarray) -> ctypes.Structure:
    """The descriptor of a memref of known rank (MLIR, "Conversion to the LLVM Dialect", memref types)."""
    rank = array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = (
            ("allocated", ctypes.c_int64),
            ("aligned", ctypes.c_int64),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        )

    address = array.ctypes.data
    strides = [stride // array.itemsize for stride in array.strides]
    return Descriptor(address, address, 0, (ctypes.c_int64 * rank)(*array.shape), (ctypes.c_int64 * rank)(*strides))
