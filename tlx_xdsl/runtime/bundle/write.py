"""Writing a bundle: compile a kernel, and put down what a launch needs. No GPU takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import Parameter as PythonParameter
from os import PathLike
from pathlib import Path
from typing import Any

from tlx_xdsl.backend import BackendResult
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Fixed, KernelSource, Signature
from tlx_xdsl.frontend.types import split_tuple
from tlx_xdsl.targets import target_named
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.version import __version__

from ..build import check_descriptors, compile_source
from ..driver.specialization import Conversion, Specialization
from ..launch.cuda_driver import default_driver
from ..simulate.interpret import source_of_kernel
from .c_launcher import CLauncher
from .c_text import is_identifier
from .folder import replace_folder
from .load import LoadedBundle
from .manifest import MANIFEST, BundleArgument, BundleFile, Manifest, plain_json, sha256


@dataclass(frozen=True)
class LaunchFlags:
    """Options of the launch beside its sizes."""

    pdl: bool = False
    """It may start before its predecessor in the stream has finished (programmatic dependent launch)."""
    cooperative_grid: bool = False
    """All of its CTAs must be resident at once."""


def write_bundle(
    folder: str | PathLike[str],
    kernel: Any,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    target: str = "sm_90a",
    num_warps: int = 4,
    num_stages: int = 3,
    num_ctas: int = 1,
    maxnreg: int | None = None,
    cluster: tuple[int, int, int] = (1, 1, 1),
    conversion: Conversion = "auto",
    flags: LaunchFlags | None = None,
    enable_fp_fusion: bool | None = None,
    ptxas: str | None = None,
) -> Path:
    """Compile `kernel` and write its bundle into a folder of `folder`; returns that folder.

    `signature` and `constexprs` are as for `Kernel.compile`; a type such as `*fp16:16` says that launches only pass
    multiples of 16. The items of a tuple are arguments of their own, `name_item`. `name` (the kernel's, without one)
    distinguishes the bundles in `folder`, is the prefix of the C functions, and must be an identifier of C.
    A bundle of that name is replaced, in one step. `cluster` is in CTAs along x, y and z. `enable_fp_fusion` says
    whether `a * b + c` may be one fused multiply-add (None: as Triton does). `ptxas` pins the assembler: a path, a
    release or `stock`; a driver loads binaries of its own major CUDA version and of older ones.

    Raises CompilationError for a fault in the kernel, for what a bundle can't launch, and without stock Triton.
    """
    source = source_of_kernel(kernel)
    check_name(name or source.name)
    wanted = Specialization(
        signature, constexprs or {}, target, num_warps, num_ctas, cluster,
        maxnreg=maxnreg, enable_fp_fusion=enable_fp_fusion, ptxas=ptxas,
    )  # fmt: skip
    check_launchable(source, wanted)
    text, result = compile_source(source, wanted, conversion=conversion, num_stages=num_stages)
    return write_compiled(
        folder,
        source,
        wanted,
        locations_first(text.ttgir),
        result,
        name=name,
        num_stages=num_stages,
        flags=flags or LaunchFlags(),
    )


def check_name(name: str) -> None:
    """Refuse a bundle's name that C has no functions for."""
    if not is_identifier(name):
        raise CompilationError(f"the name of a bundle is an identifier of C, found '{name}'")


def check_launchable(source: KernelSource, specialization: Specialization) -> None:
    """Refuse, before the compile, what no launch of a bundle could pass: located at the kernel's parameter."""
    check_descriptors(source, specialization.signature, target_named(specialization.target))
    known = {parameter.name for parameter in source.parameters}
    for parameter in source.parameters:
        for name, _ in _passed(parameter.name, specialization):
            if name != parameter.name and name in known:
                raise source.error(
                    parameter.node,
                    f"the argument '{parameter.name}' is a tuple with an item that a bundle calls '{name}', which is "
                    "another argument",
                    ("give one of them another name",),
                )


def _passed(name: str, specialization: Specialization) -> list[tuple[str, str]]:
    """Return what a launch passes for a parameter, by name and type: items of a tuple one by one, as `name_item`."""
    spelled = specialization.signature.get(name)
    return [] if spelled is None or name in specialization.constexprs else _flat(name, spelled)


def _flat(name: str, spelled: Signature) -> list[tuple[str, str]]:
    if isinstance(spelled, Fixed):
        return []
    items = split_tuple(spelled) if isinstance(spelled, str) else spelled
    if items is None:
        return [(name, str(spelled).strip())]
    fields = getattr(type(spelled), "_fields", range(len(items)))
    return [each for field, item in zip(fields, items, strict=True) for each in _flat(f"{name}_{field}", item)]


def write_compiled(
    folder: str | PathLike[str],
    source: KernelSource,
    specialization: Specialization,
    ttgir: str,
    result: BackendResult,
    *,
    name: str | None = None,
    num_stages: int = 3,
    flags: LaunchFlags | None = None,
) -> Path:
    """Write the bundle of a kernel that was compiled from `ttgir` up to the binary: see `write_bundle`."""
    manifest = _manifest(name or source.name, source, specialization, result, num_stages, flags or LaunchFlags())
    path = Path(folder) / manifest.name
    stages = {"cubin": result.cubin, "ptx": result.ptx.encode(), "ttgir": ttgir.encode()}
    try:
        write_files(path, manifest, stages)
    except (ValueError, NotImplementedError) as error:
        raise CompilationError(f"the kernel '{source.name}' can't be bundled: {error}") from error
    return path


def write_files(path: Path, manifest: Manifest, stages: Mapping[str, bytes]) -> None:
    """Make `path` the folder of a bundle: `stages` by their names, the C launcher, and `manifest` with their sums.

    Raises ValueError and NotImplementedError for what can't be launched; BundleError where something else is in the
    way; OSError for a folder that can't be written.
    """
    # What could never be launched is refused here; no driver is asked.
    LoadedBundle(path, manifest, stages["cubin"], default_driver())
    launcher = CLauncher(manifest, stages["cubin"])
    contents = {stage: (f"{manifest.name}.{stage}", content) for stage, content in stages.items()}
    contents["header"] = (f"{manifest.name}.h", launcher.header().encode())
    contents["source"] = (f"{manifest.name}.c", launcher.source().encode())
    files = {kind: BundleFile(file, sha256(content)) for kind, (file, content) in contents.items()}
    described = replace(manifest, files=files).to_json().encode()
    replace_folder(path, dict(contents.values()) | {MANIFEST: described})


def _manifest(
    name: str,
    source: KernelSource,
    specialization: Specialization,
    result: BackendResult,
    num_stages: int,
    flags: LaunchFlags,
) -> Manifest:
    metadata, resources = result.metadata, result.resources
    return Manifest(
        name=name,
        kernel=source.symbol,
        entry=metadata.name,
        target=target_named(specialization.target).name,
        arguments=_arguments(source, specialization, result),
        constants=constants_of(source, specialization.signature, specialization.constexprs),
        num_warps=metadata.num_warps,
        num_ctas=metadata.num_ctas,
        cluster=list(metadata.cluster or specialization.cluster),
        shared=metadata.shared,
        tmem_columns=metadata.tmem_size,
        global_scratch_size=metadata.global_scratch_size,
        global_scratch_align=metadata.global_scratch_align,
        profile_scratch_size=metadata.profile_scratch_size,
        profile_scratch_align=metadata.profile_scratch_align,
        launch_pdl=flags.pdl,
        launch_cooperative_grid=flags.cooperative_grid,
        triton_version=result.triton_version,
        tlx_xdsl_version=__version__,
        build={
            "num_warps": specialization.num_warps,
            "num_stages": num_stages,
            "maxnreg": specialization.maxnreg,
            "enable_fp_fusion": result.fp_fusion,
            "assembler": result.assembler,
            "registers": resources.registers,
            "spill_store_bytes": resources.spill_store_bytes,
            "spill_load_bytes": resources.spill_load_bytes,
        },
    )


def _arguments(source: KernelSource, specialization: Specialization, result: BackendResult) -> list[BundleArgument]:
    """The runtime arguments in the order of the kernel's parameters, each descriptor with what was decided about it."""
    metas = iter(result.metadata.tensordesc_meta)
    found: list[BundleArgument] = []
    for parameter in source.parameters:
        for name, spelled in _passed(parameter.name, specialization):
            meta = next(metas, None) if spelled.startswith("tensordesc") else None
            descriptor = None if meta is None else {key: plain_json(value) for key, value in meta.items()}
            found.append(BundleArgument(name, spelled, descriptor))
    return found


def constants_of(
    source: KernelSource, signature: Mapping[str, Signature], constexprs: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of all parameters that are no runtime arguments, defaults included, as JSON has them."""
    found: dict[str, Any] = {}
    for parameter in source.parameters:
        if parameter.name in constexprs:
            found[parameter.name] = plain_json(constexprs[parameter.name])
        elif parameter.name not in signature and parameter.default is not PythonParameter.empty:
            found[parameter.name] = plain_json(parameter.default)
    return found
