"""A kernel in linalg to a shared library for this CPU, by upstream MLIR's passes alone.

    tlx compile softmax.py:softmax --target linalg -o build
    tlx-opt build/softmax.linalg.mlir -p linalg-for-upstream -o build/softmax.mlir
    python examples/linalg/to_library.py build/softmax.mlir -o build/softmax.so

Nothing of tlx_xdsl is imported: the wheel `torch-mlir` has MLIR's passes and LLVM, and `cc` links. A function of the
library runs one program; `launch` calls it for each program of a grid.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_mlir import execution_engine, ir, passmanager

# Copies that bufferization adds between views are loops, like those of the kernel: `memref.copy` would be a call of
# MLIR's runner library.
BUFFERIZE = """
transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
  %bufferized = transform.bufferization.one_shot_bufferize %root
      {memcpy_op = "linalg.copy", allow_return_allocs_from_loops = true} : (!transform.any_op) -> !transform.any_op
  transform.yield
}
"""
FREE_BUFFERS = ("buffer-deallocation-pipeline", "convert-bufferization-to-memref")
TO_LLVM = (
    "convert-linalg-to-loops", "expand-strided-metadata", "lower-affine", "convert-scf-to-cf", "memref-expand",
    "convert-math-to-llvm", "convert-math-to-libm", "convert-arith-to-llvm", "convert-ub-to-llvm",
    "finalize-memref-to-llvm", "convert-cf-to-llvm", "convert-func-to-llvm", "reconcile-unrealized-casts",
)  # fmt: skip


def lowered(text: str) -> ir.Module:
    """Return a module of linalg as one of LLVM's dialect, each of whose functions has an interface for C.

    Raises MLIRError with what MLIR says.
    """
    # MLIR's pass that frees buffers takes no loops of compare-and-swap: those of such a kernel stay.
    frees = () if "memref.generic_atomic_rmw" in text else FREE_BUFFERS
    with ir.Context():
        module = ir.Module.parse(text)
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                op.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        passed(module, "transform-interpreter", script=BUFFERIZE)
        passed(module, *frees, *TO_LLVM)
        return module


def passed(module: ir.Module, *passes: str, script: str = "") -> None:
    """Run passes on a module, with a script of the transform dialect in it for the time.

    Raises MLIRError with what MLIR says.
    """
    module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    parsed = ir.Module.parse(f"module attributes {{transform.with_named_sequence}} {{ {script} }}")
    steps = [op.operation.detach_from_parent() for op in list(parsed.body.operations)]
    for step in steps:
        module.body.append(step)
    passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)
    for step in steps:
        step.erase()
    del module.operation.attributes["transform.with_named_sequence"]


def write_library(text: str, path: Path, *, sources: Sequence[Path] = (), opt_level: int = 1) -> None:
    """Write the shared library of a module of linalg; `sources` are files of C with what else its functions call.

    Raises MLIRError with what MLIR says, and CalledProcessError where `cc` fails.
    """
    link = ["cc", "-shared", "-fPIC"]
    with tempfile.TemporaryDirectory() as folder:
        code, called = Path(folder) / "kernel.o", Path(folder) / "called.so"
        if sources:
            # The engine writes no object before all that it calls is found.
            subprocess.run([*link, "-o", called, *sources], check=True)
        engine = execution_engine.ExecutionEngine(
            lowered(text), opt_level=opt_level, shared_libs=[str(called)] if sources else [], enable_pic=True
        )
        engine.dump_to_object_file(str(code))
        subprocess.run([*link, "-o", path, code, *sources, "-lm"], check=True)


def launch(library: ctypes.CDLL, kernel: str, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
    """Run a kernel for each program of a grid, on arrays and numpy's numbers."""
    index, sizes = (ctypes.c_int32 * 3)(), (ctypes.c_int32 * 3)(*grid)
    held = [_unranked(each) if isinstance(each, np.ndarray) else _number(each) for each in arguments]
    places = [ctypes.addressof(each) for each in held]
    # What the function does not take of the sizes, it does not look at.
    places += [ctypes.addressof(numbers) + 4 * axis for numbers in (index, sizes) for axis in range(3)]
    packed = (ctypes.c_void_p * len(places))(*places)
    # The engine's name for the function that takes the address of each argument; C calls `_mlir_ciface_{kernel}`.
    function = library[f"_mlir__mlir_ciface_{kernel}"]
    for index[2], index[1], index[0] in itertools.product(*map(range, reversed(grid))):
        function(packed)


def _number(value: Any) -> Any:
    return ctypes.create_string_buffer(np.asarray(value).tobytes(), 8)


def _unranked(array: np.ndarray) -> Any:
    """A pointer to a memref of any rank (MLIR, "Conversion to the LLVM Dialect"): the rank, and one that has it."""
    strides = [stride // array.itemsize for stride in array.strides]
    ranked = (ctypes.c_int64 * (3 + 2 * array.ndim))(array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides)
    pointer = ctypes.pointer((ctypes.c_int64 * 2)(array.ndim, ctypes.addressof(ranked)))
    pointer.held = ranked  # A number keeps no object alive that it is the address of.
    return pointer


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path, help="text of a module in linalg")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the shared library")
    args = parser.parse_args()
    write_library(args.module.read_text(), args.output)


if __name__ == "__main__":
    main()
