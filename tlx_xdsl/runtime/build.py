"""Launchers of kernels: compile with the installed stock Triton, and hand the binary to the CUDA driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tlx_xdsl.backend import BackendResult, compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Fixed, KernelSource, Signature
from tlx_xdsl.targets import Feature, Target, refusal, target_named

from .driver.binaries import Binary, binary_key, load_binary, store_binary
from .driver.compilation import CompiledText, Conversion, Specialization, compile_text
from .driver.phases import phase
from .driver.reproducible import reproducible
from .kernel import Kernel
from .launch.launcher import Launcher, launch_facts
from .launch.parameters import ArgumentSpec


def compile_kernel(kernel: Kernel, specialization: Specialization) -> BackendResult:
    """Compile `kernel` to a device binary.

    Raises CompilationError for a fault in the kernel, and when stock Triton is not installed.
    """
    return compile_source(kernel.source, specialization)[1]


def compile_source(
    source: KernelSource, specialization: Specialization, *, conversion: Conversion = "auto", num_stages: int = 3
) -> tuple[CompiledText, BackendResult]:
    """Compile a kernel's source: what stock Triton got, and the device binary with what Triton made on the way.

    Raises CompilationError for a fault in the kernel, and when stock Triton is not installed.
    """
    version = installed_triton_version()
    if version is None:
        raise CompilationError("stock Triton is not installed: install tlx-xdsl[nvidia]")
    with reproducible(source, specialization=specialization, num_stages=num_stages):
        text = compile_text(source, specialization, triton_version=version, conversion=conversion, keep_ttir=False)
        options = specialization.backend_options(num_stages=num_stages)
        with phase("Triton", text.name):
            return text, compile_ttgir(text.ttgir, options, source_name=f"{text.name}.ttgir")


def build(
    kernel: Kernel,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any],
    *,
    target: str = "sm_90a",
    num_warps: int = 4,
    maxnreg: int | None = None,
    cluster: tuple[int, int, int] = (1, 1, 1),
    launch_pdl: bool = False,
    enable_fp_fusion: bool | None = None,
    ptxas: str | None = None,
) -> Launcher:
    """Compile `kernel` and make a launcher of it: `launcher(grid, *arguments)`, with the runtime arguments in order.

    Items of tuples are arguments of their own, but for those that the kernel was compiled for.

    What was compiled before, in another process too, comes from the cache on disk (`binaries.py`).

    `signature` and `constexprs` are as for `Kernel.compile`; `cluster` is in CTAs along x, y and z;
    `enable_fp_fusion` says whether `a * b + c` may be one fused multiply-add (None: Triton's default); `ptxas` pins the
    assembler: a path, a release or `stock`.

    Raises CompilationError for a fault in the kernel, and for a descriptor as an argument where there is no TMA.
    """
    check_descriptors(kernel.source, signature, target_named(target))
    wanted = Specialization(
        signature, constexprs, target, num_warps,
        cluster=cluster, maxnreg=maxnreg, enable_fp_fusion=enable_fp_fusion, ptxas=ptxas,
    )  # fmt: skip
    binary = _binary(kernel, wanted)
    metadata = binary.metadata
    runtime = [p.name for p in kernel.source.parameters if p.name in signature]
    return Launcher(
        binary.cubin,
        name=metadata.name,
        arguments=[each for name in runtime for each in arguments_of(name, signature[name])],
        **launch_facts(metadata, cluster=cluster, launch_pdl=launch_pdl),
    )


def arguments_of(name: str, type_: Signature) -> list[ArgumentSpec]:
    """Return what the driver takes for an argument: each item of a tuple, without those that are fixed."""
    if isinstance(type_, tuple):
        return [each for at, item in enumerate(type_) for each in arguments_of(f"{name}[{at}]", item)]
    return [] if isinstance(type_, Fixed) else [ArgumentSpec(name, type_)]


def _binary(kernel: Kernel, wanted: Specialization) -> Binary:
    version = installed_triton_version()
    key = None if version is None else binary_key(kernel.source, wanted, version)
    if key is not None and (found := load_binary(key)) is not None:
        return found
    result = compile_kernel(kernel, wanted)
    binary = Binary(result.cubin, result.metadata)
    if key is not None:
        store_binary(key, binary)
    return binary


def check_descriptors(source: KernelSource, signature: Mapping[str, Signature], target: Target) -> None:
    """Refuse arguments that the launcher can't make: without TMA, stock Triton takes the parts of a descriptor."""
    for parameter in source.parameters:
        if str(signature.get(parameter.name, "")).startswith("tensordesc") and not target.has(Feature.TMA):
            said = refusal(f"a tensor descriptor as the argument '{parameter.name}'", (Feature.TMA,), target)
            raise source.error(parameter.node, said, ("make it in the kernel of a pointer: tl.make_tensor_descriptor",))
