"""triton-shared's pass list as a rival: our module in linalg, lowered by upstream MLIR as its CPU driver does it.

The wheel `torch-mlir` has MLIR's passes and an execution engine; it needs no torch. In the rival's favour the loop over
the programs is in the IR, and LLVM optimizes at O3, where triton-shared calls every program from C++ and runs `llc` as
it is. A copy with strides is a loop, for the wheel has no `memrefCopy`. The list frees no buffer: each run takes new
memory from the system, which costs more than the arithmetic. A second rival is the same list with MLIR's
`buffer-deallocation-pipeline` after bufferization.

Its source: `backend/compiler.py` of github.com/microsoft/triton-shared, `_ttsharedir_to_llir`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cpu.cases import Launch
from tlx_xdsl.cpu.runtime.linalg import linalg_text
from tlx_xdsl.runtime.driver.compilation import Specialization

NAME = "triton-shared's passes"
FREED = f"{NAME}, buffers freed"

PASSES = (
    "convert-linalg-to-affine-loops", "eliminate-empty-tensors", "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{allow-return-allocs-from-loops=true}", "lower-affine", "convert-linalg-to-loops",
    "convert-scf-to-cf", "convert-cf-to-llvm", "convert-arith-to-llvm", "convert-math-to-llvm",
    "convert-complex-to-llvm", "convert-vector-to-llvm", "convert-index-to-llvm", "memref-expand",
    "expand-strided-metadata", "finalize-memref-to-llvm", "convert-func-to-llvm", "lower-affine",
    "convert-arith-to-llvm", "reconcile-unrealized-casts",
)  # fmt: skip
_BUFFERIZED = PASSES.index("lower-affine")
"""After bufferization, copies with strides are rewritten."""
_FREES = ("buffer-deallocation-pipeline", "convert-bufferization-to-memref")

_COPY = re.compile(r"memref\.copy (%[\w#]+), (%[\w#]+) : (.+?) to (.+)$", re.MULTILINE)
_FUNCTION = re.compile(r"func\.func @(\w+)\((.*?)\)(?: attributes \{.*?\})? \{")
_GRID = """
func.func @{name}.grid({declared}, %$programs: index) attributes {{llvm.emit_c_interface}} {{
  %$zero = arith.constant 0 : index
  %$one = arith.constant 1 : index
  %$other = arith.constant 0 : i32
  scf.for %$x = %$zero to %$programs step %$one {{
    %$pid = arith.index_cast %$x : index to i32
    func.call @{name}({given}, %$pid, %$other, %$other) : ({types}, i32, i32, i32) -> ()
  }}
  func.return
}}
"""
"""Calls the kernel once for each program; grids here have one dimension."""

_TYPES = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16"}


def is_installed() -> bool:
    """Return whether the wheel is there."""
    return importlib.util.find_spec("torch_mlir") is not None


def compiled(launch: Launch, *, frees: bool) -> Callable[[], None]:
    """A function that runs all programs of a launch."""
    from torch_mlir import execution_engine

    text, function = _module(launch)
    engine = execution_engine.ExecutionEngine(_lowered(text, _FREES if frees else ()), opt_level=3)
    call = engine.lookup(f"{function}.grid")
    held = [_descriptor(each) if isinstance(each, np.ndarray) else _scalar(each) for each in _runtime(launch)]
    held.append(ctypes.c_int64(launch.grid[0]))
    pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(each) for each in held))

    def run() -> None:
        call(pointers)

    run.held = engine, held  # type: ignore[attr-defined]
    return run


def _runtime(launch: Launch) -> list[Any]:
    """The arguments that are no constants: strides of 1 are, as in a launch."""
    return [each for each in launch.arguments if not _is_one(each)]


def _is_one(value: Any) -> bool:
    return isinstance(value, int) and value == 1


def _module(launch: Launch) -> tuple[str, str]:
    """The text in linalg with a function that loops over the programs, and the name of the kernel."""
    names = list(launch.kernel.source.signature.parameters)
    given = dict(zip(names, launch.arguments, strict=False))
    types = {name: _type_of(value) for name, value in given.items() if not _is_one(value)}
    ones = {name: 1 for name, value in given.items() if _is_one(value)}
    text = linalg_text(launch.kernel.source, Specialization(types, {**ones, **launch.constants}))
    found = _FUNCTION.search(text)
    assert found is not None, text
    arguments = [each.split(":", 1) for each in _top_level(found[2])][:-3]
    function = _GRID.format(
        name=found[1],
        declared=", ".join(f"{name}:{type_}" for name, type_ in arguments),
        given=", ".join(name for name, _ in arguments),
        types=", ".join(type_ for _, type_ in arguments),
    )
    end = text.rindex("}")
    return text[:end] + function + text[end:], found[1]


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _TYPES[value.dtype.name]
    return "fp32" if isinstance(value, float) else "i32"


def _top_level(text: str) -> list[str]:
    """Arguments between commas; types here have none."""
    return [each.strip() for each in re.sub(r" loc\([^)]*\)", "", text).split(",")]


def _lowered(text: str, after_bufferization: tuple[str, ...]) -> Any:
    from torch_mlir import ir, passmanager

    def passed(source: str, passes: tuple[str, ...]) -> Any:
        with ir.Context():
            module = ir.Module.parse(source)
            passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)
            return module

    bufferized = str(passed(text, (*PASSES[:_BUFFERIZED], *after_bufferization)))
    return passed(_COPY.sub(r"linalg.copy ins(\1 : \3) outs(\2 : \4)", bufferized), PASSES[_BUFFERIZED:])


class _Ranked(ctypes.Structure):
    """A memref of one dimension (MLIR, "Conversion to the LLVM Dialect"), of which kernels use the address alone."""

    _fields_ = tuple((name, ctypes.c_int64) for name in ("allocated", "aligned", "offset", "size", "stride"))


class _Unranked(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("descriptor", ctypes.c_void_p))


def _descriptor(array: np.ndarray) -> Any:
    """A pointer to a memref of unknown rank."""
    ranked = _Ranked(array.ctypes.data, array.ctypes.data, 0, array.size, 1)
    pointer = ctypes.pointer(_Unranked(1, ctypes.addressof(ranked)))
    pointer.held = ranked  # type: ignore[attr-defined]
    return pointer


def _scalar(value: float) -> Any:
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int32(value)
