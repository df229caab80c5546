"""A kernel as files that a C program for CPUs is linked from: the object, the launcher, and what is known of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.frontend.types import split_tuple
from tlx_xdsl.runtime.bundle.c_text import is_identifier
from tlx_xdsl.runtime.bundle.manifest import MANIFEST, bundle_error
from tlx_xdsl.runtime.bundle.write import constants_of
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel
from tlx_xdsl.version import __version__

from ..codegen.host import NATIVE, named_host
from ..runtime.build import CpuSpecialization, CpuStages, compile_stages
from .launcher import CpuKernel, CpuLauncher

BUNDLED = ("o", "h", "c", "json")
"""Ends of the names of a bundle's files: the object, the launcher's header and source, and what launches in other
languages must know."""


def write_cpu_bundle(
    folder: str | PathLike[str],
    kernel: Any,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    cpu: str = NATIVE,
    checks: bool = False,
) -> Path:
    """Compile `kernel` for CPUs and write its files into a folder of `folder`; returns that folder.

    `signature` and `constexprs` are as for `Kernel.compile`. `name` (the kernel's, without one) is that of the folder
    and the files and the prefix of the C functions. `cpu` says which CPUs run the code: this machine's, or all that
    have what `x86-64-v3` stands for (`named_host`). With `checks` every access is checked to lie in its array.

    Raises CompilationError for a fault in the kernel and for what a bundle can't launch; ValueError for an unknown CPU
    and without llvmlite; OSError for a folder that can't be written.
    """
    source = source_of_kernel(kernel)
    wanted = CpuSpecialization(signature, constexprs or {}, checks, symbol=bundle_symbol(source, name))
    check_bundled(source, signature)
    made = compile_stages(source, wanted, named_host(cpu))
    return write_files(folder, made.metadata.name, cpu_files(source, wanted, made))


def write_files(folder: str | PathLike[str], name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of `cpu_files` that a bundle has into a folder of `folder`; returns that folder.

    Raises BundleError where a kernel for a GPU lies, whose files have the same names.
    """
    path = Path(folder) / name
    if (path / MANIFEST).exists():
        raise bundle_error(
            path, "there is a kernel for a GPU here, which is not replaced", "--bundle-name names another folder"
        )
    path.mkdir(parents=True, exist_ok=True)
    for end in BUNDLED:
        path.joinpath(f"{name}.{end}").write_bytes(files[end])
    return path


def bundle_symbol(source: KernelSource, name: str | None) -> str:
    """The name that a kernel has in an object.

    Raises CompilationError for one that C has no functions for.
    """
    symbol = name or source.symbol
    if not is_identifier(symbol):
        raise CompilationError(f"the name of a bundle is an identifier of C, found '{symbol}'")
    return symbol


def check_bundled(source: KernelSource, signature: Mapping[str, Signature]) -> None:
    """Refuse, before the compile, what C can't pass: located at the kernel's parameter."""
    for parameter in source.parameters:
        spelled = signature.get(parameter.name, "")
        if not isinstance(spelled, str) or split_tuple(spelled) is not None:
            raise source.error(
                parameter.node,
                f"the argument '{parameter.name}' is a tuple, which a bundle can't pass",
                ("give each of its items a parameter of its own",),
            )


def cpu_files(source: KernelSource, wanted: CpuSpecialization, made: CpuStages) -> dict[str, bytes]:
    """The content of each file by the end of its name: `ll`, `s`, `o`, `h`, `c` and `json`."""
    arguments = [
        (each.name, str(wanted.signature[each.name]))
        for each in source.parameters
        if each.name in wanted.signature and each.name not in wanted.constexprs
    ]
    constants = constants_of(source, wanted.signature, wanted.constexprs)
    launcher = CpuLauncher(CpuKernel(source.name, arguments, constants, made.metadata, made.host))
    described = {
        **asdict(made.metadata),
        "signature": dict(arguments),
        "constants": constants,
        "features": [each[1:] for each in made.host.attributes.split(",") if each.startswith("+")],
        "tlx_xdsl_version": __version__,
    }
    return {
        "ll": made.llvm_ir.encode(),
        "s": made.assembly.encode(),
        "o": made.code,
        "h": launcher.header().encode(),
        "c": launcher.source().encode(),
        "json": json.dumps(described, indent=2).encode(),
    }
