"""Run a kernel's final PTX on the CPU: compile it with the installed stock Triton, and hand it to the PTX machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tlx_xdsl.backend import BackendResult, compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.ptx.launch import PtxRun, run_program
from tlx_xdsl.ptx.machine import Limits
from tlx_xdsl.ptx.memory.tensor_map import TensorMap
from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.targets import Feature, target_named

from ..driver.compilation import Specialization, compile_text
from ..driver.host_values import is_descriptor, on_host
from ..launch.parameters import read_tensor_map_format
from .options import Options


def compiled(source: KernelSource, specialization: Specialization) -> BackendResult:
    """The PTX of a kernel, with what a launch must know of it.

    Raises CompilationError for a fault in the kernel, and when stock Triton is not installed.
    """
    version = installed_triton_version()
    if version is None:
        raise CompilationError("the stage 'ptx' needs stock Triton: install tlx-xdsl[nvidia]")
    text = compile_text(source, specialization, triton_version=version, keep_ttir=False)
    return compile_ttgir(text.ttgir, specialization.backend_options(), stages="ptx", source_name=f"{text.name}.ttgir")


def run_ptx(
    source: KernelSource,
    specialization: Specialization,
    values: Sequence[tuple[str, Any]],
    grid: tuple[int, int, int],
    options: Options,
) -> PtxRun:
    """Compile a kernel, and run its PTX on the values of its arguments, in place.

    Raises CompilationError for an error in the kernel; its subclass PtxFault for what the PTX does wrong.
    """
    wanted = replace(specialization, debug=False, enable_fp_fusion=options.enable_fp_fusion)
    result = compiled(source, wanted)
    facts, has_maps = result.metadata, target_named(options.target).has(Feature.TMA)
    return run_program(
        prepare(read(result.ptx, f"{source.name}.ptx"), fp_fusion=result.fp_fusion),
        (grid[0] * facts.num_ctas, *grid[1:]),
        _parameters(values, facts.tensordesc_meta, has_maps=has_maps),
        names=_names(values, has_maps=has_maps),
        num_warps=facts.num_warps,
        cluster=facts.cluster or ((facts.num_ctas, 1, 1) if facts.num_ctas > 1 else wanted.cluster),
        shared=facts.shared,
        scratch=facts.global_scratch_size,
        reachable=[on_host("reachable", value) for value in options.reachable],
        uninitialized="allow" if options.unwritten == "warn" else "error",
        profile=options.profile,
        global_order=options.global_order,
        limits=Limits(seconds=options.max_seconds),
    )


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
