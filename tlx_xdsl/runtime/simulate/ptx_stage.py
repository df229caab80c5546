"""Run a kernel's final PTX on the CPU: compile it with the installed stock Triton, and hand it to the PTX machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.backend import BackendResult, UpTo, compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.ptx.launch import PtxRun, run_program, run_ranks
from tlx_xdsl.ptx.machine import Limits
from tlx_xdsl.ptx.memory.tensor_map import TensorMap
from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.faults import PtxFault
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.targets import Feature, target_named
from tlx_xdsl.text.diagnostics import collected_diagnostics, report_again
from tlx_xdsl.transforms.pipelines import first_beyond_plain

from ..driver.binaries import Products, load_products, product_key, store_products
from ..driver.compilation import Specialization, compile_text, frontend_module, installed_profile
from ..driver.host_values import is_descriptor, on_host
from ..launch.parameters import read_tensor_map_format
from ..ranks.simulated import SymmetricArray
from .options import Options


def compiled(
    source: KernelSource, specialization: Specialization, options: Options, upto: UpTo = "ptx"
) -> BackendResult:
    """The PTX of a kernel, with what a launch must know of it: from the cache on disk where it was made before.

    With `upto="cubin"` there is the binary, too.

    Raises CompilationError for a fault in the kernel, and when stock Triton is not installed.
    """
    version = installed_triton_version()
    if version is None:
        raise CompilationError("the stage 'ptx' needs stock Triton: install tlx-xdsl[nvidia]")
    try:
        key = product_key(
            source, specialization, version, upto=upto, num_stages=options.num_stages, conversion="auto",
            mends=options.mends,
        )  # fmt: skip
    except CompilationError:
        # The text of something that it calls is not available.
        key = None
    if key is not None and (known := load_products(f"{key}-run")) is not None:
        return known.backend_result()
    with collected_diagnostics() as said:
        by_stock = options.mends is None and is_stock(frontend_module(source, specialization, installed_profile()))
        text = compile_text(
            source, specialization, triton_version=version, keep_ttir=False, conversion="stock" if by_stock else "auto"
        )
        mends = not by_stock if options.mends is None else options.mends
        wanted = specialization.backend_options(num_stages=options.num_stages, mends=mends)
        result = compile_ttgir(text.ttgir, wanted, stages=upto, source_name=f"{text.name}.ttgir")
    for each in said:
        report_again(each)
    # What was warned of is to be seen each time.
    if key is not None and not said and not result.warnings:
        kept = Products(
            text.name, version, "", "", ptx=result.ptx, cubin=result.cubin, metadata=result.metadata,
            resources=result.resources, fp_fusion=result.fp_fusion, assembler=result.assembler,
        )  # fmt: skip
        store_products(f"{key}-run", kept)
    return result


def is_stock(module: ModuleOp) -> bool:
    """Return whether stock Triton alone compiles what the frontend makes of a kernel."""
    return first_beyond_plain(module, barriers=True) is None


@dataclass(frozen=True)
class FinalRun:
    """A run of PTX."""

    run: PtxRun | None
    """None where a fault has ended it."""
    faults: tuple[PtxFault, ...] = ()
    """Those that the run went on past, each line once, and what has ended it."""


MOST_FAULTS = 20
"""Faults past which a run goes on, at most: one for each line and kind."""


def run_ptx(
    source: KernelSource,
    specialization: Specialization,
    values: Sequence[tuple[str, Any]],
    grid: tuple[int, int, int],
    options: Options,
) -> FinalRun:
    """Compile a kernel, and run its PTX on the values of its arguments, in place.

    Raises CompilationError for an error in the kernel; its subclass PtxFault for what the PTX does wrong, unless the
    run is to go on.
    """
    wanted = replace(specialization, debug=False, enable_fp_fusion=options.enable_fp_fusion)
    return run_result(compiled(source, wanted, options), source.name, wanted.cluster, values, grid, options)


def run_ptx_ranks(
    source: KernelSource,
    specialization: Specialization,
    values: Sequence[Sequence[tuple[str, Any]]],
    symmetric: Mapping[str, SymmetricArray],
    grid: tuple[int, int, int],
    options: Options,
) -> PtxRun:
    """Compile a kernel, and run its PTX on several GPUs side by side, with the values of the arguments of each.

    Raises as `run_ptx` does.
    """
    wanted = replace(specialization, debug=False, enable_fp_fusion=options.enable_fp_fusion)
    result = compiled(source, wanted, options)
    launches = [launch_of(result, wanted.cluster, each, grid, options.target) for each in values]
    ranks = len(launches)

    def connect(addresses: Sequence[int]) -> None:
        for at, each in enumerate(symmetric.values()):
            each.connect(addresses[at * ranks :][:ranks])

    first = launches[0]
    return run_ranks(
        prepare(read(result.ptx, f"{source.name}.ptx"), fp_fusion=result.fp_fusion),
        first.grid,
        [launch.values for launch in launches],
        [array for each in symmetric.values() for array in each.arrays],
        connect,
        names=first.names,
        symmetric_names=[f"{name} of rank {rank}" for name in symmetric for rank in range(ranks)],
        num_warps=first.num_warps,
        cluster=first.cluster,
        shared=first.shared,
        scratch=first.scratch,
        uninitialized="allow" if options.unwritten == "warn" else "error",
        limits=Limits(seconds=options.max_seconds),
    )


def run_result(
    result: BackendResult,
    name: str,
    cluster: tuple[int, int, int],
    values: Sequence[tuple[str, Any]],
    grid: tuple[int, int, int],
    options: Options,
) -> FinalRun:
    """Run the PTX of a kernel of some name, as `run_ptx` does; `cluster` is that of the launch."""
    launch = launch_of(result, cluster, values, grid, options.target)
    faults: dict[tuple[object, str], PtxFault] = {}

    def goes_on(fault: PtxFault) -> bool:
        faults.setdefault(kind_of(fault), fault)
        return len(faults) < MOST_FAULTS

    try:
        done = run_program(
            prepare(read(result.ptx, f"{name}.ptx"), fp_fusion=result.fp_fusion),
            launch.grid,
            launch.values,
            names=launch.names,
            num_warps=launch.num_warps,
            cluster=launch.cluster,
            shared=launch.shared,
            scratch=launch.scratch,
            reachable=[on_host("reachable", value) for value in options.reachable],
            uninitialized="allow" if options.unwritten == "warn" else "error",
            profile=options.profile,
            global_order=options.global_order,
            limits=Limits(seconds=options.max_seconds),
            on_fault=goes_on if options.keep_going else None,
        )
    except PtxFault as error:
        if not options.keep_going:
            raise
        faults.setdefault(kind_of(error), error)
        return FinalRun(None, tuple(faults.values()))
    return FinalRun(done, tuple(faults.values()))


@dataclass(frozen=True)
class PtxLaunch:
    """A launch as the PTX machine takes it."""

    grid: tuple[int, int, int]
    """CTAs along x, y and z."""
    values: list[Any]
    """Of the kernel's parameters, in order."""
    names: list[str]
    """Of the values, in reports."""
    num_warps: int
    """All warps of a CTA, those of tasks included."""
    cluster: tuple[int, int, int]
    shared: int
    """Bytes of dynamic shared memory."""
    scratch: int
    """Bytes of global scratch memory of each CTA."""


