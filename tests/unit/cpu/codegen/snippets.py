"""Runs a piece of LLVM IR that the back end writes on numpy arrays, a vector of lanes at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.cpu.codegen.builder import PTR, Builder, Externals, Value, constant
from tlx_xdsl.cpu.codegen.host import Features

Array = NDArray[Any]
Snippet = Callable[..., Value | None]
"""Gets the builder and a value for each operand."""

LANES = 16
NO_HALF = Features(hardware_half=False, vector_bytes=16, registers=16)
_ELEMENTS = {"float32": "float", "float64": "double"}
_ENGINES: list[Any] = []
"""The machine code, which has to stay."""


@lru_cache
def host() -> Features:
    """Return the features of this machine."""
    return Features.of(llvm.get_host_cpu_features(), llvm.get_process_triple())


@lru_cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
    )


def element_of(dtype: Any) -> str:
    """The type of LLVM IR; floats below 32 bits are the integers that hold their bits."""
    found = np.dtype(dtype)
    return _ELEMENTS.get(found.name) or ("i1" if found.kind == "b" else f"i{8 * found.itemsize}")


def compile_snippet(snippet: Snippet, operands: tuple[Any, ...], result: Any, lanes: int = LANES) -> Any:
    """A function of the addresses of arrays of these types, that of the result, and their size."""
    externals = Externals()
    b = Builder(externals)
    pointers = [Value(f"%p{index}", PTR) for index in range(len(operands) + 1)]
    with b.loop(constant(0, "i64"), Value("%n", "i64"), constant(lanes, "i64")) as (index, _, _):
        values: list[Value] = []
        for pointer, dtype in zip(pointers, operands, strict=False):
            element = element_of(dtype)
            stored = "i8" if element == "i1" else element
            value = b.load(stored, b.gep(stored, pointer, index), lanes)
            values.append(b.cast("trunc", value, "i1") if element == "i1" else value)
        given = snippet(b, *values)
        assert given is not None
        assert given.element == element_of(result), given
        if given.element == "i1":
            given = b.cast("zext", given, "i8")
        b.store(given, b.gep(given.element, pointers[-1], index))
    b.lines.append("  ret void")
    signature = f"define void @snippet({', '.join(pointer.typed for pointer in pointers)}, i64 %n)"
    module = llvm.parse_assembly("\n".join([*externals.declarations.values(), b.text(signature)]))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_pass_builder(_machine(), options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, _machine())
    engine.finalize_object()
    _ENGINES.append(engine)
    types = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *types)(engine.get_function_address("snippet"))


def evaluated(snippet: Snippet, result: Any, *operands: Array, lanes: int = LANES) -> Array:
    """The result for each element of the operands, all of one size."""
    function = compile_snippet(snippet, tuple(operand.dtype for operand in operands), result, lanes)
    return applied(function, result, *operands, lanes=lanes)


def applied(function: Any, result: Any, *operands: Array, lanes: int = LANES) -> Array:
    """The same of what `compile_snippet` gave."""
    count = operands[0].size
    padded = -(-count // lanes) * lanes
    held = [np.ascontiguousarray(np.resize(operand.ravel(), padded)) for operand in operands]
    out = np.zeros(padded, result)
    function(*(array.ctypes.data for array in (*held, out)), padded)
    return out[:count]
