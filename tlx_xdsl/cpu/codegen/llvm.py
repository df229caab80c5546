"""LLVM through llvmlite: text to an object file, and an object file to addresses of functions."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from tlx_xdsl.errors import CompilationError

from .host import Host, host, llvm

PASSES = ("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg", "new_gvn", "simplify_cfg")
"""LLVM's passes that pay, for the loops have vectors and registers already. All of O2 takes four times as long, and its
code was not faster on any of the kernels of `benchmarks/cpu/run.py`."""


@dataclass
class Compiled:
    """An LLVM module after optimization."""

    machine: Any
    module: Any

    def object_code(self) -> bytes:
        """An object file of this machine's format."""
        return self.machine.emit_object(self.module)

    def assembly(self) -> str:
        """The same in text."""
        return self.machine.emit_assembly(self.module)

    def llvm_ir(self) -> str:
        """The optimized LLVM IR."""
        return str(self.module)


def optimized(text: str, opt_level: int = 2, target: Host | None = None) -> Compiled:
    """Parse the text of a module, and optimize it for this machine, or for another one of its architecture.

    `opt_level` is that of LLVM's code generator. Raises CompilationError for text that LLVM refuses.
    """
    binding, target = llvm(), target or host()
    try:
        module = binding.parse_assembly(text)
    except RuntimeError as error:
        raise CompilationError(f"LLVM refuses the module: {error}") from error
    module.triple = target.triple
    machine = _machine(target, opt_level)
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=opt_level)
    passes = binding.create_new_module_pass_manager()
    for name in PASSES if opt_level else ():
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, binding.create_pass_builder(machine, options))
    return Compiled(machine, module)


def _machine(target: Host, opt_level: int) -> Any:
    return (
        llvm()
        .Target.from_triple(target.triple)
        .create_target_machine(
            cpu=target.cpu, features=target.attributes, opt=opt_level, reloc="pic", codemodel="default"
        )
    )


LIBRARY_CALLS = ("ceil", "ceilf", "floor", "floorf", "fma", "fmaf", "memcpy", "memmove", "memset", "rint", "rintf",
                 "trunc", "truncf", "__chkstk", "_fltused")  # fmt: skip
"""What code calls that LLVM makes of instructions: where a CPU has none (x86-64 before SSE4.1, or without FMA), of
large copies, and on Windows of stack frames larger than a page. Objects of Windows with floats refer to the last."""

_FLOATS_USED = ctypes.c_int(0x9875)
"""What a C compiler of Windows gives to every program under the name `_fltused`, to be referred to and not read."""


@dataclass(frozen=True)
class Loaded:
    """Functions of an object file in the memory of this process, as long as this object lives."""

    held: Any
    address: int


def load(code: bytes, symbol: str, externals: Mapping[str, Any]) -> Loaded:
    """Load an object file, and find a function.

    `externals` are the functions that it calls: ctypes callbacks, or None for those of the C library.

    Raises CompilationError for a file that LLVM does not read, and for functions that are not found.
    """
    binding = llvm()
    library = binding.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    for name in LIBRARY_CALLS if sys.platform == "win32" else ():
        # Elsewhere the loader finds them in the process.
        if (address := _address_of(name)) is not None:
            library.import_symbol(name, address)
    for name, function in externals.items():
        address = _address_of(name) if function is None else ctypes.cast(function, ctypes.c_void_p).value
        if address is None:
            raise CompilationError(f"the C library of this system has no function '{name}'")
        library.import_symbol(name, address)
    try:
        linked = library.link(_linker(), f"kernel{next(_numbers)}")
        return Loaded(linked, linked[symbol])
    except (RuntimeError, OSError, KeyError) as error:
        raise CompilationError(f"LLVM cannot load the object file: {error}") from error


_numbers = count()


@cache
def _linker() -> Any:
    # JITLink puts the sections of an object side by side. RuntimeDyld asks for each by itself, and ends the process
    # where two lie more than 2 GiB apart, which happens where torch has mapped much.
    return llvm().create_lljit_compiler(_machine(host(), 0), use_jit_link=sys.platform != "win32")


def _address_of(name: str) -> int | None:
    """A function of the C library or of its mathematics, or what stands for one."""
    if name == "_fltused":
        return ctypes.addressof(_FLOATS_USED)
    for library in _libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


def _libraries() -> list[Any]:
    if sys.platform == "win32":
        return [ctypes.CDLL(name) for name in ("ucrtbase", "msvcrt", "ntdll")]
    found = ctypes.util.find_library("m")
    return [ctypes.CDLL(None), *([ctypes.CDLL(found)] if found is not None else [])]
