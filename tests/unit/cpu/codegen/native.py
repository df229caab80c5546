"""Runs a module as machine code of this machine, on arrays with pages around them that may not be touched."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.cpu.bufferize.bufferize import bufferize_pipeline
from tlx_xdsl.cpu.codegen.llvm import Loaded, load
from tlx_xdsl.cpu.codegen.metadata import Site
from tlx_xdsl.cpu.codegen.module import CpuObject, compile_module
from tlx_xdsl.cpu.linalg.triton_to_linalg import TritonToLinalgPass
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

_FORMATS = {"f32": "f", "f64": "d"}
FENCE = np.array([0xFE, 0xFF], np.uint8)
"""The bytes beside arrays: NaN in every type of floats, and not what a store of NaN or -1 writes."""
_LAUNCH = struct.Struct("<qqqiiiiq")


def bufferized(module: ModuleOp) -> ModuleOp:
    """A copy of a module of plain Triton without tensors."""
    copy = module.clone()
    context = make_context()
    with collected_diagnostics():
        for each in (TritonToLinalgPass(), *bufferize_pipeline()):
            each.apply(context, copy)
    verify_module(copy)
    return copy


class Guarded:
    """An array that ends where a page begins that may not be touched; the page before it may not be touched either.

    What is left of its own pages is NaN, in every type of floats.
    """

    def __init__(self, values: np.ndarray, *, at_end: bool = True) -> None:
        page = mmap.PAGESIZE
        pages = -(-max(values.nbytes, 1) // page)
        self.memory = mmap.mmap(-1, (pages + 2) * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for place in (start, start + (pages + 1) * page):
            assert protect(ctypes.c_void_p(place), ctypes.c_size_t(page), 0) == 0, ctypes.get_errno()
        room = pages * page - values.nbytes
        offset = room if at_end else 0
        own = np.frombuffer(self.memory, np.uint8, pages * page, page)
        self._beside = own[:offset] if at_end else own[values.nbytes :]
        self._beside[...] = np.resize(FENCE, room)
        self._before = self._beside.tobytes()
        self.array = np.frombuffer(self.memory, values.dtype, values.size, page + offset).reshape(values.shape)
        self.array[...] = values

    def check(self) -> None:
        """Raise AssertionError if something beside the array was written."""
        assert self._beside.tobytes() == self._before, "it writes beside an array"


@dataclass
class Native:
    """A kernel, compiled and loaded."""

    object: CpuObject
    loaded: Loaded

    def run(self, grid: tuple[int, int, int], values: Sequence[Any]) -> Site | None:
        """Run all programs on this thread; gives the place where one has failed."""
        metadata = self.object.metadata
        count = len(values)
        assert count == len(metadata.arguments), metadata.arguments
        slots = (ctypes.c_uint64 * max(3 * count, 1))()
        for number, (value, argument) in enumerate(zip(values, metadata.arguments, strict=True)):
            if isinstance(value, np.ndarray):
                slots[number] = value.ctypes.data
                slots[count + 2 * number] = value.ctypes.data
                slots[count + 2 * number + 1] = value.ctypes.data + value.nbytes
            else:
                slots[number] = int.from_bytes(bits(value, argument.type), "little")
        launch = ctypes.create_string_buffer(_LAUNCH.pack(0, grid[0] * grid[1] * grid[2], 1, *grid, 0, 0), 48)
        # What ran before in a real arena may have left anything there: NaN in every type of floats.
        scratch = np.full(metadata.scratch_bytes + 128, 0xFF, np.uint8)
        place = -(-scratch.ctypes.data // 64) * 64
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        status = function(self.loaded.address)(slots, launch, place)
        beyond = scratch[place - scratch.ctypes.data + metadata.scratch_bytes :]
        assert (beyond == 0xFF).all(), "it writes beside its arena"
        return metadata.sites[status - 1] if status else None


def bits(value: Any, type_: str) -> bytes:
    """The bytes of a number in a slot of a launch."""
    if type_ in _FORMATS:
        return struct.pack(f"<{_FORMATS[type_]}", value)
    if type_ in ("f16", "bf16"):
        return np.asarray(value, np.float16 if type_ == "f16" else ml_dtypes.bfloat16).tobytes()
    return (int(value) & (1 << 64) - 1).to_bytes(8, "little")


def compiled(module: ModuleOp, *, checks: bool = False) -> Native:
    """Compile a module of plain Triton."""
    return compiled_buffers(bufferized(module), checks=checks)


def compiled_buffers(module: ModuleOp | str, *, checks: bool = False) -> Native:
    """Compile a module without tensors, or its text."""
    made = compile_module(parse_module(module) if isinstance(module, str) else module, checks=checks)
    prints = {name: _silent() for name in made.metadata.symbols if name.startswith("print")}
    return Native(made, load(made.code, made.metadata.symbol, {**dict.fromkeys(made.metadata.symbols), **prints}))


_KEPT: list[Any] = []


def _silent() -> Any:
    _KEPT.append(ctypes.CFUNCTYPE(None)(lambda: None))
    return _KEPT[-1]