def launch_of(
    result: BackendResult,
    cluster: tuple[int, int, int],
    values: Sequence[tuple[str, Any]],
    grid: tuple[int, int, int],
    target: str,
) -> PtxLaunch:
    """Return the launch of final PTX with these values of its arguments; `cluster` is what the launch says."""
    facts, has_maps = result.metadata, target_named(target).has(Feature.TMA)
    return PtxLaunch(
        (grid[0] * facts.num_ctas, *grid[1:]),
        _parameters(values, facts.tensordesc_meta, has_maps=has_maps),
        _names(values, has_maps=has_maps),
        facts.num_warps,
        facts.cluster or ((facts.num_ctas, 1, 1) if facts.num_ctas > 1 else cluster),
        facts.shared,
        facts.global_scratch_size,
    )


_NUMBER = re.compile(r"\d+")


def kind_of(fault: PtxFault) -> tuple[object, str]:
    """Return the line of a fault, and its message without numbers of bytes and without who is at odds there."""
    place = fault.location
    said = fault.message.partition(", and nothing orders")[0]
    return (None if place is None else (place.filename, place.line)), _NUMBER.sub("", said)


def _parameters(values: Sequence[tuple[str, Any]], meta: Sequence[Mapping[str, Any]], *, has_maps: bool) -> list[Any]:
    """The values of the parameters: tensor maps as the compiler says, or without TMA the parts of descriptors."""
    entries = iter(meta)
    found: list[Any] = []
    for name, value in values:
        if not is_descriptor(value):
            found.append(value)
        elif has_maps:
            found.append(_tensor_map(name, value, next(entries)))
        else:
            found.extend([value.base, *value.shape, *value.strides])
    return found


def _names(values: Sequence[tuple[str, Any]], *, has_maps: bool) -> list[str]:
    names: list[str] = []
    for name, value in values:
        count = 1 + 2 * len(value.shape) if is_descriptor(value) and not has_maps else 1
        names.extend([name] * count)
    return names


def _tensor_map(name: str, value: Any, meta: Mapping[str, Any]) -> TensorMap:
    form = read_tensor_map_format(meta, name)
    rounds = bool(getattr(value, "round_f32_to_tf32", False))
    return TensorMap(
        value.base, form.box, form.swizzle, tuple(map(int, value.shape)), tuple(map(int, value.strides)),
        fills_with_nan=getattr(value, "padding", "zero") == "nan",
        element_type=11 if rounds else int(meta["elem_type"]), fp4_padded=form.fp4_padded, name=name,
    )  # fmt: skip
